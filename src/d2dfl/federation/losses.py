"""Losses by name: outputs and targets of n datapoints in, n losses out. The mean over a minibatch is the engine's."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from torch import Tensor
from torch.nn import functional

from d2dfl.errors import UserError


@dataclass(frozen=True)
class Loss:
    """What a device minimises, and the score that is reported.

    `prepare` may turn inputs[n, ...] into views[view, n, ...] before each step, for contrastive losses; `per_sample`
    then sees outputs[view, n, ...]. Its generator belongs to the device and the step, so executors agree.
    """

    name: str
    per_sample: Callable[[Tensor, Tensor], Tensor]  # outputs, targets -> [n]
    score: Callable[[Tensor, Tensor], Tensor]  # outputs, targets -> [n]; its mean over the test set is reported
    score_name: str
    prepare: Callable[[Tensor, np.random.Generator], Tensor] | None = None


def _cross_entropy(outputs: Tensor, targets: Tensor) -> Tensor:
    return functional.cross_entropy(outputs, targets, reduction="none")


def _right(outputs: Tensor, targets: Tensor) -> Tensor:
    return (outputs.argmax(dim=-1) == targets).float()


def _squared(outputs: Tensor, targets: Tensor) -> Tensor:
    return (outputs.reshape(targets.shape) - targets).square().reshape(len(targets), -1).mean(dim=1)


LOSSES: dict[str, Loss] = {
    loss.name: loss
    for loss in (
        Loss("cross-entropy", _cross_entropy, _right, "accuracy"),
        Loss("mse", _squared, _squared, "mse"),
    )
}


def loss_named(name: str) -> Loss:
    """The loss of this name, or a UserError that lists the names."""
    if name not in LOSSES:
        raise UserError(f"there is no loss {name!r}: the losses are {', '.join(LOSSES)}")
    return LOSSES[name]
