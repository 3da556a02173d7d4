"""Steps of many convolutional models on a GPU: which models are computed so, and that the loop agrees."""

import dataclasses
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from d2dfl.federation import FederationConfig
from d2dfl.federation.batches import BatchPlan
from d2dfl.federation.executors.design import design_for, design_of, filled
from d2dfl.federation.executors.loop import Executor, Job, Loop
from d2dfl.federation.executors.stack import Stack
from d2dfl.federation.layout import Layout
from d2dfl.federation.losses import loss_named
from d2dfl.federation.models import MODELS
from d2dfl.federation.optimisers import blank_memory

SHAPE = (3, 32, 32)
BATCH = 64


def job_of(place: str, shape: tuple[int, ...] = SHAPE, proximal: bool = False, **options: Any) -> Job:
    """AlexNet and random images."""
    torch.manual_seed(0)
    model = MODELS["alexnet"](shape, 10).to(place)
    inputs, targets = torch.randn(500, *shape), torch.randint(0, 10, (500,))
    settings = FederationConfig(learning_rate=1e-3, **options)
    loss = loss_named("cross-entropy", settings)
    return Job(model, Layout.of(model), loss, settings, proximal, inputs.to(place), targets.to(place))


@pytest.mark.parametrize("shape", [(3, 32, 32), (1, 28, 28)])
def test_the_design_of_alexnet_says_where_its_weights_lie(shape: tuple[int, ...]) -> None:
    model = MODELS["alexnet"](shape, 10)
    layout = Layout.of(model)
    design = design_of(model, shape)
    assert design is not None
    starts = dict(zip(layout.names, np.cumsum([0, *layout.sizes]).tolist(), strict=False))
    names = [name for name in layout.names if len(layout.shapes[layout.names.index(name)]) == 4]
    first, *others = design.first, *design.convolutions
    assert first.taps * first.outputs == starts[names[0].replace("weight", "bias")] == first.bias[0]
    assert [other.offset for other in others] == [starts[name] for name in names[1:]]
    assert [other.bias[0] for other in others] == [starts[name.replace("weight", "bias")] for name in names[1:]]
    assert [(other.height, other.width) for other in others] == [(8, 8), (4, 4), (4, 4), (4, 4)]
    assert design.result == (2, 2)
    images = torch.randn(2, *shape)
    assert model[: len(model) - 6](images).shape[1:] == (256, 2, 2)


@pytest.mark.parametrize("name", ["cnn", "cnn-lite", "encoder-conv", "mlp"])
def test_other_models_have_no_design(name: str) -> None:
    assert design_of(MODELS[name]((3, 32, 32), 10), (3, 32, 32)) is None


def test_signals_and_frozen_or_other_alexnets_have_no_design() -> None:
    assert design_of(MODELS["alexnet1d"]((2, 128), 10), (2, 128)) is None
    frozen = MODELS["alexnet"](SHAPE, 10)
    next(frozen.parameters()).requires_grad_(False)
    assert design_of(frozen, SHAPE) is None
    wide = nn.Sequential(*MODELS["alexnet"](SHAPE, 10))
    wide[6] = nn.Conv2d(192, 384, 5, padding=2)
    assert design_of(wide, SHAPE) is None
    grouped = nn.Sequential(*MODELS["alexnet"](SHAPE, 10))
    grouped[6] = nn.Conv2d(192, 384, 3, padding=1, groups=2)
    assert design_of(grouped, SHAPE) is None
    assert design_of(MODELS["alexnet"]((3, 34, 34), 10), (3, 34, 34)) is None  # 17 windows in a line


def test_a_minibatch_is_filled_up_where_little_is_missing() -> None:
    assert [filled(batch) for batch in (20, 47, 48, 64, 90, 100, 256, 300)] == [
        None,
        None,
        64,
        64,
        None,
        128,
        256,
        None,
    ]


def test_a_processor_computes_no_design() -> None:
    assert design_for(job_of("cpu")) is None


@pytest.mark.card
@pytest.mark.filterwarnings("ignore::DeprecationWarning:torch")  # its own, while it compiles
@pytest.mark.parametrize(
    ("shape", "options"),
    [
        (SHAPE, {}),
        ((1, 28, 28), {"momentum": 0.0}),
        (SHAPE, {"weight_decay": 0.01, "proximal": True}),
    ],
)
def test_steps_agree_with_the_loop_up_to_rounding(shape: tuple[int, ...], options: dict[str, Any]) -> None:
    job = job_of("cuda", shape, **options)
    counts = np.array([64, 60, 50])  # a device may hold less than a minibatch
    chosen = np.random.default_rng(0).integers(0, 500, (3, len(counts), BATCH))
    plan = BatchPlan(np.arange(len(counts)), chosen, counts, np.zeros((3, len(counts)), dtype=np.uint64))
    start = job.layout.row_of(job.model).repeat(len(counts), 1).cuda()
    start *= 1 + 0.05 * torch.randn_like(start)

    def steps(executor: Executor) -> tuple[Tensor, Tensor]:
        rows = start.clone()
        losses = executor.train(rows, blank_memory(job.settings, rows), plan)
        return losses, rows - start

    stack = Stack(job)
    wanted, exact = steps(Loop(job))  # float32
    _, rounded = steps(Stack(job, compiled=False))  # products of windows in bfloat16
    losses, ours = steps(stack)
    assert stack.fused is not None
    torch.testing.assert_close(losses, wanted, rtol=0.02, atol=0.02)
    # Where rounding turns a relu on or off, gradients jump: it is for products of windows to say how far.
    for one, other, own in zip(*map(job.layout.views, (exact, rounded, ours)), strict=True):
        assert (own - one).norm() <= 1.25 * (other - one).norm()
    assert torch.equal(steps(stack)[1], ours)


@pytest.mark.card
def test_float32_and_views_take_the_other_way() -> None:
    assert design_for(job_of("cuda")) is not None
    job = job_of("cuda", precision="float32")
    assert design_for(job) is None
    views = dataclasses.replace(job, loss=loss_named("triplet"), settings=FederationConfig())
    assert design_for(views) is None
