"""Which label a device that holds a single one would like to see beside it, so that different pairs meet.

To a device with one label every other label is worth the same in total variation: with one link each, 25 devices join
16 to 19 different pairs of labels, as chance would have it. Models learn to tell labels apart where they meet, so
pairs should differ. Device number r among those that hold only label l wishes for label l + 1 + r: half a turn at most,
or two devices would claim the same pair from its two ends. r comes down the tree that adds up the population's counts.

A wish breaks ties between links; it is not part of the objective.
"""

import numpy as np
from numpy.typing import NDArray

from d2dfl.discovery.game import Board

ALONE = 0.9  # share of a device's datapoints from which a label counts as its only one


def wished_labels(counts: NDArray[np.float64], edges: int) -> NDArray[np.bool_]:
    """[device, label] whether a device wishes for a label: as many as it may have links.

    None where it holds several labels, which make pairs of themselves, or where it has links for half of all labels.
    """
    devices, labels = counts.shape
    half = labels // 2
    wished = np.zeros((devices, labels), dtype=bool)
    if edges >= half:
        return wished
    main = counts.argmax(axis=1)
    alone = counts[np.arange(devices), main] >= ALONE * np.maximum(counts.sum(axis=1), 1.0)
    for label in range(labels):
        own = np.nonzero(alone & (main == label))[0]
        for turn in range(edges):
            wished[own, (label + 1 + (np.arange(len(own)) + turn) % half) % labels] = True
    return wished


def wishes(board: Board, known: NDArray[np.bool_], edges: int) -> NDArray[np.float32]:
    """[receiver, slot] share of what a transmitter could send that is wished for."""
    wished = wished_labels(board.counts, edges)
    found = np.zeros(known.shape, dtype=np.float32)
    receivers, slots = np.nonzero(known & (wished.sum(axis=1) > 0)[:, None])
    spare = board.surplus[board.candidates[receivers, slots]] * board.trust[receivers, slots]
    offered = np.minimum(spare, board.need[receivers])
    whole = offered.sum(axis=1)
    found[receivers, slots] = (offered * wished[receivers]).sum(axis=1) / np.where(whole > 0, whole, 1.0)
    return found
