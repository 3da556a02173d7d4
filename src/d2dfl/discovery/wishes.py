"""Which label a device that holds a single one would like to see beside it, so that the right pairs meet.

To a device with one label every other label is worth the same in total variation: with one link each, 25 devices join
16 to 19 different pairs of labels, as chance would have it. Models learn to tell labels apart where they meet, so
pairs should differ, and labels that are easily confused should meet first. Everybody knows how many devices hold only
label l, and which of them comes r-th: both come along the tree that adds up the population's counts.

- Where devices know how far apart labels lie (`Network.apart`, partition/sketches.py), all go through the pairs of
  labels in the same order, the most alike first. A pair is wished for by the next device of that one of its labels
  which has more wishes left; when its turn comes again, by one of the other label.
- Where they do not, device r of label l wishes for label l + 1 + r: half a turn at most, or two devices would claim the
  same pair from its two ends. With links for half of all labels there is nothing to take turns in.

A wish counts as `marginal.spread` when a device chooses, so it decides between links of nearly equal worth. It is not
part of the objective, of which it may cost a little.
"""

import itertools
from collections import Counter, deque
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from d2dfl.discovery.game import Board

ALONE = 0.9  # share of a device's datapoints from which a label counts as its only one
Counts = NDArray[np.float64]


def owners(counts: Counts) -> list[NDArray[np.int64]]:
    """[label] the devices that hold only this one."""
    main = counts.argmax(axis=1)
    alone = counts[np.arange(len(counts)), main] >= ALONE * np.maximum(counts.sum(axis=1), 1.0)
    return [np.nonzero(alone & (main == label))[0] for label in range(counts.shape[1])]


def wished_labels(counts: Counts, edges: int, apart: Counts | None = None) -> NDArray[np.bool_]:
    """[device, label] whether a device wishes for a label: as many as it may have links.

    None where it holds several labels, which make pairs of themselves.
    """
    wished = np.zeros(counts.shape, dtype=bool)
    alone = owners(counts)
    pairs = _in_turn(alone, edges) if apart is None else _alike_first(alone, edges, apart, counts.sum(axis=0) > 0)
    for device, label in pairs:
        wished[device, label] = True
    return wished


def _in_turn(alone: Sequence[NDArray[np.int64]], edges: int) -> list[tuple[int, int]]:
    labels, half = len(alone), len(alone) // 2
    if edges >= half:
        return []
    return [
        (int(device), (label + 1 + (rank + turn) % half) % labels)
        for label, own in enumerate(alone)
        for rank, device in enumerate(own)
        for turn in range(edges)
    ]


def _alike_first(
    alone: Sequence[NDArray[np.int64]], edges: int, apart: Counts, there: NDArray[np.bool_]
) -> list[tuple[int, int]]:
    order = sorted(
        (pair for pair in itertools.combinations(range(len(alone)), 2) if there[list(pair)].all()),
        key=lambda pair: (apart[pair], pair),
    )
    each = min(edges, int(there.sum()) - 1)
    queue = [deque((int(device), frozenset[int]()) for device in own) for own in alone]  # devices with wishes left
    left = [each * len(own) for own in alone]
    claimed: Counter[tuple[int, int]] = Counter()
    found: list[tuple[int, int]] = []
    before = -1
    while len(found) > before:  # through all pairs again and again, as long as somebody has a wish left
        before = len(found)
        for pair in order:
            for label, partner in sorted((pair, pair[::-1]), key=lambda ends: (claimed[ends], -left[ends[0]])):
                place = next((at for at, (_, own) in enumerate(queue[label]) if partner not in own), None)
                if place is None:
                    continue
                device, own = queue[label][place]
                del queue[label][place]
                if len(own) + 1 < each:
                    queue[label].append((device, own | {partner}))
                left[label] -= 1
                claimed[label, partner] += 1
                found.append((device, partner))
                break
    return found


def wishes(board: Board, known: NDArray[np.bool_], edges: int, apart: Counts | None = None) -> NDArray[np.float32]:
    """[receiver, slot] share of what a transmitter could send that is wished for."""
    wished = wished_labels(board.counts, edges, apart)
    found = np.zeros(known.shape, dtype=np.float32)
    receivers, slots = np.nonzero(known & (wished.sum(axis=1) > 0)[:, None])
    spare = board.surplus[board.candidates[receivers, slots]] * board.trust[receivers, slots]
    offered = np.minimum(spare, board.need[receivers])
    whole = offered.sum(axis=1)
    found[receivers, slots] = (offered * wished[receivers]).sum(axis=1) / np.where(whole > 0, whole, 1.0)
    return found
