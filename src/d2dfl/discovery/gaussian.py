"""Unlabelled data as Gaussian clusters: Algorithm 2 and its rewards, compiled (paper Section V-B, R10, R11, R23, R24).

Every device knows its data clusters as counts, centroids and covariances, and tells nothing else. A transmitter offers
datapoints from clusters far from the receiver's centroids; the receiver imagines them as points of the transmitter's
Gaussians, assigns each to its nearest centroid and looks at what its clusters become:

    diversity gain     mean over clusters of tr(after) / tr(before) - 1                            (R10)
    system agreement   mean divergence before / mean divergence after - 1, over all pairs          (R11)

Two things make this fast. What one datapoint of a transmitter's cluster does to each cluster of the receiver is
a vector of moments, the same in every step, so it is computed once; clusters after any exchange are sums of these. And
the sum of KL divergences over all pairs of devices and clusters needs no pairs: log-determinants cancel, and what is
left is a product of sums over devices (`divergence`). A changed link costs the same in a network of any size.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.stats import norm, qmc

from d2dfl.network import Network

POINTS = 64  # stand for the datapoints of a remote cluster; a power of 2
RATIO, LITERAL, MEAN, MEDIAN = range(4)
KINDS = ("ratio", "literal", "mean", "median")
NOTHING = 1e-9  # less of a datapoint is none
Array = NDArray[np.float64]


class Gauss(NamedTuple):
    """What does not change while a game is played. Empty arrays where partitions are labels."""

    wish: Array  # [receiver, slot, cluster of the transmitter] datapoints asked for
    # Moments are a mass, its first moment [d] and its second moment, upper triangle by rows [d (d + 1) / 2].
    own: Array  # [device, cluster, moment] of one of its datapoints
    pull: Array  # [receiver, slot, cluster of the transmitter, own cluster, moment] of one datapoint received
    trace: Array  # [device, cluster] tr of the covariance before
    ridge: float
    before: float  # sum of divergences over all pairs of devices and clusters, before
    pairs: Array  # [device, device, cluster, cluster] divergences before; empty unless ratios are asked for pairwise


class Shape(NamedTuple):
    """The clusters of all devices as a game stands. Empty where partitions are labels."""

    mean: Array  # [device, cluster, d]
    spread: Array  # [device, cluster, d, d] covariance
    inverse: Array  # [device, cluster, d, d]
    log: Array  # [device, cluster] log-determinant
    sums: Array  # [device, number] what a device adds to the sums below
    total: Array  # [number] sums over all devices
    ratio: Array  # [device, device, cluster, cluster] divergence before / after; empty unless asked for
    agreement: Array  # [1]


def components_of(moments: int) -> int:
    """d, from the length 1 + d + d (d + 1) / 2 of a vector of moments."""
    return int((-3.0 + (9.0 + 8.0 * (moments - 1)) ** 0.5) / 2.0 + 0.5)


def standard_points(components: int) -> Array:
    """POINTS points [point, d] with mean 0 and covariance 1, spread like a standard normal; the same everywhere."""
    half = POINTS // 2
    points = norm.ppf(qmc.Sobol(components, scramble=False).random(half) * (1 - 1 / half) + 0.5 / half)
    points = np.concatenate([points, -points])
    inverse_root = np.linalg.cholesky(np.linalg.pinv(points.T @ points / len(points)) + 1e-12 * np.eye(components))
    return np.asarray(points @ inverse_root)


def ridge_of(network: Network, share: float) -> float:
    """R11: a share of the mean variance of all data, so that a cluster of one point has a shape too."""
    weight = network.counts / max(float(network.counts.sum()), 1.0)
    centroids, covariances = described(network)
    mean = np.einsum("nl,nld->d", weight, centroids)
    inside = np.einsum("nl,nldd->", weight, covariances)
    between = np.einsum("nl,nld->", weight, (centroids - mean) ** 2)
    return float(share * (inside + between) / centroids.shape[2]) or 1e-12


def described(network: Network) -> tuple[Array, Array]:
    """Centroids and covariances of every device's data clusters."""
    if network.centroids is None or network.covariances is None:
        raise ValueError("the network's partitions are labels")
    return network.centroids, network.covariances


def gauss_of(network: Network, ridge_share: float, kind: int) -> Gauss:
    """Lay the clusters of a network out for compiled code."""
    if network.centroids is None:
        return NO_GAUSS
    centroids, covariances = described(network)
    devices, clusters, components = centroids.shape
    ridge = ridge_of(network, ridge_share)
    moments = 1 + components + components * (components + 1) // 2
    own = np.empty((devices, clusters, moments))
    roots = np.empty_like(covariances)
    upper = np.triu_indices(components)
    for device, cluster in np.ndindex(devices, clusters):
        mean, spread = centroids[device, cluster], covariances[device, cluster]
        own[device, cluster] = np.concatenate([[1.0], mean, (spread + np.outer(mean, mean))[upper]])
        values, vectors = np.linalg.eigh(spread)
        roots[device, cluster] = vectors * np.sqrt(np.maximum(values, 0.0))
    pull = np.zeros((devices, network.slots, clusters, clusters, moments))
    _pulls(network.candidates, centroids, roots, standard_points(components), pull)
    spreads = covariances + ridge * np.eye(components)
    table = pair_divergences(centroids, spreads)
    return Gauss(
        wish=wishes(network),
        own=own,
        pull=pull,
        trace=np.einsum("nldd->nl", spreads),
        ridge=ridge,
        before=float(table.sum()),
        pairs=np.empty((0, 0, 0, 0)) if kind == RATIO else table,
    )


def wishes(network: Network) -> Array:
    """wish[receiver, slot, cluster of the transmitter]: Q split by distance from the receiver's centroids (eq. usp_mp).

    R24: split over the clusters that the transmitter may send, so that a receiver gets what it asks for.
    """
    centroids, _ = described(network)
    request = network.need[:, 0]
    wish = np.zeros(network.trust.shape)
    for receiver in range(network.devices):
        remote = centroids[network.candidates[receiver]]  # [slot, cluster, d]
        far = np.linalg.norm(remote[:, :, None] - centroids[receiver], axis=-1).sum(axis=-1)
        heard = (network.candidates[receiver] >= 0)[:, None]
        allowed = network.trust[receiver] & heard & (network.counts[network.candidates[receiver]] > 0)
        # Where all centroids coincide there is nothing to prefer.
        far = np.where(allowed, np.where((far * allowed).sum(axis=1, keepdims=True) > 0, far, 1.0), 0.0)
        whole = far.sum(axis=1, keepdims=True)
        wish[receiver] = request[receiver] * np.divide(far, whole, out=np.zeros_like(far), where=whole > 0)
    return wish


@njit(cache=True)
def _pulls(candidates: Any, centroids: Any, roots: Any, points: Any, pull: Any) -> None:
    """Moments that one datapoint of each remote cluster adds to each own cluster, nearest centroid first (R23)."""
    devices, slots = candidates.shape
    clusters, components = centroids.shape[1:]
    place = np.empty(components)
    weight = 1.0 / len(points)
    for receiver in range(devices):
        for slot in range(slots):
            transmitter = candidates[receiver, slot]
            if transmitter < 0:
                continue
            for remote in range(clusters):
                for point in range(len(points)):
                    for a in range(components):
                        value = centroids[transmitter, remote, a]
                        for b in range(components):
                            value += roots[transmitter, remote, a, b] * points[point, b]
                        place[a] = value
                    best, least = 0, np.inf
                    for own in range(clusters):
                        far = 0.0
                        for a in range(components):
                            far += (place[a] - centroids[receiver, own, a]) ** 2
                        if far < least:
                            best, least = own, far
                    into = pull[receiver, slot, remote, best]
                    into[0] += weight
                    at = 1 + components
                    for a in range(components):
                        into[1 + a] += weight * place[a]
                        for b in range(a, components):
                            into[at] += weight * place[a] * place[b]
                            at += 1


def pair_divergences(means: Array, spreads: Array) -> Array:
    """KL[i, j, l, m] of cluster l of device i from cluster m of device j, one by one; 0 for a device and itself."""
    devices, clusters, components = means.shape
    inverse, log = np.linalg.inv(spreads), np.linalg.slogdet(spreads)[1]
    table = np.zeros((devices, devices, clusters, clusters))
    for j in range(devices):
        for m in range(clusters):
            away = means - means[j, m]
            value = np.einsum("ab,nlba->nl", inverse[j, m], spreads)
            value += np.einsum("nla,ab,nlb->nl", away, inverse[j, m], away) - components + log[j, m] - log
            table[:, j, :, m] = 0.5 * value
        table[j, j] = 0.0
    return np.maximum(table, 0.0)


@njit(cache=True)
def give_away(gauss: Any, device: Any, kept: Any, moments: Any) -> None:
    """moments[cluster] of what a device keeps: it sends datapoints of a cluster at random, so shapes stay."""
    for cluster in range(gauss.own.shape[1]):
        for at in range(gauss.own.shape[2]):
            moments[cluster, at] = kept[cluster] * gauss.own[device, cluster, at]


@njit(cache=True)
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


@njit(cache=True)
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


@njit(cache=True)
def shape_of(gauss: Any, device: Any, moments: Any, mean: Any, spread: Any) -> Any:
    """Mean and covariance of each cluster from its moments; returns the diversity gain (R10).

    A cluster that holds nothing any more keeps the shape that it had.
    """
    clusters = len(moments)
    components = mean.shape[1]
    gain = 0.0
    for cluster in range(clusters):
        now = moments[cluster] if moments[cluster, 0] > NOTHING else gauss.own[device, cluster]
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


@njit(cache=True)
def invert_all(spread: Any, inverse: Any, log: Any, work: Any) -> None:
    """Inverse and log-determinant of each cluster's covariance."""
    for cluster in range(len(spread)):
        log[cluster] = _invert(spread[cluster], inverse[cluster], work)


@njit(cache=True)
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


@njit(cache=True)
def _crossed(sums: Any, components: Any) -> Any:
    """tr(P A) - 2 v . m, for a device with itself or for all with all."""
    square = components * components
    value = 0.0
    for at in range(square):
        value += sums[at] * sums[square + at]
    for a in range(components):
        value -= 2.0 * sums[2 * square + a] * sums[2 * square + components + a]
    return value


@njit(cache=True)
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


@njit(cache=True)
def agreement_of(gauss: Any, shape: Any, kind: Any) -> Any:
    """System agreement as the clusters stand (R11)."""
    devices, clusters, components = shape.mean.shape
    if devices < 2 or gauss.before <= 0.0:
        return 0.0
    if kind == RATIO:
        after = divergence(shape.total, devices, clusters, components)
        return gauss.before / max(after, 1e-9 * gauss.before) - 1.0
    number = devices * (devices - 1) * clusters * clusters
    if kind == MEDIAN:
        flat = np.empty(number)
        at = 0
        for i in range(devices):
            for j in range(devices):
                if i != j:
                    for l in range(clusters):  # noqa: E741  # the paper's letter
                        for m in range(clusters):
                            flat[at] = shape.ratio[i, j, l, m]
                            at += 1
        return np.median(flat) - 1.0
    whole = 0.0
    for i in range(devices):
        for j in range(devices):
            if i != j:
                whole += shape.ratio[i, j].sum()
    return whole if kind == LITERAL else whole / number - 1.0


@njit(cache=True)
def _one_divergence(shape: Any, i: Any, l: Any, j: Any, m: Any) -> Any:  # noqa: E741
    components = shape.mean.shape[2]
    value = shape.log[j, m] - shape.log[i, l] - components
    for a in range(components):
        away = shape.mean[i, l, a] - shape.mean[j, m, a]
        for b in range(components):
            far = shape.mean[i, l, b] - shape.mean[j, m, b]
            value += shape.inverse[j, m, a, b] * (shape.spread[i, l, a, b] + away * far)
    return max(0.5 * value, 0.0)


@njit(cache=True)
def settle(gauss: Any, shape: Any, device: Any, moments: Any, kind: Any, pairwise: Any) -> Any:
    """Put a device's new clusters in force; returns its diversity gain. `pairwise` also renews its ratios."""
    gain = shape_of(gauss, device, moments, shape.mean[device], shape.spread[device])
    work = np.empty(shape.spread.shape[2:])
    invert_all(shape.spread[device], shape.inverse[device], shape.log[device], work)
    sums = shape.sums[device]
    shape.total[:] -= sums
    sums_of(shape.mean[device], shape.spread[device], shape.inverse[device], sums)
    shape.total[:] += sums
    if kind != RATIO and pairwise:
        renew_ratios(gauss, shape, device)
    return gain


@njit(cache=True)
def renew_ratios(gauss: Any, shape: Any, device: Any) -> None:
    """Divergence before / after for all pairs with this device; where both are 0, and nothing changed, 1."""
    devices, clusters = shape.log.shape
    for other in range(devices):
        if other == device:
            continue
        for l in range(clusters):  # noqa: E741
            for m in range(clusters):
                after = _one_divergence(shape, device, l, other, m)
                shape.ratio[device, other, l, m] = (gauss.pairs[device, other, l, m] + 1e-9) / (after + 1e-9)
                after = _one_divergence(shape, other, m, device, l)
                shape.ratio[other, device, m, l] = (gauss.pairs[other, device, m, l] + 1e-9) / (after + 1e-9)


@njit(cache=True)
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
    after = divergence(total, devices, clusters, components)
    return gauss.before / max(after, 1e-9 * gauss.before) - 1.0


def shape_before(gauss: Gauss, devices: int, kind: int) -> Shape:
    """Room for the clusters of all devices."""
    if not len(gauss.own):
        return NO_SHAPE
    clusters, moments = gauss.own.shape[1:]
    d = components_of(moments)
    return Shape(
        mean=np.zeros((devices, clusters, d)),
        spread=np.zeros((devices, clusters, d, d)),
        inverse=np.zeros((devices, clusters, d, d)),
        log=np.zeros((devices, clusters)),
        sums=np.zeros((devices, 2 * d * d + 2 * d + 2)),
        total=np.zeros(2 * d * d + 2 * d + 2),
        ratio=np.ones((devices, devices, clusters, clusters)) if kind != RATIO else np.empty((0, 0, 0, 0)),
        agreement=np.zeros(1),
    )


NO_GAUSS = Gauss(
    wish=np.empty((0, 0, 0)),
    own=np.empty((0, 0, 0)),
    pull=np.empty((0, 0, 0, 0, 0)),
    trace=np.empty((0, 0)),
    ridge=0.0,
    before=0.0,
    pairs=np.empty((0, 0, 0, 0)),
)
NO_SHAPE = Shape(
    mean=np.empty((0, 0, 0)),
    spread=np.empty((0, 0, 0, 0)),
    inverse=np.empty((0, 0, 0, 0)),
    log=np.empty((0, 0)),
    sums=np.empty((0, 0)),
    total=np.empty(0),
    ratio=np.empty((0, 0, 0, 0)),
    agreement=np.empty(0),
)
