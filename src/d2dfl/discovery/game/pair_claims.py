"""Which labels a device that holds a single one would like to see beside it, so that the right pairs meet.

To a device with one label every other label is worth the same in total variation: with one link each, 25 devices join
16 to 19 different pairs of labels, as chance would have it. Models learn to tell labels apart where they meet, so
pairs should differ, and labels that are easily confused should meet first.

A list goes from device to device along the tree that adds up the population's counts: how often each pair of labels has
been claimed. A device with a single label claims one pair of it with a label that it could receive: the least claimed, of
these the most alike (`Network.label_distance`, partition/sketches.py), or the next label in turn where devices do not know what is
alike. The list makes as many rounds as a device may have links. Only devices that trust somebody in range with their label are on it.

A claim counts as `marginal.spread` of what a device expects of its best link in the mean, so it decides between links of nearly equal
worth. It is not part of the objective, of which it may cost a little.
"""

import numpy as np
from numpy.typing import NDArray

from d2dfl.discovery.constants import ALONE
from d2dfl.discovery.game.board import Board

Counts = NDArray[np.float64]


def single_label(counts: Counts) -> NDArray[np.int64]:
    """[device] the only label that it holds, or -1."""
    main = counts.argmax(axis=1)
    alone = counts[np.arange(len(counts)), main] >= ALONE * np.maximum(counts.sum(axis=1), 1.0)
    return np.where(alone, main, -1)


def claims(
    own: NDArray[np.int64], offered: NDArray[np.bool_], edges: int, label_distance: Counts | None = None
) -> NDArray[np.bool_]:
    """[device, label] the labels that a device claims, as many as it may have links.

    own[device] is its only label, or -1: it claims nothing then; offered[device, label] what it could receive.
    """
    labels = offered.shape[1]
    step = np.subtract.outer(np.arange(labels), np.arange(labels)).T % labels  # from row to column, round the circle
    order = np.minimum(step, labels - step).astype(np.float64) if label_distance is None else label_distance
    # Ranks, not distances: they break ties between equally often claimed pairs and never outweigh a claim.
    rank = np.argsort(np.argsort(order, axis=1, kind="stable"), axis=1) / labels
    claimed = np.zeros((labels, labels))
    found = np.zeros(offered.shape, dtype=bool)
    open_to = offered.copy()
    turns = np.nonzero(own >= 0)[0]
    open_to[turns, own[turns]] = False
    for _ in range(edges):
        for device in turns:
            label = own[device]
            if not open_to[device].any():
                continue
            partner = int(np.where(open_to[device], claimed[label] + rank[label], np.inf).argmin())
            claimed[label, partner] += 1
            claimed[partner, label] += 1
            found[device, partner] = True
            open_to[device, partner] = False
    return found


def _told(own: NDArray[np.int64], board: Board) -> NDArray[np.int64]:
    """[device] the only label that it holds if it trusts anybody who hears it with it, or -1.

    The list shows neighbours in the tree which label a device holds. Who keeps its label to itself keeps off the list.
    """
    receivers, slots = np.nonzero((board.candidates >= 0) & (own >= 0)[board.candidates])
    transmitters = board.candidates[receivers, slots]
    trusting = transmitters[board.trust[receivers, slots, own[transmitters]]]
    tells = np.zeros(len(own), dtype=bool)
    tells[trusting] = True
    return np.where(tells, own, -1)


def claim_values(
    board: Board, known: NDArray[np.bool_], edges: int, label_distance: Counts | None = None
) -> NDArray[np.float32]:
    """[receiver, slot] share of what a transmitter could send that is claimed, less where it has little of what is lacking."""
    own = _told(single_label(board.counts), board)
    found = np.zeros(known.shape, dtype=np.float32)
    receivers, slots = np.nonzero(known & (own >= 0)[:, None])
    spare = board.surplus[board.candidates[receivers, slots]] * board.trust[receivers, slots]
    amount = np.minimum(spare, board.need[receivers])
    offered = np.zeros(board.counts.shape, dtype=bool)
    np.logical_or.at(offered, receivers, amount > 0)
    mine = claims(own, offered, edges, label_distance)
    whole, claimed = amount.sum(axis=1), (amount * mine[receivers]).sum(axis=1)
    lacking = board.need[receivers].max(axis=1)  # of one label
    found[receivers, slots] = (
        claimed / np.where(whole > 0, whole, 1.0) * np.minimum(claimed / np.maximum(lacking, 1e-9), 1.0)
    )
    return found
