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
NUMBERS = 1 << 25  # numbers at a time at most: of many rows fewer columns, but never fewer than a page of a file
PAGE = 1 << 10


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

    @property
    def shared(self) -> bool:
        """Whether one average goes to everybody."""
        return len(self.sources) == 1 and bool((self.receives == 0).all())

    def shares(self) -> NDArray[np.float64]:
        """[device] its weight in the first average."""
        return np.bincount(self.sources[0], self.weights[0], len(self.receives)).astype(np.float64)

    def within(self, devices: NDArray[np.int64]) -> "Mixing":
        """The same for some devices alone, as rows 0, 1, ...; what they receive must come from them."""
        kept, receives = np.unique(self.receives[devices], return_inverse=True)
        keep_own = len(kept) > 0 and kept[0] < 0
        kept, receives = (kept[1:], receives - 1) if keep_own else (kept, receives)
        order = np.argsort(devices)
        places = np.searchsorted(devices, self.sources[kept], sorter=order).clip(max=len(devices) - 1)
        sources = order[places]
        if ((devices[sources] != self.sources[kept]) & (self.weights[kept] > 0)).any():
            raise ValueError("a device receives the model of another one that trains elsewhere")
        nothing = np.zeros(len(devices), dtype=np.int64)
        return Mixing(sources, self.weights[kept], receives, nothing, nothing, np.zeros((0, 2), dtype=np.int64))

    def apply(self, params: Tensor) -> None:
        """Multiply params[device, parameter] in place."""
        target = params.device
        receivers = np.nonzero(self.receives >= 0)[0]
        rows = torch.from_numpy(receivers).to(target)
        chosen = torch.from_numpy(self.receives[receivers]).to(target)
        sources = torch.from_numpy(self.sources).to(target)
        weights = torch.from_numpy(self.weights).to(target, params.dtype)
        columns = min(COLUMNS[target.type], max(PAGE, NUMBERS // max(1, len(params))))
        for block in torch.split(params, columns, dim=1):
            # One average after the other: each has the same bits whatever others there are.
            averages = functional.embedding_bag(sources, block.contiguous(), per_sample_weights=weights, mode="sum")
            block.index_copy_(0, rows, averages[chosen])


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
