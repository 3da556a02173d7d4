"""What devices tell each other before a link is tried: what a datapoint is worth to them, and who else asks for it.

A receiver that thinks about a link must weigh more than its own gain: what the transmitter wins or loses by giving, and what
others lose whom it crowds out. All of that is told by label, as the worth of one datapoint: an estimate, which is exact as long as
rewards are linear in what moves. What a move is really worth is measured once it is made (requesting.py).
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from d2dfl.compiled import kernel, leaf, part
from d2dfl.discovery.constants import PRICED
from d2dfl.discovery.equations.messages import LEAST
from d2dfl.discovery.game.rewards import labelled_after, labelled_score


class Told(NamedTuple):
    """What transmitters have told: [receiver, edge, label] of the links in force, or [place, label] of those asked for."""

    demand: NDArray[np.float64]  # what others ask for
    giving: NDArray[np.float64]  # worth to the transmitter of giving one datapoint
    taking: NDArray[np.float64]  # worth to the others of one datapoint


def nothing_told(*shape: int) -> Told:
    return Told(np.zeros(shape), np.zeros(shape), np.zeros(shape))


@kernel
def introductory_prices(board: Any, terms: Any) -> Any:
    """[transmitter, label] what a datapoint given is worth to the transmitter while nobody asks for anything.

    It takes whoever asks for one like itself that holds nothing of the label. A loss counts as 0: what is told must not
    scare a receiver off before it has asked.
    """
    devices, partitions = board.counts.shape
    prices = np.zeros((devices, partitions))
    held = np.empty(partitions)
    for device in range(devices):
        for label in range(partitions):
            held[label] = board.counts[device, label]
        start = labelled_score(board, terms, device, held, held, 0.0)
        for label in range(partitions):
            amount = min(board.surplus[device, label], board.threshold[device, label])
            if amount > LEAST:
                held[label] -= amount
                gain = labelled_score(board, terms, device, held, held, 0.0) - start
                held[label] = board.counts[device, label]
                prices[device, label] = max(0.0, terms.own * gain / amount)
    return prices


@part
def tell_prices(board: Any, terms: Any, play: Any, prices: Any, receiver: Any, edge: Any) -> None:
    """What a datapoint less of each label over this link would cost the receiver, from what it has now."""
    partitions = board.counts.shape[1]
    after, sent, amounts = np.empty(partitions), np.empty(partitions), np.empty(partitions)
    cost, _ = labelled_after(board, play, receiver, after, sent)
    transmitter = board.candidates[receiver, play.slots[receiver, edge]]
    for label in range(partitions):
        amounts[label] = play.request[receiver, edge, label] * play.share[transmitter, label]
    _price(board, terms, play, prices, receiver, edge, (after, sent, cost), amounts)


@part
def tell_expected_prices(
    board: Any, terms: Any, play: Any, told: Any, prices: Any, receiver: Any, transmitter: Any
) -> None:
    """The same for the links to one transmitter of whom something new is asked, from what the receiver expects to get."""
    partitions, edges = board.counts.shape[1], play.slots.shape[1]
    after, sent, cost = np.empty(partitions), np.empty(partitions), 0.0
    amounts = np.zeros((edges, partitions))
    for label in range(partitions):
        after[label] = board.counts[receiver, label]
        after[label] -= min(play.demand[receiver, label], board.surplus[receiver, label])
        sent[label] = after[label]
    for edge in range(edges):
        slot = play.slots[receiver, edge]
        if slot < 0:
            continue
        cost += board.drop[receiver, slot]
        for label in range(partitions):
            asked = play.request[receiver, edge, label]
            whole, surplus = (
                told.demand[receiver, edge, label] + asked,
                board.surplus[board.candidates[receiver, slot], label],
            )
            amounts[edge, label] = asked if whole <= surplus else asked * surplus / whole
            sent[label] += amounts[edge, label]
            after[label] += amounts[edge, label] * (1.0 - board.drop[receiver, slot])
    for edge in range(edges):
        slot = play.slots[receiver, edge]
        if slot >= 0 and board.candidates[receiver, slot] == transmitter:
            _price(board, terms, play, prices, receiver, edge, (after, sent, cost), amounts[edge])


@leaf
def _price(board: Any, terms: Any, play: Any, prices: Any, receiver: Any, edge: Any, held: Any, amounts: Any) -> None:
    """The price of a link that brings `amounts`, from what the receiver holds: counts after losses, before, loss probabilities."""
    after, sent, cost = held
    worth = labelled_score(board, terms, receiver, after, sent, cost)
    arrives = 1.0 - board.drop[receiver, play.slots[receiver, edge]]
    for label in range(len(amounts)):
        less = PRICED * amounts[label]
        prices[receiver, edge, label] = 0.0
        if less > LEAST:
            had, had_sent = after[label], sent[label]
            after[label] -= less * arrives
            sent[label] -= less
            lost = worth - labelled_score(board, terms, receiver, after, sent, cost)
            after[label], sent[label] = had, had_sent
            prices[receiver, edge, label] = terms.own * lost / less


@part
def make_offer(
    board: Any, terms: Any, play: Any, prices: Any, transmitter: Any, receiver: Any, asked: Any, told: Any
) -> None:
    """What a transmitter tells a receiver that asks for so much of each label: others' demand, worth of giving and taking.

    `told` is a row of Told: three arrays by label.
    """
    demand, giving, taking = told
    partitions, edges = board.counts.shape[1], play.slots.shape[1]
    mine = np.empty(partitions)
    for label in range(partitions):  # one by one: each operation on whole arrays takes long to compile
        demand[label], giving[label], taking[label], mine[label] = 0.0, 0.0, 0.0, 0.0
    request = play.first[transmitter]
    while request >= 0:
        requester, edge = request // edges, request % edges
        for label in range(partitions):
            amount = play.request[requester, edge, label]
            if requester == receiver:
                mine[label] += amount
            elif amount > 0.0:
                demand[label] += amount
                taking[label] += amount * prices[requester, edge, label]
        request = play.following[request]
    after, sent = np.empty(partitions), np.empty(partitions)
    cost, _ = labelled_after(board, play, transmitter, after, sent)
    for label in range(partitions):  # as it would stand without this receiver
        surplus = board.surplus[transmitter, label]
        back = min(demand[label] + mine[label], surplus) - min(demand[label], surplus)
        after[label] += back
        sent[label] += back
        if demand[label] > 0.0:
            taking[label] /= demand[label]
    worth = labelled_score(board, terms, transmitter, after, sent, cost)
    for label in range(partitions):
        surplus = board.surplus[transmitter, label]
        more = min(demand[label] + asked[label], surplus) - min(demand[label], surplus)
        if more > LEAST:
            after[label] -= more
            sent[label] -= more
            gain = labelled_score(board, terms, transmitter, after, sent, cost) - worth
            after[label] += more
            sent[label] += more
            giving[label] = terms.own * gain / more
