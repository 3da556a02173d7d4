"""Reliable clusters: inside a cluster every pair loses at most alpha_D of its packets, both ways (R25)."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

from d2dfl.compiled import kernel
from d2dfl.config.needs import LINKAGE


def reliable_clusters(
    candidates: NDArray[np.int32], drop: NDArray[np.float64], reliability: float
) -> NDArray[np.int32]:
    """cluster[device], numbered from 0 in order of first appearance.

    Complete linkage on max(P_ij, P_ji), cut at alpha_D. Beyond 2,000 devices, where the N x N table of complete
    linkage is too large, clusters grow greedily: a device joins the first cluster of which it hears every member, and
    every member hears it, reliably.
    """
    devices = candidates.shape[0]
    if devices == 1:
        return np.zeros(1, dtype=np.int32)
    if devices > LINKAGE:
        return np.asarray(_grow(candidates, drop, reliability))
    worst = dense(candidates, drop, missing=1.0)
    worst = np.maximum(worst, worst.T)
    # Pairs that cannot hear each other must never merge, whatever the threshold.
    worst[worst >= 1.0] = 2.0
    np.fill_diagonal(worst, 0.0)
    labels = fcluster(linkage(squareform(worst, checks=False), "complete"), reliability, "distance")
    _, first = np.unique(labels, return_index=True)
    order = np.argsort(np.argsort(first))
    return np.asarray(order[labels - 1], dtype=np.int32)


def dense(candidates: NDArray[np.int32], values: NDArray[np.float64], missing: float) -> NDArray[np.float64]:
    """Turn values[receiver, slot] into a table[receiver, transmitter]."""
    devices = candidates.shape[0]
    table = np.full((devices, devices), missing)
    receiver, slot = np.nonzero(candidates >= 0)
    table[receiver, candidates[receiver, slot]] = values[receiver, slot]
    return table


def unreliable_pair(
    candidates: NDArray[np.int32], drop: NDArray[np.float64], cluster: NDArray[np.int32], reliability: float
) -> tuple[int, int] | None:
    """A pair inside one cluster that does not meet alpha_D, or None if every pair does."""
    receiver, transmitter = _violation(candidates, drop, cluster, reliability)
    return None if receiver < 0 else (int(receiver), int(transmitter))


@kernel
def _reliable(candidates: Any, drop: Any, receiver: Any, transmitter: Any, reliability: Any) -> Any:
    for slot in range(candidates.shape[1]):
        if candidates[receiver, slot] == transmitter:
            return drop[receiver, slot] <= reliability
    return False


@kernel
def _grow(candidates: Any, drop: Any, reliability: Any) -> Any:
    devices, slots = candidates.shape
    cluster = np.full(devices, -1, np.int32)
    first_member = np.full(devices, -1, np.int32)
    next_member = np.full(devices, -1, np.int32)
    clusters = 0
    for device in range(devices):
        for slot in range(slots):
            neighbour = candidates[device, slot]
            if neighbour < 0 or cluster[neighbour] < 0:
                continue
            member = first_member[cluster[neighbour]]
            while member >= 0 and (
                _reliable(candidates, drop, device, member, reliability)
                and _reliable(candidates, drop, member, device, reliability)
            ):
                member = next_member[member]
            if member < 0:
                cluster[device] = cluster[neighbour]
                break
        if cluster[device] < 0:
            cluster[device] = clusters
            clusters += 1
        next_member[device] = first_member[cluster[device]]
        first_member[cluster[device]] = device
    return cluster


@kernel
def _violation(candidates: Any, drop: Any, cluster: Any, reliability: Any) -> Any:
    devices = candidates.shape[0]
    last_member = np.full(cluster.max() + 1, -1, np.int32)
    previous = np.full(devices, -1, np.int32)
    for device in range(devices):
        member = last_member[cluster[device]]
        while member >= 0:
            if not (
                _reliable(candidates, drop, device, member, reliability)
                and _reliable(candidates, drop, member, device, reliability)
            ):
                return device, member
            member = previous[member]
        previous[device] = last_member[cluster[device]]
        last_member[cluster[device]] = device
    return -1, -1
