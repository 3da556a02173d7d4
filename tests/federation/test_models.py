"""Models: shapes, sizes, and what is refused."""

import pytest
import torch
from torch import nn

from d2dfl import UserError
from d2dfl.federation.models import (
    MODELS,
    alexnet,
    alexnet1d,
    build,
    default_encoder,
    default_model,
    model_named,
)

IMAGES = [(1, 8, 8), (1, 16, 16), (1, 28, 28), (3, 32, 32), (3, 48, 40)]


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("shape", [*IMAGES, (2, 128), (8,)])
def test_every_model_takes_its_shapes(name: str, shape: tuple[int, ...]) -> None:
    wanted = {"alexnet1d": 2, "cnn1d-lite": 2, "mlp": None, "encoder-mlp": None}.get(name, 3)
    if wanted not in (None, len(shape)):
        with pytest.raises(UserError, match="cannot take inputs of the shape"):
            MODELS[name](shape, 7)
    else:
        assert MODELS[name](shape, 7)(torch.zeros(2, *shape)).shape == (2, 7)


def test_alexnet_has_the_size_that_was_measured() -> None:
    assert sum(weights.numel() for weights in alexnet((3, 32, 32), 10).parameters()) == 2_582_346
    assert sum(weights.numel() for weights in alexnet1d((2, 128), 11).parameters()) == 1_369_355


def test_defaults_suit_the_shape() -> None:
    assert [default_model(shape) for shape in IMAGES] == ["mlp", "cnn", "cnn", "alexnet", "alexnet"]
    assert (default_model((2, 128)), default_model((8,))) == ("alexnet1d", "mlp")
    assert (default_encoder((1, 28, 28)), default_encoder((1, 16, 16))) == ("encoder-conv", "encoder-mlp")


def test_the_first_weights_depend_on_the_seed_alone() -> None:
    torch.manual_seed(3)
    first = build(MODELS["mlp"], (4,), 2, seed=1)
    before = torch.rand(1)
    torch.manual_seed(3)
    torch.rand(5)
    second = build(MODELS["mlp"], (4,), 2, seed=1)
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True))
    torch.manual_seed(3)
    assert torch.equal(before, torch.rand(1)), "building a model must not move the global stream"


def test_batchnorm_is_refused() -> None:
    with pytest.raises(UserError, match=r"has BatchNorm1d \(1\)"):
        build(lambda _, outputs: nn.Sequential(nn.Linear(4, outputs), nn.BatchNorm1d(outputs)), (4,), 3, 0)
    build(lambda _, outputs: nn.Sequential(nn.Linear(4, outputs), nn.GroupNorm(1, outputs)), (4,), 3, 0)


def test_a_model_without_weights_and_an_unknown_name_are_refused() -> None:
    with pytest.raises(UserError, match="no parameter to train"):
        build(lambda _shape, _outputs: nn.Flatten(), (4,), 3, 0)
    with pytest.raises(UserError, match="the models are alexnet"):
        model_named("resnet")
