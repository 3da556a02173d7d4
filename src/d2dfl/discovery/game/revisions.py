"""One revision of our learner, compiled: withdraw a link, ask in the order of optimistic estimates, join the best.

What it means and why it works stands in methods/marginal.py.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from d2dfl.compiled import kernel, leaf, part
from d2dfl.discovery.game.draws import uniform
from d2dfl.discovery.game.estimates import HOPELESS, own_gains
from d2dfl.discovery.game.state import NO_LINK, set_link, taken

SLIGHT = 1e-10  # improvements below this are rounding
NO_DEVICE = np.int64(-1)
FINISH = 40.0  # messages per device kept for the end of a cycle, at temperature 0


class LearnerState(NamedTuple):
    """What the devices remember between revisions."""

    known: NDArray[np.bool_]  # [receiver, slot] introduced at the start
    bonus: NDArray[np.float32]  # [receiver, slot] what the transmitter itself gained, by its last quote
    claim: NDArray[np.float32]  # [receiver, slot] what the link is worth to the receiver beyond the objective
    draws: NDArray[np.int64]  # [device] random numbers used
    messages: NDArray[np.float64]  # [1] sent so far
    counts: NDArray[np.float64]  # [1] counts inside them
    reals: NDArray[np.float64]  # [1] real numbers inside them
    quiet: NDArray[np.int64]  # [1] revisions in a row that changed nothing
    quotes: NDArray[np.int64]  # [1]
    revisions: NDArray[np.int64]  # [1]


class Cycle(NamedTuple):
    """One cooling of the learner."""

    begin: float  # messages spent when it began
    end: float  # and when it is to end
    limit: float  # that no revision may pass
    hot: float  # temperature at the beginning


@leaf
def _gumbel(draws: Any, key: Any, device: Any, temperature: Any) -> Any:
    if temperature <= 0.0:
        return 0.0
    draw = uniform(key, draws[device])
    draws[device] += 1
    return -temperature * np.log(-np.log(draw + 1e-300) + 1e-300)


@leaf
def _links(slots: Any, receiver: Any) -> Any:
    number = 0
    for edge in range(slots.shape[1]):
        if slots[receiver, edge] >= 0:
            number += 1
    return number


@leaf
def _say(learner: Any, messages: Any, counts: Any, reals: Any) -> None:
    learner.messages[0] += messages
    learner.counts[0] += counts
    learner.reals[0] += reals


@kernel
def reals_in_sums(shape: Any) -> Any:
    """Real numbers in one device's sums (data clusters): two symmetric matrices, two vectors, one number."""
    if shape is None:
        return 0
    components = shape.mean.shape[2]
    return components * (components + 1) + 2 * components + 1


@part
def _move(board: Any, terms: Any, play: Any, learner: Any, receiver: Any, edge: Any, slot: Any) -> None:
    """Put a link in force: Q to the transmitters concerned, new U to whom it changes, d' to the cluster."""
    partitions = board.counts.shape[1]
    old = play.slots[receiver, edge]
    if old == slot:
        return
    _, others, crossing = set_link(board, terms, play, receiver, edge, slot)
    contacts = _links(play.slots, receiver) + (1 if old >= 0 else 0)
    _say(learner, contacts + others, (contacts + others) * partitions, 0)
    if terms.budget != 0.0 and terms.gamma != 0.0:
        _say(learner, crossing, 0, crossing)
    if terms.agreement != 0.0:  # everybody whose clusters changed broadcasts its new sums
        _say(learner, play.size[0], 0, play.size[0] * reals_in_sums(play.shape))


@part
def _quote(board: Any, terms: Any, play: Any, learner: Any, receiver: Any, edge: Any, slot: Any) -> Any:
    """Ask a transmitter what joining would be worth to the network: Q there, U and two numbers back; between them the
    transmitter asks each other requester whose share would change: U there, three numbers back."""
    partitions = board.counts.shape[1]
    transmitter = board.candidates[receiver, slot]
    before = play.local[transmitter]
    worth, others, _ = set_link(board, terms, play, receiver, edge, slot)
    contacts = _links(play.slots, receiver)
    learner.bonus[receiver, slot] = terms.own * (play.local[transmitter] - before)
    set_link(board, terms, play, receiver, edge, NO_LINK)
    answer = 3 + (reals_in_sums(play.shape) if terms.agreement != 0.0 else 0)
    _say(learner, 2 * contacts + 2 * others, (2 * contacts + others) * partitions, 2 * contacts + answer * others)
    learner.quotes[0] += 1
    return worth


@part
def revise(
    board: Any,
    terms: Any,
    play: Any,
    learner: Any,
    key: Any,
    receiver: Any,
    edge: Any,
    temperature: Any,
    free: Any,
) -> Any:
    """One device reconsiders one of its links. Returns whether it changed."""
    slots = board.candidates.shape[1]
    old = np.int64(play.slots[receiver, edge])
    learner.revisions[0] += 1
    _move(board, terms, play, learner, receiver, edge, NO_LINK)
    best = NO_LINK
    best_worth = _gumbel(learner.draws, key, receiver, temperature) if free[receiver] else HOPELESS
    estimate = np.empty(slots)
    noise = np.zeros(slots)
    own_gains(board, terms, play, board.gauss, learner.known, receiver, estimate)
    for slot in range(slots):
        if estimate[slot] > HOPELESS:
            if taken(play.slots, receiver, edge, slot):
                estimate[slot] = HOPELESS
                continue
            noise[slot] = _gumbel(learner.draws, key, receiver, temperature)
            noise[slot] += learner.claim[receiver, slot]  # like the noise, it is no part of the objective
            estimate[slot] += learner.bonus[receiver, slot] + noise[slot]
    while True:
        top: Any = NO_LINK
        for slot in range(slots):
            if estimate[slot] > HOPELESS and (top < 0 or estimate[slot] > estimate[top]):
                top = slot
        if top < 0 or estimate[top] <= best_worth + SLIGHT:
            break
        estimate[top] = HOPELESS
        worth = _quote(board, terms, play, learner, receiver, edge, top) + noise[top]
        # Of equals a device keeps the link that it has, or it would never come to rest.
        if worth > best_worth + SLIGHT or (top == old and worth > best_worth - SLIGHT):
            best, best_worth = top, worth
    _move(board, terms, play, learner, receiver, edge, best)
    return best != old


@kernel
def run_cycle(
    board: Any,
    terms: Any,
    play: Any,
    learner: Any,
    cycle: Any,
    keys: Any,
    free: Any,
    first: Any,
    stop: Any,
) -> Any:
    """Revisions in turn from device `first` on, until `stop` messages are spent or nobody moves at temperature 0.

    The temperature falls linearly from `hot`, at `begin` messages, to 0 a little before `end`. Returns the next device,
    or NO_DEVICE where its revision would take more than `limit` messages in all: it is not begun.
    """
    begin, end, limit, hot = cycle
    devices, edges = play.slots.shape
    cold = max(begin + 0.5 * (end - begin), end - FINISH * devices)
    receiver = first
    while learner.messages[0] < stop and learner.quiet[0] < devices:
        temperature = hot * max(0.0, (cold - learner.messages[0]) / max(cold - begin, 1.0))
        changed = False
        before = learner.messages[0]
        for edge in range(edges):
            old, counts, reals = np.int64(play.slots[receiver, edge]), learner.counts[0], learner.reals[0]
            spent = learner.messages[0]
            if revise(board, terms, play, learner, keys[receiver], receiver, edge, temperature, free):
                changed = True
            if learner.messages[0] > limit:
                set_link(board, terms, play, receiver, edge, old)
                learner.messages[0], learner.counts[0], learner.reals[0] = spent, counts, reals
                learner.revisions[0] -= 1
                return NO_DEVICE
        if temperature <= 0.0 and not changed:
            learner.quiet[0] += 1
        elif learner.messages[0] == before:
            learner.quiet[0] += 1  # nobody to ask: no message will ever be spent here
        else:
            learner.quiet[0] = 0
        receiver = (receiver + 1) % devices
    return receiver


@kernel
def temperature_unit(board: Any, terms: Any, play: Any, known: Any) -> Any:
    """Mean over the devices of the best gain that each could have alone: what temperatures are measured in."""
    devices, slots = board.candidates.shape
    gains = np.empty(slots)
    unit = 0.0
    for receiver in range(devices):
        own_gains(board, terms, play, board.gauss, known, receiver, gains)
        best = 0.0
        for slot in range(slots):
            best = max(best, gains[slot])
        unit += best / devices
    return unit
