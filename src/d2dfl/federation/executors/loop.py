"""What an executor is given and gives, and the `loop` executor: each device for itself, on threads where that helps."""

import copy
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Protocol

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.modules.dropout import _DropoutNd

from d2dfl.config import FederationConfig
from d2dfl.federation.batches import BatchPlan
from d2dfl.federation.layout import Layout
from d2dfl.federation.losses import Loss
from d2dfl.federation.optimisers import Memory, blank_memory, descend

PIECE = 256  # datapoints in one pass; a larger minibatch (FedSGD) adds up the gradients of its pieces
TEST_PIECE = 512
RANDOM = (_DropoutNd, nn.RReLU, nn.FractionalMaxPool2d, nn.FractionalMaxPool3d, nn.MultiheadAttention)


@dataclass(frozen=True)
class Job:
    """What stays the same through a training: the model, what it minimises, and the pooled data."""

    model: nn.Module
    layout: Layout
    loss: Loss
    settings: FederationConfig
    proximal: bool
    inputs: Tensor  # [datapoint, ...] of all devices
    targets: Tensor


class Executor(Protocol):
    """A way to take the local steps. All executors give the same numbers, up to rounding."""

    name: str
    job: Job

    def train(self, params: Tensor, memory: Memory, plan: BatchPlan) -> Tensor:
        """Take the steps of a plan, in place; losses [step, active] before each."""

    def evaluate(self, params: Tensor, inputs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        """Mean loss [row] and mean score [row] of each row of params on the same datapoints."""


@dataclass
class Desk:
    """What a thread works with: a model, and room for its gradient."""

    job: Job
    model: nn.Module
    gradient: Tensor

    @classmethod
    def of(cls, job: Job, params: Tensor, copied: bool) -> "Desk":
        # Parameters may be views of rows by now: a plain copy would copy all rows.
        trained = (held for held in job.model.parameters() if held.requires_grad)  # what is frozen is no view
        fresh = {id(held): nn.Parameter(torch.empty_like(held)) for held in trained}
        model = copy.deepcopy(job.model, fresh) if copied else job.model
        return cls(job, model, torch.empty(params.shape[1], device=params.device))

    def train(self, row: Tensor, memory: Memory, indices: Tensor, keys: Sequence[int]) -> Tensor:
        """The steps of one device, in place; losses [step] before each."""
        self.model.train()
        parameters = self.job.layout.bind(self.model, row)
        anchor = row.clone() if self.job.proximal else None
        losses = torch.empty(len(indices), device=row.device)
        for step, (chosen, key) in enumerate(zip(indices, keys, strict=True)):
            losses[step] = self._gradient(parameters, chosen, key)
            descend(row, self.gradient, memory, anchor, self.job.settings)
        return losses

    def _gradient(self, parameters: list[nn.Parameter], chosen: Tensor, key: int) -> Tensor:
        """Fill self.gradient with the gradient of the mean loss, and return that loss."""
        job = self.job
        if not draws_nothing(self.model):
            torch.manual_seed(key)
        whole = torch.zeros((), device=chosen.device)
        for start in range(0, len(chosen), PIECE):
            piece = chosen[start : start + PIECE]
            inputs = prepared(job.loss, job.inputs[piece], key, start)
            loss = job.loss.per_sample(outputs_of(job, inputs, self.model), job.targets[piece]).sum() / len(chosen)
            loss = loss * (len(piece) >= job.loss.least)
            gradients = torch.autograd.grad(loss, parameters, allow_unused=True)
            if start == 0:
                job.layout.flatten(gradients, self.gradient)
            else:
                job.layout.add(gradients, self.gradient)
            whole += loss.detach()
        return whole


class Loop:
    """Device after device, or on a CPU as many at once as there are threads, each with one.

    A model's parameters become views of a device's row: nothing is copied. A thread for each of two devices takes a tenth
    less time than two threads that share the work of one.
    """

    name = "loop"

    def __init__(self, job: Job) -> None:
        self.job = job
        self.desks: list[Desk] = []

    def train(self, params: Tensor, memory: Memory, plan: BatchPlan) -> Tensor:
        job = self.job
        losses = torch.empty(plan.indices.shape[:2], device=params.device)
        indices = torch.from_numpy(plan.indices).to(params.device)
        threads = torch.get_num_threads() if not params.is_cuda and draws_nothing(job.model) else 1
        while len(self.desks) < min(threads, len(plan.rows)):
            self.desks.append(Desk.of(job, params, copied=bool(self.desks)))
        free: SimpleQueue[Desk] = SimpleQueue()
        for desk in self.desks[:threads]:
            free.put(desk)

        def work(number: int) -> None:
            device = int(plan.rows[number])
            row = params[device]
            own = {name: rows[device] for name, rows in memory.items()} or blank_memory(job.settings, row)
            chosen = indices[:, number, : plan.counts[number]]
            desk = free.get()
            try:
                losses[:, number] = desk.train(row, own, chosen, plan.keys[:, number].tolist())
            finally:
                free.put(desk)

        if threads < 2:
            with torch.random.fork_rng(devices=[params.device] if params.is_cuda else []):
                for number in range(len(plan.rows)):
                    work(number)
            return losses
        # One device alone, too: threads that share the work of a step round otherwise, and the block must change no bit.
        with ThreadPoolExecutor(free.qsize(), initializer=torch.set_num_threads, initargs=(1,)) as pool:
            list(pool.map(work, range(len(plan.rows))))
        torch.set_num_threads(threads)  # threads that begin later look at what was said last
        return losses

    @torch.no_grad()
    def evaluate(self, params: Tensor, inputs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        job = self.job
        job.model.eval()
        losses = torch.zeros(len(params), device=params.device)
        scores = torch.zeros(len(params), device=params.device)
        for number in range(len(params)):
            job.layout.bind(job.model, params[number])
            for start in range(0, len(inputs), TEST_PIECE):
                wanted = targets[start : start + TEST_PIECE]
                outputs = outputs_of(job, prepared(job.loss, inputs[start : start + TEST_PIECE], 0, start))
                losses[number] += job.loss.per_sample(outputs, wanted).sum()
                scores[number] += job.loss.score(outputs, wanted).sum()
        return losses / len(inputs), scores / len(inputs)


def draws_nothing(model: nn.Module) -> bool:
    """Whether a model is known to draw no random numbers: a sequence of PyTorch's own layers, none of them random.

    Others draw from PyTorch's one generator, which threads would share.
    """
    if not isinstance(model, nn.Sequential):
        return False
    leaves = [layer for layer in model.modules() if not isinstance(layer, nn.Sequential)]
    return all(
        type(layer).__module__.startswith("torch.nn.modules") and not isinstance(layer, RANDOM) for layer in leaves
    )


def prepared(loss: Loss, inputs: Tensor, key: int, start: int) -> Tensor:
    """Inputs as a step sees them: the loss may turn them into views, at random by the step's key."""
    return inputs if loss.prepare is None else loss.prepare(inputs, generator(key, start))


def generator(key: int, start: int) -> np.random.Generator:
    """What a piece of a minibatch draws from."""
    return np.random.default_rng([key, start])


def outputs_of(job: Job, inputs: Tensor, model: nn.Module | None = None) -> Tensor:
    """The model's outputs; a leading view axis (see Loss.prepare) passes through."""
    model = model or job.model
    if job.loss.prepare is None:
        return model(channels_last(inputs))  # type: ignore[no-any-return]  # nn.Module is untyped
    outputs: Tensor = model(channels_last(inputs.flatten(0, 1)))
    return outputs.view(*inputs.shape[:2], *outputs.shape[1:])


@torch.no_grad()
def embed(job: Job, row: Tensor, inputs: Tensor, chosen: Tensor | None = None) -> Tensor:
    """Outputs [n, ...] of the model with the weights of one row, for (chosen) inputs as they are, without views."""
    job.model.eval()
    job.layout.bind(job.model, row)
    places = torch.arange(len(inputs), device=inputs.device) if chosen is None else chosen
    return torch.cat([job.model(channels_last(inputs[piece])) for piece in torch.split(places, TEST_PIECE)])


def channels_last(inputs: Tensor) -> Tensor:
    """Images with their channels last in memory: convolutions are a quarter faster so."""
    return inputs.contiguous(memory_format=torch.channels_last) if inputs.ndim == 4 else inputs
