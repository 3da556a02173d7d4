"""Our learner (R6): log-linear learning on marginal contributions, with lazy, optimistic quotes.

A device revises one link at a time. It withdraws the link, asks transmitters what its joining would be worth to the
whole network, and joins one by the Gumbel-max rule, which is exactly log-linear learning:

    slot = argmax over s of  J(s) - J(no link) + temperature * Gumbel noise

J(s) - J(no link) is the device's marginal contribution: its own gain, the transmitter's, and what the transmitter's
other requesters lose. The game is therefore an exact potential game with the network's objective as its potential,
and log-linear learning concentrates on the best graphs as the temperature falls.

Few messages are needed because a device knows, from one introduction per link, what it would gain from a transmitter
that nobody else asks. That is an optimistic estimate. The device asks in the order of estimate plus noise and stops as
soon as the best answer beats the next estimate; 1 to 3 quotes are enough where a full softmax needs one per candidate.

Where many links are worth the same, claims on pairs of labels choose between them (pair_claims.py).

The budget is spent in cycles. Each cools down to temperature 0 and ends where no device can improve alone. The
devices add up their rewards along a tree (two messages each), and everybody keeps the links of the best cycle.
PAPER.md lists which numbers cross which link.
"""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from d2dfl.compiled import kernel
from d2dfl.discovery.equations.gaussian import components_of
from d2dfl.discovery.equations.reward import Terms
from d2dfl.discovery.game.draws import uniform
from d2dfl.discovery.game.estimates import HOPELESS, expected_bonus, own_gains
from d2dfl.discovery.game.pair_claims import claim_values
from d2dfl.discovery.game.state import NO_LINK, Board, Play, free_choice, load, set_link, start, taken, total
from d2dfl.discovery.task import LinkChoice, Task
from d2dfl.partition.sketches import VALUES
from d2dfl.rng import device_keys

SLIGHT = 1e-10  # improvements below this are rounding
FINISH = 40.0  # messages per device kept for the end of a cycle, at temperature 0
INTRODUCTIONS = 0.1  # share of the budget that introductions may cost


class LearnerState(NamedTuple):
    """What the devices remember between revisions."""

    known: NDArray[np.bool_]  # [receiver, slot] introduced at the start
    bonus: NDArray[np.float32]  # [receiver, slot] what the transmitter itself gained, by its last quote
    wish: NDArray[np.float32]  # [receiver, slot] what the link is worth to the receiver beyond the objective
    draws: NDArray[np.int64]  # [device] random numbers used
    messages: NDArray[np.float64]  # [1] sent so far
    counts: NDArray[np.float64]  # [1] counts inside them
    reals: NDArray[np.float64]  # [1] real numbers inside them
    quiet: NDArray[np.int64]  # [1] revisions in a row that changed nothing
    quotes: NDArray[np.int64]  # [1]
    revisions: NDArray[np.int64]  # [1]


@kernel
def _gumbel(learner: Any, key: Any, device: Any, temperature: Any) -> Any:
    if temperature <= 0.0:
        return 0.0
    draw = uniform(key, learner.draws[device])
    learner.draws[device] += 1
    return -temperature * np.log(-np.log(draw + 1e-300) + 1e-300)


@kernel
def _links(play: Any, receiver: Any) -> Any:
    number = 0
    for edge in range(play.slots.shape[1]):
        if play.slots[receiver, edge] >= 0:
            number += 1
    return number


@kernel
def _say(learner: Any, messages: Any, counts: Any, reals: Any) -> None:
    learner.messages[0] += messages
    learner.counts[0] += counts
    learner.reals[0] += reals


@kernel
def reals_in_sums(play: Any) -> Any:
    """Real numbers in one device's sums (data clusters): two symmetric matrices, two vectors, one number."""
    components = play.shape.mean.shape[2]
    return components * (components + 1) + 2 * components + 1


@kernel
def _move(board: Any, terms: Any, play: Any, learner: Any, receiver: Any, edge: Any, slot: Any) -> None:
    """Put a link in force: Q to the transmitters concerned, new U to whom it changes, d' to the cluster."""
    partitions = board.counts.shape[1]
    old = play.slots[receiver, edge]
    if old == slot:
        return
    _, others, crossing = set_link(board, terms, play, receiver, edge, slot)
    contacts = _links(play, receiver) + (1 if old >= 0 else 0)
    _say(learner, contacts + others, (contacts + others) * partitions, 0)
    if terms.budget != 0.0 and terms.gamma != 0.0:
        _say(learner, crossing, 0, crossing)
    if terms.agreement != 0.0:  # everybody whose clusters changed broadcasts its new sums
        _say(learner, play.size[0], 0, play.size[0] * reals_in_sums(play))


@kernel
def _quote(board: Any, terms: Any, play: Any, learner: Any, receiver: Any, edge: Any, slot: Any) -> Any:
    """Ask a transmitter what joining would be worth to the network: Q there, U and two numbers back; between them the
    transmitter asks each other requester whose share would change: U there, three numbers back."""
    partitions = board.counts.shape[1]
    transmitter = board.candidates[receiver, slot]
    before = play.local[transmitter]
    worth, others, _ = set_link(board, terms, play, receiver, edge, slot)
    contacts = _links(play, receiver)
    learner.bonus[receiver, slot] = terms.own * (play.local[transmitter] - before)
    set_link(board, terms, play, receiver, edge, NO_LINK)
    answer = 3 + (reals_in_sums(play) if terms.agreement != 0.0 else 0)
    _say(learner, 2 * contacts + 2 * others, (2 * contacts + others) * partitions, 2 * contacts + answer * others)
    learner.quotes[0] += 1
    return worth


@kernel
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
    old = play.slots[receiver, edge]
    learner.revisions[0] += 1
    _move(board, terms, play, learner, receiver, edge, NO_LINK)
    best = NO_LINK
    best_worth = _gumbel(learner, key, receiver, temperature) if free[receiver] else HOPELESS
    estimate = np.empty(slots)
    noise = np.zeros(slots)
    own_gains(board, terms, play, learner.known, receiver, estimate)
    for slot in range(slots):
        if estimate[slot] > HOPELESS:
            if taken(play, receiver, edge, slot):
                estimate[slot] = HOPELESS
                continue
            noise[slot] = _gumbel(learner, key, receiver, temperature)
            noise[slot] += learner.wish[receiver, slot]  # like the noise, it is no part of the objective
            estimate[slot] += learner.bonus[receiver, slot] + noise[slot]
    while True:
        top = -1
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
    keys: Any,
    begin: Any,
    end: Any,
    stop: Any,
    hot: Any,
    first: Any,
    free: Any,
) -> Any:
    """Revisions in turn from device `first` on, until `stop` messages are spent or nobody moves at temperature 0.

    The temperature falls linearly from `hot`, at `begin` messages, to 0 a little before `end`. Returns the next device.
    """
    devices, edges = play.slots.shape
    cold = max(begin + 0.5 * (end - begin), end - FINISH * devices)
    receiver = first
    while learner.messages[0] < stop and learner.quiet[0] < devices:
        temperature = hot * max(0.0, (cold - learner.messages[0]) / max(cold - begin, 1.0))
        changed = False
        before = learner.messages[0]
        for edge in range(edges):
            if revise(board, terms, play, learner, keys[receiver], receiver, edge, temperature, free):
                changed = True
        if temperature <= 0.0 and not changed:
            learner.quiet[0] += 1
        elif learner.messages[0] == before:
            learner.quiet[0] += 1  # nobody to ask: no message will ever be spent here
        else:
            learner.quiet[0] = 0
        receiver = (receiver + 1) % devices
    return receiver


@kernel
def temperature_unit(board: Any, terms: Any, play: Any, learner: Any) -> Any:
    """Mean over the devices of the best gain that each could have alone: what temperatures are measured in."""
    devices, slots = board.candidates.shape
    gains = np.empty(slots)
    unit = 0.0
    for receiver in range(devices):
        own_gains(board, terms, play, learner.known, receiver, gains)
        unit += max(0.0, gains.max()) / devices
    return unit


def introduce(
    board: Board,
    terms: Terms,
    budget: float,
    spread: float = 0.0,
    edges: int = 1,
    label_distance: NDArray[np.float64] | None = None,
) -> LearnerState:
    """Each transmitter tells each receiver that hears it what it can spare of what it trusts it with, and one number:
    what it expects to gain itself.

    Where introductions would cost over a tenth of the budget, receivers take them from their most reliable links only.
    """
    devices, slots = board.candidates.shape
    partitions = board.counts.shape[1]
    known = board.candidates >= 0
    affordable = max(1, int(INTRODUCTIONS * budget))
    if affordable < slots:
        loss = np.where(known, board.drop, np.inf)
        kept = np.argpartition(loss, affordable - 1, axis=1)[:, :affordable]
        chosen = np.zeros_like(known)
        np.put_along_axis(chosen, kept, True, axis=1)
        known &= chosen
    introductions = float(known.sum())
    bonus = np.zeros(known.shape, dtype=np.float32)
    reals, sums = 1.0, 1.0
    if terms.clustered:
        # Clusters of the transmitter there and of the receiver back, and everybody's sums to begin with.
        d = components_of(board.gauss.own.shape[2])
        introductions *= 2.0
        reals, sums = partitions * (d + d * (d + 1) / 2.0), d * (d + 1.0) + 2.0 * d + 2.0
    else:
        expected_bonus(board, terms, known, bonus)
    wish, lists, sketches = np.zeros_like(bonus), 0.0, 0.0
    if spread > 0.0 and not terms.clustered:
        wish = (terms.own * spread * claim_values(board, known, edges, label_distance)).astype(np.float32)
        if wish.any():
            # The list of claimed pairs walks along the tree, into every branch and back, once for every link. Before,
            # the sums from which everybody learns how far apart labels lie go up and down with the counts.
            lists = 2.0 * edges * devices
            sketches = 0.0 if label_distance is None else 2.0 * devices * partitions * VALUES
    # Two more messages a device add up the population's counts and the temperature unit along a tree.
    return LearnerState(
        known=known,
        bonus=bonus,
        wish=wish,
        draws=np.zeros(devices, dtype=np.int64),
        messages=np.array([introductions + 2.0 * devices + lists]),
        counts=np.array([(introductions + 2.0 * devices) * partitions + lists * partitions * (partitions - 1) / 2.0]),
        reals=np.array([reals * introductions + 2.0 * sums * devices + sketches]),
        quiet=np.zeros(1, dtype=np.int64),
        quotes=np.zeros(1, dtype=np.int64),
        revisions=np.zeros(1, dtype=np.int64),
    )


def find(task: Task) -> LinkChoice:
    """Spend the message budget in cycles and keep the best graph."""
    task = _planned(task)
    config, board, terms = task.config.marginal, task.board(), task.terms
    free = free_choice(board, task.config.discovery.no_link)
    devices = task.network.devices
    keys = device_keys(task.seed, "marginal", task.stage, devices=devices)
    budget = config.messages * task.edges  # a device with several links has as many to negotiate
    learner = introduce(board, terms, budget, config.spread, task.edges, task.network.label_distance)
    play = start(board, terms, task.edges)
    # The largest of n Gumbel draws grows with ln(n): dividing by it keeps the noise alike for few and many choices.
    choices = 1.0 + float(learner.known.sum(axis=1).mean())
    hot = config.temperature * float(temperature_unit(board, terms, play, learner)) / max(np.log(choices), 1.0)
    limit = float(budget) * devices
    cycles = max(1, round(config.messages / config.cycle))
    best, best_total = play.slots.copy(), -np.inf
    for cycle in range(cycles):
        begin = float(learner.messages[0])
        end = begin + (limit - begin) / (cycles - cycle)
        _cycle(task, board, terms, play, learner, keys, begin, end, hot, free)
        value = float(total(board, terms, play)) + _granted(play, learner)
        if cycles > 1:
            _say(learner, 2.0 * devices, 0, 2.0 * devices)
        if value > best_total + SLIGHT:
            best, best_total = play.slots.copy(), value
        else:
            play = load(board, terms, best)
        if learner.messages[0] + 5.0 * devices > limit:
            break
    return _found(task, best, learner)


def _planned(task: Task) -> Task:
    """On a changing channel it may plan with expected losses instead of the current ones."""
    config = task.config
    if not config.channel.dynamic or config.marginal.dynamic != "expected":
        return task
    from d2dfl.discovery.methods import dynamic

    return replace(task, network=dynamic.expected(task.network, config.channel))


def _granted(play: Play, learner: LearnerState) -> float:
    """What the links in force are worth beyond the objective."""
    receivers, edges = np.nonzero(play.slots >= 0)
    return float(learner.wish[receivers, play.slots[receivers, edges]].sum())


def _cycle(
    task: Task,
    board: Board,
    terms: Terms,
    play: Play,
    learner: LearnerState,
    keys: NDArray[np.uint64],
    begin: float,
    end: float,
    hot: float,
    free: NDArray[np.bool_],
) -> None:
    """One cycle, interrupted now and then to show progress."""
    learner.quiet[0] = 0
    device, devices = 0, task.network.devices
    limit = float(task.config.marginal.messages * task.edges) * devices
    stride = max((end - begin) / 20, 1.0)
    while learner.messages[0] < end and learner.quiet[0] < devices:
        stop = min(float(learner.messages[0]) + stride, end)
        device = run_cycle(board, terms, play, learner, keys, begin, end, stop, hot, device, free)
        task.progress(min(float(learner.messages[0]) / limit, 1.0))


def _found(task: Task, slots: NDArray[np.int32], learner: LearnerState) -> LinkChoice:
    discovery = task.config.discovery
    bits = float(learner.counts[0]) * discovery.count_bits + float(learner.reals[0]) * discovery.real_bits
    return LinkChoice(slots, float(learner.messages[0]), bits, int(learner.revisions[0]))


__all__ = ["find"]
