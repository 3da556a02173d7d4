"""Masked sums: exact totals whoever drops out, refusals, and the bill."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from d2dfl.errors import UserError
from d2dfl.partition.masked.bill import masked_sum_cost
from d2dfl.partition.masked.device import MaskedDevice
from d2dfl.partition.masked.driver import masked_devices, run_sum
from d2dfl.partition.masked.messages import Kind, Message
from d2dfl.partition.masked.pads import KeyedPads, simulated_pair_key
from d2dfl.partition.masked.plan import SumPlan, balanced_tree, mask_degree, mask_graph
from d2dfl.partition.masked.words import FixedPoint, Words

STEPS = st.sampled_from([Kind.MASKED, Kind.OPENING, Kind.STANDING])


def plan_of(devices: int, degree: int | None = None, bits: int = 32) -> SumPlan:
    return SumPlan(balanced_tree(devices), mask_graph(devices, 0, degree), bits)


def devices_of(plan: SumPlan) -> list[MaskedDevice]:
    return masked_devices(plan, KeyedPads(simulated_pair_key(0), b"test", plan.bits))


def words_of(devices: int, count: int = 4) -> list[Words]:
    return list(np.random.default_rng(1).integers(0, 1000, (devices, count), dtype=np.uint64))


@given(
    st.integers(1, 300),
    st.floats(1e-6, 1e6),
    st.integers(30, 64),
    st.lists(st.floats(-1, 1), min_size=1, max_size=20),
)
def test_fixed_point_sums_are_exact_but_for_rounding(
    devices: int, limit: float, bits: int, shares: list[float]
) -> None:
    numbers = FixedPoint(devices, limit, bits)
    values = np.array(shares) * limit
    total = np.zeros(len(values), dtype=np.uint64)
    for _ in range(devices):
        total += numbers.words(values)
    total &= np.uint64(2**bits - 1)
    error = np.abs(numbers.numbers(total) - devices * values).max()
    assert error <= numbers.precision + 1e-9 * devices * limit


def test_counts_are_summed_exactly_to_the_last_one_that_fits() -> None:
    numbers = FixedPoint(3, 41.0, 8)  # 3 * 41.5 = 124.5 of 127
    assert numbers.fraction == 0
    total = numbers.words([41.0, -41.0]) * np.uint64(3) & np.uint64(255)
    assert numbers.numbers(total).tolist() == [123.0, -123.0]
    with pytest.raises(UserError, match="do not fit"):
        FixedPoint(3, 42.0, 8)


@pytest.mark.parametrize(("devices", "limit"), [(1, 2048.0), (2, 2.0**40), (3, 2.0**60), (1, 2.0**62)])
def test_the_largest_sum_of_64_bits_does_not_wrap(devices: int, limit: float) -> None:
    numbers = FixedPoint(devices, limit, 64)
    total = sum(numbers.words([limit, -limit]) for _ in range(devices))
    assert isinstance(total, np.ndarray)
    assert numbers.numbers(total).tolist() == [devices * limit, -devices * limit]


@pytest.mark.parametrize("value", [10.001, -11.0, np.nan, np.inf])
def test_a_number_that_could_overflow_is_refused(value: float) -> None:
    with pytest.raises(UserError, match="not within 10"):
        FixedPoint(4, 10.0).words([0.0, value])


@pytest.mark.parametrize(("devices", "limit", "bits"), [(4, 40.0, 8), (4, 1.0, 65), (0, 1.0, 32), (4, np.inf, 32)])
def test_words_that_cannot_hold_the_sum_are_refused(devices: int, limit: float, bits: int) -> None:
    with pytest.raises(UserError):
        FixedPoint(devices, limit, bits)


def test_masks_belong_to_one_pair_one_sum_one_use_and_one_session() -> None:
    key = simulated_pair_key(0)
    pads = KeyedPads(key, b"a", 32)
    first = pads.pair(1, 2, 0, 8)
    assert (first == pads.pair(2, 1, 0, 8)).all()
    assert first.max() < 2**32
    others = [pads.pair(1, 3, 0, 8), pads.pair(1, 2, 1, 8), pads.own(1, 2, 0, 8), pads.own(2, 1, 0, 8)]
    others += [KeyedPads(key, b"b", 32).pair(1, 2, 0, 8), KeyedPads(simulated_pair_key(1), b"a", 32).pair(1, 2, 0, 8)]
    seen = {tuple(words) for words in [first, *others]}
    assert len(seen) == 7
    with pytest.raises(UserError, match="3 bytes"):
        KeyedPads(lambda one, other: b"key", b"", 32).pair(0, 1, 0, 1)


@pytest.mark.parametrize("devices", [3, 9, 10, 25, 100])
def test_the_mask_graph_is_mutual_and_as_dense_as_it_must_be(devices: int) -> None:
    graph, degree = mask_graph(devices, 0), mask_degree(devices)
    assert {len(set(others)) for others in graph} == {degree}
    assert all(device in graph[other] for device, others in enumerate(graph) for other in others)
    assert graph != mask_graph(devices, 1) or degree == devices - 1


def test_the_degree_grows_with_the_logarithm() -> None:
    assert [mask_degree(devices) for devices in (1, 2, 10, 100, 1000, 100_000)] == [0, 1, 9, 22, 26, 34]


def test_a_random_third_of_bad_devices_hardly_ever_cuts_the_graph() -> None:
    """The bound of mask_degree, at a failure that can be counted: 2,000 draws, 5 % allowed."""
    devices, rng, cut = 60, np.random.default_rng(0), 0
    degree = mask_degree(devices, failure=0.05)
    graph = mask_graph(devices, 0, degree)
    for _ in range(2000):
        left = set(rng.permutation(devices)[: devices - devices // 3].tolist())
        line = [min(left)]
        left.discard(line[0])
        for device in line:
            near = [other for other in graph[device] if other in left]
            line += near
            left -= set(near)
        cut += bool(left)
    assert cut <= 100
    assert degree < mask_degree(devices)


@settings(max_examples=100, deadline=None)
@given(
    st.integers(3, 20),
    st.sampled_from([4, 6, None]),
    st.dictionaries(st.integers(0, 19), STEPS, max_size=3),
    st.dictionaries(st.integers(0, 19), STEPS, max_size=2),
)
def test_a_sum_is_that_of_those_present_or_none_at_all(
    devices: int, degree: int | None, silent: dict[int, Kind], late: dict[int, Kind]
) -> None:
    plan, words = plan_of(devices, degree), words_of(devices)
    silent = {device: step for device, step in silent.items() if device < devices}
    late = {device: step for device, step in late.items() if device < devices}
    found = run_sum(devices_of(plan), 0, words, silent, late)
    for outcome in found.outcomes:
        assert outcome is not None
        if outcome.words is not None:
            assert len(outcome.present) >= plan.least
            assert (outcome.words == sum(words[device] for device in outcome.present)).all()
    stops = {**silent, **late}
    gone = {device for device, step in stops.items() if step is Kind.MASKED}
    leaves = not any(plan.children[device] for device in stops)
    if not stops or (leaves and gone == set(stops) and len(gone) <= min(devices - 3, 2)):
        assert found.total is not None
        here = [words[device] for device in range(devices) if device not in gone]
        assert (found.total == sum(here)).all()


def test_neighbours_stand_in_for_a_device_that_vanishes_in_the_middle() -> None:
    plan, words = plan_of(12, 6), words_of(12)
    found = run_sum(devices_of(plan), 0, words, silent={11: Kind.OPENING})
    assert found.total is not None
    assert (found.total == sum(words)).all()
    assert {message.kind for message in found.messages} >= {Kind.LOST, Kind.STANDING}
    near = plan.neighbours[11][-1]
    failed = run_sum(devices_of(plan), 0, words, silent={11: Kind.OPENING, near: Kind.STANDING})
    assert failed.total is None


def test_a_whole_branch_is_absent_with_the_device_above_it() -> None:
    plan, words = plan_of(15), words_of(15)
    found = run_sum(devices_of(plan), 0, words, silent={6: Kind.MASKED})
    assert found.outcomes[0] is not None
    assert found.outcomes[0].present == frozenset(range(15)) - {6, 13, 14}


def test_too_few_devices_open_nothing() -> None:
    plan, words = plan_of(5), words_of(5)
    vanished = {3: Kind.MASKED, 4: Kind.MASKED, 2: Kind.MASKED}
    assert run_sum(devices_of(plan), 0, words, silent=vanished).total is None
    sparse = plan_of(30, 4)
    near = sparse.neighbours[29][:3]  # three of four neighbours are away: one could betray it
    assert run_sum(devices_of(sparse), 0, words_of(30), silent=dict.fromkeys(near, Kind.MASKED)).total is None


def test_a_sum_number_serves_once_and_words_must_fit() -> None:
    device = devices_of(plan_of(3))[1]
    device.begin(4, np.zeros(2, dtype=np.uint64))
    with pytest.raises(UserError, match="begun before"):
        device.begin(4, np.zeros(2, dtype=np.uint64))
    with pytest.raises(UserError, match="words of 32 bits"):
        device.begin(5, np.full(2, 2**32, dtype=np.uint64))


def test_messages_that_do_not_fit_are_ignored() -> None:
    plan = plan_of(7)
    device = devices_of(plan)[2]  # its children are 5 and 6
    device.begin(1, np.zeros(2, dtype=np.uint64))
    right = np.zeros(2, dtype=np.uint64)
    odd = [
        Message(Kind.MASKED, 4, 2, 1, right),  # a stranger
        Message(Kind.MASKED, 5, 2, 0, right),  # an earlier sum
        Message(Kind.MASKED, 5, 3, 1, right),  # for another
        Message(Kind.OPENING, 5, 2, 1, right),  # too early
        Message(Kind.MASKED, 5, 2, 1, np.zeros(3, dtype=np.uint64)),
        Message(Kind.MASKED, 5, 2, 1, np.full(2, 2**40, dtype=np.uint64)),
        Message(Kind.MASKED, 5, 2, 1, right, frozenset({4})),  # nobody of its branch
        Message(Kind.PRESENT, 0, 2, 1),
        Message(Kind.TOTAL, 0, 2, 1, right),
        Message(Kind.FAILED, 4, 2, 1),
    ]
    assert [device.receive(message) for message in odd] == [[]] * len(odd)
    assert device.ignored == len(odd)
    assert device.receive(Message(Kind.MASKED, 5, 2, 1, right)) == []
    assert device.receive(Message(Kind.MASKED, 5, 2, 1, right)) == []  # doubled
    assert device.ignored == len(odd) + 1
    (sent,) = device.receive(Message(Kind.MASKED, 6, 2, 1, right))
    assert (sent.kind, sent.receiver) == (Kind.MASKED, 0)
    # A list that says something else of its own branch than it did: nobody opens anything.
    answers = device.receive(Message(Kind.PRESENT, 0, 2, 1, absent=frozenset({6})))
    assert {answer.kind for answer in answers} == {Kind.FAILED}


def test_a_child_may_begin_before_its_parent() -> None:
    plan, words = plan_of(3), words_of(3)
    parent, *children = devices_of(plan)
    early = [message for child in children for message in child.begin(0, words[child.device])]
    assert [parent.receive(message) for message in early] == [[], []]
    assert {message.kind for message in parent.begin(0, words[0])} == {Kind.PRESENT}


@pytest.mark.parametrize(
    ("parent", "neighbours", "least"),
    [
        ((-1, 0, 1), ((1,), (0, 2), ()), 3),
        ((-1, 0, 9), ((1, 2), (0, 2), (0, 1)), 3),
        ((-1, 2, 1), ((1, 2), (0, 2), (0, 1)), 3),
        ((-1, -1, 1), ((1, 2), (0, 2), (0, 1)), 3),
        ((-1, 0, 1), ((0, 1, 2), (0, 2), (0, 1)), 3),
        ((-1, 0, 1), ((1, 2), (0, 2), (0, 1)), 1),
    ],
)
def test_a_plan_that_is_none_is_refused(
    parent: tuple[int, ...], neighbours: tuple[tuple[int, ...], ...], least: int
) -> None:
    with pytest.raises(UserError):
        SumPlan(parent, neighbours, least=least)
    with pytest.raises(UserError, match="even number"):
        mask_graph(10, 0, 3)


@pytest.mark.parametrize(("devices", "count"), [(3, 1), (12, 10), (40, 7)])
def test_the_bill_is_what_was_sent(devices: int, count: int) -> None:
    plan = plan_of(devices)
    found = run_sum(devices_of(plan), 0, words_of(devices, count))
    bill = masked_sum_cost(devices, [count], keys=False)
    assert (len(found.messages), found.bits) == bill
    several = masked_sum_cost(devices, [count, count, count])
    keys = devices * mask_degree(devices)
    assert several.messages == keys + 3 * bill.messages
    assert several.bits == keys * 256 + 3 * bill.bits
    assert masked_sum_cost(devices, [], hops=2.5).messages == 2.5 * keys


@pytest.mark.parametrize("step", [Kind.MASKED, Kind.OPENING])
def test_the_bill_of_drop_outs_is_not_below_what_was_sent(step: Kind) -> None:
    plan = plan_of(40, 8)
    found = run_sum(devices_of(plan), 0, words_of(40, 7), silent={39: step})
    bill = masked_sum_cost(40, [7], keys=False, absent=int(step is Kind.MASKED), lost=int(step is Kind.OPENING))
    assert found.total is not None
    assert bill.messages - 6 <= len(found.messages) <= bill.messages
    assert 0.95 * bill.bits <= found.bits <= bill.bits
    with pytest.raises(UserError, match="fewer must vanish"):
        masked_sum_cost(3, [1], absent=3)
