"""The paper's simple baselines (Section VI-A, R39, R49): each device picks by one rule, without learning."""

import numpy as np
from numpy.typing import NDArray

from d2dfl.discovery.task import LinkChoice, Task
from d2dfl.rng import stream

UNPLACED = ("gaussian", "csv")  # channels whose received power has nothing to do with where devices stand


def highest(
    candidates: NDArray[np.int32], ties: np.random.Generator, *scores: NDArray[np.floating]
) -> NDArray[np.int32]:
    """slots[receiver, 1]: the existing slot with the highest score of each receiver; -1 for a device that hears nobody.

    Of equals by one score the best by the next one, at last one by chance: the first of equals would crowd devices with
    low numbers.
    """
    left = candidates >= 0
    heard = left.any(axis=1)
    for score in (*scores, ties.random(candidates.shape)):
        open_scores = np.where(left, score, -np.inf)
        left &= open_scores == open_scores.max(axis=1, keepdims=True)
    return np.where(heard, left.argmax(axis=1), -1).astype(np.int32)[:, None]


def none(task: Task) -> LinkChoice:
    """No exchange."""
    return LinkChoice(np.full((task.network.devices, 1), -1, dtype=np.int32))


def closest(task: Task) -> LinkChoice:
    """The nearest device; where power does not follow from distances, the most reliable link (R49).

    The text says the most reliable link. Received power is clipped, so that several are: of these, the nearest is meant.
    A receiver knows its own received powers.
    """
    network, channel = task.network, task.config.channel
    scores = [1.0 - network.drop]
    if network.positions is not None and not channel.dynamic and channel.kind not in UNPLACED:
        across, along = (axis[network.candidates] - axis[:, None] for axis in network.positions.T)
        scores.insert(0, -np.hypot(across, along))
    if channel.dynamic and network.rss is not None:
        scores.append(network.rss)  # R45: of links with the same mean loss, the one that is strongest right now
    return LinkChoice(highest(network.candidates, stream(task.seed, "closest", task.stage), *scores))


def most_trusted(task: Task) -> LinkChoice:
    """The transmitter that trusts the receiver with most partitions, ties at random (R39).

    Every transmitter tells every device that hears it which partitions it trusts it with: one message of L bits.
    """
    network, ties = task.network, stream(task.seed, "most-trusted", task.stage)
    told = float((network.candidates >= 0).sum())
    slots = highest(network.candidates, ties, network.trust.sum(axis=2, dtype=np.float64))
    return LinkChoice(slots, told, told * network.partitions)


def uniform(task: Task) -> LinkChoice:
    """One uniform pick per receiver."""
    return LinkChoice(highest(task.network.candidates, stream(task.seed, "uniform", task.stage)))
