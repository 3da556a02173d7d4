"""Regression partitions: ranges of the target, cut where it has gaps (paper Section VI, R36).

Global cuts need no target to leave its device. For `quantiles` the server bisects: it names a value, every device
answers how many of its targets lie below, about 20 such counts for each cut. For `global` every device sends how many
of its targets fall into each bin of a fine common grid; the server adds the histograms up (securely, if it shall see
the sum only) and finds runs of empty bins, and the guard below needs no more than those counts. Both reveal counts per
range of values. Here the limit of a fine grid is computed directly.
"""

from collections.abc import Sequence
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from d2dfl.config.sections.learning import Cuts
from d2dfl.errors import UserError

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
RULES: tuple[Cuts, ...] = get_args(Cuts)

# Smallest partition, as a share of an equal one. To the letter (0) the largest gaps lie in the sparse tails: on
# California Housing, 10 ranges, they leave 94 % of the data in one partition and fewer than 10 datapoints in seven of
# the others. With a half, the smallest of the ten holds 5 % and the largest 28 %.
LEAST = 0.5


def cut_points(
    targets: NDArray[np.floating], holdings: Sequence[Indices], ranges: int, rule: Cuts = "global", least: float = LEAST
) -> Array:
    """cuts[device, range - 1], rising: a target belongs to the range numbered by how many cuts are at or below it.

    `global`: the largest gaps of all targets that devices hold, the same cuts for everybody. `local`: the largest gaps
    of each device's own targets, as in the paper; range 3 then means something else at every device. `quantiles`: as
    many datapoints in each range as ties allow, the same cuts for everybody.

    Gaps are taken from the largest down, leaving out those that would make a range with fewer than `least` of an equal
    share of the datapoints; 0 takes them as they come. Where ties leave no room for enough cuts, `least` is halved
    until they fit.
    """
    if rule not in RULES:
        raise UserError(f"partition.cuts cannot be {rule!r}: give one of {', '.join(RULES)}")
    if ranges < 1:
        raise UserError(f"partition.ranges cannot be {ranges}: give at least 1")
    values = np.asarray(targets, dtype=np.float64).reshape(len(targets))
    if rule == "local":
        own = [_largest_gaps(values[points], ranges, least, f"device {n} has") for n, points in enumerate(holdings)]
        return np.array(own).reshape(len(holdings), ranges - 1)
    pooled = values[np.unique(np.concatenate(list(holdings)))]
    cuts = (
        _largest_gaps(pooled, ranges, least, "the devices have")
        if rule == "global"
        else _quantiles(pooled, ranges, "the devices have")
    )
    return np.tile(cuts, (len(holdings), 1))


def ranges_of(
    targets: NDArray[np.floating], holdings: Sequence[Indices], ranges: int, rule: Cuts = "global", least: float = LEAST
) -> Indices:
    """partition[datapoint]: the range that its target lies in.

    Global cuts sort every datapoint, those that nobody holds too; local ones only what the device holds, and the
    others get -1.
    """
    cuts = cut_points(targets, holdings, ranges, rule, least)
    values = np.asarray(targets, dtype=np.float64).reshape(len(targets))
    if rule != "local":
        return np.searchsorted(cuts[0], values, side="right").astype(np.int64)
    result = np.full(len(values), -1, dtype=np.int64)
    for points, own in zip(holdings, cuts, strict=True):
        result[points] = np.searchsorted(own, values[points], side="right")
    return result


def _largest_gaps(values: Array, ranges: int, least: float, who: str) -> Array:
    steps, starts = _steps(values, ranges, who)
    order = np.argsort(-np.diff(steps), kind="stable")
    smallest = least * len(values) / ranges
    while True:
        chosen = _apart(starts, order, ranges - 1, smallest, len(values))
        if len(chosen) == ranges - 1:
            return _between(steps, np.sort(chosen))
        smallest = smallest / 2 if smallest > 1 else 0.0


def _apart(starts: Indices, order: Indices, wanted: int, smallest: float, total: int) -> Indices:
    """The first gaps in this order that leave at least `smallest` datapoints between any two of them and the ends."""
    chosen: list[int] = []
    edges = np.array([0, total])
    for gap in order.tolist():
        if len(chosen) == wanted:
            break
        if np.abs(edges - starts[gap + 1]).min() >= smallest:
            chosen.append(gap)
            edges = np.append(edges, starts[gap + 1])
    return np.array(chosen, dtype=np.int64)


def _quantiles(values: Array, ranges: int, who: str) -> Array:
    """Cuts between different values, each as near as it can be to its share of the datapoints."""
    steps, starts = _steps(values, ranges, who)
    chosen: list[int] = []
    for number in range(1, ranges):
        first = chosen[-1] + 1 if chosen else 0
        last = len(steps) - 1 - (ranges - 1 - number)  # leaves a gap for every cut that follows
        places = starts[first + 1 : last + 1]
        chosen.append(first + int(np.argmin(np.abs(places - number * len(values) / ranges))))
    return _between(steps, np.array(chosen, dtype=np.int64))


def _steps(values: Array, ranges: int, who: str) -> tuple[Array, Indices]:
    """The different values, rising, and at which place in the sorted values each begins."""
    steps, starts = np.unique(np.sort(values), return_index=True)
    if not np.isfinite(steps).all():
        raise UserError(f"{who} a target that is not a finite number: mend or drop that datapoint")
    if not len(steps):
        raise UserError(f"{who} no targets to cut into ranges: give every device data")
    if len(steps) < ranges:
        what = f"{len(steps):,} different targets" if len(steps) > 1 else f"only targets equal to {steps[0]:g}"
        advice = f"{len(steps):,} or less" if len(steps) > 1 else "1"
        raise UserError(f"{who} {what}, too few for {ranges} ranges: set partition.ranges to {advice}")
    return steps, starts.astype(np.int64)


def _between(steps: Array, gaps: Indices) -> Array:
    """The middle of each gap; its upper end where the two values are neighbours among floating-point numbers."""
    low, high = steps[gaps], steps[gaps + 1]
    middle = low + (high - low) / 2
    return np.where(middle > low, middle, high)
