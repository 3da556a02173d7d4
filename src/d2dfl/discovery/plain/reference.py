"""Plain Python versions of the equations and of the paper's learner: slow, readable, independent of the compiled ones, and tested
equal. Ours is in discovery/protocol, as devices that share nothing but messages.

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


def plain_local_reward(reward: RewardConfig, score: float, lost: float) -> float:
    """r of a device by its g and the sum of loss probabilities over its links (eq. sup_local_reward)."""
    return reward.diversity_weight * score - reward.reliability_weight * lost


def plain_local_rewards(network: "Network", config: Config, moved: PlainExchange, lost: list[float]) -> list[float]:
    """r of every device."""
    counts, threshold, population = network.counts.tolist(), network.threshold.tolist(), network.population.tolist()
    reward = config.reward
    scores = [
        plain_score(reward, counts[i], moved.after[i], moved.before_loss[i], threshold[i], population)
        for i in range(network.devices)
    ]
    return [plain_local_reward(reward, score, cost) for score, cost in zip(scores, lost, strict=True)]


def plain_budget_term(reward: RewardConfig, budget: float, taken: float) -> float:
    """What a reliable cluster earns for what its devices take from outside (R9)."""
    if reward.budget_rule == "literal":
        return budget - taken
    left = (budget - taken) / max(budget, 1.0)
    return left if reward.budget_rule == "ratio" else min(left, 0.0)


def plain_budget_terms(network: "Network", reward: RewardConfig, outside: list[float]) -> list[float]:
    """The budget term of every reliable cluster."""
    used = [0.0] * len(network.budget)
    for device, taken in enumerate(outside):
        used[network.cluster[device]] += taken
    return [
        plain_budget_term(reward, budget, taken) for budget, taken in zip(network.budget.tolist(), used, strict=True)
    ]


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


def plain_score(
    reward: RewardConfig,
    before: list[float],
    after: list[float],
    before_loss: list[float],
    threshold: list[float],
    population: list[float],
) -> float:
    """g (R7), 0 below the gate of L-hat labels."""
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
        return next(reversed(weights))  # rounding left a little: the last one

    def _learn(self, device: int, action: int, reward: float) -> None:
        config, recent = self.config.qlearning, self.recent[device]
        mean = sum(recent) / max(len(recent), 1)
        if recent and reward < mean - 1e-12 * abs(mean):
            below = (1 - config.reduction) * reward
            reward = below if config.reduction_rule == "multiply" else reward - config.reduction * abs(reward)
        recent.append(reward)
        self.rewards[device].setdefault(action, deque(maxlen=config.buffer)).append(reward)
