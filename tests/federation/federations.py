"""Small federations that several tests share."""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from d2dfl.federation import Federated, FederationConfig, State, start, train
from d2dfl.federation.views import Strength

# Small tensors gain nothing from several threads, and lose much when tests run side by side.
torch.set_num_threads(1)

SIZES = (9, 20, 0, 13, 5)  # one device has no data, one less than a minibatch
FAST: dict[str, Any] = {"rounds": 2, "interval": 3, "batch": 8, "learning_rate": 0.1, "neighbours": 2, "subset": 2}
SETTINGS = FederationConfig(**{**FAST, "rounds": 4})
STILL = Strength(0, 0, 1, 1, 0, 0, 0, 0, 0)  # every view is the datapoint itself


def federation(
    sizes: tuple[int, ...] = SIZES, shape: tuple[int, ...] = (6,), classes: int = 3, seed: int = 0
) -> Federated:
    """Random data with unequal devices."""
    draws = np.random.default_rng(seed)
    count = sum(sizes)
    inputs = draws.normal(size=(count, *shape)).astype(np.float32)
    targets = draws.integers(classes, size=count)
    members = np.split(draws.permutation(count), np.cumsum(sizes)[:-1])
    return Federated(inputs, targets, members, inputs[:11], targets[:11], classes)


def tiny(shape: tuple[int, ...], outputs: int) -> nn.Module:
    """A small dense model."""
    return nn.Sequential(nn.Flatten(), nn.Linear(int(np.prod(shape)), 5), nn.Tanh(), nn.Linear(5, outputs))


def tiny_conv(shape: tuple[int, ...], outputs: int) -> nn.Module:
    """A small convolutional model."""
    width = 4 * (shape[1] // 2) * (shape[2] // 2)
    return nn.Sequential(
        nn.Conv2d(shape[0], 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(width, outputs)
    )


def finished(factory: Any, data: Federated, seed: int = 0, **changes: Any) -> State:
    """The state at the end of a training."""
    settings = FederationConfig(**{**FAST, **changes})
    state = start(factory, data, settings, seed)
    train(factory, data, settings, seed, state=state)
    return state


def close(one: Tensor, other: Tensor) -> bool:
    return torch.allclose(one, other, rtol=1e-4, atol=1e-6)
