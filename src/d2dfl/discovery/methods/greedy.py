"""Greedy centralised assignment. Not in the paper.

A server that knows every count, trust entry and loss adds the link with the largest gain in the objective, again and
again, until no link gains. Gains are kept in a heap and looked at again only when they come up (lazy greedy).
"""

import heapq

import numpy as np

from d2dfl.discovery.game.board import free_choice
from d2dfl.discovery.game.state import NO_LINK, change_link, start, taken
from d2dfl.discovery.task import LinkChoice, Task

LEAST_GAIN = 1e-10


def find(task: Task) -> LinkChoice:
    """Add the best link until none gains. A link, once there, stays."""
    board, terms = task.board(), task.terms
    play = start(board, terms, task.edges)
    free = free_choice(board, task.config.discovery.no_link)

    def gain(receiver: int, slot: int) -> float:
        edge = int(np.argmin(play.slots[receiver]))
        change, _, _ = change_link(board, terms, play, receiver, edge, slot)
        change_link(board, terms, play, receiver, edge, NO_LINK)
        return float(change)

    promising = np.nonzero((board.candidates >= 0) & _can_help(task))
    heap = [(-gain(i, s), 0, i, s) for i, s in zip(*(axis.tolist() for axis in promising), strict=True)]
    heapq.heapify(heap)
    additions, wanted = 0, task.network.devices * task.edges
    while heap and additions < wanted:
        value, seen, receiver, slot = heapq.heappop(heap)
        if play.slots[receiver].min() >= 0 or taken(play.slots, receiver, -1, slot):
            continue
        if seen < additions:
            heapq.heappush(heap, (-gain(receiver, slot), additions, receiver, slot))
            continue
        if -value <= LEAST_GAIN and free[receiver]:
            continue
        change_link(board, terms, play, receiver, int(np.argmin(play.slots[receiver])), slot)
        additions += 1
        task.progress(additions / wanted)
        if task.heard:
            task.hear(play.slots, additions / wanted, None, 0.0)
    return LinkChoice(play.slots.copy(), *_cost(task), additions)


def _can_help(task: Task) -> np.ndarray[tuple[int, int], np.dtype[np.bool_]]:
    """[receiver, slot] whether anything at all could move over the link."""
    network = task.network
    surplus, need = network.surplus > 0, network.need > 0
    return np.asarray((network.trust & surplus[network.candidates] & need[:, None, :]).any(axis=2))


def _cost(task: Task) -> tuple[float, float]:
    """One upload of everything a device knows, and one answer."""
    network, discovery = task.network, task.config.discovery
    heard = float((network.candidates >= 0).sum())
    upload = 2 * network.counts.size * discovery.count_bits + heard * (discovery.real_bits + network.partitions)
    return 2.0 * network.devices, upload + network.devices * task.edges * discovery.real_bits
