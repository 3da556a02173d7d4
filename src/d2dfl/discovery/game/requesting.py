"""Putting a link in force, as devices would do it: each transmitter concerned is told once what is asked of it now.

    REQUEST  receiver → transmitter    Q, what a datapoint less would cost; how many messages may be spent on it
    NOW      transmitter → requesters  those whose share changes: their new U, and what is told about the others
    REPLY    they → transmitter        by how much their reward changed and what they take from outside, and what a datapoint
                                       less would cost now
    GRANT    transmitter → receiver    U, the sum of all changes, messages spent; or a refusal, and nothing has changed

What each cluster takes from outside travels with the right to revise. So a receiver that has all its GRANTs knows exactly what its
move was worth to the network. It may take the move back: by the same messages, and as many of them.
"""

from typing import Any

import numpy as np

from d2dfl.compiled import leaf, part
from d2dfl.discovery.constants import SAME
from d2dfl.discovery.equations.reward import budget_term, cluster_weight
from d2dfl.discovery.game.learning import say
from d2dfl.discovery.game.offers import make_offer, tell_expected_prices, tell_prices
from d2dfl.discovery.game.requests import fill_requests, link, link_behind, unlink
from d2dfl.discovery.game.rewards import reward_of

REFUSED = np.int64(-1)
UNLIMITED = np.int64(1) << 40


@leaf
def _ask_for(board: Any, terms: Any, play: Any, receiver: Any, edge: Any, slot: Any) -> None:
    """Write down what the receiver is going to ask for, before any transmitter hears of it."""
    edges = play.slots.shape[1]
    request, old = receiver * edges + edge, play.slots[receiver, edge]
    if old >= 0:
        unlink(play.first, play.following, play.previous, board.candidates[receiver, old], request)
    play.slots[receiver, edge] = slot
    if slot >= 0:
        link(play.first, play.following, play.previous, np.int64(board.candidates[receiver, slot]), request)
    fill_requests(board, terms, play, board.gauss, receiver)


@part
def renew(board: Any, terms: Any, play: Any, device: Any) -> Any:
    """A device looks at what it has now. Returns by how much N times the objective changed for it and its cluster."""
    local, outside = reward_of(board, terms, play, board.gauss, device)
    change = terms.own * (local - play.local[device])
    play.local[device] = local
    if outside != play.outside[device]:
        cluster = board.cluster[device]
        budget, weight = board.budget[cluster], cluster_weight(terms, board.members[cluster])
        earned = budget_term(terms, budget, play.used[cluster])
        play.used[cluster] += outside - play.outside[device]
        change += weight * (budget_term(terms, budget, play.used[cluster]) - earned)
        play.outside[device] = outside
    return change


@leaf
def _changed(requests: Any, one: Any, other: Any, requester: Any, edge: Any) -> Any:
    """Whether a requester's share of anything that it asks for changes."""
    found = False
    for label in range(len(one)):
        found = found or (requests[requester, edge, label] > 0.0 and abs(one[label] - other[label]) > SAME)
    return found


@part
def _serve(board: Any, terms: Any, play: Any, learner: Any, receiver: Any, transmitter: Any, allowed: Any) -> Any:
    """A transmitter hears a REQUEST. Returns what that changes for all but the receiver, and the messages that it takes;
    REFUSED where these would be more than `allowed`."""
    partitions, edges = board.counts.shape[1], play.slots.shape[1]
    demand, share, before = np.empty(partitions), np.empty(partitions), np.empty(partitions)
    for label in range(partitions):  # one by one, here and below: each operation on whole arrays takes long to compile
        demand[label], share[label], before[label] = 0.0, 1.0, play.share[transmitter, label]
    request = play.first[transmitter]
    while request >= 0:
        for label in range(partitions):
            demand[label] += play.request[request // edges, request % edges, label]
        request = play.following[request]
    for label in range(partitions):
        if demand[label] > board.surplus[transmitter, label]:
            share[label] = board.surplus[transmitter, label] / demand[label]
    told = 0
    request = play.first[transmitter]
    while request >= 0:
        requester = request // edges
        if requester != receiver and _changed(play.request, before, share, requester, request % edges):
            told += 1
        request = play.following[request]
    messages = 2 * told
    if messages > allowed:
        return 0.0, REFUSED
    for label in range(partitions):
        play.demand[transmitter, label], play.share[transmitter, label] = demand[label], share[label]
    change = renew(board, terms, play, transmitter)
    request = play.first[transmitter]
    while told > 0:
        requester, edge = request // edges, request % edges
        if requester != receiver and _changed(play.request, before, share, requester, edge):
            _offer_to(board, terms, play, learner, requester, edge)
            change += renew(board, terms, play, requester)
            tell_prices(board, terms, play, learner.prices, requester, edge)
            say(learner, 2, 2 * partitions, 3 * partitions + 4)  # its reward and d' here, its cluster's d' in the GRANT
            told -= 1
        request = play.following[request]
    return change, messages


@part
def _offer_to(board: Any, terms: Any, play: Any, learner: Any, receiver: Any, edge: Any) -> None:
    """What a transmitter tells a receiver about a link in force."""
    transmitter, told = np.int64(board.candidates[receiver, play.slots[receiver, edge]]), learner.told
    row = (told.demand[receiver, edge], told.giving[receiver, edge], told.taking[receiver, edge])
    make_offer(board, terms, play, learner.prices, transmitter, receiver, play.request[receiver, edge], row)


@part
def _request_all(
    board: Any, terms: Any, play: Any, learner: Any, receiver: Any, concerned: Any, size: Any, pool: Any
) -> Any:
    """REQUEST to one transmitter after the other. Returns change, messages, and how many of them served it."""
    partitions, edges = board.counts.shape[1], play.slots.shape[1]
    change, messages = 0.0, 0
    prices = np.empty((edges, partitions))
    for place in range(size):
        transmitter = concerned[place]
        for edge in range(edges):
            for label in range(partitions):
                prices[edge, label] = learner.prices[receiver, edge, label]
        tell_expected_prices(board, terms, play, learner.told, learner.prices, receiver, transmitter)
        more, spent = _serve(board, terms, play, learner, receiver, transmitter, pool // 2)
        say(learner, 2, 3 * partitions, 3 * partitions + 2)
        messages += 2
        if spent == REFUSED:
            for edge in range(edges):
                for label in range(partitions):
                    learner.prices[receiver, edge, label] = prices[edge, label]
            return change, messages, place
        change += more
        messages += spent
        pool -= 2 * spent
        for edge in range(edges):
            slot = play.slots[receiver, edge]
            if slot >= 0 and board.candidates[receiver, slot] == transmitter:
                _offer_to(board, terms, play, learner, receiver, edge)
    return change, messages, size


@part
def _concerned(board: Any, play: Any, receiver: Any, edge: Any, old: Any, before: Any, concerned: Any) -> Any:
    """Transmitters of whom something else is asked than before: the old one, those of other links, the new one."""
    edges, size = play.slots.shape[1], 0
    for place in range(-1, edges + 1):
        slot, differs = old, True
        if place == edges:
            slot = np.int64(play.slots[receiver, edge])
        elif place >= 0:
            slot, differs = np.int64(play.slots[receiver, place]), False
            for label in range(before.shape[1]):
                differs = differs or abs(play.request[receiver, place, label] - before[place, label]) > SAME
            differs = differs and place != edge
        if slot < 0 or not differs:
            continue
        transmitter = np.int64(board.candidates[receiver, slot])
        for known in range(size):
            differs = differs and concerned[known] != transmitter
        if differs:
            concerned[size] = transmitter
            size += 1
    return size


@leaf
def _know(told: Any, receiver: Any, edge: Any, offer: Any) -> None:
    """Write down what was told about a link."""
    for label in range(offer.shape[1]):
        told.demand[receiver, edge, label] = offer[0, label]
        told.giving[receiver, edge, label] = offer[1, label]
        told.taking[receiver, edge, label] = offer[2, label]


@leaf
def recall(told: Any, receiver: Any, edge: Any, offer: Any) -> None:
    """Read what was told about a link."""
    for label in range(offer.shape[1]):
        offer[0, label] = told.demand[receiver, edge, label]
        offer[1, label] = told.giving[receiver, edge, label]
        offer[2, label] = told.taking[receiver, edge, label]


@part
def put_link(
    board: Any, terms: Any, play: Any, learner: Any, receiver: Any, edge: Any, slot: Any, offer: Any, rest: Any
) -> Any:
    """Put `slot` (or NO_LINK), about which `offer` was told, in place of a receiver's link and measure what that changed.

    Returns the change of N times the objective, the messages that it took, and whether it was done: where `rest` messages
    would not do for the way there and back again, all links are as they were.
    """
    edges, partitions, told = play.slots.shape[1], board.counts.shape[1], learner.told
    before, old = np.empty((edges, partitions)), np.int64(play.slots[receiver, edge])
    for other in range(edges):
        for label in range(partitions):
            before[other, label] = play.request[receiver, other, label]
    known, ahead = np.empty((3, partitions)), play.previous[receiver * edges + edge]
    recall(told, receiver, edge, known)
    _know(told, receiver, edge, offer)
    _ask_for(board, terms, play, receiver, edge, slot)
    concerned = np.empty(edges + 2, np.int64)
    size = _concerned(board, play, receiver, edge, old, before, concerned)
    pool = rest - 4 * size
    done, change, messages = 0, 0.0, 0
    if pool >= 0:
        change, messages, done = _request_all(board, terms, play, learner, receiver, concerned, size, pool)
    if pool < 0 or done < size:
        _know(told, receiver, edge, known)
        _ask_for(board, terms, play, receiver, edge, old)
        if (
            pool < 0 and old >= 0
        ):  # of which nobody has heard: the transmitter serves it at its place in the line, as before
            request, transmitter = receiver * edges + edge, board.candidates[receiver, old]
            unlink(play.first, play.following, play.previous, transmitter, request)
            link_behind(play.first, play.following, play.previous, transmitter, request, ahead)
        _, back, _ = _request_all(board, terms, play, learner, receiver, concerned, done, UNLIMITED)
        return 0.0, messages + back, False
    return change + renew(board, terms, play, receiver), messages, True
