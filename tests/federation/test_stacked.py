"""Batched products give what the models give one by one."""

import pytest
import torch
from torch import nn

from d2dfl.federation.executors.stacked import stacked_forward
from d2dfl.federation.layout import Layout
from d2dfl.federation.models import MODELS

SHAPES = {
    "alexnet": (3, 32, 32),
    "alexnet1d": (2, 128),
    "cnn": (1, 8, 8),
    "cnn-lite": (3, 9, 8),
    "cnn1d-lite": (2, 33),
    "mlp": (1, 8, 8),
    "encoder-conv": (1, 28, 28),
    "encoder-mlp": (1, 16, 16),
}


@pytest.mark.parametrize("name", list(MODELS))
def test_forward_and_gradient_equal_the_single_models(name: str) -> None:
    shape = SHAPES[name]
    generator = torch.Generator().manual_seed(0)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = MODELS[name](shape, 8)
    layout = Layout.of(model)
    rows = torch.stack([layout.row_of(model) * scale for scale in (1.0, 0.7, 1.3)])
    inputs = torch.randn(3, 5, *shape, generator=generator)
    forward = stacked_forward(model)
    assert forward is not None
    leaves = [view.detach().requires_grad_() for view in layout.views(rows)]
    outputs = forward(leaves, inputs)
    gradient = torch.empty_like(rows)
    layout.flatten(torch.autograd.grad(outputs.square().sum(), leaves), gradient)
    for number in range(3):
        layout.bind(model, rows[number].clone())
        alone = model(inputs[number])
        assert torch.allclose(outputs[number], alone, atol=1e-4, rtol=1e-4)
        single = torch.empty(layout.parameters)
        layout.flatten(torch.autograd.grad(alone.square().sum(), list(model.parameters())), single)
        assert (gradient[number] - single).norm() < 1e-3 * single.norm()


def test_a_smaller_image_gets_its_border() -> None:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = MODELS["alexnet"]((1, 28, 28), 4)
        inputs = torch.randn(2, 3, 1, 28, 28)
    layout = Layout.of(model)
    forward = stacked_forward(model)
    assert forward is not None
    outputs = forward(layout.views(layout.row_of(model).repeat(2, 1)), inputs)
    assert torch.allclose(outputs[1], model(inputs[1]), atol=1e-4)


@pytest.mark.parametrize(
    "model",
    [
        nn.Linear(4, 2),
        nn.Sequential(nn.Conv2d(2, 4, 3, groups=2)),
        nn.Sequential(nn.Conv2d(2, 4, 3, padding="same")),
        nn.Sequential(nn.MaxPool2d(3, stride=2)),
        nn.Sequential(nn.Tanh()),
    ],
)
def test_other_models_are_left_to_vmap(model: nn.Module) -> None:
    assert stacked_forward(model) is None
