"""What temperatures are measured in: the best gain that a device could have if nobody else asked for anything."""

from typing import Any

import numpy as np

from d2dfl.compiled import kernel, part
from d2dfl.discovery.game.estimates import HOPELESS, clustered_gains
from d2dfl.discovery.game.expectations import expected_worth, standing_of
from d2dfl.discovery.game.offers import Told
from d2dfl.discovery.game.rewards import labelled_score


@kernel
def gains_alone(board: Any, terms: Any, play: Any, useful: Any) -> Any:
    """[device] the best gain that it could have, from a game without links."""
    gains = np.empty(len(useful))
    for receiver in range(len(useful)):
        gains[receiver] = _best_alone(board, terms, play, board.gauss, useful, receiver)
    return gains


@part
def _best_alone(board: Any, terms: Any, play: Any, gauss: Any, useful: Any, receiver: Any) -> Any:
    slots, best = useful.shape[1], 0.0
    gains = np.empty(slots)
    for slot in range(slots):
        gains[slot] = HOPELESS
    if gauss is None:
        _labelled_gains(board, terms, play, useful, receiver, gains)
    else:
        clustered_gains(board, terms, play, gauss, useful, receiver, gains)
    for slot in range(slots):
        best = max(best, gains[slot])
    return best


@part
def _labelled_gains(board: Any, terms: Any, play: Any, useful: Any, receiver: Any, gains: Any) -> None:
    """What the receiver itself would gain from each transmitter if nobody else asked for anything."""
    partitions, edges = board.counts.shape[1], play.slots.shape[1]
    zero, nothing = np.zeros(partitions), np.zeros((receiver + 1, edges, partitions))
    nobody, told = (zero, zero, zero), Told(nothing, nothing, nothing)
    after, sent = np.empty(partitions), np.empty(partitions)
    standing = standing_of(board, terms, play, told, receiver, np.int64(0))
    for slot in range(len(gains)):
        if useful[receiver, slot]:
            expected_worth(board, terms, play, told, standing, 0.0, receiver, np.int64(0), slot, nobody, after, sent)
            local = labelled_score(board, terms, receiver, after, sent, board.drop[receiver, slot])
            gains[slot] = terms.own * (local - play.local[receiver])
