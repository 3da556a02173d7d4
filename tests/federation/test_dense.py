"""Small dense networks in compiled code: the same numbers as the loop, for whatever it takes on."""

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
import torch
from federations import FAST, close, federation, finished, tiny, tiny_conv
from torch import nn

from d2dfl import UserError
from d2dfl.federation import SCHEMES, Federated, FederationConfig, train
from d2dfl.federation.executors.choice import choose_executor
from d2dfl.federation.executors.dense import LARGEST, Dense, suits, widths_of
from d2dfl.federation.executors.loop import Job, Loop
from d2dfl.federation.executors.stack import Stack
from d2dfl.federation.layout import Layout
from d2dfl.federation.losses import CROSS_ENTROPY, MSE


def dense(shape: tuple[int, ...], outputs: int) -> nn.Module:
    """Widths that are no multiple of anything."""
    layers = [nn.Linear(math.prod(shape), 7), nn.ReLU(), nn.Linear(7, 5), nn.ReLU(), nn.Linear(5, outputs)]
    return nn.Sequential(nn.Flatten(), *layers)


def linear(shape: tuple[int, ...], outputs: int) -> nn.Module:
    return nn.Sequential(nn.Linear(math.prod(shape), outputs))


def numbers(targets: int, seed: int = 0) -> Federated:
    """Regression with one target, or several."""
    data = federation(seed=seed)
    shape = (len(data.inputs),) if targets == 1 else (len(data.inputs), targets)
    values = np.random.default_rng(seed).normal(size=shape).astype(np.float32)
    return dataclasses.replace(data, targets=values, test_targets=values[:11], outputs=targets, loss="mse")


def job_of(factory: Any, data: Federated, **changes: Any) -> Job:
    settings = FederationConfig(**{**FAST, "device": "cpu", **changes})
    model = factory(data.shape, data.outputs)
    tensors = torch.from_numpy(data.inputs), torch.from_numpy(data.targets)
    return Job(model, Layout.of(model), data.objective(settings), settings, False, *tensors)


@pytest.fixture
def used(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Rows of each plan that the compiled code was given."""
    seen: list[int] = []
    plain = Dense.train

    def watched(self: Dense, params: Any, memory: Any, plan: Any) -> Any:
        seen.append(len(plan.rows))
        return plain(self, params, memory, plan)

    monkeypatch.setattr(Dense, "train", watched)
    return seen


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize(
    ("factory", "data"),
    [(dense, federation(shape=(2, 3))), (linear, federation()), (dense, numbers(1)), (dense, numbers(3))],
    ids=["classes", "one layer", "one number", "three numbers"],
)
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"momentum": 0.0, "weight_decay": 0.05},
        {"momentum_rule": "reset", "participation": 0.6, "mu": 0.5},
        {"momentum_rule": "mix", "stragglers": 1, "straggler_rule": "redrawn", "weight_decay": 0.01},
    ],
)
def test_agrees_with_the_loop(
    scheme: str, factory: Any, data: Federated, changes: dict[str, Any], used: list[int]
) -> None:
    loop, fast = (finished(factory, data, scheme=scheme, executor=name, **changes) for name in ("loop", "auto"))
    assert used or scheme == "fedsgd"  # its devices take no steps
    assert close(loop.params, fast.params)
    assert loop.memory.keys() == fast.memory.keys()
    assert all(close(rows, fast.memory[name]) for name, rows in loop.memory.items())
    assert np.allclose(loop.curves.training_losses, fast.curves.training_losses, rtol=1e-4)
    assert np.allclose(loop.curves.losses, fast.curves.losses, rtol=1e-4)


@pytest.mark.parametrize("threads", [2, 3, 9])
def test_threads_change_nothing(threads: int) -> None:
    before = torch.get_num_threads()
    one = finished(dense, federation())
    try:
        torch.set_num_threads(threads)
        several = finished(dense, federation())
    finally:
        torch.set_num_threads(before)
    assert torch.equal(one.params, several.params)
    assert one.curves == several.curves


@pytest.mark.parametrize(
    ("layers", "widths"),
    [
        ([nn.Linear(4, 3)], [4, 3]),
        ([nn.Flatten(), nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2)], [4, 3, 2]),
        ([], None),
        ([nn.Flatten()], None),
        ([nn.Linear(4, 3), nn.ReLU()], None),
        ([nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 2)], None),
        ([nn.Linear(4, 3), nn.Linear(3, 2)], None),
        ([nn.Linear(4, 3, bias=False)], None),
        ([nn.Linear(4, 3), nn.ReLU(), nn.Dropout(0.5), nn.Linear(3, 2)], None),
    ],
)
def test_widths_of_dense_models_only(layers: list[nn.Module], widths: list[int] | None) -> None:
    assert widths_of(nn.Sequential(*layers)) == widths


def test_only_a_sequence_has_widths() -> None:
    assert widths_of(nn.Linear(4, 3)) is None


def test_who_is_chosen() -> None:
    def chosen(factory: Any, data: Federated, **changes: Any) -> type:
        return type(choose_executor(job_of(factory, data, **changes), lambda _: None))

    data, images = federation(), federation(shape=(2, 6, 6))
    assert chosen(dense, data) is Dense
    assert chosen(dense, data, executor="stack") is Stack
    assert chosen(dense, data, executor="loop") is Loop
    assert chosen(dense, data, optimiser="adam") is Stack
    assert chosen(tiny, data) is Stack
    assert chosen(tiny_conv, images) is Loop

    def large(shape: tuple[int, ...], outputs: int) -> nn.Module:
        return nn.Sequential(nn.Linear(math.prod(shape), LARGEST), nn.ReLU(), nn.Linear(LARGEST, outputs))

    assert not suits(job_of(large, data))


def test_a_model_of_which_a_part_is_not_trained_is_left_to_others() -> None:
    def frozen(shape: tuple[int, ...], outputs: int) -> nn.Module:
        model = dense(shape, outputs)
        next(model.parameters()).requires_grad_(False)
        return model

    assert suits(job_of(dense, federation()))
    assert not suits(job_of(frozen, federation()))


def test_other_losses_are_left_to_others() -> None:
    job = job_of(dense, federation())
    assert suits(dataclasses.replace(job, loss=MSE))
    assert not suits(dataclasses.replace(job, loss=dataclasses.replace(CROSS_ENTROPY, name="my own")))


def test_a_loss_that_is_no_number_is_found() -> None:
    with pytest.raises(UserError, match=r"no longer a number in round 1: give a learning rate below 1e\+20"):
        train(dense, federation(), FederationConfig(**{**FAST, "learning_rate": 1e20}))
