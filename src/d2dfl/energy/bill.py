"""The bill of a run: what partitioning, discovery, the exchange and training cost every device (R28)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from d2dfl.energy.ledger import Ledger, Meter
from d2dfl.energy.purposes import TRAINING

Array = NDArray[np.float64]


@dataclass(frozen=True)
class BeforeTraining:
    """Bits that go over the air before the first round."""

    partition_up: Array  # [device] to the server, to find the partitions
    partition_down: Array  # [device] from it
    discovery: float  # of all devices together
    links: NDArray[np.int64]  # [transfer, 2] sender and receiver of datapoints
    datapoints: Array  # [transfer] each attempt counted


@dataclass(frozen=True)
class ModelTraffic:
    """Models that are sent in every round."""

    bits: float  # of one model
    uploads: Sequence[Sequence[int]]  # [round][device]
    downloads: Sequence[Sequence[int]]
    links: Sequence[Sequence[tuple[int, int, int]]]  # [round] (sender, receiver, models)


def bill(meter: Meter, before: BeforeTraining, models: ModelTraffic) -> Ledger:
    """Joules by device, purpose and round.

    Messages that partition the data go through the server; messages of the discovery are sent until they arrive; a
    datapoint is charged for every attempt; a model, which training takes to arrive, once. The first weights come from
    a common seed and cost nothing.
    """
    partition = meter.up_j(before.partition_up) + meter.down_j(before.partition_down)
    senders, receivers = before.links.reshape(-1, 2).T
    moved = meter.between_j(senders, receivers, before.datapoints)
    spent = np.stack([partition, meter.talk_j(before.discovery), moved], axis=1)
    rounds = np.zeros((len(models.links), meter.network.devices, len(TRAINING)))
    for number, links in enumerate(models.links):
        senders, receivers, copies = np.array(links, dtype=np.int64).reshape(-1, 3).T
        rounds[number, :, 0] = meter.up_j(models.bits * np.array(models.uploads[number]))
        rounds[number, :, 1] = meter.down_j(models.bits * np.array(models.downloads[number]))
        rounds[number, :, 2] = meter.between_j(senders, receivers, models.bits * copies.astype(np.float64))
    return Ledger(spent, rounds)
