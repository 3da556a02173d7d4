"""A bandit per device, UCB1 or EXP3, on the paper's overall reward R in synchronous rounds. Not in the paper."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from d2dfl.compiled import kernel, leaf
from d2dfl.discovery.game.draws import uniform
from d2dfl.discovery.game.rounds import play_round, round_of
from d2dfl.discovery.game.tables import allowed
from d2dfl.discovery.methods.qlearning import CHUNK, cost
from d2dfl.discovery.task import LinkChoice, Task
from d2dfl.rng import device_keys


class Bandits(NamedTuple):
    """What the devices know of their actions."""

    total: NDArray[np.float64]  # [device, action] rewards, or logarithms of weights
    tries: NDArray[np.int64]  # [device, action]
    seen: NDArray[np.float64]  # [device, 2] lowest and highest reward
    exp3: bool  # or UCB1
    width: float  # of the bonus, or share of uniform play


@leaf
def _ucb(board: Any, total: Any, count: Any, device: Any, step: Any, width: Any) -> Any:
    """Highest mean plus bonus; actions never tried come first."""
    best, best_score = -1, -np.inf
    for action in range(total.shape[1]):
        if not allowed(board.candidates, device, action):
            continue
        if count[device, action] == 0:
            return action
        score = total[device, action] / count[device, action] + width * np.sqrt(
            2.0 * np.log(step + 1.0) / count[device, action]
        )
        if score > best_score:
            best, best_score = action, score
    return best


@leaf
def _exp3(board: Any, log_weight: Any, chance: Any, device: Any, draw: Any, mixing: Any) -> Any:
    """Sample from exp(log weight) mixed with uniform play; leaves the probabilities in `chance`."""
    actions = log_weight.shape[1]
    highest = -np.inf
    number = 0
    for action in range(actions):
        if allowed(board.candidates, device, action):
            number += 1
            highest = max(highest, log_weight[device, action])
    if number == 0:
        return -1
    whole = 0.0
    for action in range(actions):
        chance[action] = (
            np.exp(log_weight[device, action] - highest) if allowed(board.candidates, device, action) else 0.0
        )
        whole += chance[action]
    pick = -1
    for action in range(actions):
        if allowed(board.candidates, device, action):
            chance[action] = (1.0 - mixing) * chance[action] / whole + mixing / number
            pick = action
            if draw < chance[action]:
                break
            draw -= chance[action]
    return pick


@kernel(nogil=True)
def _train(
    board: Any,
    terms: Any,
    work: Any,
    learner: Any,
    keys: Any,
    first: Any,
    last: Any,
) -> None:
    total, count, seen, exp3, width = learner
    devices, slots = board.candidates.shape
    actions = total.shape[1]
    chosen = np.empty(devices, np.int64)
    odds = np.empty(devices)
    chance = np.empty(actions)
    for step in range(first, last):
        for device in range(devices):
            if exp3:
                action = _exp3(board, total, chance, device, uniform(keys[device], step), width)
                odds[device] = chance[action] if action >= 0 else 1.0
            else:
                action = _ucb(board, total, count, device, step, width)
            chosen[device] = action
            work.slot[device] = action if 0 <= action < slots else -1
            work.drop[device] = board.drop[device, action] if 0 <= action < slots else 0.0
        play_round(board, terms, work, board.gauss)
        for device in range(devices):
            action, reward = chosen[device], work.reward[device]
            if action < 0:
                continue
            count[device, action] += 1
            if exp3:  # rewards are brought to [0, 1] by the range that the device has seen
                seen[device, 0] = min(seen[device, 0], reward)
                seen[device, 1] = max(seen[device, 1], reward)
                scaled = (reward - seen[device, 0]) / max(seen[device, 1] - seen[device, 0], 1e-12)
                total[device, action] += width / actions * scaled / odds[device]
            else:
                total[device, action] += reward


def find(task: Task) -> LinkChoice:
    """Play, then take each device's best action."""
    config = task.config.bandit
    board, work = task.board(), round_of(task.board(), task.terms)
    devices, slots = board.candidates.shape
    actions = slots + int(task.config.discovery.no_link)
    keys = device_keys(task.seed, "bandit", task.stage, devices=devices)
    total, count = np.zeros((devices, actions)), np.zeros((devices, actions), dtype=np.int64)
    seen = np.tile([np.inf, -np.inf], (devices, 1))
    exp3 = config.kind == "exp3"
    learner = Bandits(total, count, seen, exp3, config.exploration)
    for first in range(0, config.steps, CHUNK):
        last = min(first + CHUNK, config.steps)
        _train(board, task.terms, work, learner, keys, first, last)
        task.progress(last / config.steps)
        if task.heard:
            task.hear(_best(learner, slots), last / config.steps, None, cost(task, last)[0])
    messages, bits = cost(task, config.steps)
    return LinkChoice(_best(learner, slots), messages, bits, config.steps)


def _best(learner: Bandits, slots: int) -> NDArray[np.int32]:
    """[device, 1] the best slot of each, or -1: highest mean (UCB1) or highest weight (EXP3)."""
    total, count = learner.total, learner.tries
    score = np.where(count > 0, total if learner.exp3 else total / np.maximum(count, 1), -np.inf)
    best = np.where((count > 0).any(axis=1), score.argmax(axis=1), -1)
    return np.where(best < slots, best, -1).astype(np.int32)[:, None]
