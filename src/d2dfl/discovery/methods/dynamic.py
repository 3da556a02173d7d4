"""The paper's learner on a channel that changes at every step (Section VI-N, R5).

At each step every device measures its links anew and quantises them. R5: the table is indexed by (level of the link's
own received power, link). To the letter, a state is the whole vector of levels; with 24 links and 4 levels that is
4^24 states, and none ever comes back.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from d2dfl.compiled import kernel, leaf
from d2dfl.config import ChannelConfig
from d2dfl.discovery.game.board import Board
from d2dfl.discovery.game.draws import uniform
from d2dfl.discovery.game.rounds import play_round, round_of
from d2dfl.discovery.game.tables import allowed, rules_of
from d2dfl.discovery.methods.qlearning import CHUNK, below, cost, temperatures
from d2dfl.discovery.task import LinkChoice, Task
from d2dfl.errors import UserError
from d2dfl.network import channel
from d2dfl.network.traces import traced_power
from d2dfl.rng import device_keys

TABLE_LIMIT = 400_000_000  # entries; the whole-vector reading keeps a row per step


class ChangingPower(NamedTuple):
    """How received power changes and is read."""

    mean: float
    deviation: float
    lowest: float
    highest: float
    factor: float  # loss probability is 1 - exp(-factor / power)
    levels: int
    whole_vector: bool  # R5: the letter, a state is the levels of all links
    noise: NDArray[np.uint64]  # [device] keys of its draws
    trace: NDArray[np.float64]  # [moment, device, slot] recorded powers that are replayed; no moments: they are drawn


class Policies(NamedTuple):
    """What the devices have learned, by state and action."""

    total: NDArray[np.float64]  # [device, row, action] rewards
    tries: NDArray[np.int32]  # [device, row, action]
    recent: NDArray[np.float64]  # [device, 2] sum and number of the last rewards
    hashes: NDArray[np.uint64]  # [device, place] hashes of vectors of levels
    vector: NDArray[np.int64]  # [device, place] their rows
    used: NDArray[np.int64]  # [device] rows in use


@leaf
def _normal(key: Any, counter: Any) -> Any:
    one, two = uniform(key, 2 * counter), uniform(key, 2 * counter + 1)
    return np.sqrt(-2.0 * np.log(1.0 - one)) * np.cos(2.0 * np.pi * two)


@leaf
def _power(radio: Any, device: Any, slot: Any, slots: Any, step: Any) -> Any:
    """Received power of a link at a step."""
    if len(radio.trace) > 0:
        return radio.trace[step % len(radio.trace), device, slot]
    drawn = radio.mean + radio.deviation * _normal(radio.noise[device], step * slots + slot)
    return min(max(drawn, radio.lowest), radio.highest)


@kernel
def _state(index: Any, used: Any, device: Any, level: Any, vector: Any) -> Any:
    """Row of the table for a vector of levels: open addressing on a 64-bit hash of the whole vector."""
    code = np.uint64(1469598103934665603)
    for slot in range(len(level)):
        code = (code ^ np.uint64(level[slot])) * np.uint64(1099511628211)
    code = code | np.uint64(1)
    size = index.shape[1]
    at = np.int64(code % np.uint64(size))
    while index[device, at] != 0 and index[device, at] != code:
        at = (at + 1) % size
    if index[device, at] == 0:
        index[device, at] = code
        vector[device, at] = used[device]
        used[device] += 1
    return vector[device, at]


@kernel
def _pick(board: Any, total: Any, count: Any, rows: Any, device: Any, temperature: Any, draw: Any) -> Any:
    """Softmax over the mean rewards of the current state; an action that was never tried here comes first (R13)."""
    actions = total.shape[2]
    untried = 0
    for action in range(actions):
        if allowed(board.candidates, device, action) and count[device, rows[action], action] == 0:
            untried += 1
    if untried > 0:
        pick = int(draw * untried)
        for action in range(actions):
            if allowed(board.candidates, device, action) and count[device, rows[action], action] == 0:
                if pick == 0:
                    return action
                pick -= 1
    whole = 0.0
    for action in range(actions):
        if allowed(board.candidates, device, action):
            whole += np.exp(total[device, rows[action], action] / count[device, rows[action], action] / temperature)
    left, chosen = draw * whole, -1
    for action in range(actions):
        if allowed(board.candidates, device, action):
            chosen = action
            left -= np.exp(total[device, rows[action], action] / count[device, rows[action], action] / temperature)
            if left < 0.0:
                break
    return chosen


@kernel(nogil=True)
def _train(board: Any, terms: Any, rules: Any, work: Any, radio: Any, policies: Any, keys: Any, stage: Any) -> None:
    """Rounds of a stage: its first step, the one after its last, its temperature."""
    first, last, temperature = stage
    lowest, highest, levels, whole_vector = radio.lowest, radio.highest, radio.levels, radio.whole_vector
    total, count, recent, index, vector, used = policies
    devices, slots = board.candidates.shape
    actions = total.shape[2]
    chosen = np.empty(devices, np.int64)
    row = np.empty(devices, np.int64)
    level = np.zeros(slots, np.int64)
    rows = np.zeros(actions, np.int64)
    for step in range(first, last):
        for device in range(devices):
            for slot in range(slots):
                power = min(max(_power(radio, device, slot, slots, step), lowest), highest)
                level[slot] = min(int((power - lowest) / (highest - lowest) * levels), levels - 1)
                if not whole_vector:
                    rows[slot] = level[slot]
            if whole_vector:
                rows[:] = _state(index, used, device, level, vector)
            action = _pick(board, total, count, rows, device, temperature, uniform(keys[device], step))
            chosen[device] = action
            work.slot[device] = -1
            if action >= 0:
                row[device] = rows[action]
            if 0 <= action < slots:
                work.slot[device] = action
                work.drop[device] = 1.0 - np.exp(-radio.factor / _power(radio, device, action, slots, step))
        play_round(board, terms, work, board.gauss)
        for device in range(devices):
            if chosen[device] >= 0:
                _learn(rules, total, count, recent, device, row[device], chosen[device], work.reward[device])


@leaf
def _learn(rules: Any, total: Any, count: Any, recent: Any, device: Any, row: Any, action: Any, reward: Any) -> None:
    """R2 and R4 with a mean that forgets at the rate of an H-long ring, since a ring per level and link is too large."""
    if recent[device, 1] > 0.0 and below(reward, recent[device, 0] / recent[device, 1]):
        reward = (1.0 - rules.reduction) * reward if rules.multiply else reward - rules.reduction * abs(reward)
    if recent[device, 1] >= rules.horizon:
        recent[device, 0] -= recent[device, 0] / recent[device, 1]
        recent[device, 1] -= 1.0
    recent[device, 0] += reward
    recent[device, 1] += 1.0
    if rules.literal:
        total[device, row, action] = recent[device, 0]
        count[device, row, action] = int(recent[device, 1])
        return
    if count[device, row, action] >= rules.horizon:
        total[device, row, action] -= total[device, row, action] / count[device, row, action]
        count[device, row, action] -= 1
    total[device, row, action] += reward
    count[device, row, action] += 1


@kernel
def _best(board: Any, total: Any, count: Any, rows: Any, device: Any) -> Any:
    """Best mean reward in the current state, or -1 if nothing was ever tried in it."""
    best, result = -np.inf, -1
    for action in range(total.shape[2]):
        if allowed(board.candidates, device, action) and count[device, rows[action], action] > 0:
            mean = total[device, rows[action], action] / count[device, rows[action], action]
            if mean > best:
                best, result = mean, action
    return result


def _rows(config: ChannelConfig, whole_vector: bool, steps: int, size: int) -> int:
    rows = steps + 1 if whole_vector else config.levels
    if rows * size > TABLE_LIMIT:
        raise UserError(
            f"the policy tables would hold {rows * size:,} entries: take fewer devices, slots, levels or steps, or qlearning.state=link"
        )
    return rows


def find_dynamic(task: Task) -> LinkChoice:
    """Train on a changing channel, then choose by the levels at the moment of the exchange."""
    config, settings = task.config.qlearning, task.config.channel
    board, work, rules = task.board(), round_of(task.board(), task.terms), rules_of(config)
    devices, slots = board.candidates.shape
    actions = slots + int(task.config.discovery.no_link)
    whole_vector = config.state == "vector"
    rows = _rows(settings, whole_vector, config.steps, devices * actions)
    width = 2 * rows + 1 if whole_vector else 1
    policies = Policies(
        total=np.zeros((devices, rows, actions)),
        tries=np.zeros((devices, rows, actions), dtype=np.int32),
        recent=np.zeros((devices, 2)),
        hashes=np.zeros((devices, width), dtype=np.uint64),
        vector=np.zeros((devices, width), dtype=np.int64),
        used=np.zeros(devices, dtype=np.int64),
    )
    keys = device_keys(task.seed, "qlearning", task.stage, devices=devices)
    radio = ChangingPower(
        mean=settings.mean,
        deviation=settings.power_deviation,
        lowest=settings.lowest,
        highest=settings.highest,
        factor=(2.0**settings.rate - 1.0) * channel.noise_power(settings),
        levels=settings.levels,
        whole_vector=whole_vector,
        noise=device_keys(task.seed, "dynamic-power", task.stage, devices=devices),
        trace=traced_power(settings, board.candidates) if settings.trace else np.zeros((0, devices, slots)),
    )
    for first, last, temperature in temperatures(config):
        for begin in range(first, last, CHUNK):
            end = min(begin + CHUNK, last)
            _train(board, task.terms, rules, work, radio, policies, keys, (begin, end, temperature))
            task.progress(end / config.steps)
    chosen = _read_off(task, board, policies, keys, whole_vector)
    messages, bits = cost(task, config.steps)
    return LinkChoice(np.where(chosen < slots, chosen, -1).astype(np.int32)[:, None], messages, bits, config.steps)


def _read_off(
    task: Task, board: Board, policies: Policies, keys: NDArray[np.uint64], whole_vector: bool
) -> NDArray[np.int64]:
    total, count, _, index, vector, used = policies
    slots, actions = board.candidates.shape[1], total.shape[2]
    level = channel.quantise(task.network.rss, task.config.channel)
    result = np.empty(len(level), dtype=np.int64)
    for device in range(len(level)):
        rows = np.zeros(actions, dtype=np.int64)
        if whole_vector:
            rows[:] = _state(index, used, device, level[device], vector)
        else:
            rows[:slots] = level[device]
        result[device] = _best(board, total, count, rows, device)
        if result[device] < 0:  # a state never met: the untrained policy is uniform
            draw = float(uniform(keys[device], task.config.qlearning.steps))
            result[device] = _pick(board, total, count, rows, device, 1.0, draw)
    return result
