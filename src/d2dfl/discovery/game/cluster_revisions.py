"""A revision where partitions are data clusters (Algorithm 2): the same try, keep or take back, with what clusters tell.

Each link is asked for its own part, so that a link concerns its old and its new transmitter alone. A receiver knows the
clusters of all transmitters from the start and estimates what it would gain if nobody else asked; what the transmitter itself
wins it learns when it tries.
"""

from typing import Any

import numpy as np

from d2dfl.compiled import kernel, part
from d2dfl.discovery.constants import SLIGHT
from d2dfl.discovery.game.estimates import clustered_gains
from d2dfl.discovery.game.learning import gumbel, keeps, say
from d2dfl.discovery.game.state import HOPELESS, NO_LINK, set_link, taken


@kernel
def reals_in_sums(shape: Any) -> Any:
    """Real numbers in one device's sums (data clusters): two symmetric matrices, two vectors, one number."""
    if shape is None:
        return 0
    components = shape.mean.shape[2]
    return components * (components + 1) + 2 * components + 1


@part
def _choose(board: Any, terms: Any, play: Any, learner: Any, gauss: Any, revision: Any) -> Any:
    """The slot that a device would like to try in place of a link, and what it expects of that beside the present one."""
    receiver, edge = revision.receiver, revision.edge
    slots, old = board.candidates.shape[1], np.int64(play.slots[receiver, edge])
    gains = np.empty(slots)
    set_link(board, terms, play, receiver, edge, NO_LINK)  # in its mind: it knows its own clusters without the link
    clustered_gains(board, terms, play, gauss, learner.useful, receiver, gains)
    set_link(board, terms, play, receiver, edge, old)
    top: Any = NO_LINK
    best = gumbel(learner, revision) if revision.free else HOPELESS
    here = expected = 0.0
    for slot in range(slots):
        if gains[slot] <= HOPELESS or taken(play.slots, receiver, edge, slot):
            continue
        gains[slot] += learner.bonus[receiver, slot]
        value = gains[slot] + gumbel(learner, revision)
        if slot == old:
            here = gains[slot]
        if value > best + SLIGHT or (slot == old and value > best - SLIGHT):
            top, best, expected = slot, value, gains[slot]
    return top, expected - here


@part
def _put_link(board: Any, terms: Any, play: Any, learner: Any, receiver: Any, edge: Any, slot: Any, rest: Any) -> Any:
    """Put a link in force: change of N times the objective, messages, and whether `rest` would do for there and back."""
    old = np.int64(play.slots[receiver, edge])
    joined = np.int64(board.candidates[receiver, slot]) if slot >= 0 else NO_LINK
    before = play.local[joined] if slot >= 0 else 0.0
    change, others, _ = set_link(board, terms, play, receiver, edge, slot)
    partitions = board.counts.shape[1]
    contacts = (1 if old >= 0 else 0) + (1 if slot >= 0 else 0)
    broadcasts = play.size[0] if terms.agreement != 0.0 else 0  # everybody whose clusters changed tells its new sums
    messages = 2 * (contacts + others) + broadcasts
    if 2 * messages > rest:
        set_link(board, terms, play, receiver, edge, old)
        return 0.0, 0, False
    if slot >= 0:
        learner.bonus[receiver, slot] = terms.own * (play.local[joined] - before)
    sums = reals_in_sums(play.shape)
    say(learner, messages, 2 * (contacts + others) * partitions, 2 * contacts + 4 * others + broadcasts * sums)
    return change, messages, True


@part
def revise_cluster_link(board: Any, terms: Any, play: Any, learner: Any, gauss: Any, revision: Any) -> Any:
    """One device reconsiders one of its links. Returns whether it changed."""
    receiver, edge = revision.receiver, revision.edge
    old = np.int64(play.slots[receiver, edge])
    top, expected = _choose(board, terms, play, learner, gauss, revision)
    if top == old:
        return False
    rest = learner.account[receiver] - learner.spent[receiver]
    change, messages, done = _put_link(board, terms, play, learner, receiver, edge, top, rest)
    learner.spent[receiver] += messages
    if not done:
        learner.taking_turns[receiver] = False  # its account does not pay for more
        return False
    forced = old < 0 and not revision.free
    if forced or keeps(learner, revision, change, expected):
        learner.gained[0] += change
        return True
    _, messages, _ = _put_link(board, terms, play, learner, receiver, edge, old, 4 * messages)
    learner.spent[receiver] += messages
    return False
