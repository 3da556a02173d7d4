"""Reliable clusters: inside a cluster every pair loses at most alpha_D of its packets, both ways (R25)."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

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
    labels = complete_linkage(worst, reliability)
    _, first, place = np.unique(labels, return_index=True, return_inverse=True)
    order = np.argsort(np.argsort(first))
    return np.asarray(order[place], dtype=np.int32)


def complete_linkage(distance: NDArray[np.float64], threshold: float) -> NDArray[np.int64]:
    """A label for each item: clusters of complete linkage, cut where they are farther apart than the threshold.

    The chain of nearest neighbours (Murtagh, 1983), with ties broken as SciPy does, whose import takes half a second:
    two clusters that are each other's nearest merge at once, since no other merge can bring anything nearer.
    """
    number = len(distance)
    apart = distance.copy()
    np.fill_diagonal(apart, np.inf)
    labels, there, chain = np.arange(number), np.ones(number, dtype=bool), list[int]()
    for _ in range(number - 1):
        if not chain:
            chain.append(int(there.argmax()))
        while True:
            last = chain[-1]
            nearest = int(apart[last].argmin())
            if len(chain) > 1 and apart[last, chain[-2]] <= apart[last, nearest]:
                break  # the one before is as near: the two merge
            chain.append(nearest)
        gone, kept = sorted((chain.pop(), chain.pop()))
        if apart[gone, kept] <= threshold:
            labels[labels == labels[gone]] = labels[kept]
        apart[kept] = apart[:, kept] = np.maximum(apart[gone], apart[kept])
        apart[gone] = apart[:, gone] = np.inf
        there[gone] = False
    return labels


def dense(candidates: NDArray[np.int32], values: NDArray[np.float64], missing: float) -> NDArray[np.float64]:
    """Turn values[receiver, slot] into a table[receiver, transmitter]."""
    devices = candidates.shape[0]
    table = np.full((devices, devices), missing)
    receiver, slot = np.nonzero(candidates >= 0)
    table[receiver, candidates[receiver, slot]] = values[receiver, slot]
    return table


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
