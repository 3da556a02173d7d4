"""The graph-discovery game as compiled incremental state: change one link, pay only for what it touches.

A change of one link touches the transmitter, its other requesters whose share changes, and the receiver. Their
rewards are recomputed; everything else stands. `set_link` returns by how much the objective changed, summed over the
devices, which is the *marginal contribution* that our learner works with (R6). The reference optimum and the greedy
baseline play the same game. Everything agrees with `messages.exchange` and `reward.objective`, which tests check.

The file is long because it is one thing: kernels that read and write the same two records, which stand at its top.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from d2dfl.compiled import kernel
from d2dfl.discovery.equations.agreement import agreement_of, give_away, renew_ratios, settle, take_in
from d2dfl.discovery.equations.diversity import METRICS, distances_to
from d2dfl.discovery.equations.gaussian import RATIO as RATIO_OF_MEANS
from d2dfl.discovery.equations.gaussian import Gauss, Shape, gauss_of, shape_before
from d2dfl.discovery.equations.messages import LEAST
from d2dfl.discovery.equations.reward import OVER_ASK, Terms, budget_term, diversity_score, meets
from d2dfl.network import Network

NO_LINK = -1


class Board(NamedTuple):
    """What does not change while a game is played."""

    candidates: NDArray[np.int32]  # [receiver, slot]
    drop: NDArray[np.float64]  # [receiver, slot]
    trust: NDArray[np.bool_]  # [receiver, slot, partition]
    counts: NDArray[np.float64]  # [device, partition]
    threshold: NDArray[np.float64]  # [device, partition]
    surplus: NDArray[np.float64]  # [device, partition] max(0, counts - threshold)
    need: NDArray[np.float64]  # [device, partition] max(0, threshold - counts)
    cluster: NDArray[np.int32]  # [device]
    members: NDArray[np.float64]  # [cluster] devices in it
    budget: NDArray[np.float64]  # [cluster]
    spent: NDArray[np.float64]  # [cluster] budget used up by earlier stages
    population: NDArray[np.float64]  # [partition]
    before: NDArray[np.float64]  # [device] distance to the population before the exchange
    gauss: Gauss  # data clusters, where partitions are not labels


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
    shape: Shape  # data clusters as they stand


def board_of(
    network: Network,
    terms: Terms,
    spent: NDArray[np.float64] | None = None,
    population: NDArray[np.float64] | None = None,
    ridge: float = 0.1,
) -> Board:
    """Lay a network out for compiled code; a later stage keeps the first stage's population and what is spent."""
    clusters = len(network.budget)
    population = network.population if population is None else population
    return Board(
        candidates=network.candidates,
        drop=network.drop,
        trust=network.trust,
        counts=network.counts,
        threshold=network.threshold,
        surplus=network.surplus,
        need=network.need,
        cluster=network.cluster,
        members=np.bincount(network.cluster, minlength=clusters).astype(np.float64),
        budget=network.budget,
        spent=np.zeros(clusters) if spent is None else spent,
        population=population,
        before=distances_to(network.counts, population, METRICS[terms.metric]),
        gauss=gauss_of(network, ridge, terms.agreement_kind),
    )


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
    _evaluate_all(board, terms, play)
    return play


def load(board: Board, terms: Terms, slots: NDArray[np.int32]) -> Play:
    """A game with these links."""
    play = start(board, terms, slots.shape[1])
    for receiver, edge in zip(*np.nonzero(slots >= 0), strict=True):
        set_link(board, terms, play, receiver, edge, slots[receiver, edge])
    return play


@kernel
def free_choice(board: Any, no_link: Any) -> Any:
    """[device] whether the device may end up without a link (R12).

    Where it must choose somebody, it still may choose a transmitter that has nothing for it: a link over which nothing
    moves is no link.
    """
    candidates, trust, surplus, need = board.candidates, board.trust, board.surplus, board.need
    devices, slots = candidates.shape
    free = np.full(devices, no_link)
    for device in range(devices):
        heard = False
        for slot in range(slots):
            if free[device] or candidates[device, slot] < 0:
                continue
            heard = True
            useful = False
            for label in range(need.shape[1]):
                if (
                    need[device, label] > 0.0
                    and trust[device, slot, label]
                    and surplus[candidates[device, slot], label] > 0.0
                ):
                    useful = True
            free[device] = not useful
        if not heard:
            free[device] = True
    return free


@kernel
def total(board: Any, terms: Any, play: Any) -> Any:
    """N times the objective."""
    value = terms.own * play.local.sum()
    if terms.agreement != 0.0:
        value += len(play.local) * terms.agreement * play.shape.agreement[0]
    for cluster in range(len(board.budget)):
        value += (
            terms.gamma
            * terms.budget
            * board.members[cluster]
            * budget_term(terms, board.budget[cluster], play.used[cluster])
        )
    return value


@kernel
def _evaluate_all(board: Any, terms: Any, play: Any) -> None:
    for device in range(len(board.counts)):
        play.local[device], play.outside[device] = _reward(board, terms, play, device, False)
    if terms.clustered:
        if terms.agreement_kind != RATIO_OF_MEANS:
            for device in range(len(board.counts)):
                renew_ratios(board.gauss, play.shape, device)
        play.shape.agreement[0] = agreement_of(board.gauss, play.shape, terms.agreement_kind)


@kernel
def clustered_after(board: Any, play: Any, device: Any, moments: Any) -> Any:
    """Moments of a device's data clusters from the links in force; what its links cost and bring from outside."""
    clusters, edges = moments.shape[0], play.slots.shape[1]
    amounts = np.empty(clusters)
    for cluster in range(clusters):
        given = min(play.demand[device, cluster], board.surplus[device, cluster])
        amounts[cluster] = board.counts[device, cluster] - given
    give_away(board.gauss, device, amounts, moments)
    cost = outside = 0.0
    for edge in range(edges):
        slot = play.slots[device, edge]
        if slot < 0:
            continue
        transmitter = board.candidates[device, slot]
        arrives = 1.0 - board.drop[device, slot]
        whole = 0.0
        for cluster in range(clusters):
            amount = play.request[device, edge, cluster] * play.share[transmitter, cluster]
            whole += amount
            amounts[cluster] = amount * arrives
        take_in(board.gauss, device, slot, amounts, moments)
        if whole > LEAST:
            cost += board.drop[device, slot]
        if board.cluster[transmitter] != board.cluster[device]:
            outside += whole
    return cost, outside


@kernel
def _reward(board: Any, terms: Any, play: Any, device: Any, pairwise: Any) -> Any:
    """r of one device and the datapoints allocated to it from other clusters, from the links in force."""
    if terms.clustered:
        moments = np.empty(board.gauss.own.shape[1:])
        cost, outside = clustered_after(board, play, device, moments)
        gain = settle(board.gauss, play.shape, device, moments, terms.agreement_kind, pairwise)
        return terms.diversity * gain - terms.reliability * cost, outside
    # Fields are taken out of the records once: each access counts references.
    counts, surplus, drop, candidates = board.counts, board.surplus, board.drop, board.candidates
    demand, request, share, slots = play.demand, play.request, play.share, play.slots
    partitions, edges = counts.shape[1], slots.shape[1]
    after, sent = np.empty(partitions), np.empty(partitions)
    for label in range(partitions):
        after[label] = counts[device, label] - min(demand[device, label], surplus[device, label])
        sent[label] = after[label]
    cost = outside = 0.0
    for edge in range(edges):
        slot = slots[device, edge]
        if slot < 0:
            continue
        transmitter = candidates[device, slot]
        arrives = 1.0 - drop[device, slot]
        whole = 0.0
        for label in range(partitions):
            amount = request[device, edge, label] * share[transmitter, label]
            sent[label] += amount
            after[label] += amount * arrives
            whole += amount
        if whole > LEAST:  # a link over which nothing moves is no link
            cost += drop[device, slot]
        if board.cluster[transmitter] != board.cluster[device]:
            outside += whole
    met = 0
    if terms.gate > 0:
        for label in range(partitions):
            if meets(terms, after[label], sent[label], board.threshold[device, label]):
                met += 1
    score = diversity_score(terms, counts[device], after, met, board.before[device], board.population)
    return terms.diversity * score - terms.reliability * cost, outside


@kernel
def _fill_requests(board: Any, terms: Any, play: Any, receiver: Any) -> None:
    """Q of all links of a receiver (eqs. avl_at_tx, req_at_dst), split by what the transmitters can spare (R16)."""
    surplus, trust, candidates, drop = board.surplus, board.trust, board.candidates, board.drop
    needs, request, slots = board.need, play.request, play.slots
    partitions, edges = needs.shape[1], slots.shape[1]
    if terms.clustered:  # Algorithm 2: each link is asked for its own part
        for edge in range(edges):
            slot = slots[receiver, edge]
            for label in range(partitions):
                spare = slot >= 0 and surplus[candidates[receiver, slot], label] > 0.0
                request[receiver, edge, label] = board.gauss.wish[receiver, slot, label] if spare else 0.0
        return
    for label in range(partitions):
        need = needs[receiver, label]
        whole = 0.0
        for edge in range(edges):
            request[receiver, edge, label] = 0.0
            slot = slots[receiver, edge]
            if need > 0.0 and slot >= 0 and trust[receiver, slot, label]:
                whole += surplus[candidates[receiver, slot], label]
        if whole <= 0.0:
            continue
        for edge in range(edges):
            slot = slots[receiver, edge]
            if slot >= 0 and trust[receiver, slot, label]:
                asked = need * surplus[candidates[receiver, slot], label] / whole
                if terms.rule == OVER_ASK:  # R1
                    asked /= max(1.0 - drop[receiver, slot], 1e-12)
                request[receiver, edge, label] = asked


@kernel
def _touch(touched: Any, queue: Any, now: Any, size: Any, device: Any) -> Any:
    if touched[device] != now:
        touched[device] = now
        queue[size] = device
        return size + 1
    return size


@kernel
def _serve(board: Any, play: Any, transmitter: Any, size: Any) -> Any:
    """Sum a transmitter's demand anew and queue everyone whose allocation changes. Returns the queue's new size."""
    surpluses, requests, demands, shares = board.surplus, play.request, play.demand, play.share
    following, touched, queue, now = play.following, play.touched, play.queue, play.clock[0]
    partitions, edges = surpluses.shape[1], play.slots.shape[1]
    first = play.first[transmitter]
    changed = np.zeros(partitions, np.bool_)
    any_changed = any_given = False
    for label in range(partitions):
        surplus = surpluses[transmitter, label]
        demand = 0.0
        if surplus > 0.0:
            request = first
            while request >= 0:
                demand += requests[request // edges, request % edges, label]
                request = following[request]
        if min(demand, surplus) != min(demands[transmitter, label], surplus):
            any_given = True
        demands[transmitter, label] = demand
        share = 1.0 if demand <= surplus else surplus / demand
        if share != shares[transmitter, label]:
            shares[transmitter, label] = share
            changed[label] = True
            any_changed = True
    if any_given:
        size = _touch(touched, queue, now, size, transmitter)
    if any_changed:
        request = first
        while request >= 0:
            requester = request // edges
            for label in range(partitions):
                if changed[label] and requests[requester, request % edges, label] > 0.0:
                    size = _touch(touched, queue, now, size, requester)
                    break
            request = following[request]
    return size


@kernel
def _unlink(play: Any, transmitter: Any, request: Any) -> None:
    before, behind = play.previous[request], play.following[request]
    if before >= 0:
        play.following[before] = behind
    else:
        play.first[transmitter] = behind
    if behind >= 0:
        play.previous[behind] = before


@kernel
def _link(play: Any, transmitter: Any, request: Any) -> None:
    behind = play.first[transmitter]
    play.first[transmitter] = request
    play.previous[request] = -1
    play.following[request] = behind
    if behind >= 0:
        play.previous[behind] = request


@kernel
def set_link(board: Any, terms: Any, play: Any, receiver: Any, edge: Any, slot: Any) -> Any:
    """Put `slot` (or NO_LINK) in place of a receiver's link.

    Returns how much N times the objective changed, how many devices other than the receiver and its transmitters had
    their allocation changed, and how many devices changed what they take from outside their cluster.
    """
    edges = play.slots.shape[1]
    old = play.slots[receiver, edge]
    if old == slot:
        return 0.0, 0, 0
    play.clock[0] += 1
    request = receiver * edges + edge
    left = -1 if old < 0 else board.candidates[receiver, old]
    joined = -1 if slot < 0 else board.candidates[receiver, slot]
    if left >= 0:
        _unlink(play, left, request)
    play.slots[receiver, edge] = slot
    if joined >= 0:
        _link(play, joined, request)
    _fill_requests(board, terms, play, receiver)
    size = _touch(play.touched, play.queue, play.clock[0], 0, receiver)
    if left >= 0:
        size = _serve(board, play, left, size)
    for other in range(edges):  # with several links, the split of the receiver's need changes at all of them
        if play.slots[receiver, other] >= 0:
            size = _serve(board, play, board.candidates[receiver, play.slots[receiver, other]], size)
    change = 0.0
    others = crossing = 0
    for index in range(size):
        device = play.queue[index]
        if device != receiver and device != left and device != joined:
            others += 1
        local, outside = _reward(board, terms, play, device, True)
        change += terms.own * (local - play.local[device])
        play.local[device] = local
        if outside != play.outside[device]:
            crossing += 1
            cluster = board.cluster[device]
            weight = terms.gamma * terms.budget * board.members[cluster]
            earned = budget_term(terms, board.budget[cluster], play.used[cluster])
            play.used[cluster] += outside - play.outside[device]
            change += weight * (budget_term(terms, board.budget[cluster], play.used[cluster]) - earned)
            play.outside[device] = outside
    play.size[0] = size
    if terms.clustered:
        agreement = agreement_of(board.gauss, play.shape, terms.agreement_kind)
        change += len(play.local) * terms.agreement * (agreement - play.shape.agreement[0])
        play.shape.agreement[0] = agreement
    return change, others, crossing


@kernel
def taken(play: Any, receiver: Any, edge: Any, slot: Any) -> Any:
    """Whether another link of the receiver already uses this slot."""
    found = False
    for other in range(play.slots.shape[1]):
        found = found or (other != edge and play.slots[receiver, other] == slot)
    return found
