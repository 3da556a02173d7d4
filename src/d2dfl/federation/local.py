"""Local steps of all devices between two aggregations: the `loop` executor, device after device."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor, nn

from d2dfl.config import FederationConfig
from d2dfl.federation.batches import Plan
from d2dfl.federation.layout import Layout
from d2dfl.federation.losses import Loss
from d2dfl.federation.optimisers import Memory, blank_memory, descend

PIECE = 256  # datapoints in one pass; a larger minibatch (FedSGD) adds up the gradients of its pieces
TEST_PIECE = 512


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

    def train(self, params: Tensor, memory: Memory, plan: Plan) -> Tensor:
        """Take the steps of a plan, in place; losses [step, active] before each."""

    def evaluate(self, params: Tensor, inputs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        """Mean loss [row] and mean score [row] of each row of params on the same datapoints."""


class Loop:
    """Device after device. The model's parameters become views of a device's row: nothing is copied."""

    name = "loop"

    def __init__(self, job: Job) -> None:
        self.job = job
        self.gradient = torch.empty(0)

    def train(self, params: Tensor, memory: Memory, plan: Plan) -> Tensor:
        job = self.job
        if len(self.gradient) != params.shape[1]:
            self.gradient = torch.empty(params.shape[1], device=params.device)
        indices = torch.from_numpy(plan.indices).to(params.device)
        losses = torch.empty(plan.indices.shape[:2], device=params.device)
        job.model.train()
        with torch.random.fork_rng(devices=[params.device] if params.is_cuda else []):
            for number, device in enumerate(plan.rows.tolist()):
                row = params[device]
                parameters = job.layout.bind(job.model, row)
                own = {name: rows[device] for name, rows in memory.items()} or blank_memory(job.settings, row)
                anchor = row.clone() if job.proximal else None
                for step in range(len(indices)):
                    chosen = indices[step, number, : plan.counts[number]]
                    key = int(plan.keys[step, number])
                    losses[step, number] = self._gradient(parameters, chosen, key)
                    descend(row, self.gradient, own, anchor, job.settings)
        return losses

    def _gradient(self, parameters: list[nn.Parameter], chosen: Tensor, key: int) -> Tensor:
        """Fill self.gradient with the gradient of the mean loss, and return that loss."""
        job = self.job
        torch.manual_seed(key)  # for models with random layers
        whole = torch.zeros((), device=chosen.device)
        for start in range(0, len(chosen), PIECE):
            piece = chosen[start : start + PIECE]
            inputs = prepared(job.loss, job.inputs[piece], key, start)
            loss = job.loss.per_sample(outputs_of(job, inputs), job.targets[piece]).sum() / len(chosen)
            loss = loss * (len(piece) >= job.loss.least)
            gradients = torch.autograd.grad(loss, parameters, allow_unused=True)
            if start == 0:
                job.layout.flatten(gradients, self.gradient)
            else:
                job.layout.add(gradients, self.gradient)
            whole += loss.detach()
        return whole

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


def prepared(loss: Loss, inputs: Tensor, key: int, start: int) -> Tensor:
    """Inputs as a step sees them: the loss may turn them into views, at random by the step's key."""
    return inputs if loss.prepare is None else loss.prepare(inputs, generator(key, start))


def generator(key: int, start: int) -> np.random.Generator:
    """What a piece of a minibatch draws from."""
    return np.random.default_rng([key, start])


def outputs_of(job: Job, inputs: Tensor) -> Tensor:
    """The model's outputs; a leading view axis (see Loss.prepare) passes through."""
    if job.loss.prepare is None:
        return job.model(channels_last(inputs))  # type: ignore[no-any-return]  # nn.Module is untyped
    outputs: Tensor = job.model(channels_last(inputs.flatten(0, 1)))
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
