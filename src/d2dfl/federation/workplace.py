"""Where devices train for a round: what is asked, what comes back, and how it is done here."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from d2dfl.federation.batches import Batches, Part, plan_for
from d2dfl.federation.blocks import Entries
from d2dfl.federation.executors.loop import Executor
from d2dfl.federation.executors.shared import mean_gradient
from d2dfl.federation.mixing import Mixing
from d2dfl.federation.optimisers import Memory
from d2dfl.federation.sums import PIECES, Node, TreeSum
from d2dfl.progress import Share, silent

Losses = NDArray[np.float32]
Parts = Sequence[tuple[int, slice, NDArray[np.int64]]]  # run, its rows of a block, its devices
MODEL = ""  # among the names of sums: that of the models, beside those of an optimiser's memory


@dataclass(frozen=True)
class Segment:
    """Minibatches up to an aggregation, and what it mixes in each run."""

    steps: int
    mixings: Sequence[Mixing | None]


@dataclass(frozen=True)
class Order:
    """What devices are to do in a round."""

    entries: Entries
    done: NDArray[np.int64]  # [entry] minibatches that it has taken
    shares: NDArray[np.float64]  # [entry] in the average that ends the round
    pieces: NDArray[np.int64]  # [entry] where it is added up (sums.py), those of the next run PIECES further
    memory: NDArray[np.int64]  # [entry] row of what it keeps: its optimiser's memory, without a server its model, too
    # With a server mixings inside of groups, over the entries of a run as 0, 1, ..., of which the last has none; else of all devices.
    segments: Sequence[Segment]
    bounds: tuple[int, int]  # pieces of others are outside

    @property
    def steps(self) -> int:
        """Minibatches of a device."""
        return sum(segment.steps for segment in self.segments)

    def between(self, bounds: tuple[int, int]) -> "tuple[slice, Order]":
        """The same for some pieces alone, and which entries they are."""
        first, last = (int(place) for place in np.searchsorted(self.pieces, bounds))
        own, entries = slice(first, last), self.entries
        places = [entries.places(run) for run in range(entries.runs)]
        inside = [slice(*np.clip((first, last), run.start, run.stop) - run.start) for run in places]
        segments = [
            Segment(
                one.steps, [mixing and _cut(mixing, part) for mixing, part in zip(one.mixings, inside, strict=True)]
            )
            for one in self.segments
        ]
        memory = np.arange(last - first)
        cut = entries.between(first, last)
        return own, Order(cut, self.done[own], self.shares[own], self.pieces[own], memory, segments, bounds)


@dataclass(frozen=True)
class Outcome:
    """What came of an order. What optimisers remember was changed in place."""

    losses: Losses  # [step, entry]
    sums: Sequence[dict[str, list[Node]]]  # [run] of models, and where it is mixed of what optimisers remember


class Place(Protocol):
    """Somewhere to train."""

    def train(self, models: Tensor, memory: Memory, order: Order, tell: Share = silent) -> Sequence[Outcome]:
        """Train devices, block after block, from models, and add them up; by neighbouring parts of the order.

        Models are [run, parameter], or [row, parameter] where devices keep theirs, which then change in place.
        """


@dataclass
class Workplace:
    """Here, in this process."""

    executor: Executor
    batches: Sequence[Batches]  # [run]
    offsets: Sequence[int]  # [run] where its pooled set begins
    wide: int  # datapoints in the largest minibatch of any device of the federations, here or elsewhere
    width: int  # devices that train at once

    def __post_init__(self) -> None:
        """Room for the models of a block; always as many rows, so that compiled code is compiled once."""
        job = self.executor.job
        self.room = torch.empty(self.width, job.layout.parameters, device=job.inputs.device)

    def train(self, models: Tensor, memory: Memory, order: Order, tell: Share = silent) -> Sequence[Outcome]:
        entries, rule = order.entries, self.executor.job.settings.momentum_rule
        names = [MODEL, *(memory if rule == "mix" else ())]
        sums = [{name: TreeSum(*order.bounds) for name in names} for _ in range(entries.runs)]
        losses = np.empty((order.steps, len(entries)), dtype=np.float32)
        for first, last in entries.blocks(self.width):
            parts = list(entries.parts(first, last))
            rows = self._models(models, parts, last - first)
            own, places = self._memory(memory, parts, order.memory[first:last])
            step = 0
            for segment in order.segments:
                drawn = [
                    Part(self.batches[run], devices, order.done[first:last][rows_of] + step, self.offsets[run])
                    for run, rows_of, devices in parts
                ]
                plan = plan_for(drawn, np.arange(last - first), segment.steps, self.wide)
                found = self.executor.train(rows, own, plan)
                losses[step : step + segment.steps, first:last] = found.cpu().numpy()
                step += segment.steps
                _mix_inside(order, first, parts, segment, (rows, *(own.values() if rule == "mix" else ())))
            for run, rows_of, _ in parts:
                shares, pieces = order.shares[first:last][rows_of], order.pieces[first:last][rows_of]
                for name, total in sums[run].items():
                    total.add_rows((own[name] if name else rows)[rows_of], shares, pieces)
            if places is not None:
                for name, held in memory.items():
                    held[places] = own[name]
            tell(last / len(entries))
        return [Outcome(losses, [{name: total.finish() for name, total in one.items()} for one in sums])]

    def _models(self, models: Tensor, parts: Parts, number: int) -> Tensor:
        """The server's model for each device of a block."""
        if number > len(self.room):  # a group that is larger than a block
            self.room = torch.empty(number, models.shape[1], device=models.device)
        for run, own, _ in parts:
            self.room[own] = models[run]
        return self.room

    def _memory(self, memory: Memory, parts: Parts, rows: NDArray[np.int64]) -> tuple[Memory, Tensor | None]:
        """What the optimisers of a block remember, and where copies of it must be put back."""
        rule, place = self.executor.job.settings.momentum_rule, self.room.device
        if rule == "reset":
            return {}, None
        if rule == "mix":
            whose = torch.tensor([run for run, _, devices in parts for _ in devices], device=place)
            return {name: held[whose] for name, held in memory.items()}, None
        if (np.diff(rows) == 1).all():  # neighbours need no copy
            return {name: held[rows[0] : rows[-1] + 1] for name, held in memory.items()}, None
        places = torch.from_numpy(rows).to(place)
        return {name: held[places] for name, held in memory.items()}, places


@dataclass
class GradientPlace:
    """Here, for FedSGD (R41): devices take no steps, they send gradients, and those are added up."""

    executor: Executor
    batches: Sequence[Batches]  # [run]
    offsets: Sequence[int]  # [run]

    def train(self, models: Tensor, memory: Memory, order: Order, tell: Share = silent) -> Sequence[Outcome]:
        entries, sums = order.entries, []
        losses = np.empty((1, len(entries)), dtype=np.float32)
        for run, model in enumerate(models):
            own, devices = entries.places(run), entries.of(run)
            nodes: list[Node] = []
            if len(devices):
                plan = plan_for([Part(self.batches[run], devices, order.done[own], self.offsets[run])], devices, 1)
                pieces, bounds = order.pieces[own], order.bounds
                nodes, found = mean_gradient(self.executor.job, model, plan, order.shares[own], pieces, bounds)
                losses[0, own] = found.cpu().numpy()
            sums.append({MODEL: nodes})
            tell((run + 1) / len(models))
        return [Outcome(losses, sums)]


@dataclass
class RowPlace:
    """Here, without a server: every device keeps a model of its own, and groups of them mix theirs."""

    executor: Executor
    batches: Sequence[Batches]  # [run]
    offsets: Sequence[int]  # [run] where its pooled set begins
    rows: Sequence[slice]  # [run] of its devices
    wide: int  # datapoints in the largest minibatch of any device
    width: int  # devices that train at once

    def train(self, models: Tensor, memory: Memory, order: Order, tell: Share = silent) -> Sequence[Outcome]:
        entries, step = order.entries, 0
        losses = np.empty((order.steps, len(entries)), dtype=np.float32)
        remembered = memory.values() if self.executor.job.settings.momentum_rule == "mix" else ()
        for segment in order.segments:
            for first, last in entries.blocks(self.width):
                drawn = [
                    Part(self.batches[run], devices, order.done[first:last][own] + step, self.offsets[run])
                    for run, own, devices in entries.parts(first, last)
                ]
                plan = plan_for(drawn, order.memory[first:last], segment.steps, self.wide)
                found = self.executor.train(models, memory, plan)
                losses[step : step + segment.steps, first:last] = found.cpu().numpy()
                tell((step + segment.steps * last / len(entries)) / order.steps)
            step += segment.steps
            for mixing, own in zip(segment.mixings, self.rows, strict=True):
                if mixing is not None:
                    for held in (models, *remembered):
                        mixing.apply(held[own])
        return [Outcome(losses, [{} for _ in range(entries.runs)])]


def added_up(outcomes: Sequence[Outcome], runs: int) -> list[dict[str, Tensor]]:
    """[run] the sums of all parts of an order, in its order; nothing of a run in which nobody trained."""
    whole: list[dict[str, TreeSum]] = [{} for _ in range(runs)]
    for outcome in outcomes:
        for own, sums in zip(whole, outcome.sums, strict=True):
            for name, nodes in sums.items():
                for piece, total in nodes:
                    own.setdefault(name, TreeSum(0, runs * PIECES)).add(piece, total)
    return [{name: total.finish()[0][1] for name, total in own.items()} for own in whole]


def inside_of(segments: Sequence[Segment], entries: Entries) -> list[Segment]:
    """What segments mix inside of groups, for an order; the round's last average is what an order is added up for."""
    devices = [entries.of(run) for run in range(entries.runs)]
    inside = [
        Segment(one.steps, [mixing and mixing.within(own) for mixing, own in zip(one.mixings, devices, strict=True)])
        for one in segments[:-1]
    ]
    return [*inside, Segment(segments[-1].steps, [None] * len(devices))]


def _mix_inside(order: Order, first: int, parts: Parts, segment: Segment, held: Sequence[Tensor]) -> None:
    """An aggregation inside groups, of those that are in a block."""
    for run, own, _ in parts:
        mixing, begin = segment.mixings[run], order.entries.places(run).start
        if mixing is not None:
            here = _cut(mixing, slice(first + own.start - begin, first + own.stop - begin))
            for rows in held:
                here.apply(rows[own])


def _cut(mixing: Mixing, part: slice) -> Mixing:
    return mixing.within(np.arange(part.start, part.stop))
