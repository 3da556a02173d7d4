"""Ranges of a regression target."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from d2dfl import UserError
from d2dfl.partition.regression import LEAST, RULES, cut_points, ranges_of

TARGETS = np.array([1.0, 9.0, 2.0, 20.0, 1.5, 8.0])  # gaps of 0.5, 0.5, 6, 1, 11
BOTH = [np.array([0, 1, 2]), np.array([3, 4, 5])]


def everything(targets: np.ndarray) -> list[np.ndarray]:
    return [np.arange(len(targets))]


def test_global_cuts_by_hand() -> None:
    assert cut_points(TARGETS, BOTH, 3, "global", 0).tolist() == [[5.0, 14.5], [5.0, 14.5]]
    assert ranges_of(TARGETS, BOTH, 3, "global", 0).tolist() == [0, 1, 0, 2, 0, 1]
    assert ranges_of(TARGETS, BOTH, 1, "global").tolist() == [0] * 6


def test_local_cuts_by_hand() -> None:
    # 1, 2 | 9 at the first device; 1.5, 8 | 20 at the second: range 0 reaches to 5.5 here and to 14 there.
    assert cut_points(TARGETS, BOTH, 2, "local", 0).tolist() == [[5.5], [14.0]]
    assert ranges_of(TARGETS, BOTH, 2, "local", 0).tolist() == [0, 1, 0, 1, 0, 0]


def test_quantiles_by_hand() -> None:
    assert cut_points(TARGETS, BOTH, 3, "quantiles").tolist() == [[1.75, 8.5], [1.75, 8.5]]
    assert ranges_of(TARGETS, BOTH, 3, "quantiles").tolist() == [0, 2, 1, 2, 0, 1]
    tied = np.array([5.0] * 8 + [6.0, 7.0])
    assert cut_points(tied, everything(tied), 3, "quantiles").tolist() == [[5.5, 6.5]]
    assert cut_points(-tied, everything(tied), 3, "quantiles").tolist() == [[-6.5, -5.5]]


def test_what_nobody_holds() -> None:
    held = [np.array([0, 1, 2])]  # 1, 2 | 9; the others lie at 20, 1.5 and 8
    assert cut_points(TARGETS, held, 2, "global", 0).tolist() == [[5.5]]
    assert ranges_of(TARGETS, held, 2, "global", 0).tolist() == [0, 1, 0, 1, 0, 1]
    assert ranges_of(TARGETS, held, 2, "local", 0).tolist() == [0, 1, 0, -1, -1, -1]


def test_the_guard_keeps_partitions_usable() -> None:
    # A dense middle with one gap, and a sparse tail with the largest gaps of all.
    body = np.concatenate([np.linspace(0, 1, 50), np.linspace(1.5, 2.5, 50)])
    targets = np.concatenate([body, [10.0, 30.0]])
    literal = np.bincount(ranges_of(targets, everything(targets), 3, least=0))
    assert literal.tolist() == [100, 1, 1]
    guarded = np.bincount(ranges_of(targets, everything(targets), 3))
    assert guarded.min() >= LEAST * 102 / 3
    assert cut_points(targets, everything(targets), 2)[0, 0] == pytest.approx(1.25)


def test_ties_that_leave_no_room_make_the_guard_give_way() -> None:
    targets = np.array([0.0] * 95 + [1, 2, 3, 4, 5])
    assert np.bincount(ranges_of(targets, everything(targets), 6)).tolist() == [95, 1, 1, 1, 1, 1]
    # It gives way by halves: 30 datapoints a range is too much to ask here, 15 is not, and gaps of 9 and 8 lie 1 apart.
    targets = np.repeat([0.0, 1, 9, 18], [20, 20, 1, 59])
    assert np.bincount(ranges_of(targets, everything(targets), 3, least=0.9)).tolist() == [20, 21, 59]
    assert np.bincount(ranges_of(targets, everything(targets), 3, least=0)).tolist() == [40, 1, 59]


@settings(max_examples=80, deadline=None)
@given(
    values=st.lists(st.floats(-100, 100, width=32), min_size=3, max_size=60),
    ranges=st.integers(1, 6),
    rule=st.sampled_from(RULES),
    least=st.sampled_from([0.0, 0.5, 0.9]),
    devices=st.integers(1, 3),
)
def test_ranges_are_full_and_in_order(values: list[float], ranges: int, rule: str, least: float, devices: int) -> None:
    targets = np.array(values, dtype=np.float32)
    holdings = [np.arange(start, len(targets), devices) for start in range(devices)]
    pools = [targets[points] for points in holdings] if rule == "local" else [targets]
    if min(len(np.unique(pool)) for pool in pools) < ranges:
        with pytest.raises(UserError, match="partition.ranges to"):
            ranges_of(targets, holdings, ranges, rule, least)  # type: ignore[arg-type]  # a word from the parameters
        return
    result = ranges_of(targets, holdings, ranges, rule, least)  # type: ignore[arg-type]  # a word from the parameters
    cuts = cut_points(targets, holdings, ranges, rule, least)  # type: ignore[arg-type]  # a word from the parameters
    assert cuts.shape == (devices, ranges - 1)
    for points in holdings if rule == "local" else [np.arange(len(targets))]:
        order = points[np.argsort(targets[points], kind="stable")]
        assert (np.diff(result[order]) >= 0).all()
        assert set(result[points].tolist()) == set(range(ranges))
    for points, own in zip(holdings, cuts, strict=True):
        for point in points:
            assert result[point] == sum(float(targets[point]) >= cut for cut in own)


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 10_000), count=st.integers(4, 9), ranges=st.integers(2, 4))
def test_the_letter_takes_the_largest_gaps(seed: int, count: int, ranges: int) -> None:
    targets = np.random.default_rng(seed).standard_normal(count)
    line = np.sort(targets)
    best = max(
        itertools.combinations(range(1, count), ranges - 1), key=lambda at: sum(line[i] - line[i - 1] for i in at)
    )
    expected = [(line[i] + line[i - 1]) / 2 for i in best]
    np.testing.assert_allclose(cut_points(targets, everything(targets), ranges, least=0)[0], expected)


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 10_000), count=st.integers(20, 300), ranges=st.integers(2, 8))
def test_without_ties_the_guard_always_holds_and_quantiles_are_even(seed: int, count: int, ranges: int) -> None:
    targets = np.random.default_rng(seed).standard_cauchy(count)
    sizes = np.bincount(ranges_of(targets, everything(targets), ranges), minlength=ranges)
    assert sizes.min() >= LEAST * count / ranges - 1  # gaps lie between whole datapoints
    even = np.bincount(ranges_of(targets, everything(targets), ranges, "quantiles"), minlength=ranges)
    assert even.max() - even.min() <= 2


def test_permuting_devices_permutes_cuts() -> None:
    targets = np.random.default_rng(0).standard_normal(90)
    holdings = [np.arange(0, 30), np.arange(30, 70), np.arange(70, 90)]
    turned = [holdings[i] for i in (2, 0, 1)]
    for rule in RULES:
        assert (cut_points(targets, holdings, 4, rule)[[2, 0, 1]] == cut_points(targets, turned, 4, rule)).all()
        assert (ranges_of(targets, holdings, 4, rule) == ranges_of(targets, turned, 4, rule)).all()


def test_neighbouring_floating_point_numbers_are_told_apart() -> None:
    targets = np.array([1.0, np.nextafter(1.0, 2.0)])
    for rule in RULES:
        assert ranges_of(targets, everything(targets), 2, rule).tolist() == [0, 1]


@pytest.mark.parametrize(
    ("targets", "rule", "says"),
    [
        (
            np.full(6, 3.5),
            "global",
            "the devices have only targets equal to 3.5, too few for 4 ranges: set partition.ranges to 1",
        ),
        (
            np.array([1.0, 2, 3, 1, 2, 3]),
            "quantiles",
            "the devices have 3 different targets, too few for 4 ranges: .* to 3 or less",
        ),
        (np.array([1.0, 2, 3, 4, 4, 4]), "local", "device 0 has 3 different targets, too few for 4 ranges"),
        (np.array([1.0, 2, np.nan, 4, 5, 6]), "global", "the devices have a target that is not a finite number"),
        (np.arange(6.0), "best", "partition.cuts cannot be 'best': give one of global, local, quantiles"),
    ],
)
def test_bad_input(targets: np.ndarray, rule: str, says: str) -> None:
    with pytest.raises(UserError, match=says):
        ranges_of(targets, BOTH, 4, rule)  # type: ignore[arg-type]  # a word from the parameters


def test_bad_numbers() -> None:
    with pytest.raises(UserError, match="partition.ranges cannot be 0: give at least 1"):
        cut_points(TARGETS, BOTH, 0)
    with pytest.raises(UserError, match="device 1 has no targets to cut into ranges: give every device data"):
        cut_points(TARGETS, [np.arange(6), np.empty(0, dtype=np.int64)], 2, "local")
