"""Our learner (R6): log-linear learning on marginal contributions, by trying and taking back.

A device revises one link at a time, the others standing. It weighs every choice by what it expects N times the network's
objective to become, with noise on top (the Gumbel-max rule, which is a softmax of what it expects):

    slot = argmax over s of  expected J(s) + noise * Gumbel

Its own gain it can compute. What a transmitter wins by giving, what others ask of it and what they lose when somebody crowds
them out, it knows from what transmitters tell: at the introduction, with every answer, and whenever a share changes (offers.py).
Before it tries a new transmitter it asks it (two messages); 0 to 2 are asked in a revision.

Then it puts the link in force, and everybody concerned says by how much its reward changed (requesting.py). The sum is exact: the
move's marginal contribution, J with it minus J without. It is kept if it improves; while the device is warm also if it does not,
as often as log-linear learning does. Else it is taken back. So the game is an exact potential game with the network's
objective as its potential, estimates only decide what is tried, and a cold network never gets worse.

Nobody knows anything of the whole network but two masked sums at the start (the population's counts; the mean worth of a first link and the
mean number of choices, in which temperatures are measured). A device's temperature falls with what it has spent of its own account. From COLD of it
on only improvements are kept, and proposals stay noisy, so that other links are tried than those that look best. A token
brings the turn to the next device, which revises each of its links once, and counts the turns since something changed. With a budget for several coolings (`marginal.cycle`),
devices warm up again, half as hot. The token adds up what moves brought; who holds it at the end of a cycle tells all whether that
is the best so far. If so, each remembers its own side of every link; if not, each goes back to what it remembers. Never is more spent than the account, V, Q and U
over the final links included: a request says how many messages it may take, and whoever would need more refuses. PAPER.md lists
which numbers cross which link.
"""

import logging

import numpy as np
from numpy.typing import NDArray

from d2dfl.config.sections.graph import MarginalConfig
from d2dfl.discovery.constants import LEARNER, LEAST_MOVE, TURN
from d2dfl.discovery.equations.gaussian import components_of
from d2dfl.discovery.equations.reward import Terms
from d2dfl.discovery.game.board import Board, free_choice, useful_links
from d2dfl.discovery.game.cycles import BestCycle, begin_cycle
from d2dfl.discovery.game.learning import NO_DEVICE, Cooling, Devices, LearnerState
from d2dfl.discovery.game.offers import nothing_told
from d2dfl.discovery.game.pair_claims import claim_values
from d2dfl.discovery.game.revisions import take_turns
from d2dfl.discovery.game.state import start
from d2dfl.discovery.game.units import gains_alone, introduced_worth
from d2dfl.discovery.methods.agreed import (
    COLD,
    END,
    LARGEST_GAIN,
    cycles_of,
    first_temperature,
    gain_words,
    restless,
    sums_cost,
    sure_costs,
)
from d2dfl.discovery.methods.costs import INTRODUCTIONS
from d2dfl.discovery.task import LinkChoice, Task
from d2dfl.partition.sketches import VALUES
from d2dfl.rng import device_keys

TOO_LITTLE = (
    "no link was looked for: %d messages a device do not pay for introductions and sums, which take %d; "
    "give more with --set marginal.messages=NUMBER"
)
STRIDES = 60  # times that progress is shown and the links in force are told


def introduce(
    board: Board,
    terms: Terms,
    budget: int,
    spread: float = 0.0,
    edges: int = 1,
    label_distance: NDArray[np.float64] | None = None,
    cycles: int = 1,
) -> LearnerState:
    """Each transmitter tells each receiver that hears it what it can spare of what it trusts it with, and what giving a
    datapoint of it is worth to itself. What that and all else that is sure to come costs is taken off the accounts.

    Where introductions would cost over a tenth of the budget, receivers take them from their most reliable links only.
    """
    devices, partitions = board.counts.shape
    known = _within(board, max(1, int(INTRODUCTIONS * budget)))
    heard = known.sum(axis=1)
    if board.gauss is None:
        useful = known & useful_links(board)
        numbers, told_sums, times = partitions, 0.0, 1
    else:
        # Clusters of the transmitter there and of the receiver back, and everybody's sums to begin with.
        useful = known
        d = components_of(board.gauss.own.shape[2])
        numbers, told_sums, times = int(partitions * (d + d * (d + 1) / 2.0)), 2.0 * (d * (d + 1.0) + 2.0 * d + 2.0), 2
    introduced = introduced_worth(board, terms)
    unit = unit_of(board, terms, introduced, useful, edges)
    claim, lists, sketches = _claims(board, terms, known, spread * unit, edges, label_distance)
    told = (devices, edges, partitions) if board.gauss is None else (0, edges, partitions)
    sums = sums_cost(devices, partitions, sketches)
    introductions = float(times * heard.sum())
    account = budget - times * heard - sure_costs(edges, lists, sums, devices, cycles)
    # Who looks for nothing, or cannot pay for a turn, says so when the token first comes to it. It begins at the first device.
    out = ~useful.any(axis=1) | (account // cycles < TURN + LEAST_MOVE)
    passed = TURN * np.where(np.arange(devices) > 0, out, False)
    carried = len(board.budget) if cycles == 1 else 2 * len(board.budget) + 2
    return LearnerState(
        useful=useful,
        told=nothing_told(*told),
        prices=np.zeros(told),
        introduced=introduced,
        bonus=np.zeros(known.shape if board.gauss is not None else (0, 0), dtype=np.float32),
        claim=claim,
        unit=np.array([unit]),
        account=account,
        spent=passed.astype(np.int64),
        began=np.zeros(devices, dtype=np.int64),
        taking_turns=np.asarray(useful.any(axis=1)),
        draws=np.zeros(devices, dtype=np.int64),
        turns=np.zeros(devices, dtype=np.int64),
        holder=np.full(1, 0 if out[0] else NO_DEVICE),
        quiet=np.zeros(1, dtype=np.int64),
        gained=np.zeros(1),
        carried=np.full(1, carried),
        messages=np.array(
            [introductions + cycles * END * (devices - 1) + passed.sum() + lists * devices + sums.messages]
        ),
        counts=np.array(
            [introductions * partitions + lists * devices * partitions * (partitions - 1) / 2.0 + passed.sum()]
        ),
        reals=np.array([numbers * introductions + told_sums * devices + carried * passed.sum() / TURN]),
        bits=np.array([sums.bits]),
    )


def _claims(
    board: Board,
    terms: Terms,
    known: NDArray[np.bool_],
    spread: float,
    edges: int,
    label_distance: NDArray[np.float64] | None,
) -> tuple[NDArray[np.float32], float, list[int]]:
    """[receiver, slot] what claims on pairs of labels are worth; messages a device for the list; numbers in masked sums."""
    claim = np.zeros(known.shape, dtype=np.float32)
    if spread > 0.0 and not terms.clustered and board.counts.shape[1] > 2:  # of two labels there is one pair
        claim = (spread * claim_values(board, known, edges, label_distance)).astype(np.float32)
    if not claim.any():
        return claim, 0.0, []
    # The list of claimed pairs walks along the tree, into every branch and back, once for every link. Before, masked sums count
    # who contributes to a label's sketch, and add up the sketches from which everybody learns how far apart labels lie.
    partitions = board.counts.shape[1]
    return claim, 2.0 * edges, [] if label_distance is None else [partitions, partitions * (VALUES + 1)]


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
    """Introductions, then turns until all accounts are spent or nothing has changed for long."""
    config, board, terms = task.config.marginal, task.board(), task.terms
    free = free_choice(board, task.config.discovery.no_link)
    budget = config.messages * task.edges  # a device with several links has as many to negotiate
    cycles = cycles_of(config)
    learner = introduce(board, terms, budget, config.spread, task.edges, task.network.label_distance, cycles)
    play = start(board, terms, task.edges)
    if task.network.devices == 1:
        return LinkChoice(play.slots)
    if (learner.account < learner.spent).any():
        logging.getLogger("d2dfl").warning(TOO_LITTLE, budget, budget - int(learner.account.min()))
        return LinkChoice(play.slots)
    devices = Devices(device_keys(task.seed, LEARNER, task.stage, devices=task.network.devices), free)
    cooling, whole, best = cooling_of(learner, config), learner.account.copy(), BestCycle()
    stride = _stride(learner, task.edges)
    for cycle in range(cycles):
        now, device = begin_cycle(learner, cooling, whole, cycle, cycles), np.int64(0)
        while device != NO_DEVICE:
            device = take_turns(board, board.gauss, terms, play, learner, now, devices, device, stride)
            done = min(float(learner.spent.sum()) / max(int(whole.sum()), 1), 1.0)
            task.progress(done)
            if task.heard:
                task.hear(play.slots, done, _mean_temperature(learner, now), float(learner.messages[0]))
        if cycles > 1:
            best.stay_or_go_back(play, learner)
    discovery = task.config.discovery
    bits = float(learner.counts[0]) * discovery.count_bits + float(learner.reals[0]) * discovery.real_bits
    bits += float(learner.bits[0])
    return LinkChoice(play.slots, float(learner.messages[0]), bits, int(learner.turns.sum()))


def _mean_temperature(learner: LearnerState, cooling: Cooling) -> float:
    """Over the devices, by what each has spent (revisions._temperatures)."""
    spent, account = learner.spent - learner.began, learner.account - learner.began
    fallen = spent / np.maximum(cooling.cold * account, 1e-9)
    return float((cooling.hot * np.maximum(0.0, 1.0 - fallen)).mean())


def _stride(learner: LearnerState, edges: int) -> int:
    """Turns until progress is shown again."""
    return 1 + int(learner.account.sum()) // (4 * (1 + edges) * STRIDES)


def unit_of(
    board: Board, terms: Terms, introduced: NDArray[np.float64], useful: NDArray[np.bool_], edges: int
) -> float:
    """What temperatures and claims are measured in: the mean over the devices of what each expects of its best link."""
    word = gain_words(len(useful))
    gains = np.minimum(gains_alone(board, terms, start(board, terms, edges), introduced, useful), LARGEST_GAIN)
    return float(word.numbers(word.words(gains).sum(keepdims=True))[0]) / len(gains)


def cooling_of(learner: LearnerState, config: MarginalConfig) -> Cooling:
    """How temperatures fall."""
    choices = 1.0 + float(learner.useful.sum(axis=1).mean())
    hot = first_temperature(config, float(learner.unit[0]), choices)
    return Cooling(hot, COLD, restless(learner.prices.shape[1]), config.patience)
