"""The reference optimum: proven by branch and bound on small networks, best known by multi-start search on others.

The objective is not linear in the links: surplus is shared in proportion to demand, and label distributions are
normalised by what a device ends up with. So there is no exact `milp` model of it; branch and bound works on the game
itself, with a bound per device and choice.
"""

from dataclasses import replace
from itertools import combinations
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
from d2dfl.discovery.game.search import anneal, descend, usual_change
from d2dfl.discovery.game.state import NO_LINK, load, set_link, start, total
from d2dfl.discovery.game.units import gains_alone, introduced_worth
from d2dfl.discovery.methods import greedy, marginal
from d2dfl.discovery.methods.costs import exact_nodes, sweep_effort
from d2dfl.discovery.task import LinkChoice, Task
from d2dfl.progress import silent
from d2dfl.rng import device_keys

HOT, COLD = 0.3, 0.01  # annealing, in units of what a device expects of its best link, in the mean
ROUNDS = 4  # of random links, to see how much a link changes
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


def link_sets(slots: int, edges: int) -> NDArray[np.int64]:
    """sets[choice, edge]: every set of up to `edges` slots, the empty one first; NO_LINK pads."""
    chosen = [one for size in range(min(edges, slots) + 1) for one in combinations(range(slots), size)]
    sets = np.full((len(chosen), edges), NO_LINK)
    for row, one in zip(sets, chosen, strict=True):
        row[: len(one)] = one
    return sets


@part
def _most(board: Any, terms: Any, device: Any, links: Any, high: Any) -> Any:
    """Fills `high` with the most that a device can hold with these links. Returns what they cost."""
    high[:] = board.counts[device]
    useful = np.zeros(len(links), np.bool_)
    for label in range(len(high)):
        offered = 0.0
        for slot in links:
            if slot >= 0 and board.trust[device, slot, label]:
                offered += board.surplus[board.candidates[device, slot], label]
        if offered <= 0.0 or board.need[device, label] <= 0.0:
            continue
        for edge in range(len(links)):
            slot = links[edge]
            if slot < 0 or not board.trust[device, slot, label]:
                continue
            spare, arrives = board.surplus[board.candidates[device, slot], label], 1.0 - board.drop[device, slot]
            asked = board.need[device, label] * spare / offered
            if terms.rule == OVER_ASK:
                asked /= max(arrives, 1e-12)
            high[label] += min(asked, spare) * arrives
            useful[edge] = useful[edge] or spare > 0.0
    cost = 0.0
    for edge in range(len(links)):
        if useful[edge]:
            cost += board.drop[device, links[edge]]
    return cost


@kernel
def choice_bounds(board: Any, terms: Any, sets: Any) -> Any:
    """bounds[device, choice]: no graph gives the device a higher (1 + gamma) * r with that set of links.

    Whatever the others do, the device ends up in a box: it loses between nothing and what it can spare, and receives
    between nothing and all it asks for. -inf where a candidate is missing.
    """
    devices, partitions = board.counts.shape
    bounds = np.full((devices, len(sets)), -np.inf)
    high = np.empty(partitions)
    for device in range(devices):
        low = board.counts[device] - board.surplus[device]
        for choice in range(len(sets)):
            heard = True
            for slot in sets[choice]:
                heard = heard and (slot < 0 or board.candidates[device, slot] >= 0)
            if not heard:
                continue
            cost = _most(board, terms, device, sets[choice], high)
            score = board.before[device] - _nearest(low, high, board.population)
            if terms.gate > 0:
                score = max(score, 0.0)
            bounds[device, choice] = terms.own * local_reward(terms, score, cost)
    return bounds


class Tree(NamedTuple):
    """All choices of all devices, and what bounds them."""

    sets: NDArray[np.int64]  # [choice, edge] slots; the first choice is no link
    bounds: NDArray[np.float64]  # [device, choice] the most that it can be worth; -inf: impossible
    order: NDArray[np.int64]  # [device, place] choices, the best-bounded first
    ceiling: float  # of the budget terms
    limit: int  # nodes to visit


@part
def _choose(board: Any, terms: Any, play: Any, device: Any, links: Any) -> None:
    """Put a set of links in place of a device's."""
    for edge in range(len(links)):
        set_link(board, terms, play, device, np.int64(edge), links[edge])


@kernel(nogil=True)
def _branch(board: Any, terms: Any, play: Any, tree: Any, found: Any, best: Any) -> Any:
    """Depth-first over the devices, best-bounded choices first. Returns the best value, the nodes visited, and whether
    the search was complete."""
    sets, bounds, order, ceiling, limit = tree
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
                found[:] = play.slots
            depth -= 1
            continue
        at = position[depth]
        if at >= choices or nodes >= limit:
            _choose(board, terms, play, depth, sets[0])
            position[depth] = 0
            depth -= 1
            continue
        position[depth] += 1
        choice = order[depth, at]
        bound = bounds[depth, choice]
        if bound == -np.inf or sure[depth] + bound + rest[depth + 1] + ceiling <= best + 1e-9:
            position[depth] = choices  # choices are in falling order: the others are worse
            continue
        nodes += 1
        _choose(board, terms, play, depth, sets[choice])
        sure[depth + 1] = sure[depth] + bound
        depth += 1
    return best, nodes, nodes < limit


def budget_ceiling(board: Board, terms: Terms) -> float:
    """The most that all budget terms together can add to N times the objective."""
    per_cluster = [budget_term(terms, float(b), float(s)) for b, s in zip(board.budget, board.spent, strict=True)]
    return float(terms.gamma * max(terms.budget, 0.0) * (board.members * per_cluster).sum())


def has_bound(terms: Terms) -> bool:
    """Whether a bound is cheap to compute: the reward is a gain in total variation, and no weight is negative."""
    signs = terms.reliability >= 0 and terms.budget >= 0 and terms.diversity >= 0
    return (
        not terms.clustered
        and terms.kind == GAIN
        and terms.metric.code == TOTAL_VARIATION
        and signs
        and terms.budget_rule in (HINGE, RATIO)
    )


def _search(task: Task, board: Board, unit: float) -> NDArray[np.int32]:
    """Best of several starts, each brought to rest: annealed ones, the greedy graph, and a long run of our learner."""
    config, terms = task.config.optimum, task.terms
    free = free_choice(board, task.config.discovery.no_link)
    quiet = replace(task, progress=silent)
    long = replace(quiet, config=task.config.with_(marginal__messages=config.messages))
    starts = [greedy.find(quiet).slots, marginal.find(long).slots]
    sweeps = max(1, round(config.sweeps * sweep_effort(board.candidates.shape[1], task.edges, terms.clustered)))
    keys = device_keys(task.seed, "optimum", task.stage, devices=config.starts)
    changes_key = device_keys(task.seed, "optimum changes", task.stage, devices=1)[0]
    usual = float(usual_change(board, terms, start(board, terms, task.edges), changes_key, ROUNDS))
    # Where only several links together pay (a gate of labels), what one brings alone says little about how high the
    # walls are. So every second start is as hot as a link's usual change.
    hot = (HOT * unit, max(HOT * unit, usual))
    best_value = -np.inf
    for number in range(len(starts) + config.starts):
        if number < len(starts):
            play = load(board, terms, starts[number])
        else:
            play = start(board, terms, task.edges)
            first = hot[(number - len(starts)) % 2]
            anneal(board, terms, play, keys[number - len(starts)], sweeps, first, COLD / HOT * first, free)
        value = float(descend(board, terms, play, free))
        if value > best_value:
            best, best_value = play.slots.copy(), value
        task.progress((number + 1) / (len(starts) + config.starts))
    return best


def _possible(board: Board, sets: NDArray[np.int64], free: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """[device, choice] whether a device may choose that set: one that must choose has as many links as it can have."""
    sizes, heard = (sets >= 0).sum(axis=1), (board.candidates >= 0).sum(axis=1)
    there = ((sets < 0) | (board.candidates[:, sets] >= 0)).all(axis=2)
    return np.asarray(there & (free[:, None] | (sizes >= np.minimum(sets.shape[1], heard)[:, None])))


def _proof(task: Task, sets: NDArray[np.int64], limits: NDArray[np.float64], best: NDArray[np.int32]) -> LinkChoice:
    """Branch and bound from the best graph known; limits[device, choice] bound what a choice is worth."""
    board, terms, nodes = task.board(), task.terms, task.config.optimum.nodes
    possible = _possible(board, sets, free_choice(board, task.config.discovery.no_link))
    # Without a bound every graph must be visited: only where there are few enough.
    if not np.isfinite(limits).any() and np.log(possible.sum(axis=1)).sum() > np.log(nodes):
        return LinkChoice(best)
    table = np.where(possible, limits, -np.inf)
    order = np.argsort(-table, axis=1, kind="stable")
    tree = Tree(sets, table, order, budget_ceiling(board, terms), nodes)
    found, value = best.copy(), total(board, terms, load(board, terms, best))
    value, _, complete = _branch(board, terms, start(board, terms, task.edges), tree, found, value)
    return LinkChoice(found, upper_bound=float(value) / len(found) if complete else None, proven=bool(complete))


def find(task: Task) -> LinkChoice:
    """The best graph that can be found, with a proof or an upper bound where there is one."""
    board, terms = task.board(), task.terms
    empty = start(board, terms, task.edges)
    gains = gains_alone(board, terms, empty, introduced_worth(board, terms), board.candidates >= 0)
    unit = float(gains.mean()) or 1.0
    best = _search(task, board, unit)
    devices, slots = board.candidates.shape
    nodes = exact_nodes(task.config.optimum.nodes, devices, slots, task.edges, terms.clustered)
    if task.edges > 1 and nodes == 0:
        return LinkChoice(best)  # sets of links are too many, even to bound each of them
    sets, bound = link_sets(slots, task.edges), None
    limits = np.full((devices, len(sets)), np.inf)
    if has_bound(terms):
        limits = np.asarray(choice_bounds(board, terms, sets))
        bound = (float(limits.max(axis=1).sum()) + budget_ceiling(board, terms)) / devices
    exact = _proof(task, sets, limits, best) if nodes else LinkChoice(best)
    return exact if exact.proven else exact._replace(upper_bound=bound)
