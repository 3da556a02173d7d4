"""One revision of our learner, compiled: weigh all choices for a link, ask whoever looks best, try it, keep it or take it back.

What it means and why it works stands in methods/marginal.py.
"""

from typing import Any

import numpy as np

from d2dfl.compiled import kernel, leaf, part
from d2dfl.discovery.constants import ASKED, LEAST_MOVE, SLIGHT, TURN
from d2dfl.discovery.game.cluster_revisions import revise_cluster_link
from d2dfl.discovery.game.draws import uniform
from d2dfl.discovery.game.expectations import expected_worth, standing_of
from d2dfl.discovery.game.learning import NO_DEVICE, RESTLESSNESS, Revision, gumbel, keeps, say
from d2dfl.discovery.game.offers import make_offer
from d2dfl.discovery.game.requesting import UNLIMITED, put_link, recall
from d2dfl.discovery.game.state import HOPELESS, NO_LINK, taken


@leaf
def _top(value: Any, extra: Any, old: Any, best: Any) -> Any:
    """The slot that looks best, or NO_LINK where none is above `best`; where two are alike it is the present one."""
    top: Any = NO_LINK
    for slot in range(len(value)):
        if value[slot] > HOPELESS and (
            value[slot] + extra[slot] > best + SLIGHT or (slot == old and value[slot] + extra[slot] > best - SLIGHT)
        ):
            top, best = slot, value[slot] + extra[slot]
    return top


@leaf
def _weigh(
    board: Any, terms: Any, play: Any, learner: Any, revision: Any, standing: Any, offers: Any, weighed: Any
) -> None:
    """value[slot] what a device expects with each choice for a link, HOPELESS where it is none, and extra[slot] what it adds to that."""
    receiver, edge = revision.receiver, revision.edge
    zero, present = offers
    value, extra = weighed
    for slot in range(len(value)):
        value[slot] = HOPELESS
        if not learner.useful[receiver, slot] or taken(play.slots, receiver, edge, slot):
            continue
        introduced = learner.introduced[board.candidates[receiver, slot]]
        offer = present if slot == play.slots[receiver, edge] else (zero, introduced, zero)
        value[slot] = expected_worth(board, terms, play, learner.told, standing, slot, offer)
        extra[slot] = gumbel(learner, revision) + learner.claim[receiver, slot]


@part
def _choose(board: Any, terms: Any, play: Any, learner: Any, revision: Any) -> Any:
    """The slot that a device would like to try in place of a link, what it expects of that beside the present one, and
    what was told about it. Whoever looks best is asked first, and then looks as good as it is."""
    receiver, edge = revision.receiver, revision.edge
    slots, partitions, zero = board.candidates.shape[1], board.counts.shape[1], np.zeros(board.counts.shape[1])
    used = play.used[board.cluster[receiver]]  # which came with the token
    standing = standing_of(board, terms, play, learner.told, receiver, edge, used)
    old = np.int64(play.slots[receiver, edge])
    told = learner.told
    present = (told.demand[receiver, edge], told.giving[receiver, edge], told.taking[receiver, edge])
    answers, asked = np.zeros((ASKED, 3, partitions)), np.empty(ASKED, np.int64)
    value, extra = np.empty(slots), np.empty(slots)
    none = expected_worth(board, terms, play, told, standing, NO_LINK, present)
    best_none = none + gumbel(learner, revision) if revision.free else HOPELESS
    _weigh(board, terms, play, learner, revision, standing, (zero, present), (value, extra))
    here = value[old] if old >= 0 and value[old] > HOPELESS else none
    number = 0
    while True:
        top = _top(value, extra, old, best_none)
        place = -1
        for known in range(number):
            place = known if asked[known] == top else place
        if top < 0 or top == old or place >= 0 or number == ASKED:
            break
        if learner.account[receiver] - learner.spent[receiver] < 2:
            top = old
            break
        row = (answers[number, 0], answers[number, 1], answers[number, 2])
        transmitter = np.int64(board.candidates[receiver, top])
        make_offer(board, terms, play, learner.prices, transmitter, receiver, board.need[receiver], row)
        say(learner, 2, 2 * partitions, 2 * partitions)
        learner.spent[receiver] += 2
        value[top] = expected_worth(board, terms, play, told, standing, top, row)
        asked[number] = top
        number += 1
    if top >= 0 and top != old and place < 0:
        top = old  # asked enough for once
    expected = (none if top < 0 else value[top]) - here
    return top, expected, answers[max(place, 0)]


@part
def _revise_link(board: Any, terms: Any, play: Any, learner: Any, revision: Any) -> Any:
    """One device reconsiders one of its links. Returns whether it changed."""
    receiver, edge = revision.receiver, revision.edge
    old = np.int64(play.slots[receiver, edge])
    top, expected, answer = _choose(board, terms, play, learner, revision)
    if top == old:
        return False
    before = np.empty((3, board.counts.shape[1]))
    recall(learner.told, receiver, edge, before)
    rest = learner.account[receiver] - learner.spent[receiver]
    change, messages, done = put_link(board, terms, play, learner, receiver, edge, top, answer, rest)
    learner.spent[receiver] += messages
    if not done:
        learner.taking_turns[receiver] = False  # its account does not pay for more
        return False
    beyond = (learner.claim[receiver, top] if top >= 0 else 0.0) - (learner.claim[receiver, old] if old >= 0 else 0.0)
    forced = old < 0 and not revision.free
    if forced or keeps(learner, revision, change + beyond, expected + beyond):
        learner.gained[0] += change + beyond
        return True
    _, messages, _ = put_link(board, terms, play, learner, receiver, edge, old, before, UNLIMITED)
    learner.spent[receiver] += messages
    return False


@leaf
def _temperatures(learner: Any, cooling: Any, key: Any, device: Any) -> Any:
    """A device's temperature by what it has spent, and the noise on its proposals, of which some stays when it is cold."""
    spent, account = learner.spent[device] - learner.began[device], learner.account[device] - learner.began[device]
    fallen = spent / (cooling.cold * account)
    temperature = cooling.hot * max(0.0, 1.0 - fallen)
    draw = uniform(key, learner.turns[device] + RESTLESSNESS)
    return temperature, max(temperature, 2.0 * draw * cooling.restless * cooling.hot)


@part
def _take_turn(
    board: Any, gauss: Any, terms: Any, play: Any, learner: Any, cooling: Any, devices: Any, device: Any
) -> Any:
    """A device has the token: it reconsiders its links one after the other. Returns whether any of them changed."""
    edges, key, free = play.slots.shape[1], devices.keys[device], devices.free[device]
    changed = False
    for _ in range(edges):
        if not learner.taking_turns[device] or learner.account[device] - learner.spent[device] < LEAST_MOVE:
            break
        edge = learner.turns[device] % edges
        learner.turns[device] += 1
        temperature, noise = _temperatures(learner, cooling, key, device)
        revision = Revision(key, device, edge, free, temperature, noise)
        if gauss is None:
            moved = _revise_link(board, terms, play, learner, revision)
        else:
            moved = revise_cluster_link(board, terms, play, learner, gauss, revision)
        changed = changed or moved
    return changed


@kernel(nogil=True)
def take_turns(
    board: Any,
    gauss: Any,
    terms: Any,
    play: Any,
    learner: Any,
    cooling: Any,
    devices: Any,
    first: Any,
    number: Any,
) -> Any:
    """So many turns from device `first` on. Returns whose turn is next, or NO_DEVICE where all have stopped.

    `gauss` is the board's: the compiler leaves out what is not for networks of its kind.
    """
    size, device = len(play.slots), first
    for _ in range(number):
        passed = 0
        while passed < size and not learner.taking_turns[device]:
            device = (device + 1) % size
            passed += 1
        if passed == size or learner.quiet[0] >= cooling.patience * size:
            return NO_DEVICE
        if learner.account[device] - learner.spent[device] < TURN + LEAST_MOVE:
            learner.taking_turns[device] = False
        else:
            if learner.holder[0] != NO_DEVICE and learner.holder[0] != device:
                say(learner, TURN, TURN, learner.carried[0])
                learner.spent[device] += TURN
            learner.holder[0] = device
            changed = _take_turn(board, gauss, terms, play, learner, cooling, devices, device)
            learner.quiet[0] = 0 if changed else learner.quiet[0] + 1
        device = (device + 1) % size
    return device
