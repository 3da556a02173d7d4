"""The paper's learner: a table per device, softmax over mean rewards, synchronous rounds (Section IV, R2 to R5, R12 to R15).

R15: there is no bootstrapping and, with one state, no state: each agent is a bandit that averages what it saw.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from d2dfl.compiled import kernel, leaf
from d2dfl.config import QlearningConfig
from d2dfl.discovery.game.board import Board
from d2dfl.discovery.game.draws import uniform
from d2dfl.discovery.game.rounds import GATHER, play_round, round_of
from d2dfl.discovery.game.tables import (
    ONCE,
    Tables,
    add_block,
    greedy_actions,
    next_untried,
    reweigh,
    rules_of,
    sample,
    tables_of,
    weight_of,
    width_of,
)
from d2dfl.discovery.task import LinkChoice, Task
from d2dfl.rng import device_keys

STAGES = 32  # an annealed temperature falls in so many steps: each one recomputes all weights
CHUNK = 100  # rounds between two looks at the progress bar
ROUNDING = 1e-12  # of sums of rewards
MESSAGES_PER_STEP = 4  # V, Q, U, and one broadcast of (r, datapoints from outside)


@leaf
def below(value: Any, mean: Any) -> Any:
    """Whether a value is below a mean by more than rounding: equal rewards are all as good as their mean."""
    return value < mean - ROUNDING * abs(mean)


@leaf
def _reduced(rules: Any, buffer: Any, buffer_total: Any, device: Any, place: Any, filled: Any, reward: Any) -> Any:
    """Lower a reward that is below the buffer's average, put it into the buffer, and return it."""
    # R14: while the buffer fills, its mean divides by what is in it, not by H.
    if filled > 0 and below(reward * filled, buffer_total[device]):
        # R4: the literal product turns a bad negative reward into a nearly neutral one.
        reward = (1.0 - rules.reduction) * reward if rules.multiply else reward - rules.reduction * abs(reward)
    buffer_total[device] += reward - buffer[place, device]  # a place that was never used holds 0
    buffer[place, device] = reward
    if place == 0 and filled > 0:  # once a round of the ring: what large rewards left behind as rounding goes with them
        buffer_total[device] = 0.0
        for kept in range(buffer.shape[0]):
            buffer_total[device] += buffer[kept, device]
    return reward


@leaf
def _remember(tables: Any, device: Any, action: Any, step: Any, reward: Any, horizon: Any) -> None:
    """R2: a ring of the last H rewards for each action, as a linked list through the device's log."""
    total, visits, oldest, newest = tables.total, tables.visits, tables.oldest, tables.newest
    log, log_next = tables.log, tables.log_next
    seen = visits[device, action]
    # The first reward replaces an optimistic start.
    total[device, action] = reward if seen == 0 else total[device, action] + reward
    if log.shape[0] == 0:
        visits[device, action] = seen + 1
        return
    log[step, device] = reward
    if seen == 0:
        oldest[device, action] = step
    else:
        log_next[newest[device, action], device] = step
    newest[device, action] = step
    if seen < horizon:
        visits[device, action] = seen + 1
    else:
        first = oldest[device, action]
        total[device, action] -= log[first, device]
        oldest[device, action] = log_next[first, device]


@leaf
def _fetch(total: Any, visits: Any, weight: Any, block: Any, chosen: Any, played: Any, begin: Any, end: Any) -> Any:
    """Read what the next devices need, and nothing else: loads that wait for nothing are under way together."""
    read = 0.0
    for device in range(begin, end):
        action = max(chosen[device], 0) if played else 0
        read += total[device, action] + weight[device, action] + visits[device, action] + block[device, 0]
    return read


@kernel(nogil=True)
def train(
    board: Any, terms: Any, rules: Any, tables: Any, work: Any, keys: Any, first: Any, last: Any, temperature: Any
) -> None:
    """Rounds first to last - 1 at one temperature: choose, play, learn (Sections IV-B to IV-E)."""
    # Fields are taken out of the records once: inside the loop each access would count references, at 10 times the cost.
    candidates, drop, slot_of, drop_of, reward = board.candidates, board.drop, work.slot, work.drop, work.reward
    weight, block, total, visits, tries = tables.weight, tables.block, tables.total, tables.visits, tables.tries
    offset, buffer, buffer_total = tables.offset, tables.buffer, tables.buffer_total
    devices, slots = candidates.shape
    actions = weight.shape[1]
    width = width_of(weight, block)
    chosen = np.empty(devices, np.int64)
    # One pass per step learns from the last round and chooses for the next: each row is fetched from memory once.
    for step in range(first, last + 1):
        place, filled = (step - 1) % buffer.shape[0], min(step - 1, buffer.shape[0])
        for device in range(devices):
            if device % GATHER == 0:
                last_row = min(device + GATHER, devices)
                tables.seen[0] = _fetch(total, visits, weight, block, chosen, step > first, device, last_row)
            if step > first and chosen[device] >= 0:
                action = chosen[device]
                earned = _reduced(rules, buffer, buffer_total, device, place, filled, reward[device])
                if rules.literal:  # R2: the mean of all actions' rewards goes into the chosen action's entry
                    total[device, action] = buffer_total[device]
                    visits[device, action] = min(step, buffer.shape[0])
                else:
                    _remember(tables, device, action, step - 1, earned, rules.horizon)
                weight[device, action] = weight_of(total[device, action] / visits[device, action], temperature)
                add_block(weight, block, device, action // width, width)
            if step == last:
                continue
            action = -1
            if rules.untried == ONCE and tries[device] < actions:
                action = next_untried(candidates, tries, offset, actions, device)
            if action < 0:
                action = sample(weight, block, width, device, uniform(keys[device], step))
            chosen[device] = action
            slot_of[device] = action if action < slots else -1
            drop_of[device] = drop[device, action] if 0 <= action < slots else 0.0
        if step < last:
            play_round(board, terms, work, board.gauss)


def temperatures(config: QlearningConfig) -> list[tuple[int, int, float]]:
    """(first step, last step, temperature): geometric from start to end in equal stages (R3)."""
    stages = 1 if config.temperature == config.temperature_end else min(STAGES, config.steps)
    bounds = [config.steps * stage // stages for stage in range(stages + 1)]
    ratio = config.temperature_end / config.temperature
    return [
        (bounds[stage], bounds[stage + 1], config.temperature * ratio ** (stage / max(stages - 1, 1)))
        for stage in range(stages)
    ]


def find(task: Task) -> LinkChoice:
    """Train every device's policy, then read the graph off the policies."""
    config = task.config.qlearning
    if task.config.channel.dynamic:
        from d2dfl.discovery.methods.dynamic import find_dynamic

        return find_dynamic(task)
    board, terms, rules = task.board(), task.terms, rules_of(config)
    keys = device_keys(task.seed, "qlearning", task.stage, devices=task.network.devices)
    tables = tables_of(board, config, keys, task.config.discovery.no_link)
    work = round_of(board, terms)
    for first, last, temperature in temperatures(config):
        reweigh(board, rules, tables, temperature)
        for begin in range(first, last, CHUNK):
            train(board, terms, rules, tables, work, keys, begin, min(begin + CHUNK, last), temperature)
            done = min(begin + CHUNK, last)
            task.progress(done / config.steps)
            if task.heard:  # what the policies would choose if they had to choose now
                best = greedy_actions(board, tables)[:, None]
                task.hear(best, done / config.steps, temperature, cost(task, done)[0])
    slots = read_off(board, tables, config, keys)
    messages, bits = cost(task, config.steps)
    return LinkChoice(slots[:, None], messages, bits, config.steps)


def read_off(board: Board, tables: Tables, config: QlearningConfig, keys: NDArray[np.uint64]) -> NDArray[np.int32]:
    """R3: the best action of each device, or one sampled from its softmax as it stands."""
    if config.final == "argmax":
        return greedy_actions(board, tables)
    slots, width = board.candidates.shape[1], width_of(tables.weight, tables.block)
    draws = [
        sample(tables.weight, tables.block, width, device, uniform(key, config.steps))
        for device, key in enumerate(keys)
    ]
    return np.array([action if action < slots else -1 for action in draws], dtype=np.int32)


def cost(task: Task, steps: int) -> tuple[float, float]:
    """Messages and bits of synchronous rounds: V, Q and U of L counts each, and one broadcast of two numbers."""
    network, discovery = task.network, task.config.discovery
    rounds = float(network.devices) * steps
    counts, reals = 3 * network.partitions, 2
    if network.centroids is not None:
        # Algorithm 2: centroids with Q, centroids and covariances with U, and after the exchange with the broadcast.
        d = network.centroids.shape[2]
        reals += network.partitions * (d + 2 * (d + d * (d + 1) // 2))
    bits = counts * discovery.count_bits + reals * discovery.real_bits
    return rounds * MESSAGES_PER_STEP, rounds * bits
