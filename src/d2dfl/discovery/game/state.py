"""The graph-discovery game as compiled incremental state: change one link, pay only for what it touches.

A change of one link touches the transmitter, its other requesters whose share changes, and the receiver. Their
rewards are recomputed; everything else stands. `set_link` returns by how much the objective changed, summed over the
devices, which is the *marginal contribution* that our learner works with (R6). The reference optimum and the greedy
baseline play the same game. Everything agrees with `messages.exchange` and `reward.objective`, which tests check.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from d2dfl.compiled import kernel, part
from d2dfl.discovery.equations.gaussian import ClusterState, shape_before
from d2dfl.discovery.equations.reward import Terms, budget_term, cluster_weight, total_reward
from d2dfl.discovery.game.board import Board
from d2dfl.discovery.game.requests import fill_requests, link, serve, touch, unlink
from d2dfl.discovery.game.rewards import agreement_change, evaluate_all, reward_of

# A number of one type: to the compiler a plain -1 is a type of its own, and whatever is called with it is made twice.
NO_LINK = np.int64(-1)
HOPELESS = -1e300  # what a link is worth over which nothing would move


class Play(NamedTuple):
    """The links in force and what follows from them."""

    slots: NDArray[np.int32]  # [receiver, edge], -1 for no link
    request: NDArray[np.float64]  # [receiver, edge, partition] Q
    demand: NDArray[np.float64]  # [transmitter, partition] sum of Q
    share: NDArray[np.float64]  # [transmitter, partition] U / Q
    first: NDArray[np.int64]  # [transmitter] first of its requests in a linked list
    following: NDArray[np.int64]  # [request]
    previous: NDArray[np.int64]  # [request]
    local: NDArray[np.float64]  # [device] r
    outside: NDArray[np.float64]  # [device] datapoints allocated to it from other clusters
    used: NDArray[np.float64]  # [cluster] d'
    touched: NDArray[np.int64]  # [device] stamp of the last change that touched it
    queue: NDArray[np.int64]  # [device] devices that the current change touches
    clock: NDArray[np.int64]  # [1] number of the current change
    size: NDArray[np.int64]  # [1] devices that it touched
    shape: ClusterState | None  # data clusters as they stand; None where partitions are labels


def start(board: Board, terms: Terms, edges: int) -> Play:
    """A game without any link."""
    devices, partitions = board.counts.shape
    play = Play(
        slots=np.full((devices, edges), NO_LINK, dtype=np.int32),
        request=np.zeros((devices, edges, partitions)),
        demand=np.zeros((devices, partitions)),
        share=np.ones((devices, partitions)),
        first=np.full(devices, -1, dtype=np.int64),
        following=np.full(devices * edges, -1, dtype=np.int64),
        previous=np.full(devices * edges, -1, dtype=np.int64),
        local=np.zeros(devices),
        outside=np.zeros(devices),
        used=board.spent.copy(),
        touched=np.zeros(devices, dtype=np.int64),
        queue=np.zeros(devices, dtype=np.int64),
        clock=np.zeros(1, dtype=np.int64),
        size=np.zeros(1, dtype=np.int64),
        shape=shape_before(board.gauss, devices, terms.agreement_kind),
    )
    evaluate_all(board, terms, play)
    return play


def load(board: Board, terms: Terms, slots: NDArray[np.int32]) -> Play:
    """A game with these links."""
    play = start(board, terms, slots.shape[1])
    for receiver, edge in zip(*np.nonzero(slots >= 0), strict=True):
        change_link(board, terms, play, receiver, edge, int(slots[receiver, edge]))
    return play


def total(board: Board, terms: Terms, play: Play) -> float:
    """N times the objective."""
    agreement = 0.0 if play.shape is None else float(play.shape.agreement[0])
    return float(total_reward(terms, play.local, agreement, board.members, board.budget, play.used))


@kernel
def change_link(board: Any, terms: Any, play: Any, receiver: Any, edge: Any, slot: Any) -> Any:
    """`set_link` for callers from Python."""
    return set_link(board, terms, play, np.int64(receiver), np.int64(edge), np.int64(slot))


@part
def set_link(board: Any, terms: Any, play: Any, receiver: Any, edge: Any, slot: Any) -> Any:
    """Put `slot` (or NO_LINK) in place of a receiver's link.

    Returns how much N times the objective changed, how many devices other than the receiver and its transmitters had
    their allocation changed, and how many devices changed what they take from outside their cluster.
    """
    # Fields are taken out of the records once: each access counts references, and is compiled.
    slots, candidates, local_of, outside_of, used = play.slots, board.candidates, play.local, play.outside, play.used
    first, following, previous, clock = play.first, play.following, play.previous, play.clock
    edges = slots.shape[1]
    old = slots[receiver, edge]
    if old == slot:
        return 0.0, 0, 0
    clock[0] += 1
    request = receiver * edges + edge
    left = NO_LINK if old < 0 else np.int64(candidates[receiver, old])
    joined = NO_LINK if slot < 0 else np.int64(candidates[receiver, slot])
    if left >= 0:
        unlink(first, following, previous, left, request)
    slots[receiver, edge] = slot
    if joined >= 0:
        link(first, following, previous, joined, request)
    fill_requests(board, terms, play, board.gauss, receiver)
    size = touch(play.touched, play.queue, clock[0], np.int64(0), receiver)
    if left >= 0:
        size = serve(board.surplus, play, left, size)
    for other in range(edges):  # with several links, the split of the receiver's need changes at all of them
        if slots[receiver, other] >= 0:
            size = serve(board.surplus, play, np.int64(candidates[receiver, slots[receiver, other]]), size)
    change = 0.0
    others = crossing = 0
    for index in range(size):
        device = play.queue[index]
        if device != receiver and device != left and device != joined:
            others += 1
        local, outside = reward_of(board, terms, play, board.gauss, device)
        change += terms.own * (local - local_of[device])
        local_of[device] = local
        if outside != outside_of[device]:
            crossing += 1
            cluster = board.cluster[device]
            budget, weight = board.budget[cluster], cluster_weight(terms, board.members[cluster])
            earned = budget_term(terms, budget, used[cluster])
            used[cluster] += outside - outside_of[device]
            change += weight * (budget_term(terms, budget, used[cluster]) - earned)
            outside_of[device] = outside
    play.size[0] = size
    change += agreement_change(board.gauss, play.shape, terms, len(local_of))
    return change, others, crossing


@kernel
def taken(slots: Any, receiver: Any, edge: Any, slot: Any) -> Any:
    """Whether another link of the receiver already uses this slot."""
    found = False
    for other in range(slots.shape[1]):
        found = found or (other != edge and slots[receiver, other] == slot)
    return found
