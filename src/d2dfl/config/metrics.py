"""Distances between label distributions, by name (R8): what `reward.metric` may be."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Metric:
    """One distance: how far a device's data are from those of all devices together.

    One of a user's own is `distance(counts, population)`: two vectors of as many numbers as there are partitions, the
    datapoints of a device and of all devices (not shares), neither of them without any datapoint. It gives one number,
    the larger the farther from i.i.d. With `reward.kind = change` the two are a device before and after the exchange.
    """

    name: str
    summary: str
    distance: Callable[[Any, Any], float] | None = None  # None: built in, see discovery/equations/diversity.py
    largest: float = 1.0  # how far a device without data is from one with


METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("total-variation", "half the sum of absolute differences between shares"),
        Metric("wasserstein", "1-Wasserstein distance with labels as points on a line"),
        Metric("jensen-shannon", "square root of the Jensen-Shannon divergence, base 2"),
    )
}
SHOWN = "total-variation"  # the distance to i.i.d. in tables, charts and on maps, whatever the reward measures
BUILT_IN = tuple(METRICS)  # before a plug-in adds one; compiled code knows them by their places
