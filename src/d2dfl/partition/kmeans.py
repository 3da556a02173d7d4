"""Unsupervised partitions: K-means clusters of the projections (paper Section V-B).

`own_clusters`: each device clusters its own datapoints and sends nothing; cluster 3 of one device has nothing to do
with cluster 3 of another, as Algorithm 2 has it. `shared_clusters`: clusters that mean the same everywhere, at the
price of one message from each device with its centroids and their counts. A centroid of many datapoints is a mean; the
centroid of a cluster of one is that datapoint's projection.
"""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from d2dfl.errors import UserError
from d2dfl.partition.pca import EVERYBODY, SERVER, Message, message
from d2dfl.partition.threads import one_thread
from d2dfl.rng import stream

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

STARTS = 4  # K-means runs from this many k-means++ draws and keeps the best
NOBODY = -1


@dataclass(frozen=True)
class DataClusters:
    """Every device's datapoints by data cluster, with the moments that Algorithm 2 sends around."""

    assignment: Indices  # [datapoint] cluster at the device that holds it, NOBODY where none does
    counts: Indices  # [device, cluster] datapoints
    centroids: Array  # [device, cluster, component] mean of the members
    # [device, cluster, component, component] maximum-likelihood covariance of the members: divided by their number,
    # so zero for a cluster of one. Whoever inverts it adds a ridge.
    covariances: Array
    messages: tuple[Message, ...] = ()  # what crossed the wire to find them


def own_clusters(
    projections: Sequence[Array], holdings: Sequence[Indices], datapoints: int, clusters: int, seed: int
) -> DataClusters:
    """K-means at each device alone; projections[device][n] belongs to datapoint holdings[device][n]."""
    with one_thread():
        members = [_kmeans(points, clusters, seed, device) for device, points in enumerate(projections)]
    centres = [np.zeros((clusters, points.shape[1])) for points in projections]
    return _collected(projections, holdings, datapoints, members, centres)


def shared_clusters(
    projections: Sequence[Array],
    holdings: Sequence[Indices],
    datapoints: int,
    clusters: int,
    seed: int,
    disguise: Callable[[DataClusters], DataClusters] | None = None,
) -> DataClusters:
    """Clusters common to all devices: K-means of all devices' own centroids, weighted by their counts.

    `disguise` is what devices make of their own clusters before they send them, such as noise. A device may have none
    of some cluster: count 0, the common centroid, covariance 0.
    """
    own = own_clusters(projections, holdings, datapoints, clusters, seed)
    own = own if disguise is None else disguise(own)
    sent = [
        message(device, SERVER, "centroids and counts", own.centroids[device], own.counts[device].astype(np.float64))
        for device in range(len(projections))
    ]
    received = np.concatenate([item.arrays[0] for item in sent])
    weights = np.concatenate([item.arrays[1] for item in sent])
    with one_thread():
        common = _fit(received, clusters, int(stream(seed, "kmeans-shared").integers(2**31)), weights).cluster_centers_
    told = message(SERVER, EVERYBODY, "common centroids", common)
    members = [nearest_centroid(points, common) for points in projections]
    found = _collected(projections, holdings, datapoints, members, [common] * len(projections))
    return DataClusters(found.assignment, found.counts, found.centroids, found.covariances, (*sent, told))


def nearest_centroid(points: Array, centroids: Array) -> Indices:
    """The nearest of centroids[cluster, component] to each of points[n, component]; the lower one if two are as near."""
    squares = np.sum((points[:, None, :] - centroids[None, :, :]) ** 2, axis=2)
    return np.asarray(np.argmin(squares, axis=1), dtype=np.int64)


def moments(points: Array, members: Indices, centres: Array) -> tuple[Indices, Array, Array]:
    """counts[cluster], centroids[cluster, component] and covariances[cluster, component, component] of one device.

    An empty cluster gets its row of `centres` and covariance 0.
    """
    clusters, size = centres.shape
    counts = np.bincount(members, minlength=clusters).astype(np.int64)
    centroids, covariances = centres.copy(), np.zeros((clusters, size, size))
    for cluster in np.flatnonzero(counts):
        own = points[members == cluster]
        centroids[cluster] = own.mean(axis=0)
        centred = own - centroids[cluster]
        covariances[cluster] = centred.T @ centred / len(own)
    return counts, centroids, covariances


def _collected(
    projections: Sequence[Array],
    holdings: Sequence[Indices],
    datapoints: int,
    members: Sequence[Indices],
    centres: Sequence[Array],
) -> DataClusters:
    assignment = np.full(datapoints, NOBODY, dtype=np.int64)
    for points, clusters in zip(holdings, members, strict=True):
        assignment[points] = clusters
    with one_thread():
        found = [moments(*device) for device in zip(projections, members, centres, strict=True)]
    counts, centroids, covariances = (np.stack(arrays) for arrays in zip(*found, strict=True))
    return DataClusters(assignment, counts, centroids, covariances)


def _kmeans(points: Array, clusters: int, seed: int, device: int) -> Indices:
    distinct = len(np.unique(points, axis=0))
    if distinct >= clusters:
        fitted = _fit(points, clusters, int(stream(seed, "kmeans", device).integers(2**31)))
        members = np.asarray(fitted.labels_, dtype=np.int64)
        distinct = len(np.unique(members))  # fewer when points differ by rounding errors only
    if distinct < clusters:
        raise UserError(
            f"device {device} has {distinct} different datapoints, too few for {clusters} clusters: "
            f"set partition.clusters to {max(distinct, 1)} or less, or give it more data"
        )
    return members


def _fit(points: Array, clusters: int, seed: int, weights: Array | None = None) -> KMeans:
    means = KMeans(clusters, init="k-means++", n_init=STARTS, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # empty clusters: the caller looks itself
        return means.fit(points, sample_weight=weights)
