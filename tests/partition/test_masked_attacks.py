"""Who learns what of a masked sum: a plain tree shows a leaf's counts, a masked one nothing beyond the sum."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from d2dfl.config.presets import preset
from d2dfl.network import Network
from d2dfl.partition.masked.driver import masked_devices, run_sum
from d2dfl.partition.masked.messages import Kind, Message
from d2dfl.partition.masked.pads import KeyedPads, simulated_pair_key
from d2dfl.partition.masked.plan import SumPlan, balanced_tree, mask_graph
from d2dfl.partition.masked.words import FixedPoint, Words
from linear_attacker import BasisPads, honest_groups, learned, rank, sums_of


class NoPads:
    """The tree as it was before: nothing is masked."""

    def pair(self, one: int, other: int, number: int, count: int) -> Words:
        return np.zeros(count, dtype=np.uint64)

    def own(self, owner: int, helper: int, number: int, count: int) -> Words:
        return np.zeros(count, dtype=np.uint64)


class TablePads:
    """Masks from a table that a test may change."""

    def __init__(self, devices: int, count: int, bits: int) -> None:
        draw = np.random.default_rng(3).integers(0, 2**bits, (2, devices, devices, count), dtype=np.uint64)
        self.pairs, self.owns = draw

    def pair(self, one: int, other: int, number: int, count: int) -> Words:
        return np.asarray(self.pairs[min(one, other), max(one, other)])

    def own(self, owner: int, helper: int, number: int, count: int) -> Words:
        return np.asarray(self.owns[owner, helper])


def plan_of(devices: int, degree: int | None = None, bits: int = 32) -> SumPlan:
    return SumPlan(balanced_tree(devices), mask_graph(devices, 0, degree), bits)


def sent_by(messages: tuple[Message, ...], sender: int, kind: Kind) -> Words:
    return next(message.words for message in messages if message.sender == sender and message.kind is kind)


def test_a_parent_learns_counts_of_untrusted_partitions_from_a_plain_tree_only() -> None:
    network = Network.generate(preset("best").with_(**{"network.devices": 12, "network.trust": "random:0.3"}), 0)
    plan, leaf = plan_of(12), 11
    parent = plan.parent[leaf]
    slot = int(np.nonzero(network.candidates[parent] == leaf)[0][0])
    untrusted = ~network.trust[parent, slot] & (network.counts[leaf] > 0)
    assert untrusted.any()
    numbers = FixedPoint(12, float(network.counts.max()))
    words = [numbers.words(row) for row in network.counts]
    plain = run_sum(masked_devices(plan, NoPads()), 0, words)
    masked = run_sum(masked_devices(plan, KeyedPads(simulated_pair_key(0), b"", 32)), 0, words)
    shown = numbers.numbers(sent_by(plain.messages, leaf, Kind.MASKED))
    assert (shown == network.counts[leaf]).all()  # the attack, as it succeeded
    told = sent_by(masked.messages, leaf, Kind.MASKED)
    opened = told - sent_by(masked.messages, leaf, Kind.OPENING) & np.uint64(2**32 - 1)
    for seen in (told, opened):
        assert not (numbers.numbers(seen)[untrusted] == network.counts[leaf, untrusted]).any()
        assert not (np.abs(numbers.numbers(seen)) <= network.counts.max()).all()  # not even of the right size
    for found in (plain.total, masked.total):
        assert found is not None
        assert (numbers.numbers(found) == network.counts.sum(axis=0)).all()


def test_other_inputs_of_the_same_sum_give_the_same_messages_with_other_masks() -> None:
    """For any two honest devices: what everybody sees is as likely with either input."""
    plan, bits = plan_of(6), 16
    rng, moved = np.random.default_rng(0), np.array([7, 65535, 300], dtype=np.uint64)
    words = [rng.integers(0, 2**bits, 3, dtype=np.uint64) for _ in range(6)]
    plan = SumPlan(plan.parent, plan.neighbours, bits)
    before = run_sum(masked_devices(plan, TablePads(6, 3, bits)), 0, words)
    pads, other = TablePads(6, 3, bits), [row.copy() for row in words]
    other[3] = other[3] + moved & np.uint64(2**bits - 1)
    other[5] = other[5] - moved & np.uint64(2**bits - 1)
    pads.pairs[3, 5] = pads.pairs[3, 5] - moved & np.uint64(2**bits - 1)
    after = run_sum(masked_devices(plan, pads), 0, other)
    assert (other[3] != words[3]).any()
    assert len(before.messages) == len(after.messages) == 20
    for one, two in zip(before.messages, after.messages, strict=True):
        assert (one.kind, one.sender, one.absent) == (two.kind, two.sender, two.absent)
        assert (one.words == two.words).all()


@pytest.mark.parametrize("value", [0, 1, 2**31])
def test_what_a_parent_sees_is_uniform_whatever_the_input(value: int) -> None:
    plan, numbers = plan_of(5), 40_000
    words = [np.full(numbers, value if device == 4 else 5, dtype=np.uint64) for device in range(5)]
    sent = run_sum(masked_devices(plan, KeyedPads(simulated_pair_key(1), b"", 32)), 0, words).messages
    masked, opening = sent_by(sent, 4, Kind.MASKED), sent_by(sent, 4, Kind.OPENING)
    for seen in (masked, opening, masked - opening & np.uint64(2**32 - 1)):
        for shift in (0, 8, 16, 24):
            counts = np.bincount((seen >> np.uint64(shift) & np.uint64(255)).astype(np.int64), minlength=256)
            assert chisquare(counts).pvalue > 1e-4
    alike = np.corrcoef(masked.astype(np.float64), opening.astype(np.float64))[0, 1]
    assert abs(alike) < 4 / np.sqrt(numbers)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_no_coalition_learns_more_than_sums_over_connected_honest_devices(data: st.DataObject) -> None:
    """Whoever overhears everything and has the coalition's keys, whoever drops out and whenever, late messages included."""
    devices = data.draw(st.integers(3, 8))
    plan = plan_of(devices, data.draw(st.sampled_from([2, 4, None])) if devices > 5 else None, bits=64)
    coalition = data.draw(st.sets(st.integers(0, devices - 1), max_size=devices - 1))
    steps = st.sampled_from([Kind.MASKED, Kind.OPENING, Kind.STANDING])
    silent = data.draw(st.dictionaries(st.integers(1, devices - 1), steps, max_size=2))
    late = data.draw(st.dictionaries(st.integers(1, devices - 1), steps, max_size=2))
    pads = BasisPads(plan)
    sent = run_sum(masked_devices(plan, pads), 0, pads.inputs(devices), silent, late)
    found = learned(pads, sent.messages, coalition)
    lists = [message.absent for message in sent.messages if message.kind is Kind.PRESENT]
    honest = set(range(devices)) - coalition
    groups = honest_groups(plan, honest - lists[0]) if lists else []
    # Whose neighbours all collude has nothing to hide behind, also when its value comes too late.
    told = {message.sender for message in sent.messages if message.kind is Kind.MASKED}
    bare = [{device} for device in honest & told if coalition.issuperset(plan.neighbours[device])]
    allowed = sums_of(groups + [group for group in bare if group not in groups], devices)
    assert rank(np.concatenate([found, allowed])) == len(allowed)
    if sent.total is not None:  # and that much it does learn: the bound is no better than the protocol
        assert rank(found) == len(allowed)


def _shown_alone(found: np.ndarray, device: int) -> bool:
    """Whether one device's input alone can be computed."""
    alone = np.zeros((1, found.shape[1]))
    alone[0, device] = 1.0
    return rank(np.concatenate([found, alone])) == rank(found)


def test_neighbours_all_around_a_device_learn_its_input_and_one_fewer_does_not() -> None:
    """The threshold: on a circle of degree 2 two neighbours are enough, on the complete graph it takes all others."""
    for degree, size in ((2, 2), (4, 4), (None, 8)):
        plan = plan_of(9, degree, bits=64)
        pads = BasisPads(plan)
        sent = run_sum(masked_devices(plan, pads), 0, pads.inputs(9)).messages
        around = plan.neighbours[4]
        assert len(around) == size
        assert _shown_alone(learned(pads, sent, set(around)), 4)
        for free in around:
            assert not _shown_alone(learned(pads, sent, set(around) - {free}), 4)


@pytest.mark.parametrize("step", [Kind.MASKED, Kind.OPENING])
def test_a_message_that_comes_late_tells_nothing_more(step: Kind) -> None:
    plan = plan_of(7, bits=64)
    pads = BasisPads(plan)
    sent = run_sum(masked_devices(plan, pads), 0, pads.inputs(7), late={6: step})
    assert any(message.sender == 6 and message.kind is step for message in sent.messages[-1:])
    assert rank(learned(pads, sent.messages, {0, 2})) == 1  # root and parent together: the sum of the others
    assert not _shown_alone(learned(pads, sent.messages, {0, 2}), 6)


def test_without_own_masks_a_late_value_would_be_laid_open() -> None:
    """Why a device has a mask of its own: pair masks alone are taken out for one that is absent."""

    class PairPads(BasisPads):
        def own(self, owner: int, helper: int, number: int, count: int) -> Words:
            return np.zeros(count, dtype=np.uint64)

    plan = plan_of(7, bits=64)
    pads = PairPads(plan)
    sent = run_sum(masked_devices(plan, pads), 0, pads.inputs(7), late={6: Kind.MASKED})
    assert _shown_alone(learned(pads, sent.messages, {0}), 6)


def test_limit_a_second_sum_without_a_device_tells_its_input_where_the_first_is_opened_late() -> None:
    """Exact sums over two sets that differ by one device differ by its input: no masks help, only noise."""
    plan = plan_of(7, bits=64)
    pads = BasisPads(plan, sums=2)
    devices = masked_devices(plan, pads)
    # 6 is lost in the middle, and so is 5: a neighbour that could stand in for it.
    first = run_sum(devices, 0, pads.inputs(7), silent={5: Kind.MASKED}, late={6: Kind.OPENING})
    second = run_sum(devices, 1, pads.inputs(7), silent={5: Kind.MASKED, 6: Kind.MASKED})
    assert first.total is None
    assert second.total is not None
    assert not _shown_alone(learned(pads, first.messages, {0}), 6)
    assert _shown_alone(learned(pads, (*first.messages, *second.messages), {0}), 6)
