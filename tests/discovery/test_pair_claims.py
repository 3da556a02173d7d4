"""Claims of devices with one label: the right pairs of labels meet, nothing else changes."""

from dataclasses import replace

import numpy as np

from d2dfl import Network, discover
from d2dfl.config.presets import preset
from d2dfl.discovery.equations.reward import Terms
from d2dfl.discovery.game.board import board_of
from d2dfl.discovery.game.pair_claims import claim_values, claims, single_label
from d2dfl.discovery.methods import marginal
from d2dfl.partition.masked.bill import masked_sum_cost
from d2dfl.partition.sketches import VALUES


def one_label_each(devices: int, labels: int, seed: int, trusted: float = 0.5) -> Network:
    """Devices with 100 datapoints of one label each, labels in turn, random trust and loss."""
    generator = np.random.default_rng(seed)
    counts = np.zeros((devices, labels))
    counts[np.arange(devices), np.arange(devices) % labels] = 100.0
    return Network.from_arrays(
        counts=counts,
        threshold=np.full((devices, labels), 100.0 / labels),
        trust=generator.random((devices, devices, labels)) < trusted,
        drop=0.1 * generator.random((devices, devices)),
    )


def pairs_that_meet(after: np.ndarray) -> set[tuple[int, int]]:
    """Pairs of labels of which some device holds at least a twentieth each."""
    held = after >= 0.05 * after.sum(axis=1, keepdims=True)
    return {(one, other) for own in held for one in range(len(own)) for other in range(one) if own[one] and own[other]}


def everything(own: np.ndarray, labels: int) -> np.ndarray:
    """Devices that could receive any label."""
    return np.ones((len(own), labels), dtype=bool)


def by_hand(distances: dict[tuple[int, int], float], labels: int) -> np.ndarray:
    """A table of distances; pairs that are not given lie 9 apart."""
    apart = np.full((labels, labels), 9.0)
    for (one, other), value in distances.items():
        apart[one, other] = apart[other, one] = value
    np.fill_diagonal(apart, 0.0)
    return apart


def listed(found: np.ndarray) -> list[list[int]]:
    """Claims of each device as label numbers."""
    return [np.nonzero(row)[0].tolist() for row in found]


def test_who_holds_a_single_label() -> None:
    counts = [[10, 0, 0], [0, 9, 1], [0, 8, 2], [0, 0, 0]]
    assert single_label(np.array(counts, dtype=float)).tolist() == [0, 1, -1, -1]


def seen_on_the_list(values: np.ndarray, network: Network) -> list[set[int]]:
    """The attack of a device's neighbours in the tree: pairs by which the list grew in its turns; what all have in common is its label."""
    own = single_label(network.counts)
    found = []
    for device, row in enumerate(values):
        partners = {own[network.candidates[device, slot]] for slot in np.nonzero(row)[0]}
        pairs = [{int(own[device]), int(partner)} for partner in partners]
        found.append(set.intersection(*pairs) if len(pairs) > 1 else set())
    return found


def test_neighbours_read_a_label_off_the_list_unless_its_device_trusts_nobody_with_it() -> None:
    network = one_label_each(12, 4, 3)
    shy = replace(network, trust=network.trust & (network.candidates != 5)[:, :, None])  # nobody is trusted by 5
    terms = Terms.of(preset("best").reward)
    for known, hidden in ((network, set()), (shy, {5})):
        values = claim_values(board_of(known, terms), known.candidates >= 0, 2)
        seen = seen_on_the_list(values, known)
        assert [device for device in range(12) if seen[device] == {device % 4}] == sorted(set(range(12)) - hidden)
        assert not any(seen[device] for device in hidden)


def test_labels_that_are_alike_are_claimed_first() -> None:
    own = np.array([0, 3, 0, 1, 3])
    apart = by_hand({(0, 3): 1.0, (0, 1): 2.0, (1, 3): 3.0}, 4)
    # 0-3 by the first; it is taken, so device 1 takes 3-1; device 2 the next of label 0, which is 0-1; device 3 has
    # only 1-2 left that nobody claimed, device 4 only 3-2.
    assert listed(claims(own, everything(own, 4), 1, apart)) == [[3], [1], [1], [2], [2]]


def test_labels_in_turn_where_nobody_knows_what_is_alike() -> None:
    own = np.array([2, 2, 2, 5, -1])
    assert listed(claims(own, everything(own, 6), 1)) == [[1], [3], [0], [0], []]


def test_nobody_claims_what_it_cannot_have() -> None:
    own = np.array([0, 0, 0])
    offered = np.array([[1, 0, 0, 1], [1, 0, 0, 1], [1, 0, 0, 0]], dtype=bool)
    apart = by_hand({(0, 1): 1.0}, 4)
    assert listed(claims(own, offered, 1, apart)) == [[3], [3], []]  # rather the same pair twice than none
    assert listed(claims(own, offered, 3, apart)) == [[3], [3], []]


def test_every_device_wishes_for_as_many_labels_as_it_has_links() -> None:
    generator = np.random.default_rng(0)
    own = generator.integers(0, 10, 60)
    apart = generator.random((10, 10))
    for edges in (1, 2, 5, 20):
        found = claims(own, everything(own, 10), edges, apart + apart.T)
        assert (found.sum(axis=1) == min(edges, 9)).all()
        assert not found[np.arange(60), own].any()  # nobody for its own


def test_no_pair_is_claimed_again_before_all_are() -> None:
    own = np.repeat(np.arange(10), 4)  # 40 devices, 45 pairs
    np.random.default_rng(3).shuffle(own)
    pairs = [
        frozenset((label, claim[0]))
        for label, claim in zip(own, listed(claims(own, everything(own, 10), 1)), strict=True)
    ]
    assert len(set(pairs)) >= 38  # the last in the row may find all pairs of its own label taken


def test_a_wish_is_fulfilled_by_what_may_be_sent() -> None:
    network = one_label_each(6, 6, 0)
    board = board_of(network, Terms.of(preset("best").reward))
    known = network.candidates >= 0
    found = claim_values(board, known, 1)
    own = network.counts.argmax(axis=1)
    fulfilled = 0
    for receiver in range(6):
        for slot, transmitter in enumerate(network.candidates[receiver].tolist()):
            trusted = bool(network.trust[receiver, slot, own[transmitter]])
            assert found[receiver, slot] in (0.0, 1.0)
            assert found[receiver, slot] <= trusted
        # One label each: whoever could receive anything, and lets anybody have its own, claims exactly one of the others.
        could = network.trust[receiver, np.arange(5), own[network.candidates[receiver]]].any()
        tells = network.trust[network.candidates == receiver][:, own[receiver]].any()
        assert found[receiver].sum() == (1.0 if could and tells else 0.0)
        fulfilled += int(could)
    assert fulfilled > 3
    assert not claim_values(board, np.zeros_like(known), 1).any()


def test_more_pairs_meet() -> None:
    met = {0.0: 0, 0.5: 0}
    for seed in range(4):
        network = one_label_each(25, 10, seed, trusted=0.7)
        for spread in met:
            config = preset("best").with_(**{"discovery.edges": 1, "marginal.spread": spread})
            met[spread] += len(pairs_that_meet(discover(network, config, seed=seed).evaluation.counts_after))
    assert met[0.5] >= met[0.0] + 4 * 3


def test_devices_with_several_labels_are_left_alone() -> None:
    config = preset("best").with_(**{"discovery.edges": 1})
    network = Network.generate(config, 3)  # three labels each
    one, other = (discover(network, config.with_(marginal__spread=spread), seed=3) for spread in (0.0, 0.5))
    assert one.graph.edges == other.graph.edges
    assert (one.messages, one.message_bits) == (other.messages, other.message_bits)


def test_what_wishes_cost() -> None:
    network = one_label_each(12, 6, 0)
    terms = Terms.of(preset("best").reward)
    board = board_of(network, terms)
    without, turns, alike = (
        marginal.introduce(board, terms, 500, spread, 2, apart)
        for spread, apart in ((0.0, None), (0.5, None), (0.5, np.ones((6, 6))))
    )
    assert turns.messages[0] == without.messages[0] + 2 * 2 * 12  # the list, twice round
    assert turns.counts[0] == alike.counts[0] == without.counts[0] + 2 * 2 * 12 * 15
    assert turns.bits[0] == without.bits[0]
    # Two more masked sums: who contributes, and the sketches.
    sums = masked_sum_cost(12, [6, 6 * (VALUES + 1)], word_bits=64, keys=False)
    assert alike.messages[0] == turns.messages[0] + sums.messages
    assert alike.bits[0] == turns.bits[0] + sums.bits


def test_alike_labels_meet_in_a_network() -> None:
    apart = np.abs(np.subtract.outer(np.arange(10), np.arange(10))).astype(float)  # neighbours are alike
    steps = {}
    for name, known in (("turns", None), ("alike", apart)):
        pairs = set()
        for seed in range(3):
            network = replace(one_label_each(25, 10, seed, trusted=0.7), label_distance=known)
            config = preset("best").with_(**{"discovery.edges": 1})
            pairs |= pairs_that_meet(discover(network, config, seed=seed).evaluation.counts_after)
        steps[name] = float(np.mean([abs(one - other) for one, other in pairs]))
    assert steps["alike"] < 0.9 * steps["turns"]
