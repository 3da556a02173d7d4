"""Losses by name: outputs and targets of n datapoints in, n losses out. The mean over a minibatch is the engine's."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Literal

import numpy as np
from torch import Tensor

from d2dfl.config import FederationConfig
from d2dfl.config.sections.learning import Views
from d2dfl.federation.probe import linear_accuracy
from d2dfl.federation.views import STRENGTHS, Strength, triplet_rows, triplets
from d2dfl.registry import entry_named


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
    higher_is_better: bool = True  # the score
    prepare: Callable[[Tensor, np.random.Generator], Tensor] | None = None
    # The same for inputs [row, n, ...] of several devices, each with its generator: views [row, view, n, ...].
    prepare_rows: Callable[[Tensor, Sequence[np.random.Generator]], Tensor] | None = None
    least: int = 1  # datapoints that a loss needs; those of a minibatch with fewer have the loss 0
    # Where outputs are no answers: outputs and labels of training data, the same of test data -> the score instead.
    probe: Callable[[Tensor, Tensor, Tensor, Tensor], float] | None = None
    # What targets have to be: the number of an output, any whole number from 0 on, numbers as many as outputs; None: anything.
    targets: Literal["outputs", "labels", "values"] | None = None


def _cross_entropy(outputs: Tensor, targets: Tensor) -> Tensor:
    # As functional.cross_entropy; under vmap that goes through rules in Python, which load a package for algebra.
    return -outputs.log_softmax(dim=-1).gather(-1, targets[:, None])[:, 0]


def _right(outputs: Tensor, targets: Tensor) -> Tensor:
    return (outputs.argmax(dim=-1) == targets).float()


def _squared(outputs: Tensor, targets: Tensor) -> Tensor:
    return (outputs.reshape(targets.shape) - targets).square().reshape(len(targets), -1).mean(dim=1)


def _distances(outputs: Tensor) -> tuple[Tensor, Tensor]:
    """Euclidean distances [n] of each anchor to its positive and to its negative, from outputs [3, n, embedding].

    From outputs [2, n, embedding] of anchors and positives: each anchor's negative is the next anchor.
    """
    anchor, positive = outputs[0], outputs[1]
    negative = outputs[2] if len(outputs) == 3 else anchor.roll(-1, dims=0)
    # Where two points meet, a root without a floor would have no gradient.
    near, far = ((anchor - other).square().sum(dim=-1).clamp_min(1e-12).sqrt() for other in (positive, negative))
    return near, far


def _triplet(outputs: Tensor, _: Tensor, margin: float) -> Tensor:
    near, far = _distances(outputs)
    return (near - far + margin).clamp_min(0)


def _in_order(outputs: Tensor, _: Tensor) -> Tensor:
    near, far = _distances(outputs)
    return (near < far).float()


def triplet(margin: float = 1.0, strength: Strength | None = None, views: Views | None = None) -> Loss:
    """Views of one datapoint shall be nearer to each other than to a view of another one, by a margin (R37, R42).

        max(0, |f(a) - f(p)| - |f(a) - f(n)| + margin)

    `views` says which of the three are transformed, `strength` how far; None: as by default.
    Targets are never trained on: linear evaluation, the score, learns from them what the classes are called.
    """
    views = FederationConfig().views if views is None else views
    return _triplet_loss(margin, STRENGTHS[views] if strength is None else strength, views)


@cache  # runs with equal losses train together
def _triplet_loss(margin: float, strength: Strength, views: Views) -> Loss:
    return Loss(
        "triplet",
        partial(_triplet, margin=margin),
        _in_order,
        "accuracy of linear evaluation",
        prepare=partial(triplets, strength=strength, views=views),
        prepare_rows=partial(triplet_rows, strength=strength, views=views),
        least=2,
        probe=linear_accuracy,
        targets="labels",
    )


CROSS_ENTROPY = Loss("cross-entropy", _cross_entropy, _right, "accuracy", targets="outputs")
MSE = Loss("mse", _squared, _squared, "mse", higher_is_better=False, targets="values")

LOSSES: dict[str, Callable[[FederationConfig], Loss]] = {
    "cross-entropy": lambda _: CROSS_ENTROPY,
    "mse": lambda _: MSE,
    "triplet": lambda settings: triplet(settings.margin, views=settings.views),
}


def loss_named(name: str, settings: FederationConfig | None = None) -> Loss:
    """The loss of this name, with what the settings say of it, or a UserError that lists the names."""
    return entry_named("loss", name, LOSSES)(settings or FederationConfig())
