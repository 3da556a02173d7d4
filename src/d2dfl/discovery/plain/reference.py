"""Plain Python versions of the two learners: slow, readable, independent of the compiled ones, and tested equal.

Read these first to understand the algorithms. Every quantity is recomputed from scratch at every step, by this file alone:
it loads neither the compiler nor any equation that is compiled.
"""

import math
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from d2dfl.config import Config, RewardConfig
from d2dfl.config.metrics import METRICS

if TYPE_CHECKING:  # generating one needs the compiler
    from d2dfl.network import Network

LEAST = 1e-9  # less than this of a datapoint is nothing: no link stands for it
MASK = (1 << 64) - 1


def plain_uniform(key: int, counter: int) -> float:
    """SplitMix64, as `game.draws.uniform`."""
    z = (key + (counter + 1) * 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return float((z ^ (z >> 31)) >> 11) / 9007199254740992.0


def plain_distance(metric: str, one: list[float], other: list[float]) -> float:
    """Distance between the distributions of two count vectors (R8)."""
    total_one, total_other = sum(one), sum(other)
    own = METRICS[metric]
    if total_one <= 0 or total_other <= 0:
        largest = len(one) - 1.0 if metric == "wasserstein" else own.largest
        return 0.0 if total_one <= 0 and total_other <= 0 else largest
    if own.distance is not None:
        return float(own.distance(np.array(one), np.array(other)))
    p, q = [x / total_one for x in one], [x / total_other for x in other]
    if metric == "total-variation":
        return sum(abs(a - b) for a, b in zip(p, q, strict=True)) / 2
    if metric == "wasserstein":
        ahead = [sum(p[: label + 1]) - sum(q[: label + 1]) for label in range(len(p) - 1)]
        return sum(abs(value) for value in ahead)
    half = [
        (a * math.log2(2 * a / (a + b)) if a else 0) + (b * math.log2(2 * b / (a + b)) if b else 0)
        for a, b in zip(p, q, strict=True)
    ]
    return math.sqrt(max(sum(half) / 2, 0.0))


class PlainExchange(NamedTuple):
    """What links move, in expectation: [device][label]."""

    sent: list[list[float]]  # to the device
    after: list[list[float]]
    before_loss: list[list[float]]  # the same if nothing were lost
    outside: list[float]  # [device] what it is sent from outside its reliable cluster


def plain_exchange(network: "Network", config: Config, choice: list[int]) -> PlainExchange:
    """Algorithm 1 when every device picks the slot choice[device] (-1: none). Loops only."""
    devices, labels = network.devices, range(network.partitions)
    counts, threshold = network.counts.tolist(), network.threshold.tolist()
    transmitter = [int(network.candidates[i, s]) if s >= 0 else -1 for i, s in enumerate(choice)]
    drop = _drop(network, choice)
    asked = [[0.0 for _ in labels] for _ in range(devices)]
    demand = [[0.0 for _ in labels] for _ in range(devices)]
    for i, j in enumerate(transmitter):
        for label in labels if j >= 0 else ():
            if network.trust[i, choice[i], label] and counts[j][label] > threshold[j][label]:
                need = max(threshold[i][label] - counts[i][label], 0.0)
                asked[i][label] = need / max(1 - drop[i], 1e-12) if config.reward.over_ask else need
                demand[j][label] += asked[i][label]
    sent = [[0.0 for _ in labels] for _ in range(devices)]
    given = [[0.0 for _ in labels] for _ in range(devices)]
    for i, j in enumerate(transmitter):
        for label in labels if j >= 0 else ():
            spare = max(counts[j][label] - threshold[j][label], 0.0)
            short = demand[j][label] > spare
            sent[i][label] = asked[i][label] * spare / demand[j][label] if short else asked[i][label]
            given[j][label] = min(demand[j][label], spare)
    own = [[counts[i][x] - given[i][x] for x in labels] for i in range(devices)]
    return PlainExchange(
        sent=sent,
        after=[[max(own[i][x] + (1 - drop[i]) * sent[i][x], 0.0) for x in labels] for i in range(devices)],
        before_loss=[[own[i][x] + sent[i][x] for x in labels] for i in range(devices)],
        outside=[
            sum(sent[i]) if j >= 0 and network.cluster[i] != network.cluster[j] else 0.0
            for i, j in enumerate(transmitter)
        ],
    )


def _drop(network: "Network", choice: list[int]) -> list[float]:
    """Loss probability of every device's link; 0 without one."""
    return [float(network.drop[i, s]) if s >= 0 else 0.0 for i, s in enumerate(choice)]


def plain_local_rewards(network: "Network", config: Config, moved: PlainExchange, lost: list[float]) -> list[float]:
    """r of every device (eq. sup_local_reward)."""
    counts, threshold, population = network.counts.tolist(), network.threshold.tolist(), network.population.tolist()
    return [
        config.reward.diversity_weight
        * _plain_score(config, counts[i], moved.after[i], moved.before_loss[i], threshold[i], population)
        - config.reward.reliability_weight * lost[i]
        for i in range(network.devices)
    ]


def plain_budget_terms(network: "Network", reward: RewardConfig, outside: list[float]) -> list[float]:
    """What every reliable cluster earns for what its devices take from outside (R9)."""
    used = [0.0] * len(network.budget)
    for device, taken in enumerate(outside):
        used[network.cluster[device]] += taken
    if reward.budget_rule == "literal":
        return [budget - taken for budget, taken in zip(network.budget.tolist(), used, strict=True)]
    left = [(budget - taken) / max(budget, 1.0) for budget, taken in zip(network.budget.tolist(), used, strict=True)]
    return left if reward.budget_rule == "ratio" else [min(value, 0.0) for value in left]


def plain_round(network: "Network", config: Config, choice: list[int]) -> list[float]:
    """R of every device when each picks the slot choice[device] (-1: none): a link counts also if nothing moves over it."""
    reward, moved = config.reward, plain_exchange(network, config, choice)
    local = plain_local_rewards(network, config, moved, _drop(network, choice))
    terms = plain_budget_terms(network, reward, moved.outside)
    mean = sum(local) / network.devices
    return [
        own + reward.global_weight * (mean + reward.budget_weight * terms[cluster])
        for own, cluster in zip(local, network.cluster.tolist(), strict=True)
    ]


def _plain_score(
    config: Config,
    before: list[float],
    after: list[float],
    before_loss: list[float],
    threshold: list[float],
    population: list[float],
) -> float:
    reward = config.reward
    tested = before_loss if reward.threshold_rule == "before-loss" else after
    ease = 1 - reward.tolerance if reward.threshold_rule == "tolerance" else 1.0
    met = sum(value >= ease * bound - 1e-9 for value, bound in zip(tested, threshold, strict=True))
    if met < reward.gate:
        return 0.0
    if reward.kind == "change":
        return plain_distance(reward.metric, before, after)
    return plain_distance(reward.metric, before, population) - plain_distance(reward.metric, after, population)


class PlainQlearning:
    """The paper's learner with dictionaries and deques: per-action means, each action tried once (R2, R4, R13, R14)."""

    def __init__(self, network: "Network", config: Config, keys: NDArray[np.uint64]) -> None:
        self.network, self.config, self.keys = network, config, [int(key) for key in keys]
        width = network.slots + int(config.discovery.no_link)
        self.order: list[list[int]] = []
        for device, key in enumerate(self.keys):
            turn = [(key + offset) % width for offset in range(width)]
            self.order.append([a for a in turn if a >= network.slots or network.candidates[device, a] >= 0])
        horizon = config.qlearning.buffer
        self.recent: list[deque[float]] = [deque(maxlen=horizon) for _ in self.keys]
        self.rewards: list[dict[int, deque[float]]] = [{} for _ in self.keys]

    def step(self, number: int, temperature: float) -> list[int]:
        """One round. Returns the actions taken."""
        actions = [self._choose(device, number, temperature) for device in range(self.network.devices)]
        slots = [action if action < self.network.slots else -1 for action in actions]
        for device, reward in enumerate(plain_round(self.network, self.config, slots)):
            self._learn(device, actions[device], reward)
        return actions

    def _choose(self, device: int, number: int, temperature: float) -> int:
        if len(self.rewards[device]) < len(self.order[device]):
            return self.order[device][len(self.rewards[device])]
        means = {a: sum(r) / len(r) for a, r in sorted(self.rewards[device].items())}
        weights = {a: math.exp(mean / temperature) for a, mean in means.items()}
        left = plain_uniform(self.keys[device], number) * sum(weights.values())
        for action, weight in weights.items():
            if left < weight:
                return action
            left -= weight
        return action

    def _learn(self, device: int, action: int, reward: float) -> None:
        config, recent = self.config.qlearning, self.recent[device]
        mean = sum(recent) / max(len(recent), 1)
        if recent and reward < mean - 1e-12 * abs(mean):
            below = (1 - config.reduction) * reward
            reward = below if config.reduction_rule == "multiply" else reward - config.reduction * abs(reward)
        recent.append(reward)
        self.rewards[device].setdefault(action, deque(maxlen=config.buffer)).append(reward)


class PlainMarginal:
    """Our learner with the objective recomputed for every quote, one link per device."""

    def __init__(self, network: "Network", config: Config, keys: NDArray[np.uint64]) -> None:
        self.network, self.config, self.keys = network, config, [int(key) for key in keys]
        self.gamma = config.reward.global_weight
        self.slots = np.full((network.devices, 1), -1, dtype=np.int32)
        self.bonus = np.zeros(network.candidates.shape, dtype=np.float32)
        self.claim = np.zeros_like(self.bonus)
        self.draws = [0] * network.devices
        self.messages = 0

    def _state(
        self, slots: NDArray[np.int32]
    ) -> tuple[float, NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """N * objective, local rewards, what is sent to each device, and what it takes from outside its cluster."""
        network, reward, choice = self.network, self.config.reward, slots[:, 0].tolist()
        moved = plain_exchange(network, self.config, choice)
        used = [slot if sum(sent) > LEAST else -1 for slot, sent in zip(choice, moved.sent, strict=True)]
        local = plain_local_rewards(network, self.config, moved, _drop(network, used))
        terms = plain_budget_terms(network, reward, moved.outside)
        shared = sum(reward.budget_weight * terms[cluster] for cluster in network.cluster.tolist())
        value = (1 + self.gamma) * sum(local) + self.gamma * shared
        return value, np.array(local), np.array(moved.sent), np.array(moved.outside)

    def _with(self, device: int, slot: int) -> NDArray[np.int32]:
        slots = self.slots.copy()
        slots[device, 0] = slot
        return slots

    def _others(self, device: int, one: NDArray[np.int32], two: NDArray[np.int32]) -> tuple[int, int]:
        """How many third devices get another allocation, and how many change what they take from outside."""
        before, after = self._state(one), self._state(two)
        ends = {device}
        for slots in (one, two):
            if slots[device, 0] >= 0:
                ends.add(int(self.network.candidates[device, slots[device, 0]]))
        moved = {int(i) for i in np.nonzero(np.abs(before[2] - after[2]).max(axis=1) > 1e-12)[0]} - ends
        crossing = int((np.abs(before[3] - after[3]) > 1e-12).sum())
        return len(moved), crossing if self.config.reward.budget_weight and self.gamma else 0

    def _move(self, device: int, slot: int) -> None:
        old, target = int(self.slots[device, 0]), self._with(device, slot)
        if old != slot:
            self.messages += (old >= 0) + (slot >= 0) + sum(self._others(device, self.slots, target))
        self.slots = target

    def _noise(self, device: int, temperature: float) -> float:
        if temperature <= 0:
            return 0.0
        draw = plain_uniform(self.keys[device], self.draws[device])
        self.draws[device] += 1
        return -temperature * math.log(-math.log(draw + 1e-300) + 1e-300)

    def _alone(self, device: int, slot: int) -> float | None:
        """The device's own gain if it were the only one to ask, given what is asked of it."""
        mine = self._state(self.slots)[1][device]
        transmitter = int(self.network.candidates[device, slot])
        slots = self._with(device, slot)
        rivals = [
            i
            for i in range(self.network.devices)
            if i != device and slots[i, 0] >= 0 and self.network.candidates[i, slots[i, 0]] == transmitter
        ]
        slots[rivals, 0] = -1
        state = self._state(slots)
        return None if state[2][device].sum() <= 0 else (1 + self.gamma) * float(state[1][device] - mine)

    def _free(self, device: int) -> bool:
        """Whether the device may stay without a link: by rule, or by choosing somebody with nothing for it (R12)."""
        heard = np.nonzero(self.network.candidates[device] >= 0)[0].tolist()
        empty = [slot for slot in heard if self._state(self._with(device, slot))[2][device].sum() <= 0]
        return self.config.discovery.no_link or not heard or bool(empty)

    def revise(self, device: int, temperature: float) -> None:
        """Withdraw, ask in the order of optimistic estimates, join the best."""
        old = int(self.slots[device, 0])
        self._move(device, -1)
        base = self._state(self.slots)
        best, best_worth = -1, -math.inf
        if self._free(device):
            best_worth = self._noise(device, temperature)
        waiting: dict[int, float] = {}
        noise: dict[int, float] = {}
        for slot in np.nonzero(self.network.candidates[device] >= 0)[0].tolist():
            gain = self._alone(device, slot)
            if gain is not None:
                noise[slot] = self._noise(device, temperature) + float(self.claim[device, slot])
                waiting[slot] = gain + float(self.bonus[device, slot]) + noise[slot]
        while waiting:
            slot = max(waiting, key=lambda s: (waiting[s], -s))
            if waiting.pop(slot) <= best_worth + 1e-10:
                break
            joined = self._with(device, slot)
            state = self._state(joined)
            transmitter = int(self.network.candidates[device, slot])
            self.messages += 2 + 2 * self._others(device, self.slots, joined)[0]
            self.bonus[device, slot] = (1 + self.gamma) * (state[1][transmitter] - base[1][transmitter])
            worth = state[0] - base[0] + noise[slot]
            if worth > best_worth + 1e-10 or (slot == old and worth > best_worth - 1e-10):
                best, best_worth = slot, worth
        self._move(device, best)
