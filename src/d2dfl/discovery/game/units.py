"""What temperatures are measured in: what a device expects of its best link while nobody else asks for anything."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from d2dfl.compiled import kernel, part
from d2dfl.discovery.equations.reward import Terms
from d2dfl.discovery.game.board import Board
from d2dfl.discovery.game.estimates import clustered_gains
from d2dfl.discovery.game.expectations import expected_worth, standing_of
from d2dfl.discovery.game.offers import Told, introductory_prices
from d2dfl.discovery.game.rewards import labelled_score
from d2dfl.discovery.game.state import HOPELESS


def introduced_worth(board: Board, terms: Terms) -> NDArray[np.float64]:
    """[transmitter, label] worth of giving a datapoint, as introductions tell it; empty where partitions are data clusters."""
    if board.gauss is not None:
        return np.zeros((0, board.counts.shape[1]))
    return np.asarray(introductory_prices(board, terms))


@kernel
def gains_alone(board: Any, terms: Any, play: Any, introduced: Any, useful: Any) -> Any:
    """[device] what it expects of its best link, from a game without links; 0 where that is a loss."""
    gains = np.empty(len(useful))
    nothing = np.zeros((len(useful) if board.gauss is None else 0, play.slots.shape[1], board.counts.shape[1]))
    told = Told(
        nothing, nothing, nothing
    )  # of links in force there are none; made once, as it has a row for each device
    for receiver in range(len(useful)):
        gains[receiver] = _best_alone(board, terms, play, board.gauss, told, introduced, useful, receiver)
    return gains


@part
def _best_alone(
    board: Any, terms: Any, play: Any, gauss: Any, told: Any, introduced: Any, useful: Any, receiver: Any
) -> Any:
    slots, best = useful.shape[1], 0.0
    gains = np.empty(slots)
    for slot in range(slots):
        gains[slot] = HOPELESS
    if gauss is None:
        _labelled_gains(board, terms, play, told, introduced, useful, receiver, gains)
    else:
        clustered_gains(board, terms, play, gauss, useful, receiver, gains)
    for slot in range(slots):
        best = max(best, gains[slot])
    return best


@part
def _labelled_gains(
    board: Any, terms: Any, play: Any, told: Any, introduced: Any, useful: Any, receiver: Any, gains: Any
) -> None:
    """What the receiver expects of a link to each transmitter by what introductions tell: for itself, and for the transmitter."""
    partitions = board.counts.shape[1]
    zero = np.zeros(partitions)
    nobody = (zero, zero, zero)
    standing = standing_of(board, terms, play, told, receiver, np.int64(0), 0.0)
    for slot in range(len(gains)):
        if useful[receiver, slot]:
            expected_worth(board, terms, play, told, standing, slot, nobody)
            cost = board.drop[receiver, slot]
            local = labelled_score(board, terms, receiver, standing.new_after, standing.new_sent, cost)
            gains[slot] = terms.own * (local - play.local[receiver])
            transmitter = board.candidates[receiver, slot]
            for label in range(partitions):
                gains[slot] += introduced[transmitter, label] * (standing.new_sent[label] - standing.sent[label])
