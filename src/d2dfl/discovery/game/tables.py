"""The tables of the paper's learner, and its policy: an action by the softmax of mean rewards (Section IV, R2, R3, R13).

A softmax row is never summed as a whole. Each device keeps exp weights in blocks of about sqrt(A) actions and the sum
of each block; a step changes one weight, re-adds one block, and samples by walking over the blocks, then inside one.
"""

from typing import Any, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from d2dfl.compiled import kernel, leaf
from d2dfl.config import QlearningConfig
from d2dfl.config.sections.graph import Untried
from d2dfl.discovery.game.board import Board

OPTIMISTIC = 1.0
LARGEST = 600.0  # exponents beyond are cut: exp(709) is infinite
ONCE, ZERO, HOPEFUL = range(len(get_args(Untried)))


class Tables(NamedTuple):
    """All devices' policies."""

    weight: NDArray[np.float64]  # [device, action] exp(value / temperature)
    block: NDArray[np.float64]  # [device, block] sums of weights
    total: NDArray[np.float64]  # [device, action] psi^R: rewards in the action's buffer, summed
    visits: NDArray[np.int32]  # [device, action] psi^C: rewards in the action's buffer
    tries: NDArray[np.int32]  # [device] actions tried in the opening round, R13
    offset: NDArray[np.int64]  # [device] where the opening round starts
    buffer: NDArray[np.float64]  # [H, device] Omega: the device's last rewards
    buffer_total: NDArray[np.float64]  # [device]
    log: NDArray[np.float64]  # [step, device] rewards, linked per action: each action's own ring of H
    log_next: NDArray[np.int32]  # [step, device]
    oldest: NDArray[np.int32]  # [device, action] step of the oldest reward in the action's ring
    newest: NDArray[np.int32]  # [device, action]
    seen: NDArray[np.float64]  # [1] takes what is read ahead, so that the reading is not optimised away


class PolicyRules(NamedTuple):
    """QlearningConfig as numbers, for compiled code."""

    horizon: int
    reduction: float
    multiply: bool
    literal: bool
    untried: int


def rules_of(config: QlearningConfig) -> PolicyRules:
    return PolicyRules(
        horizon=config.buffer,
        reduction=config.reduction,
        multiply=config.reduction_rule == "multiply",
        literal=config.update == "literal",
        untried=get_args(Untried).index(config.untried),
    )


def tables_of(board: Board, config: QlearningConfig, keys: NDArray[np.uint64], no_link: bool) -> Tables:
    """Policies before the first step. With `no_link`, the last action is to have no link."""
    devices, slots = board.candidates.shape
    actions = slots + int(no_link)
    width = max(1, round(actions**0.5))
    blocks = -(-actions // width)
    steps = config.steps if config.steps > config.buffer else 0  # a ring that never fills needs no log
    tables = Tables(
        weight=np.zeros((devices, actions)),
        block=np.zeros((devices, blocks)),
        total=np.zeros((devices, actions)),
        visits=np.zeros((devices, actions), dtype=np.int32),
        tries=np.zeros(devices, dtype=np.int32),
        offset=(keys % np.uint64(actions)).astype(np.int64),
        buffer=np.zeros((min(config.buffer, config.steps), devices)),
        buffer_total=np.zeros(devices),
        log=np.zeros((steps, devices)),
        log_next=np.full((steps, devices), -1, dtype=np.int32),
        oldest=np.full((devices, actions) if steps else (devices, 0), -1, dtype=np.int32),
        newest=np.full((devices, actions) if steps else (devices, 0), -1, dtype=np.int32),
        seen=np.zeros(1),
    )
    if config.untried == "optimistic":
        tables.total[:] = OPTIMISTIC
    return tables


@leaf
def allowed(candidates: Any, device: Any, action: Any) -> Any:
    """Whether the action exists: a slot with a device behind it, or the no-link action past the slots."""
    return action >= candidates.shape[1] or candidates[device, action] >= 0


@leaf
def weight_of(mean: Any, temperature: Any) -> Any:
    """exp(mean / temperature), kept finite: unscaled budgets (R9 literal) give rewards of hundreds."""
    return np.exp(min(max(mean / temperature, -LARGEST), LARGEST))


@kernel
def width_of(weight: Any, block: Any) -> Any:
    """Actions in a block."""
    return -(-weight.shape[1] // block.shape[1])


@leaf
def add_block(weight: Any, block: Any, device: Any, number: Any, width: Any) -> None:
    """Sum one block of a device's weights anew: no drift, unlike adding differences."""
    total = 0.0
    for action in range(number * width, min(number * width + width, weight.shape[1])):
        total += weight[device, action]
    block[device, number] = total


@kernel
def reweigh(board: Any, rules: Any, tables: Any, temperature: Any) -> None:
    """All weights anew, after the temperature changed."""
    candidates, weight, block = board.candidates, tables.weight, tables.block
    total, visits = tables.total, tables.visits
    devices, actions = weight.shape
    for device in range(devices):
        for action in range(actions):
            value = 0.0
            if allowed(candidates, device, action) and (visits[device, action] > 0 or rules.untried != ONCE):
                value = weight_of(total[device, action] / max(visits[device, action], 1), temperature)
            weight[device, action] = value
        for number in range(block.shape[1]):
            add_block(weight, block, device, number, width_of(weight, block))


@kernel
def sample(weight: Any, block: Any, width: Any, device: Any, draw: Any) -> Any:
    """An action with probability proportional to its weight (eq. prob_edge), or -1 if no action has any."""
    actions, blocks = weight.shape[1], block.shape[1]
    total = 0.0
    for number in range(blocks):
        total += block[device, number]
    left = draw * total
    chosen = -1
    for number in range(blocks):
        if block[device, number] > 0.0:
            chosen = number
            if left < block[device, number]:
                break
            left -= block[device, number]
    if chosen < 0:
        return -1
    pick = -1
    for action in range(chosen * width, min(chosen * width + width, actions)):
        if weight[device, action] > 0.0:
            pick = action
            if left < weight[device, action]:
                break
            left -= weight[device, action]
    return pick


@leaf
def next_untried(candidates: Any, tries: Any, offset: Any, actions: Any, device: Any) -> Any:
    """R13: the next action of the opening round, which starts at a random place, or -1 when all were tried."""
    while tries[device] < actions:
        action = (offset[device] + tries[device]) % actions
        tries[device] += 1
        if allowed(candidates, device, action):
            return action
    return -1


def greedy_actions(board: Board, tables: Tables) -> NDArray[np.int32]:
    """The action with the best mean reward for each device, the first of equals; -1 for no link."""
    tried = tables.visits > 0
    mean = np.where(tried, tables.total / np.maximum(tables.visits, 1), -np.inf)
    best = mean.argmax(axis=1)
    chosen = np.where(tried.any(axis=1) & (best < board.candidates.shape[1]), best, -1)
    return chosen.astype(np.int32)
