"""Federations cut into portions, for workers elsewhere: some of the devices with their data, and nothing of the others."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from d2dfl.config import FederationConfig
from d2dfl.errors import UserError
from d2dfl.federation.batches import Batches
from d2dfl.federation.blocks import block_width
from d2dfl.federation.executors.choice import choose_executor, processor
from d2dfl.federation.executors.loop import Job
from d2dfl.federation.layout import Layout
from d2dfl.federation.losses import Loss
from d2dfl.federation.models import Factory, Shape, build
from d2dfl.federation.rounds import Run, groups_of
from d2dfl.federation.schemes import Scheme
from d2dfl.federation.sums import PIECES, pieces_of
from d2dfl.federation.workplace import GradientPlace, Order, Place, Workplace
from d2dfl.progress import silent

Bounds = tuple[int, int]  # pieces, from the first to before the last; those of the next run are PIECES further
NOTHING = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True)
class Held:
    """What the devices of a portion hold, of one run."""

    seed: int
    all_devices: int  # of the run, here and elsewhere
    devices: NDArray[np.int64]
    sizes: NDArray[np.int64]  # [device] datapoints
    members: NDArray[np.int64]  # of one device after the other, into the portion's pooled set

    def batches(self, batch: int) -> Batches:
        """Minibatches, as they are where all devices are."""
        members = [NOTHING] * self.all_devices
        for device, own in zip(self.devices.tolist(), np.split(self.members, np.cumsum(self.sizes))[:-1], strict=True):
            members[device] = own
        return Batches(members, self.seed, batch)


@dataclass(frozen=True)
class Portion:
    """Some devices with their data, and how they train. It can be sent."""

    factory: Factory
    shape: Shape
    outputs: int
    loss: Loss
    proximal: bool
    gradients: bool  # instead of models (FedSGD)
    batch: int  # 0: all that a device holds
    settings: FederationConfig
    runs: Sequence[Held]
    inputs: NDArray[np.float32]
    targets: NDArray[Any]
    wide: int  # datapoints in the largest minibatch of any device, here or elsewhere

    def workplace(self) -> Place:
        """Where they can train, on a GPU if there is one."""
        settings, place = self.settings, processor(self.settings)
        model = build(self.factory, self.shape, self.outputs, 0).to(place)  # weights come with every order
        inputs, targets = (torch.from_numpy(held.copy()).to(place) for held in (self.inputs, self.targets))
        job = Job(model, Layout.of(model), self.loss, settings, self.proximal, inputs, targets)
        batches = [held.batches(self.batch) for held in self.runs]
        executor, offsets = choose_executor(job, silent), [0] * len(batches)
        if self.gradients:
            return GradientPlace(executor, batches, offsets)
        width = block_width(job, settings, sum(len(held.devices) for held in self.runs))
        return Workplace(executor, batches, offsets, self.wide, width)


@dataclass(frozen=True)
class Portions:
    """Federations that train together, to be cut."""

    factory: Factory
    job: Job
    runs: Sequence[Run]
    scheme: Scheme

    @cached_property
    def pieces(self) -> list[NDArray[np.int64]]:
        """[run][device] where it is added up."""
        return [pieces_of(own) for own in groups_of(self.scheme, self.job.settings, self.runs)]

    def cut(self, weights: Sequence[float]) -> Iterator[Bounds]:
        """Neighbouring pieces for each of some workers, by weight: each has about its share of the devices."""
        counted = np.concatenate([np.bincount(own, minlength=PIECES) for own in self.pieces])
        before = np.append(0, np.cumsum(counted))
        wanted = np.cumsum(weights) / np.sum(weights) * before[-1]
        ends = np.searchsorted(before, np.append(wanted[:-1], np.inf) - 0.5)
        ends[-1] = len(counted)
        begin = 0
        for end in np.maximum.accumulate(ends).tolist():
            yield begin, end
            begin = end

    def portion(self, bounds: Bounds) -> Portion:
        """The devices of some pieces, and of the pooled sets what they hold."""
        rows, runs = [], []
        for number, run in enumerate(self.runs):
            numbered = self.pieces[number] + number * PIECES
            devices = np.flatnonzero((numbered >= bounds[0]) & (numbered < bounds[1]))
            members = [NOTHING, *(run.data.members[device] + run.offset for device in devices.tolist())]
            rows.append(np.concatenate(members))
            runs.append((run, devices))
        pooled, places = np.unique(np.concatenate(rows), return_inverse=True)
        own = np.split(places, np.cumsum([len(one) for one in rows])[:-1])
        held = [
            Held(run.seed, run.data.devices, devices, run.data.sizes[devices], members)
            for (run, devices), members in zip(runs, own, strict=True)
        ]
        data, chosen = self.runs[0].data, torch.from_numpy(pooled).to(self.job.inputs.device)
        return Portion(
            factory=self.factory,
            shape=data.shape,
            outputs=data.outputs,
            loss=self.job.loss,
            proximal=self.scheme.proximal,
            gradients=self.scheme.server_step,
            batch=self.runs[0].batches.batch,
            settings=self.job.settings,
            runs=held,
            inputs=self.job.inputs[chosen].cpu().numpy(),
            targets=self.job.targets[chosen].cpu().numpy(),
            wide=max(run.batches.widest for run in self.runs),
        )

    def check(self, order: Order) -> None:
        """Refuse an order with a device in a piece in which its data is not."""
        for number, own in enumerate(self.pieces):
            places = order.entries.places(number)
            if (own[order.entries.devices[places]] + number * PIECES != order.pieces[places]).any():
                raise UserError(
                    f"the groups of the scheme {self.scheme.name} change from round to round, and devices stay where their "
                    "data is: train with --engine local"
                )


class Cluster(Protocol):
    """Workers elsewhere."""

    def place(self, portions: Portions) -> Place:
        """Share federations out, and train there."""
