"""The reference optimum: proven by branch and bound on small networks, best known by multi-start search on others.

The objective is not linear in the links: surplus is shared in proportion to demand, and label distributions are
normalised by what a device ends up with. So there is no exact `milp` model of it; branch and bound works on the game
itself, with a bound per device and choice.
"""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from d2dfl.compiled import kernel, leaf, part
from d2dfl.discovery.equations.diversity import TOTAL_VARIATION
from d2dfl.discovery.equations.reward import (
    GAIN,
    HINGE,
    OVER_ASK,
    RATIO,
    Terms,
    budget_term,
    local_reward,
    total_reward,
)
from d2dfl.discovery.game.board import Board, free_choice
from d2dfl.discovery.game.rewards import agreement_in
from d2dfl.discovery.game.search import anneal, descend
from d2dfl.discovery.game.state import NO_LINK, load, set_link, start
from d2dfl.discovery.game.units import gains_alone
from d2dfl.discovery.methods import greedy, marginal
from d2dfl.discovery.methods.costs import EXACT_DEVICES, sweep_effort
from d2dfl.discovery.task import LinkChoice, Task
from d2dfl.progress import silent
from d2dfl.rng import device_keys

HOT, COLD = 0.3, 0.01  # annealing, in units of the mean gain a device could have alone
NARROW = 100  # steps of the one-dimensional search in the bound


@part
def _nearest(low: Any, high: Any, population: Any) -> Any:
    """Smallest total variation between `population` and any x / sum(x) with low <= x <= high.

    With y = t * x and t = 1 / sum(x) this is a linear programme; for a fixed t its solution is the population clipped
    to the box, and the rest is convex in t: ternary search.
    """
    least, most = low.sum(), high.sum()
    if most <= 0.0:
        return 0.0
    left, right = 1.0 / most, 1.0 / max(least, 1e-9)
    for _ in range(NARROW):
        one, two = left + (right - left) / 3.0, right - (right - left) / 3.0
        if _clipped(low, high, population, one) <= _clipped(low, high, population, two):
            right = two
        else:
            left = one
    # The search stops a little beside the minimum; the slope there is at most sum(high).
    return max(0.0, _clipped(low, high, population, left) - (right - left) * most)


@leaf
def _clipped(low: Any, high: Any, population: Any, t: Any) -> Any:
    away = mass = 0.0
    for label in range(len(population)):
        value = min(max(population[label], low[label] * t), high[label] * t)
        away += abs(value - population[label])
        mass += value
    return 0.5 * (away + abs(1.0 - mass))


@kernel
def choice_bounds(board: Any, terms: Any) -> Any:
    """bounds[device, slot + 1]: no graph gives the device a higher (1 + gamma) * r with that link (0: with none).

    Whatever the others do, the device ends up in a box: it loses between nothing and what it can spare, and receives
    between nothing and all it asks for. -inf where there is no candidate.
    """
    devices, slots = board.candidates.shape
    partitions = board.counts.shape[1]
    bounds = np.full((devices, slots + 1), -np.inf)
    for device in range(devices):
        low = board.counts[device] - board.surplus[device]
        for slot in range(-1, slots):
            if slot >= 0 and board.candidates[device, slot] < 0:
                continue
            high = board.counts[device].copy()
            cost = 0.0
            if slot >= 0:
                transmitter = board.candidates[device, slot]
                arrives = 1.0 - board.drop[device, slot]
                whole = 0.0
                for label in range(partitions):
                    if board.trust[device, slot, label]:
                        asked = board.need[device, label]
                        if terms.rule == OVER_ASK:
                            asked /= max(arrives, 1e-12)
                        asked = min(asked, board.surplus[transmitter, label])
                        high[label] += asked * arrives
                        whole += asked
                if whole > 0.0:
                    cost = board.drop[device, slot]
            score = board.before[device] - _nearest(low, high, board.population)
            if terms.gate > 0:
                score = max(score, 0.0)
            bounds[device, slot + 1] = terms.own * local_reward(terms, score, cost)
    return bounds


class Tree(NamedTuple):
    """All choices of all devices, and what bounds them."""

    bounds: NDArray[np.float64]  # [device, choice] the most that it can be worth; the first choice is no link
    order: NDArray[np.int64]  # [device, place] choices, the best-bounded first
    ceiling: float  # of the budget terms
    free: NDArray[np.bool_]  # [device] may choose no link
    limit: int  # nodes to visit


@kernel
def _branch(board: Any, terms: Any, play: Any, tree: Any, found: Any, best: Any) -> Any:
    """Depth-first over the devices, best-bounded choices first. Returns the best value, the nodes visited, and whether
    the search was complete."""
    bounds, order, ceiling, free, limit = tree
    devices, choices = bounds.shape
    rest = np.zeros(devices + 1)  # best that devices from here on can add
    for device in range(devices - 1, -1, -1):
        rest[device] = rest[device + 1] + bounds[device].max()
    position = np.zeros(devices, np.int64)
    sure = np.zeros(devices + 1)
    depth = nodes = 0
    while depth >= 0:
        if depth == devices:
            agreement = agreement_in(play.shape)
            value = total_reward(terms, play.local, agreement, board.members, board.budget, play.used)
            if value > best:
                best = value
                found[:] = play.slots[:, 0]
            depth -= 1
            continue
        at = position[depth]
        if at >= choices or nodes >= limit:
            set_link(board, terms, play, depth, 0, NO_LINK)
            position[depth] = 0
            depth -= 1
            continue
        position[depth] += 1
        choice = order[depth, at]
        bound = bounds[depth, choice]
        if sure[depth] + bound + rest[depth + 1] + ceiling <= best + 1e-9 or bound == -np.inf:
            position[depth] = choices  # choices are in falling order: the others are worse
            continue
        if choice == 0 and not free[depth]:
            continue
        nodes += 1
        set_link(board, terms, play, depth, 0, choice - 1)
        sure[depth + 1] = sure[depth] + bound
        depth += 1
    return best, nodes, nodes < limit


def budget_ceiling(board: Board, terms: Terms) -> float:
    """The most that all budget terms together can add to N times the objective."""
    per_cluster = [budget_term(terms, float(b), float(s)) for b, s in zip(board.budget, board.spent, strict=True)]
    return float(terms.gamma * max(terms.budget, 0.0) * (board.members * per_cluster).sum())


def has_bound(terms: Terms, edges: int) -> bool:
    """Where a bound is cheap: gain in total variation, one link, costs that are costs."""
    signs = terms.reliability >= 0 and terms.budget >= 0 and terms.diversity >= 0
    return (
        edges == 1
        and not terms.clustered
        and terms.kind == GAIN
        and terms.metric.code == TOTAL_VARIATION
        and signs
        and terms.budget_rule in (HINGE, RATIO)
    )


def _search(task: Task, board: Board, unit: float) -> tuple[NDArray[np.int32], float]:
    """Best of several starts, each brought to rest: annealed ones, the greedy graph, and a long run of our learner."""
    config, terms = task.config.optimum, task.terms
    free = free_choice(board, task.config.discovery.no_link)
    quiet = replace(task, progress=silent)
    long = replace(quiet, config=task.config.with_(marginal__messages=config.messages))
    starts = [greedy.find(quiet).slots, marginal.find(long).slots]
    sweeps = max(1, round(config.sweeps * sweep_effort(board.candidates.shape[1], task.edges, terms.clustered)))
    keys = device_keys(task.seed, "optimum", task.stage, devices=config.starts)
    best_value = -np.inf
    for number in range(len(starts) + config.starts):
        if number < len(starts):
            play = load(board, terms, starts[number])
        else:
            play = start(board, terms, task.edges)
            anneal(board, terms, play, keys[number - len(starts)], sweeps, HOT * unit, COLD * unit, free)
        value = float(descend(board, terms, play, free))
        if value > best_value:
            best, best_value = play.slots.copy(), value
        task.progress((number + 1) / (len(starts) + config.starts))
    return best, best_value


def find(task: Task) -> LinkChoice:
    """The best graph that can be found, with a proof or an upper bound where there is one."""
    board, terms = task.board(), task.terms
    empty = start(board, terms, task.edges)
    unit = float(gains_alone(board, terms, empty, board.candidates >= 0).mean()) or 1.0
    best, value = _search(task, board, unit)
    devices, bound = task.network.devices, None
    bounds = choice_bounds(board, terms) if has_bound(terms, task.edges) else None
    ceiling = budget_ceiling(board, terms)
    if bounds is not None:
        bound = (float(bounds.max(axis=1).sum()) + ceiling) / devices
    proven = False
    # Without a bound every graph must be visited: only where there are few enough.
    with np.errstate(over="ignore"):
        graphs = float(np.prod(1.0 + (board.candidates >= 0).sum(axis=1)))
    if devices <= EXACT_DEVICES and task.edges == 1 and (bounds is not None or graphs <= task.config.optimum.nodes):
        limits = np.where(board.candidates >= 0, np.inf, -np.inf) if bounds is None else bounds[:, 1:]
        table = np.concatenate([np.full((devices, 1), np.inf) if bounds is None else bounds[:, :1], limits], axis=1)
        order = np.argsort(-table, axis=1, kind="stable")
        slots = best[:, 0].copy()
        free = free_choice(board, task.config.discovery.no_link)
        tree = Tree(table, order, ceiling, free, task.config.optimum.nodes)
        value, _, proven = _branch(board, terms, empty, tree, slots, value)
        best = slots[:, None]
        bound = float(value) / devices if proven else bound
    return LinkChoice(best, upper_bound=bound, proven=bool(proven))
