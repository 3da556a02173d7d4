"""Models: shapes, sizes, and what is refused."""

import copy

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
    tried,
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


class Scaled(nn.Module):
    """A dense layer times a single number that is learned, as in CLIP."""

    def __init__(self, dtype: torch.dtype = torch.float32) -> None:
        super().__init__()
        self.layer, self.scale = nn.Linear(4, 3), nn.Parameter(torch.ones((), dtype=dtype))

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.layer(inputs) * self.scale.float()


class Counting(Scaled):
    """A model that counts how often it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("asked", torch.zeros(()))

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        self.asked += 1
        return super().forward(inputs)


class Deaf(Scaled):
    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return super().forward(inputs).detach()


@pytest.mark.parametrize(
    ("model", "says"),
    [
        (nn.LazyLinear(3), "the model has weight of no shape yet: give layers that know their inputs"),
        (Scaled(torch.float64), "the model has scale of the type float64: give weights of the type float32"),
        (Scaled(torch.complex64), "the model has scale of the type complex64"),
        (Counting(), "the model changes asked by itself"),
        (Deaf(), "model gives outputs without a gradient"),
        (nn.Linear(4, 2), r"model gives outputs of the shape \(2,\): the data asks for 3 numbers"),
        (nn.Linear(5, 3), r"model cannot take inputs of the shape \(4,\)"),
        (nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3)), "running statistics break under label skew"),
        (3, "model makes an int"),
    ],
)
def test_a_model_that_cannot_be_trained_is_refused_before_anything_is_computed(model: nn.Module, says: str) -> None:
    with pytest.raises(UserError, match=says):
        tried(lambda _shape, _outputs: copy.deepcopy(model), (4,), 3)


def test_a_single_number_may_be_a_weight() -> None:
    assert tried(lambda _shape, _outputs: Scaled(), (4,), 3)


def test_what_is_not_trained_is_the_same_for_every_seed() -> None:
    def half(_shape: tuple[int, ...], _outputs: int) -> nn.Module:
        model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 3))
        model[0].requires_grad_(False)
        return model

    one, two = build(half, (4,), 3, seed=1), build(half, (4,), 3, seed=2)
    assert torch.equal(one[0].weight, two[0].weight)
    assert not torch.equal(one[1].weight, two[1].weight)
