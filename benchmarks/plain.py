"""The paper's learner twice more, for comparison: a plain Python loop over the devices, and vectorised NumPy.

Both keep running sums, as a careful author would, and take the same actions as the compiled learner; speed.py checks
that. One link per device, "no link" allowed, gain in total variation, over-asking, hinge budgets (preset `best`).
"""

import math
from collections import deque

import numpy as np
from numpy.typing import NDArray

from d2dfl import Config, Network
from d2dfl.discovery.plain.reference import plain_round, plain_uniform
from d2dfl.rng import GOLDEN, _mix_array


def python_loop(
    network: Network, config: Config, keys: NDArray[np.uint64], steps: int, temperature: float
) -> list[list[int]]:
    """Loops and lists. Returns the actions of every step."""
    settings, devices, slots = config.qlearning, network.devices, network.slots
    actions, plain_keys = slots + 1, [int(key) for key in keys]
    sums = [[0.0] * actions for _ in range(devices)]
    weights = [[0.0] * actions for _ in range(devices)]
    rings: list[list[deque[float]]] = [[deque() for _ in range(actions)] for _ in range(devices)]
    recent: list[deque[float]] = [deque() for _ in range(devices)]
    recent_sum = [0.0] * devices
    history = []
    for step in range(steps):
        chosen = []
        for device in range(devices):
            if step < actions:
                chosen.append((plain_keys[device] + step) % actions)
                continue
            left = plain_uniform(plain_keys[device], step) * sum(weights[device])
            action = 0
            while action < slots and left >= weights[device][action]:
                left -= weights[device][action]
                action += 1
            chosen.append(action)
        rewards = plain_round(network, config, [a if a < slots else -1 for a in chosen])
        for device, (action, reward) in enumerate(zip(chosen, rewards, strict=True)):
            if recent[device] and reward * len(recent[device]) < recent_sum[device]:
                reward -= settings.reduction * abs(reward)
            recent[device].append(reward)
            recent_sum[device] += reward
            if len(recent[device]) > settings.buffer:
                recent_sum[device] -= recent[device].popleft()
            ring = rings[device][action]
            ring.append(reward)
            sums[device][action] += reward
            if len(ring) > settings.buffer:
                sums[device][action] -= ring.popleft()
            weights[device][action] = math.exp(sums[device][action] / len(ring) / temperature)
        history.append(chosen)
    return history


class NumpyRound:
    """Algorithm 1 and the rewards for all devices at once."""

    def __init__(self, network: Network, config: Config) -> None:
        self.network, self.config = network, config
        self.rows = np.arange(network.devices)
        self.surplus = np.maximum(network.counts - network.threshold, 0.0)
        self.need = np.maximum(network.threshold - network.counts, 0.0)
        self.population = network.population
        self.before = self._distance(network.counts)
        # no link is one more slot, behind which nobody trusts anybody
        self.trust = np.concatenate([network.trust, np.zeros_like(network.trust[:, :1])], axis=1)
        self.drop = np.concatenate([network.drop, np.zeros_like(network.drop[:, :1])], axis=1)
        self.candidates = np.concatenate([network.candidates, self.rows[:, None].astype(np.int32)], axis=1)

    def _distance(self, counts: NDArray[np.float64]) -> NDArray[np.float64]:
        share = counts / counts.sum(axis=1, keepdims=True)
        return np.asarray(0.5 * np.abs(share - self.population).sum(axis=1))

    def rewards(self, chosen: NDArray[np.int64]) -> NDArray[np.float64]:
        network, reward = self.network, self.config.reward
        transmitter, drop = self.candidates[self.rows, chosen], self.drop[self.rows, chosen]
        offered = self.trust[self.rows, chosen] & (self.surplus[transmitter] > 0)
        asked = self.need * offered / (1.0 - drop)[:, None]
        demand = np.zeros_like(asked)
        np.add.at(demand, transmitter, asked)
        share = np.divide(self.surplus, demand, out=np.ones_like(demand), where=demand > self.surplus)
        sent = asked * share[transmitter]
        after = network.counts + sent * (1.0 - drop)[:, None] - np.minimum(demand, self.surplus)
        local = reward.diversity_weight * (self.before - self._distance(after)) - reward.reliability_weight * drop
        crossing = network.cluster[transmitter] != network.cluster
        used = np.bincount(network.cluster, weights=sent.sum(axis=1) * crossing, minlength=len(network.budget))
        budgets = -np.maximum(0.0, used - network.budget) / np.maximum(network.budget, 1.0)
        return np.asarray(
            local + reward.global_weight * (local.mean() + reward.budget_weight * budgets[network.cluster])
        )


def numpy_loop(
    network: Network, config: Config, keys: NDArray[np.uint64], steps: int, temperature: float
) -> list[list[int]]:
    """One NumPy call per operation for all devices. Returns the actions of every step."""
    settings, devices, actions = config.qlearning, network.devices, network.slots + 1
    horizon, rows, game = settings.buffer, np.arange(devices), NumpyRound(network, config)
    sums, visits = np.zeros((devices, actions)), np.zeros((devices, actions), dtype=np.int64)
    rings = np.zeros((devices, actions, horizon))
    weights = np.zeros((devices, actions))
    recent, recent_sum = np.zeros((horizon, devices)), np.zeros(devices)
    offset = (keys % np.uint64(actions)).astype(np.int64)
    history = []
    for step in range(steps):
        if step < actions:
            chosen = (offset + step) % actions
        else:
            with np.errstate(over="ignore"):
                mixed = _mix_array(keys + np.uint64(step + 1) * GOLDEN)
            draws = (mixed >> np.uint64(11)) / 9007199254740992.0
            mass = weights.cumsum(axis=1)
            chosen = (mass > (draws * mass[:, -1])[:, None]).argmax(axis=1)
        rewards = game.rewards(chosen)
        filled = min(step, horizon)
        low = (rewards * filled < recent_sum) & (filled > 0)
        rewards = np.where(low, rewards - settings.reduction * np.abs(rewards), rewards)
        recent_sum += rewards - recent[step % horizon]
        recent[step % horizon] = rewards
        place = visits[rows, chosen] % horizon
        sums[rows, chosen] += rewards - rings[rows, chosen, place]
        rings[rows, chosen, place] = rewards
        visits[rows, chosen] += 1
        means = sums[rows, chosen] / np.minimum(visits[rows, chosen], horizon)
        weights[rows, chosen] = np.exp(means / temperature)
        history.append(chosen.tolist())
    return history
