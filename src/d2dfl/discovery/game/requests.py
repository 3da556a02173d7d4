"""Requests in the game: what a receiver asks for, and what a transmitter that is asked by several gives to each.

The requests of a transmitter are a linked list through arrays of one entry a link (request = receiver * edges + edge).
"""

from typing import Any

import numpy as np

from d2dfl.compiled import leaf, part
from d2dfl.discovery.equations.reward import OVER_ASK


@leaf
def fill_requests(board: Any, terms: Any, play: Any, gauss: Any, receiver: Any) -> None:
    """Q of all links of a receiver (eqs. avl_at_tx, req_at_dst)."""
    if gauss is None:
        _split_needs(board, terms, play, receiver)
    else:
        _ask_each(board, play, gauss, receiver)


@leaf
def _ask_each(board: Any, play: Any, gauss: Any, receiver: Any) -> None:
    """Algorithm 2: each link is asked for its own part."""
    surplus, candidates, request, slots = board.surplus, board.candidates, play.request, play.slots
    for edge in range(slots.shape[1]):
        slot = slots[receiver, edge]
        for label in range(surplus.shape[1]):
            spare = slot >= 0 and surplus[candidates[receiver, slot], label] > 0.0
            request[receiver, edge, label] = gauss.request[receiver, slot, label] if spare else 0.0


@leaf
def _split_needs(board: Any, terms: Any, play: Any, receiver: Any) -> None:
    """Algorithm 1: what is missing to the threshold, split by what the transmitters can spare (R16)."""
    surplus, trust, candidates, drop = board.surplus, board.trust, board.candidates, board.drop
    needs, request, slots = board.need, play.request, play.slots
    partitions, edges = needs.shape[1], slots.shape[1]
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


@leaf
def touch(touched: Any, queue: Any, now: Any, size: Any, device: Any) -> Any:
    """Queue a device, once for each change. Returns the queue's new size."""
    if touched[device] != now:
        touched[device] = now
        queue[size] = device
        return size + 1
    return size


@part
def serve(surpluses: Any, play: Any, transmitter: Any, size: Any) -> Any:
    """Sum a transmitter's demand anew and queue everyone whose allocation changes. Returns the queue's new size."""
    requests, demands, shares = play.request, play.demand, play.share
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
        size = touch(touched, queue, now, size, transmitter)
    if any_changed:
        request = first
        while request >= 0:
            requester = request // edges
            for label in range(partitions):
                if changed[label] and requests[requester, request % edges, label] > 0.0:
                    size = touch(touched, queue, now, size, requester)
                    break
            request = following[request]
    return size


@leaf
def unlink(first: Any, following: Any, previous: Any, transmitter: Any, request: Any) -> None:
    """Take a request off its transmitter's list."""
    before, behind = previous[request], following[request]
    if before >= 0:
        following[before] = behind
    else:
        first[transmitter] = behind
    if behind >= 0:
        previous[behind] = before


@leaf
def link(first: Any, following: Any, previous: Any, transmitter: Any, request: Any) -> None:
    """Put a request at the head of a transmitter's list."""
    behind = first[transmitter]
    first[transmitter] = request
    previous[request] = -1
    following[request] = behind
    if behind >= 0:
        previous[behind] = request


@leaf
def link_behind(first: Any, following: Any, previous: Any, transmitter: Any, request: Any, ahead: Any) -> None:
    """Put a request into a transmitter's list behind another one; at its head where `ahead` is -1."""
    if ahead < 0:
        link(first, following, previous, transmitter, request)
        return
    behind = following[ahead]
    following[ahead], previous[request], following[request] = request, ahead, behind
    if behind >= 0:
        previous[behind] = request
