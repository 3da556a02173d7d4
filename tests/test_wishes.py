"""Wishes of devices with one label: different pairs of labels meet, nothing else changes."""

from dataclasses import replace

import numpy as np

from d2dfl import Network, discover
from d2dfl.discovery import game, marginal
from d2dfl.discovery.reward import Terms
from d2dfl.discovery.wishes import wished_labels, wishes
from d2dfl.partition.sketches import VALUES
from d2dfl.presets import preset


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


def test_devices_with_the_same_label_wish_for_different_ones() -> None:
    counts = np.zeros((7, 6))  # the last device holds nothing
    counts[:4, 2] = 10  # four devices with label 2
    counts[4, 5] = 10
    counts[5] = [5, 5, 0, 0, 0, 0]  # two labels make a pair of themselves
    wished = wished_labels(counts, edges=1)
    assert [np.nonzero(row)[0].tolist() for row in wished] == [[3], [4], [5], [3], [0], [], []]


def test_no_pair_is_claimed_from_both_ends() -> None:
    labels = 10
    counts = np.repeat(np.eye(labels), 4, axis=0)  # fewer devices of a label than half the labels
    claimed = [
        frozenset(pair) for pair in zip(counts.argmax(axis=1), wished_labels(counts, 1).argmax(axis=1), strict=True)
    ]
    assert len(set(claimed)) == len(claimed) == 40


def by_hand(distances: dict[tuple[int, int], float], labels: int) -> np.ndarray:
    """A table of distances; pairs that are not given lie 9 apart."""
    apart = np.full((labels, labels), 9.0)
    for (one, other), value in distances.items():
        apart[one, other] = apart[other, one] = value
    np.fill_diagonal(apart, 0.0)
    return apart


def test_labels_that_are_alike_meet_first() -> None:
    counts = np.repeat(np.eye(6), [1, 2, 1, 1, 1, 1], axis=0)
    apart = by_hand({(0, 3): 1.0, (1, 3): 2.0, (1, 5): 3.0, (0, 5): 4.0, (2, 4): 5.0, (0, 1): 6.0}, 6)
    wished = [np.nonzero(row)[0].tolist() for row in wished_labels(counts, 1, apart)]
    # 0-3 goes to 0 (equal numbers left), 1-3 and 1-5 to 1 (two left, then a draw), 0-5 to 5, 2-4 to 2; then 0-1 has
    # nobody left, 3 takes the first pair of those that lie 9 apart in which it has more left than the other: 2-3.
    assert wished[0] == [3]
    assert sorted(wished[1] + wished[2]) == [3, 5]
    assert wished[6] == [0]
    assert wished[3] == [4]
    assert wished[4] == [2]
    assert len(wished[5]) == 1


def test_every_device_wishes_for_as_many_labels_as_it_has_links() -> None:
    generator = np.random.default_rng(0)
    for edges in (1, 2, 4):
        counts = np.eye(10)[generator.integers(0, 10, 60)]
        apart = generator.random((10, 10))
        wished = wished_labels(counts, edges, apart + apart.T)
        assert (wished.sum(axis=1) == edges).all()
        assert not wished[np.arange(60), counts.argmax(axis=1)].any()  # nobody for its own


def test_nobody_wishes_for_a_label_that_nobody_holds() -> None:
    counts = np.eye(8)[[0, 0, 1, 2]]
    wished = wished_labels(counts, 1, np.zeros((8, 8)))
    assert not wished[:, 3:].any()
    assert wished.sum(axis=1).tolist() == [1, 1, 1, 1]
    assert not wished_labels(np.eye(8)[[5, 5]], 1, np.zeros((8, 8))).any()  # and with one label there is none to wish


def test_nobody_takes_turns_with_links_for_half_of_the_labels() -> None:
    assert wished_labels(np.eye(10), 4).sum(axis=1).tolist() == [4] * 10
    assert not wished_labels(np.eye(10), 5).any()
    assert not wished_labels(np.eye(2), 1).any()
    apart = np.ones((10, 10))
    assert wished_labels(np.eye(10), 5, apart).sum(axis=1).tolist() == [5] * 10  # what is alike still comes first
    assert wished_labels(np.eye(10), 20, apart).sum(axis=1).tolist() == [9] * 10


def test_a_wish_is_fulfilled_by_what_may_be_sent() -> None:
    network = one_label_each(6, 6, 0)
    board = game.board_of(network, Terms.of(preset("best").reward))
    known = network.candidates >= 0
    found = wishes(board, known, 1)
    for receiver in range(6):
        for slot, transmitter in enumerate(network.candidates[receiver].tolist()):
            right = transmitter == (receiver + 1) % 6 and bool(network.trust[receiver, slot, transmitter])
            assert found[receiver, slot] == (1.0 if right else 0.0)
    assert not wishes(board, np.zeros_like(known), 1).any()


def test_more_pairs_meet() -> None:
    met = {0.0: 0, 0.05: 0}
    for seed in range(4):
        network = one_label_each(25, 10, seed, trusted=0.7)
        for spread in met:
            config = preset("best").with_(**{"discovery.edges": 1, "marginal.spread": spread})
            met[spread] += len(pairs_that_meet(discover(network, config, seed=seed).evaluation.counts_after))
    assert met[0.05] >= met[0.0] + 4 * 3


def test_devices_with_several_labels_are_left_alone() -> None:
    config = preset("best").with_(**{"discovery.edges": 1})
    network = Network.generate(config, 3)  # three labels each
    one, other = (discover(network, config.with_(marginal__spread=spread), seed=3) for spread in (0.0, 0.05))
    assert one.graph.edges == other.graph.edges
    assert (one.messages, one.message_bits) == (other.messages, other.message_bits)


def test_ranks_are_counted_where_somebody_wishes() -> None:
    network = one_label_each(12, 6, 0)
    terms = Terms.of(preset("best").reward)
    board = game.board_of(network, terms)
    without, with_ = (marginal.introduce(board, terms, 500, spread) for spread in (0.0, 0.05))
    assert with_.messages[0] == without.messages[0]  # they travel along with what the tree carries anyhow
    assert with_.counts[0] == without.counts[0] + 2 * 12 * 6


def test_sketches_travel_along_the_tree() -> None:
    network = one_label_each(12, 6, 0)
    terms = Terms.of(preset("best").reward)
    board = game.board_of(network, terms)
    turns, alike = (marginal.introduce(board, terms, 500, 0.05, apart=apart) for apart in (None, np.ones((6, 6))))
    assert alike.messages[0] == turns.messages[0]
    assert alike.reals[0] == turns.reals[0] + 2 * 12 * 6 * VALUES


def test_alike_labels_meet_in_a_network() -> None:
    apart = np.abs(np.subtract.outer(np.arange(10), np.arange(10))).astype(float)  # neighbours are alike
    steps = {}
    for name, known in (("turns", None), ("alike", apart)):
        pairs = set()
        for seed in range(3):
            network = replace(one_label_each(25, 10, seed, trusted=0.7), apart=known)
            config = preset("best").with_(**{"discovery.edges": 1})
            pairs |= pairs_that_meet(discover(network, config, seed=seed).evaluation.counts_after)
        steps[name] = float(np.mean([abs(one - other) for one, other in pairs]))
    assert steps["alike"] < 0.8 * steps["turns"]
