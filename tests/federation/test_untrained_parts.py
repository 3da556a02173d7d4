"""Models with frozen layers, layers used twice, weights of one number: every executor trains them alike."""

from typing import Any

import numpy as np
import pytest
import torch
from federations import SIZES, close, federation, finished
from torch import Tensor, nn

from d2dfl.federation import model_of


def frozen_layer(shape: tuple[int, ...], outputs: int) -> nn.Module:
    model = nn.Sequential(nn.Linear(shape[0], shape[0]), nn.ReLU(), nn.Linear(shape[0], outputs))
    model[0].requires_grad_(False)
    return model


def frozen_bias(shape: tuple[int, ...], outputs: int) -> nn.Module:
    model = nn.Sequential(nn.Linear(shape[0], shape[0]), nn.ReLU(), nn.Linear(shape[0], outputs))
    model[0].bias.requires_grad_(False)
    return model


def used_twice(shape: tuple[int, ...], outputs: int) -> nn.Module:
    layer = nn.Linear(shape[0], shape[0])
    return nn.Sequential(layer, nn.ReLU(), layer, nn.ReLU(), nn.Linear(shape[0], outputs))


class Twice(nn.Module):
    """The same, and no sequence."""

    def __init__(self, shape: tuple[int, ...], outputs: int) -> None:
        super().__init__()
        self.one = nn.Linear(shape[0], shape[0])
        self.two, self.last = self.one, nn.Linear(shape[0], outputs)
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, inputs: Tensor) -> Tensor:
        return self.last(self.two(self.one(inputs).relu()).relu()) * self.scale


@pytest.mark.parametrize("factory", [frozen_layer, frozen_bias, used_twice, Twice])
@pytest.mark.parametrize("threads", [1, 3])
def test_executors_agree(factory: Any, threads: int) -> None:
    data = federation(SIZES)
    expected = finished(factory, data, seed=5, executor="loop").params
    torch.set_num_threads(threads)
    try:
        for executor in ("loop", "stack", "auto"):
            assert close(finished(factory, data, seed=5, executor=executor).params, expected)
    finally:
        torch.set_num_threads(1)


def test_one_device_is_plain_gradient_descent_with_a_frozen_layer() -> None:
    data = federation((8,))
    settings = {"rounds": 1, "interval": 1, "batch": 8, "executor": "loop", "momentum": 0.0}
    state = finished(frozen_layer, data, seed=5, **settings)
    model = model_of(frozen_layer, data, state)
    first = frozen_layer_of(5)
    assert torch.equal(model[0].weight, first[0].weight)
    inputs, targets = torch.from_numpy(np.asarray(data.inputs)), torch.from_numpy(np.asarray(data.targets))
    nn.functional.cross_entropy(first(inputs), targets).backward()
    with torch.no_grad():
        first[2].weight -= 0.1 * first[2].weight.grad
    assert torch.allclose(model[2].weight, first[2].weight, atol=1e-6)


def frozen_layer_of(seed: int) -> nn.Module:
    """The model that a training with this seed starts from."""
    from d2dfl.federation.training import build
    from d2dfl.rng import stream

    return build(frozen_layer, (6,), 3, int(stream(seed, "weights").integers(2**63)))
