"""What a graph does to data clusters, one device, pair and divergence at a time (paper Section V-B3).

The compiled game computes the same from sums; this is the plain form that every graph is measured by in the end.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from d2dfl.config import RewardConfig
from d2dfl.config.needs import PAIRS
from d2dfl.discovery.equations.gaussian import (
    described,
    pair_divergences,
    ridge_of,
    standard_points,
    summed_divergences,
)
from d2dfl.discovery.equations.messages import LEAST
from d2dfl.network import Network
from d2dfl.network.graph import Graph

Array = NDArray[np.float64]
SOFTENER = 1e-9  # added to a divergence before dividing by it


class Worth(NamedTuple):
    """Rewards of a graph over data clusters."""

    gain: Array  # [device] diversity gain
    agreement: float
    no_exchange: float  # the agreement of the graph without links


def clusters_after(network: Network, graph: Graph) -> tuple[Array, Array, Array]:
    """Counts, means and covariances of every device's data clusters after the exchange, in expectation (R23)."""
    centroids, covariances = described(network)
    devices, clusters, components = centroids.shape
    points = standard_points(components)
    kept = np.maximum(network.counts - graph.given(), 0.0)
    counts, means, spreads = kept.copy(), centroids.copy(), covariances.copy()
    for device in range(devices):
        mass = counts[device]
        first = mass[:, None] * centroids[device]
        outer = centroids[device][:, :, None] * centroids[device][:, None, :]
        second = mass[:, None, None] * (covariances[device] + outer)
        for edge in np.nonzero(graph.transmitter[device] >= 0)[0]:
            sender = graph.transmitter[device, edge]
            arrived = graph.allocated[device, edge] * (1.0 - graph.drop[device, edge])
            for remote in range(clusters):
                values, vectors = np.linalg.eigh(covariances[sender, remote])
                root = vectors * np.sqrt(np.maximum(values, 0.0))
                places = centroids[sender, remote] + points @ root.T
                nearest = ((places[:, None] - centroids[device]) ** 2).sum(axis=2).argmin(axis=1)
                weight = arrived[remote] / len(points)
                np.add.at(mass, nearest, weight)
                np.add.at(first, nearest, weight * places)
                np.add.at(second, nearest, weight * places[:, :, None] * places[:, None, :])
        for cluster in np.nonzero(mass > LEAST)[0]:
            mean = first[cluster] / mass[cluster]
            means[device, cluster] = mean
            spreads[device, cluster] = second[cluster] / mass[cluster] - np.outer(mean, mean)
    return counts, means, spreads


def agreement_between(before: Array, after: Array, kind: str) -> float:
    """System agreement from two tables of divergences [i, j, l, m] (R11)."""
    devices = len(before)
    if devices < 2 or before.sum() <= 0:
        return 0.0
    pairs = ~np.eye(devices, dtype=bool)
    one, two = before[pairs], after[pairs]
    if kind == "ratio":
        return float(one.sum() / max(two.sum(), 1e-9 * one.sum()) - 1.0)
    ratios = (one + SOFTENER) / (two + SOFTENER)
    if kind == "literal":
        return float(ratios.sum())
    return float((np.median(ratios) if kind == "median" else ratios.mean()) - 1.0)


def clustered_worth(network: Network, graph: Graph, config: RewardConfig) -> Worth:
    """Diversity gains and system agreement of a graph."""
    centroids, covariances = described(network)
    ridge = ridge_of(network, config.ridge) * np.eye(centroids.shape[2])
    _, means, spreads = clusters_after(network, graph)
    traces = [np.einsum("nldd->nl", table + ridge) for table in (spreads, covariances)]
    gain = (traces[0] / traces[1] - 1.0).mean(axis=1)
    if config.agreement == "ratio" and network.devices > PAIRS:
        sums = [summed_divergences(*one) for one in ((centroids, covariances + ridge), (means, spreads + ridge))]
        return Worth(gain, sums[0] / max(sums[1], 1e-9 * sums[0]) - 1.0 if sums[0] > 0 else 0.0, 0.0)
    before = pair_divergences(centroids, covariances + ridge)
    return Worth(
        gain=gain,
        agreement=agreement_between(before, pair_divergences(means, spreads + ridge), config.agreement),
        no_exchange=agreement_between(before, before, config.agreement),
    )
