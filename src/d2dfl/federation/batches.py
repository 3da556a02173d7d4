"""Who trains on which datapoints in which minibatch."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from d2dfl.rng import device_keys, stream


@dataclass(frozen=True)
class BatchPlan:
    """The next minibatches of all rows that take steps, up to the next aggregation."""

    rows: NDArray[np.int64]  # [active] which rows of params train
    indices: NDArray[np.int64]  # [step, active, datapoint] into the pooled set; short rows repeat their first
    counts: NDArray[np.int64]  # [active] datapoints that are real
    keys: NDArray[np.uint64]  # [step, active] what random layers and views of a step draw from

    @property
    def real(self) -> int:
        """Rows without the repetitions of the last one at the end."""
        return len(np.unique(self.rows))

    @property
    def chosen(self) -> slice | NDArray[np.int64]:
        """Which rows of params train: a slice where they are neighbours."""
        first, last = int(self.rows[0]), int(self.rows[-1]) + 1
        return slice(first, last) if self.real == len(self.rows) == last - first else self.rows

    def parts(self, width: int) -> "Iterator[BatchPlan]":
        """The same in plans of `width` rows each; the last one repeats its last row."""
        for first in range(0, len(self.rows), width):
            here = np.minimum(np.arange(first, first + width), len(self.rows) - 1)
            yield BatchPlan(self.rows[here], self.indices[:, here], self.counts[here], self.keys[:, here])


@dataclass
class Batches:
    """Minibatches of one run, drawn without replacement within a device's epoch.

    The epochs of a device follow each other without a gap: a minibatch that an epoch cannot fill goes on in the
    next, so every minibatch has min(batch, size) datapoints and every datapoint is seen equally often. Epoch e of a
    device is a stream of its own: where a device stands is one number, and no other device moves it.
    """

    members: Sequence[NDArray[np.int64]]  # of each device, into the pooled set
    seed: int
    batch: int  # 0: all local data in every minibatch
    keys: NDArray[np.uint64] = field(init=False)  # [device] minibatch b of a device draws from key + b
    _epochs: dict[int, tuple[int, NDArray[np.int64]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.keys = device_keys(self.seed, "steps", devices=len(self.members)) >> np.uint64(1)

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        return np.array([len(held) for held in self.members], dtype=np.int64)

    @property
    def widest(self) -> int:
        """Datapoints in the largest minibatch of any device."""
        most = int(self.sizes.max(initial=0))
        return min(self.batch, most) if self.batch else most

    def width(self, device: int) -> int:
        """Datapoints in a minibatch of this device."""
        size = len(self.members[device])
        return min(self.batch, size) if self.batch else size

    def draw(self, device: int, done: int, steps: int) -> NDArray[np.int64]:
        """Minibatches number done, done + 1, ... of a device: [step, datapoint]."""
        held, width = self.members[device], self.width(device)
        if width == len(held):
            return np.tile(held, (steps, 1))  # the order inside a minibatch means nothing
        places = np.arange(done * width, (done + steps) * width)
        epochs = places // len(held)
        drawn = np.empty(len(places), dtype=np.int64)
        for epoch in range(int(epochs[0]), int(epochs[-1]) + 1):
            inside = epochs == epoch
            drawn[inside] = self._order(device, epoch)[places[inside] - epoch * len(held)]
        return held[drawn].reshape(steps, width)

    def _order(self, device: int, epoch: int) -> NDArray[np.int64]:
        known = self._epochs.get(device)
        if known is None or known[0] != epoch:
            known = (epoch, stream(self.seed, "batches", device, epoch).permutation(len(self.members[device])))
            self._epochs[device] = known
        return known[1]


@dataclass(frozen=True)
class Part:
    """Devices of one run that are in the same plan."""

    batches: Batches
    devices: NDArray[np.int64]
    done: NDArray[np.int64]  # minibatches that each of them has taken
    offset: int = 0  # where the pooled set of its run begins


def plan_for(parts: Sequence[Part], rows: NDArray[np.int64], steps: int, wide: int = 0) -> BatchPlan:
    """The next minibatches of some devices, all of which hold data; rows[n] is the row of the n-th of them.

    Room for `wide` datapoints at least: how a sum is rounded may depend on it, which must not depend on who else is here.
    """
    drawn: list[NDArray[np.int64]] = []
    keys: list[NDArray[np.uint64]] = []
    for part in parts:
        for device, done in zip(part.devices.tolist(), part.done.tolist(), strict=True):
            drawn.append(part.batches.draw(device, done, steps) + part.offset)
            keys.append(part.batches.keys[device] + np.arange(done, done + steps, dtype=np.uint64))
    counts = np.array([one.shape[1] for one in drawn], dtype=np.int64)
    indices = np.empty((steps, len(drawn), counts.max(initial=wide)), dtype=np.int64)
    for number, one in enumerate(drawn):
        indices[:, number] = one[:, :1]
        indices[:, number, : one.shape[1]] = one
    return BatchPlan(rows, indices, counts, np.array(keys, dtype=np.uint64).reshape(-1, steps).T)
