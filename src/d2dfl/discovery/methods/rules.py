"""The paper's simple baselines (Section VI-A, R39): each device picks by one rule, without learning."""

import numpy as np
from numpy.typing import NDArray

from d2dfl.discovery.task import LinkChoice, Task
from d2dfl.rng import stream


def _best(score: NDArray[np.float64], candidates: NDArray[np.int32]) -> NDArray[np.int32]:
    """The highest-scoring existing slot of each receiver, the first of equals; -1 for a device that hears nobody."""
    score = np.where(candidates >= 0, score, -np.inf)
    slots = score.argmax(axis=1)
    return np.where((candidates >= 0).any(axis=1), slots, -1).astype(np.int32)[:, None]


def none(task: Task) -> LinkChoice:
    """No exchange."""
    return LinkChoice(np.full((task.network.devices, 1), -1, dtype=np.int32))


def closest(task: Task) -> LinkChoice:
    """The most reliable link; a receiver knows its own received powers."""
    return LinkChoice(_best(-task.network.drop, task.network.candidates))


def most_trusted(task: Task) -> LinkChoice:
    """The transmitter that trusts the receiver with most partitions, ties at random (R39).

    Every transmitter tells every device that hears it which partitions it trusts it with: one message of L bits.
    """
    network = task.network
    ties = stream(task.seed, "most-trusted", task.stage).random(network.candidates.shape)
    told = float((network.candidates >= 0).sum())
    slots = _best(network.trust.sum(axis=2) + 0.5 * ties, network.candidates)
    return LinkChoice(slots, told, told * network.partitions)


def uniform(task: Task) -> LinkChoice:
    """One uniform pick per receiver."""
    score = stream(task.seed, "uniform", task.stage).random(task.network.candidates.shape)
    return LinkChoice(_best(score, task.network.candidates))
