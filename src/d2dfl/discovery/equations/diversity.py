"""Distances between label distributions (R8), compiled, on raw counts.

Each takes two count vectors and compares the distributions they stand for. A device without data is as far as
possible from one with data, and not at all from another without. One of a user's own is called by its address.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from d2dfl.compiled import inlined, kernel, leaf
from d2dfl.config.metrics import BUILT_IN as BUILT_IN
from d2dfl.config.metrics import METRICS, Metric
from d2dfl.discovery.equations.own_metric import call_own, check_own, own_metric
from d2dfl.errors import UserError

TOTAL_VARIATION, WASSERSTEIN, JENSEN_SHANNON = range(len(BUILT_IN))
OWN = len(BUILT_IN)


class MetricCode(NamedTuple):
    """A metric as compiled code knows it."""

    code: int  # place among BUILT_IN, or OWN
    address: int | None  # of a user's own; to the compiler None is a type, and built-in ones cost nothing for it
    largest: float  # of a user's own


def metric_code(name: str) -> MetricCode:
    """The metric of this name for compiled code."""
    metric = METRICS[name]
    if not isinstance(metric, Metric) or (metric.distance is None and name not in BUILT_IN):
        raise UserError(
            f"the metric {name!r:.80} is registered without its function: give Metric(name, summary, function)"
        )
    if metric.distance is None:
        return MetricCode(BUILT_IN.index(name), None, 1.0)
    return MetricCode(OWN, own_metric(metric).address, float(metric.largest))


@leaf
def sum_of(values: Any) -> Any:
    """The sum of a vector, as `values.sum()` adds it up in compiled code, which cannot be loaded without SciPy's linear algebra."""
    total = 0.0
    for value in values:
        total += value
    return total


@leaf
def largest_distance(metric: Any, partitions: Any) -> Any:
    """The largest value that the metric can take."""
    if metric.code == OWN:
        return metric.largest
    return partitions - 1.0 if metric.code == WASSERSTEIN else 1.0


@kernel
def distance(metric: Any, one: Any, other: Any) -> Any:
    """Distance between the distributions of two count vectors.

    total-variation   half the sum of absolute differences: the 0/1 ground metric
    wasserstein       1-Wasserstein distance with labels as points 0, 1, …, L-1 on a line
    jensen-shannon    square root of the Jensen-Shannon divergence, base 2
    """
    total_one = total_other = 0.0
    for label in range(len(one)):
        total_one += one[label]
        total_other += other[label]
    return distance_of(metric, one, total_one, other, total_other)


@inlined
def distance_of(metric: Any, one: Any, total_one: Any, other: Any, total_other: Any) -> Any:
    """The same for vectors whose totals are known."""
    if total_one <= 0.0 or total_other <= 0.0:
        return 0.0 if total_one <= 0.0 and total_other <= 0.0 else largest_distance(metric, len(one))
    return _measured(metric.address, metric.code, one, total_one, other, total_other)


@inlined
def _measured(address: Any, metric: Any, one: Any, total_one: Any, other: Any, total_other: Any) -> Any:
    if address is None:
        return _built_in(metric, one, total_one, other, total_other)
    return call_own(address, one.ctypes.data, other.ctypes.data, len(one))


@leaf
def _built_in(metric: Any, one: Any, total_one: Any, other: Any, total_other: Any) -> Any:
    partitions = len(one)
    scale_one, scale_other = 1.0 / total_one, 1.0 / total_other
    result = 0.0
    if metric == TOTAL_VARIATION:
        for label in range(partitions):
            result += abs(one[label] * scale_one - other[label] * scale_other)
        return 0.5 * result
    if metric == WASSERSTEIN:
        ahead = 0.0
        for label in range(partitions - 1):
            ahead += one[label] * scale_one - other[label] * scale_other
            result += abs(ahead)
        return result
    for label in range(partitions):
        p, q = one[label] * scale_one, other[label] * scale_other
        if p > 0.0:
            result += p * np.log2(2.0 * p / (p + q))
        if q > 0.0:
            result += q * np.log2(2.0 * q / (p + q))
    return np.sqrt(max(0.5 * result, 0.0))


@kernel
def _to_reference(metric: Any, counts: Any, reference: Any) -> Any:
    result = np.empty(len(counts))
    for device in range(len(counts)):
        result[device] = distance(metric, counts[device], reference)
    return result


def distances_to(
    counts: NDArray[np.float64], reference: NDArray[np.float64], metric: str | MetricCode
) -> NDArray[np.float64]:
    """Distance of each device's distribution to a reference distribution, such as the population's."""
    code = metric_code(metric) if isinstance(metric, str) else metric
    result = np.asarray(_to_reference(code, counts, reference))
    if code.address is not None:
        check_own(code.address, result)
    return result
