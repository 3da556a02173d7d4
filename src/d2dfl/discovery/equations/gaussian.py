"""Unlabelled data as Gaussian clusters: what Algorithm 2 starts from (paper Section V-B, R10, R11, R23, R24).

Every device knows its data clusters as counts, centroids and covariances, and tells nothing else. A transmitter offers
datapoints from clusters far from the receiver's centroids; the receiver imagines them as points of the transmitter's
Gaussians, assigns each to its nearest centroid and looks at what its clusters become:

    diversity gain     mean over clusters of tr(after) / tr(before) - 1                            (R10)
    system agreement   mean divergence before / mean divergence after - 1, over all pairs          (R11)

Two things make this fast. What one datapoint of a transmitter's cluster does to each cluster of the receiver is
a vector of moments, the same in every step, so it is computed once; clusters after any exchange are sums of these. And
the sum of KL divergences over all pairs of devices and clusters needs no pairs: log-determinants cancel, and what is
left is a product of sums over devices (`agreement.divergence`). A changed link costs the same in a network of any size.
"""

from typing import Any, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from d2dfl.compiled import kernel
from d2dfl.config.needs import PAIRS, POINTS
from d2dfl.config.sections.graph import Agreement
from d2dfl.network import Network

KINDS: tuple[str, ...] = get_args(Agreement)
RATIO, LITERAL, MEAN, MEDIAN = range(len(KINDS))
Array = NDArray[np.float64]


class Gauss(NamedTuple):
    """What does not change while a game is played."""

    request: Array  # [receiver, slot, cluster of the transmitter] datapoints asked for
    # Moments are a mass, its first moment [d] and its second moment, upper triangle by rows [d (d + 1) / 2].
    own: Array  # [device, cluster, moment] of one of its datapoints
    pull: Array  # [receiver, slot, cluster of the transmitter, own cluster, moment] of one datapoint received
    trace: Array  # [device, cluster] tr of the covariance before
    ridge: float
    before: float  # sum of divergences over all pairs of devices and clusters, before
    pairs: Array  # [device, device, cluster, cluster] divergences before; empty unless ratios are asked for pairwise


class ClusterState(NamedTuple):
    """The clusters of all devices as a game stands."""

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
    """Points [point, d] with mean 0 and covariance 1, spread like a standard normal; the same everywhere.

    POINTS of them, or four times d where that is more: fewer than two for each direction have no full covariance.
    """
    from scipy.stats import norm, qmc  # takes a third of a second to load, and only data clusters need it

    half = max(POINTS, 1 << (4 * components - 1).bit_length()) // 2
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
    # Devices without data weigh nothing, but their clusters are inverted too: beside them the ridge must not vanish.
    least = 1e-12 * float(np.einsum("nldd->nld", covariances).max())
    return max(float(share * (inside + between) / centroids.shape[2]), least) or 1e-12


def described(network: Network) -> tuple[Array, Array]:
    """Centroids and covariances of every device's data clusters."""
    if network.centroids is None or network.covariances is None:
        raise ValueError("the network's partitions are labels")
    return network.centroids, network.covariances


def gauss_of(network: Network, ridge_share: float, kind: int) -> Gauss | None:
    """Lay the clusters of a network out for compiled code; None where partitions are labels.

    None is a type of its own to the compiler: what data clusters need is compiled only for a network that has them.
    """
    if network.centroids is None:
        return None
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
    table = pair_divergences(centroids, spreads) if kind != RATIO or devices <= PAIRS else None
    return Gauss(
        request=cluster_requests(network),
        own=own,
        pull=pull,
        trace=np.einsum("nldd->nl", spreads),
        ridge=ridge,
        before=float(summed_divergences(centroids, spreads) if table is None else table.sum()),
        pairs=np.empty((0, 0, 0, 0)) if kind == RATIO or table is None else table,
    )


def cluster_requests(network: Network) -> Array:
    """request[receiver, slot, cluster of the transmitter]: Q split by distance from the receiver's centroids (eq. usp_mp).

    R24: split over the clusters that the transmitter may send, so that a receiver gets what it asks for.
    """
    centroids, _ = described(network)
    request = network.need[:, 0]
    found = np.zeros(network.trust.shape)
    for receiver in range(network.devices):
        remote = centroids[network.candidates[receiver]]  # [slot, cluster, d]
        far = np.linalg.norm(remote[:, :, None] - centroids[receiver], axis=-1).sum(axis=-1)
        heard = (network.candidates[receiver] >= 0)[:, None]
        allowed = network.trust[receiver] & heard & (network.surplus[network.candidates[receiver]] > 0)
        # Where all centroids coincide there is nothing to prefer.
        far = np.where(allowed, np.where((far * allowed).sum(axis=1, keepdims=True) > 0, far, 1.0), 0.0)
        whole = far.sum(axis=1, keepdims=True)
        found[receiver] = request[receiver] * np.divide(far, whole, out=np.zeros_like(far), where=whole > 0)
    return found


@kernel
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


def summed_divergences(means: Array, spreads: Array) -> float:
    """The sum of `pair_divergences` without the table: time and memory of devices, not of pairs of them.

    Everybody with everybody, less the clusters of each device with each other; log-determinants cancel in both.
    """
    devices, clusters, components = means.shape
    means = means - means.mean(axis=(0, 1))  # a divergence does not see where the origin is, but rounding does
    inverse = np.linalg.inv(spreads)
    pulled = np.einsum("nlab,nlb->nla", inverse, means)
    second = spreads + means[..., :, None] * means[..., None, :]

    def crossed(number: int, inverse: Array, second: Array, pulled: Array, means: Array, bent: Array) -> Array:
        """Twice the divergences of `number` clusters from each other, all pairs added up, by sums over them."""
        traced = np.einsum("...ab,...ab->...", inverse, second) - 2.0 * np.einsum("...a,...a->...", pulled, means)
        return np.asarray(traced + number * bent - components * number**2)

    own = [held.sum(axis=1) for held in (inverse, second, pulled, means, np.einsum("nla,nla->nl", pulled, means))]
    everybody = [held.sum(axis=0) for held in own]
    return max(0.0, 0.5 * float(crossed(devices * clusters, *everybody) - crossed(clusters, *own).sum()))


def shape_before(gauss: Gauss | None, devices: int, kind: int) -> ClusterState | None:
    """Room for the clusters of all devices; None where partitions are labels."""
    if gauss is None:
        return None
    clusters, moments = gauss.own.shape[1:]
    d = components_of(moments)
    return ClusterState(
        mean=np.zeros((devices, clusters, d)),
        spread=np.zeros((devices, clusters, d, d)),
        inverse=np.zeros((devices, clusters, d, d)),
        log=np.zeros((devices, clusters)),
        sums=np.zeros((devices, 2 * d * d + 2 * d + 2)),
        total=np.zeros(2 * d * d + 2 * d + 2),
        ratio=np.ones((devices, devices, clusters, clusters)) if kind != RATIO else np.empty((0, 0, 0, 0)),
        agreement=np.zeros(1),
    )
