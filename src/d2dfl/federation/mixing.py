"""One aggregation: a row-stochastic matrix that multiplies params[device, parameter], kept in its sparse form."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor
from torch.nn import functional

from d2dfl.errors import UserError

COLUMNS = {"cpu": 1 << 15, "cuda": 1 << 20}  # parameters at a time: temporary rows stay small, on a CPU in its cache


@dataclass(frozen=True)
class Mixing:
    """Average number a is the sum of weights[a, k] times row sources[a, k]; device i receives average receives[i].

    A global mean is one average of all rows, a mean per subset one average for each, random neighbours one average
    per device: the cost is the number of weights times the number of parameters, never devices^2.
    """

    sources: NDArray[np.int64]  # [average, source]; entries with weight 0 only pad
    weights: NDArray[np.float64]  # [average, source], each row sums to 1
    receives: NDArray[np.int64]  # [device]; -1: keeps its own model
    # Models sent, for whoever counts energy:
    uploads: NDArray[np.int64]  # [device] to the server
    downloads: NDArray[np.int64]  # [device] from the server
    between: NDArray[np.int64]  # [model, 2] sender and receiver

    def matrix(self) -> NDArray[np.float64]:
        """The same as a dense matrix [device, device]."""
        devices = len(self.receives)
        averages = np.zeros((len(self.sources), devices))
        rows = np.broadcast_to(np.arange(len(self.sources))[:, None], self.sources.shape)
        np.add.at(averages, (rows, self.sources), self.weights)
        return np.where(self.receives[:, None] < 0, np.eye(devices), averages[self.receives])

    def apply(self, params: Tensor) -> None:
        """Multiply params[device, parameter] in place."""
        target = params.device
        receivers = np.nonzero(self.receives >= 0)[0]
        rows = torch.from_numpy(receivers).to(target)
        chosen = torch.from_numpy(self.receives[receivers]).to(target)
        sources = torch.from_numpy(self.sources).to(target)
        in_order = np.array_equal(self.sources, np.arange(len(params))[None])  # a mean of all rows copies none
        weights = torch.from_numpy(self.weights).to(target, params.dtype)
        everyone = len(receivers) == len(params)
        for block in torch.split(params, COLUMNS[target.type], dim=1):
            averages = weights @ block if in_order else _averages(block, sources, weights)
            if everyone and len(averages) == 1:
                block.copy_(averages.expand_as(block))
            else:
                block.index_copy_(0, rows, averages[chosen])


def _averages(block: Tensor, sources: Tensor, weights: Tensor) -> Tensor:
    if len(sources) == 1:
        return weights @ block[sources[0]]
    return functional.embedding_bag(sources, block.contiguous(), per_sample_weights=weights, mode="sum")


def mixing_of(
    groups: Sequence[tuple[NDArray[Any], NDArray[Any]]],
    receives: NDArray[Any],
    *,
    to_server: ArrayLike = (),
    from_server: ArrayLike = (),
    between: ArrayLike = (),
) -> Mixing:
    """A Mixing from (devices, weights) of each average; weights are scaled to sum to 1.

    What it sends: `to_server` names the devices that send a model to the server, `from_server` those that receive one,
    `between` lists (sender, receiver) of each model sent from device to device. No names, no energy.
    """
    width = max(len(devices) for devices, _ in groups)
    sources = np.zeros((len(groups), width), dtype=np.int64)
    weights = np.zeros((len(groups), width))
    for number, (devices, shares) in enumerate(groups):
        sources[number, : len(devices)] = devices
        weights[number, : len(devices)] = shares / shares.sum()
    total = len(receives)
    up, down = (np.bincount(_named(devices, total), minlength=total) for devices in (to_server, from_server))
    pairs = _named(between, total).reshape(-1, 2)
    return Mixing(sources, weights, receives.astype(np.int64), up, down, pairs)


def _named(devices: ArrayLike, total: int) -> NDArray[np.int64]:
    named = np.asarray(devices, dtype=np.int64)
    if named.ndim == 0 or (named.size and not 0 <= named.min() <= named.max() < total):
        raise UserError(
            f"a scheme says that models were sent by {devices!r}: give a list of devices from 0 to {total - 1}"
        )
    return named
