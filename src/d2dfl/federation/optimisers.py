"""Local optimisers on flat rows: one row (params[parameter]) or several (params[device, parameter]) alike."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from d2dfl.config import FederationConfig

Memory = dict[str, Tensor]  # what an optimiser remembers, each [device, something]


@dataclass(frozen=True)
class Optimiser:
    """A step along a gradient, in place, and how many numbers per device it remembers under which name."""

    step: Callable[[Tensor, Tensor, Memory, FederationConfig], None]
    remembers: Callable[[int, FederationConfig], dict[str, int]]
    memory: str = "a memory"  # what users know that by
    compiled: bool = False  # whether executors/dense_kernels.py can do the step


def _sgd(params: Tensor, gradient: Tensor, memory: Memory, settings: FederationConfig) -> None:
    """m <- momentum * m + g;  w <- w - rate * m   (PyTorch's SGD)."""
    if settings.momentum:
        held = memory["momentum"]
        gradient = torch.add(gradient, held, alpha=settings.momentum, out=held)  # one pass over the memory, not two
    params.add_(gradient, alpha=-settings.learning_rate)


def _adam(params: Tensor, gradient: Tensor, memory: Memory, settings: FederationConfig) -> None:
    """Adam with PyTorch's defaults: decay 0.9 and 0.999, epsilon 1e-8."""
    fast, slow = 0.9, 0.999
    mean, square, steps = memory["mean"], memory["square"], memory["steps"]
    steps.add_(1)
    mean.lerp_(gradient, 1 - fast)
    square.mul_(slow).addcmul_(gradient, gradient, value=1 - slow)
    root = square.sqrt().div_((1 - slow**steps).sqrt_()).add_(1e-8)
    params.sub_((mean / root).mul_(settings.learning_rate / (1 - fast**steps)))


OPTIMISERS: dict[str, Optimiser] = {
    "sgd": Optimiser(
        _sgd, lambda size, settings: {"momentum": size} if settings.momentum else {}, "a momentum", compiled=True
    ),
    "adam": Optimiser(_adam, lambda size, _: {"mean": size, "square": size, "steps": 1}),
}


def remembered(settings: FederationConfig, parameters: int) -> dict[str, int]:
    """Numbers that a row of memory holds under each name."""
    return OPTIMISERS[settings.optimiser].remembers(parameters, settings)


def blank_memory(settings: FederationConfig, rows: Tensor) -> Memory:
    """What an optimiser remembers before the first step of one row, or of several."""
    sizes = remembered(settings, rows.shape[-1])
    return {name: rows.new_zeros(*rows.shape[:-1], size) for name, size in sizes.items()}


def descend(
    params: Tensor, gradient: Tensor, memory: Memory, anchor: Tensor | None, settings: FederationConfig
) -> None:
    """One step, in place; `gradient` is spent. With an anchor, FedProx: the gradient of mu/2 |w - anchor|^2 is added."""
    if anchor is not None:
        gradient.add_(params, alpha=settings.mu).sub_(anchor, alpha=settings.mu)
    if settings.weight_decay:
        gradient.add_(params, alpha=settings.weight_decay)
    OPTIMISERS[settings.optimiser].step(params, gradient, memory, settings)
