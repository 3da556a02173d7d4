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
devices add up their rewards along a tree (two messages each), and everybody keeps the links of the best cycle. Never is
more spent than the budget, V, Q and U over the final links included: a revision that does not fit is not begun, and a
budget below what introductions cost buys nothing. PAPER.md lists which numbers cross which link.
"""

import numpy as np
from numpy.typing import NDArray

from d2dfl.discovery.equations.gaussian import components_of
from d2dfl.discovery.equations.reward import Terms
from d2dfl.discovery.game.board import Board, free_choice
from d2dfl.discovery.game.estimates import expected_bonus
from d2dfl.discovery.game.pair_claims import claim_values
from d2dfl.discovery.game.revisions import NO_DEVICE, SLIGHT, Cycle, LearnerState, run_cycle, temperature_unit
from d2dfl.discovery.game.state import Play, load, start, total
from d2dfl.discovery.task import NEGOTIATION, LinkChoice, Task
from d2dfl.partition.sketches import VALUES
from d2dfl.rng import device_keys

INTRODUCTIONS = 0.1  # share of the budget that introductions may cost


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
    devices, partitions = board.counts.shape
    known = _within(board, max(1, int(INTRODUCTIONS * budget)))
    introductions = float(known.sum())
    bonus = np.zeros(known.shape, dtype=np.float32)
    reals, sums = 1.0, 1.0
    if board.gauss is not None:
        # Clusters of the transmitter there and of the receiver back, and everybody's sums to begin with.
        d = components_of(board.gauss.own.shape[2])
        introductions *= 2.0
        reals, sums = partitions * (d + d * (d + 1) / 2.0), d * (d + 1.0) + 2.0 * d + 2.0
    else:
        expected_bonus(board, terms, known, bonus)
    claim, lists, sketches = np.zeros_like(bonus), 0.0, 0.0
    if spread > 0.0 and not terms.clustered:
        claim = (terms.own * spread * claim_values(board, known, edges, label_distance)).astype(np.float32)
        if claim.any():
            # The list of claimed pairs walks along the tree, into every branch and back, once for every link. Before,
            # the sums from which everybody learns how far apart labels lie go up and down with the counts.
            lists = 2.0 * edges * devices
            sketches = 0.0 if label_distance is None else 2.0 * devices * partitions * VALUES
    # Two more messages a device add up the population's counts and the temperature unit along a tree.
    return LearnerState(
        known=known,
        bonus=bonus,
        claim=claim,
        draws=np.zeros(devices, dtype=np.int64),
        messages=np.array([introductions + 2.0 * devices + lists]),
        counts=np.array([(introductions + 2.0 * devices) * partitions + lists * partitions * (partitions - 1) / 2.0]),
        reals=np.array([reals * introductions + 2.0 * sums * devices + sketches]),
        quiet=np.zeros(1, dtype=np.int64),
        quotes=np.zeros(1, dtype=np.int64),
        revisions=np.zeros(1, dtype=np.int64),
    )


def _within(board: Board, affordable: int) -> NDArray[np.bool_]:
    """[receiver, slot] links over which a receiver is introduced: all, or as many of the most reliable as it can afford."""
    known: NDArray[np.bool_] = board.candidates >= 0
    if affordable < known.shape[1]:
        loss = np.where(known, board.drop, np.inf)
        kept = np.argpartition(loss, affordable - 1, axis=1)[:, :affordable]
        chosen = np.zeros_like(known)
        np.put_along_axis(chosen, kept, True, axis=1)
        known &= chosen
    return known


def find(task: Task) -> LinkChoice:
    """Spend the message budget in cycles and keep the best graph."""
    config, board, terms = task.config.marginal, task.board(), task.terms
    free = free_choice(board, task.config.discovery.no_link)
    devices = task.network.devices
    keys = device_keys(task.seed, "marginal", task.stage, devices=devices)
    budget = config.messages * task.edges  # a device with several links has as many to negotiate
    limit = float(budget - NEGOTIATION * task.edges) * devices
    cycles = max(1, round(config.messages / config.cycle))
    closing = 2.0 * devices if cycles > 1 else 0.0  # messages at the end of a cycle, to compare it with the best
    learner = introduce(board, terms, budget, config.spread, task.edges, task.network.label_distance)
    play = start(board, terms, task.edges)
    if learner.messages[0] + closing > limit:
        return LinkChoice(play.slots)
    # The largest of n Gumbel draws grows with ln(n): dividing by it keeps the noise alike for few and many choices.
    choices = 1.0 + float(learner.known.sum(axis=1).mean())
    hot = config.temperature * float(temperature_unit(board, terms, play, learner.known)) / max(np.log(choices), 1.0)
    best, best_total = play.slots.copy(), -np.inf
    for number in range(cycles):
        begin = float(learner.messages[0])
        end = begin + (limit - begin) / (cycles - number) - closing
        cycle = Cycle(begin, end, limit - closing, hot)
        stride = max((end - begin) / 20, 1.0)  # interrupted now and then to show progress
        learner.quiet[0], device = 0, 0
        while learner.messages[0] < end and learner.quiet[0] < devices and device != NO_DEVICE:
            stop = min(float(learner.messages[0]) + stride, end)
            device = run_cycle(board, terms, play, learner, cycle, keys, free, device, stop)
            task.progress(min(float(learner.messages[0]) / cycle.limit, 1.0))
        value = total(board, terms, play) + _granted(play, learner)
        learner.messages[0] += closing
        learner.reals[0] += closing
        if value > best_total + SLIGHT:
            best, best_total = play.slots.copy(), value
        else:
            play = load(board, terms, best)
        if device == NO_DEVICE or learner.messages[0] + 5.0 * devices > limit:
            break
    return _found(task, best, learner)


def _granted(play: Play, learner: LearnerState) -> float:
    """What the links in force are worth beyond the objective."""
    receivers, edges = np.nonzero(play.slots >= 0)
    return float(learner.claim[receivers, play.slots[receivers, edges]].sum())


def _found(task: Task, slots: NDArray[np.int32], learner: LearnerState) -> LinkChoice:
    discovery = task.config.discovery
    bits = float(learner.counts[0]) * discovery.count_bits + float(learner.reals[0]) * discovery.real_bits
    return LinkChoice(slots, float(learner.messages[0]), bits, int(learner.revisions[0]))
