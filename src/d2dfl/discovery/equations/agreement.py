"""What links do to data clusters and what that is worth, compiled: the moving part of Algorithm 2 (see gaussian.py)."""

from typing import Any

import numpy as np

from d2dfl.compiled import leaf, part
from d2dfl.discovery.equations.gaussian import LITERAL, MEDIAN, RATIO
from d2dfl.discovery.equations.messages import LEAST


@leaf
def give_away(gauss: Any, device: Any, kept: Any, moments: Any) -> None:
    """moments[cluster] of what a device keeps: it sends datapoints of a cluster at random, so shapes stay."""
    for cluster in range(gauss.own.shape[1]):
        for at in range(gauss.own.shape[2]):
            moments[cluster, at] = kept[cluster] * gauss.own[device, cluster, at]


@leaf
def take_in(gauss: Any, device: Any, slot: Any, amounts: Any, moments: Any) -> None:
    """Add what amounts[remote cluster] of datapoints over a slot do to moments[cluster]."""
    clusters, length = moments.shape
    for remote in range(clusters):
        if amounts[remote] <= 0.0:
            continue
        for cluster in range(clusters):
            pull = gauss.pull[device, slot, remote, cluster]
            if pull[0] > 0.0:
                for at in range(length):
                    moments[cluster, at] += amounts[remote] * pull[at]


@leaf
def _invert(matrix: Any, inverse: Any, work: Any) -> Any:
    """Inverse of a positive definite matrix by Cholesky; returns the log-determinant."""
    size = len(matrix)
    log = 0.0
    for a in range(size):
        for b in range(a + 1):
            value = matrix[a, b]
            for c in range(b):
                value -= work[a, c] * work[b, c]
            if a == b:
                work[a, a] = np.sqrt(max(value, 1e-300))
                log += 2.0 * np.log(work[a, a])
            else:
                work[a, b] = value / work[b, b]
    for column in range(size):  # forward, then backward, for each unit vector
        for a in range(size):
            value = 1.0 if a == column else 0.0
            for c in range(a):
                value -= work[a, c] * inverse[c, column]
            inverse[a, column] = value / work[a, a]
        for a in range(size - 1, -1, -1):
            value = inverse[a, column]
            for c in range(a + 1, size):
                value -= work[c, a] * inverse[c, column]
            inverse[a, column] = value / work[a, a]
    return log


@leaf
def shape_of(gauss: Any, device: Any, moments: Any, mean: Any, spread: Any) -> Any:
    """Mean and covariance of each cluster from its moments; returns the diversity gain (R10).

    A cluster that holds nothing any more keeps the shape that it had.
    """
    clusters = len(moments)
    components = mean.shape[1]
    gain = 0.0
    for cluster in range(clusters):
        now = moments[cluster] if moments[cluster, 0] > LEAST else gauss.own[device, cluster]
        mass = now[0]
        for a in range(components):
            mean[cluster, a] = now[1 + a] / mass
        at = 1 + components
        trace = 0.0
        for a in range(components):
            for b in range(a, components):
                value = now[at] / mass - mean[cluster, a] * mean[cluster, b]
                if a == b:
                    value = max(value, 0.0) + gauss.ridge
                    trace += value
                spread[cluster, a, b] = value
                spread[cluster, b, a] = value
                at += 1
        gain += trace / gauss.trace[device, cluster] - 1.0
    return gain / clusters


@leaf
def invert_all(spread: Any, inverse: Any, log: Any, work: Any) -> None:
    """Inverse and log-determinant of each cluster's covariance."""
    for cluster in range(len(spread)):
        log[cluster] = _invert(spread[cluster], inverse[cluster], work)


@leaf
def sums_of(mean: Any, spread: Any, inverse: Any, sums: Any) -> None:
    """What one device adds to the sums over devices that `divergence` needs.

    With S, m, P the covariance, mean and inverse covariance of each cluster, in this order: sum of S + m m', sum of P
    (both d x d), sum of m, sum of P m (both d), sum of m' P m, and what the device has with itself,
    tr(sum P * sum (S + m m')) - 2 sum(P m) . sum m.
    """
    clusters, components = mean.shape
    square = components * components
    sums[:] = 0.0
    for cluster in range(clusters):
        for a in range(components):
            pushed = 0.0
            for b in range(components):
                sums[a * components + b] += spread[cluster, a, b] + mean[cluster, a] * mean[cluster, b]
                sums[square + a * components + b] += inverse[cluster, a, b]
                pushed += inverse[cluster, a, b] * mean[cluster, b]
            sums[2 * square + a] += mean[cluster, a]
            sums[2 * square + components + a] += pushed
            sums[2 * square + 2 * components] += mean[cluster, a] * pushed
    sums[2 * square + 2 * components + 1] = _crossed(sums, components)


@leaf
def _crossed(sums: Any, components: Any) -> Any:
    """tr(P A) - 2 v . m, for a device with itself or for all with all."""
    square = components * components
    value = 0.0
    for at in range(square):
        value += sums[at] * sums[square + at]
    for a in range(components):
        value -= 2.0 * sums[2 * square + a] * sums[2 * square + components + a]
    return value


@leaf
def divergence(total: Any, devices: Any, clusters: Any, components: Any) -> Any:
    """Sum of KL divergences over all ordered pairs of different devices and all pairs of their clusters.

        sum KL = 1/2 [ tr(P A) - 2 v . m - own part + L (N - 1) c - d L^2 N (N - 1) ]

    P, A, v, m, c are sums over all devices (see `sums_of`); log-determinants cancel between (i, j) and (j, i).
    """
    own = total[len(total) - 1]
    scale = total[len(total) - 2]
    pairs = devices * (devices - 1.0)
    value = _crossed(total, components) - own + clusters * (devices - 1.0) * scale
    return 0.5 * (value - components * clusters * clusters * pairs)


@leaf
def _ratio_of_means(gauss: Any, total: Any, devices: Any, clusters: Any, components: Any) -> Any:
    """R11's default: mean divergence before / mean divergence after - 1."""
    after = divergence(total, devices, clusters, components)
    return gauss.before / max(after, 1e-9 * gauss.before) - 1.0


@part
def agreement_of(gauss: Any, shape: Any, kind: Any) -> Any:
    """System agreement as the clusters stand (R11)."""
    devices, clusters, components = shape.mean.shape
    if devices < 2 or gauss.before <= 0.0:
        return 0.0
    if kind == RATIO:
        return _ratio_of_means(gauss, shape.total, devices, clusters, components)
    number = devices * (devices - 1) * clusters * clusters
    if kind == MEDIAN:
        flat = np.empty(number)
        at = 0
        for i in range(devices):
            for j in range(devices):
                if i != j:
                    flat[at : at + clusters * clusters] = shape.ratio[i, j].ravel()
                    at += clusters * clusters
        return np.median(flat) - 1.0
    whole = 0.0
    for i in range(devices):
        for j in range(devices):
            if i != j:
                whole += shape.ratio[i, j].sum()
    return whole if kind == LITERAL else whole / number - 1.0


@leaf
def _one_divergence(shape: Any, i: Any, own: Any, j: Any, other: Any) -> Any:
    """KL of cluster `own` of device i from cluster `other` of device j."""
    components = shape.mean.shape[2]
    value = shape.log[j, other] - shape.log[i, own] - components
    for a in range(components):
        away = shape.mean[i, own, a] - shape.mean[j, other, a]
        for b in range(components):
            far = shape.mean[i, own, b] - shape.mean[j, other, b]
            value += shape.inverse[j, other, a, b] * (shape.spread[i, own, a, b] + away * far)
    return max(0.5 * value, 0.0)


@part
def renew_clusters(gauss: Any, shape: Any, device: Any, moments: Any, kind: Any) -> Any:
    """Put a device's new clusters in force; returns its diversity gain."""
    gain = shape_of(gauss, device, moments, shape.mean[device], shape.spread[device])
    work = np.empty(shape.spread.shape[2:])
    invert_all(shape.spread[device], shape.inverse[device], shape.log[device], work)
    sums = shape.sums[device]
    shape.total[:] -= sums
    sums_of(shape.mean[device], shape.spread[device], shape.inverse[device], sums)
    shape.total[:] += sums
    if kind != RATIO:
        renew_ratios(gauss, shape, device)
    return gain


@leaf
def renew_ratios(gauss: Any, shape: Any, device: Any) -> None:
    """Divergence before / after for all pairs with this device; where both are 0, and nothing changed, 1."""
    devices, clusters = shape.log.shape
    for other in range(devices):
        if other == device:
            continue
        for own in range(clusters):
            for there in range(clusters):
                after = _one_divergence(shape, device, own, other, there)
                shape.ratio[device, other, own, there] = (gauss.pairs[device, other, own, there] + 1e-9) / (
                    after + 1e-9
                )
                after = _one_divergence(shape, other, there, device, own)
                shape.ratio[other, device, there, own] = (gauss.pairs[other, device, there, own] + 1e-9) / (
                    after + 1e-9
                )


@part
def lone_agreement(gauss: Any, shape: Any, device: Any, mean: Any, spread: Any, inverse: Any, log: Any) -> Any:
    """System agreement if this device's clusters were as given and all others as they are (R11's default only)."""
    devices, clusters, components = shape.mean.shape
    if devices < 2 or gauss.before <= 0.0:
        return 0.0
    work = np.empty((components, components))
    invert_all(spread, inverse, log, work)
    total = shape.total - shape.sums[device]
    mine = np.empty(len(total))
    sums_of(mean, spread, inverse, mine)
    total += mine
    return _ratio_of_means(gauss, total, devices, clusters, components)
