"""FedSGD (R41): one step of the server along the mean gradient, against plain NumPy, for every executor."""

import dataclasses
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from federations import FAST, close, federation, finished, tiny, tiny_conv
from numpy.typing import NDArray
from torch import nn

from d2dfl import UserError
from d2dfl.federation import Federated, FederationConfig, State, start, train, train_many
from d2dfl.federation.executors.dense import Dense
from d2dfl.federation.executors.stack import Stack
from d2dfl.federation.schemes import present

ADAM: dict[str, Any] = {"optimiser": "adam", "learning_rate": 0.02}
CASES: list[dict[str, Any]] = [
    {"momentum": 0.0},
    {"momentum": 0.9, "weight_decay": 0.05},
    ADAM,
    {**ADAM, "weight_decay": 0.1, "weighting": "equal"},
    {**ADAM, "stragglers": 2, "straggler_rule": "redrawn"},
    {"stragglers": 1, "straggler_rule": "redrawn", "momentum": 0.8},
    {**ADAM, "participation": 0.5},
]


def line(shape: tuple[int, ...], outputs: int) -> nn.Module:
    return nn.Sequential(nn.Linear(math.prod(shape), outputs))


def numbers(sizes: tuple[int, ...] = (9, 20, 0, 13, 5)) -> Federated:
    data = federation(sizes)
    values = np.random.default_rng(1).normal(size=len(data.inputs)).astype(np.float32)
    return dataclasses.replace(data, targets=values, test_targets=values[:11], outputs=1, loss="mse")


def oracle(data: Federated, settings: FederationConfig, seed: int) -> NDArray[np.float64]:
    """Weights and bias after all rounds, as the text has it: devices send gradients, a server steps along their mean."""
    model = start(line, data, settings, seed).params[0].numpy().astype(np.float64)
    velocity, mean, square, steps = np.zeros_like(model), np.zeros_like(model), np.zeros_like(model), 0
    for number in range(settings.rounds):
        here = present(settings, seed, number, data.devices)
        sent, shares = [], []
        for device, held in enumerate(data.members):
            if here[device] and len(held):
                inputs = np.c_[data.inputs[held].astype(np.float64), np.ones(len(held))]
                sent.append(2 * inputs.T @ (inputs @ model - data.targets[held]) / len(held))
                shares.append(len(held) if settings.weighting == "data" else 1)
        if not sent:
            continue
        gradient = np.average(sent, axis=0, weights=shares) + settings.weight_decay * model
        if settings.optimiser == "sgd":
            velocity = settings.momentum * velocity + gradient
            model = model - settings.learning_rate * velocity
        else:
            steps += 1
            mean = 0.9 * mean + 0.1 * gradient
            square = 0.999 * square + 0.001 * gradient**2
            root = np.sqrt(square / (1 - 0.999**steps)) + 1e-8
            model = model - settings.learning_rate * mean / (1 - 0.9**steps) / root
    return model


@pytest.mark.parametrize("executor", ["loop", "stack", "auto"])
@pytest.mark.parametrize("changes", CASES)
def test_a_round_is_a_step_of_the_server(changes: dict[str, Any], executor: Any) -> None:
    data, changes = numbers(), {"scheme": "fedsgd", "rounds": 12, "learning_rate": 0.05, **changes}
    expected = oracle(data, FederationConfig(**{**FAST, **changes}), 3)
    state = finished(line, data, 3, executor=executor, **changes)
    for row in state.params:
        assert np.allclose(row.numpy(), expected, rtol=1e-4, atol=1e-6)


def slopes(first: float, second: float) -> Federated:
    """Two devices whose gradients of the mean squared error at w = 0 are these."""
    inputs = np.ones((2, 1), dtype=np.float32)
    targets = np.array([-first / 2, -second / 2], dtype=np.float32)
    return Federated(inputs, targets, [np.array([0]), np.array([1])], inputs, targets, 1, "mse")


@pytest.mark.parametrize("executor", ["loop", "stack"])
def test_a_small_gradient_does_not_cancel_a_large_one(executor: Any) -> None:
    def nought(_shape: tuple[int, ...], _outputs: int) -> nn.Module:
        model = nn.Linear(1, 1, bias=False)
        nn.init.zeros_(model.weight)
        return nn.Sequential(model)

    changes = {"scheme": "fedsgd", "optimiser": "adam", "learning_rate": 0.1, "rounds": 1}
    state = finished(nought, slopes(1.0, -0.01), executor=executor, **changes)
    assert state.params.flatten().tolist() == pytest.approx([-0.1, -0.1], abs=1e-6)
    assert state.memory["mean"].tolist() == [[pytest.approx(0.1 * 0.495)]], "the mean of what was sent"


def test_the_compiled_code_gives_the_gradient_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    plain = Dense.gradients

    def watched(self: Dense, params: Any, plan: Any) -> Any:
        seen.append(len(plan.rows))
        return plain(self, params, plan)

    monkeypatch.setattr(Dense, "gradients", watched)
    data, changes = federation(), {"scheme": "fedsgd", "momentum": 0.9, "rounds": 5}
    fast, loop = (finished(line, data, executor=name, **changes) for name in ("auto", "loop"))
    assert seen == [4] * 5
    assert close(fast.params, loop.params)
    assert close(fast.memory["momentum"], loop.memory["momentum"])


@pytest.mark.parametrize("changes", [ADAM, {"momentum": 0.9, "momentum_rule": "mix"}, {**ADAM, "participation": 0.6}])
@pytest.mark.parametrize("factory", [tiny, tiny_conv])
def test_executors_agree(changes: dict[str, Any], factory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("loop", "stack"):
        monkeypatch.setattr(f"d2dfl.federation.executors.{module}.PIECE", 7)
    data = federation(shape=(2, 6, 6))
    loop = finished(factory, data, scheme="fedsgd", executor="loop", rounds=4, **changes)
    for points in (1, 14, 4096):  # rows at once: one, two, all
        monkeypatch.setattr("d2dfl.federation.executors.stack.POINTS", points)
        stack = finished(factory, data, scheme="fedsgd", executor="stack", rounds=4, **changes)
        assert close(loop.params, stack.params)
        assert all(close(rows, stack.memory[name]) for name, rows in loop.memory.items())
        assert np.allclose(loop.curves.training_losses, stack.curves.training_losses, rtol=1e-4)


def test_a_full_gradient_is_taken_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    passes: list[tuple[int, ...]] = []
    plain = Stack._inputs

    def watched(self: Stack, piece: Any, *others: Any) -> Any:
        passes.append(tuple(piece.shape))
        return plain(self, piece, *others)

    monkeypatch.setattr(Stack, "_inputs", watched)
    monkeypatch.setattr("d2dfl.federation.executors.stack.POINTS", 512)
    finished(tiny, federation(sizes=(600, 300, 500, 20, 580)), scheme="fedsgd", executor="stack", rounds=1)
    passes = [shape for shape in passes if shape != (2, 1)]  # the trial of two devices with one datapoint each
    assert {rows * width for rows, width in passes} <= set(range(1, 513))
    assert sum(rows * width for rows, width in passes) < 1.3 * 5 * 600, "little is done twice"


@pytest.mark.parametrize("changes", [ADAM, {**ADAM, "momentum_rule": "reset"}, {"participation": 0.6}])
@pytest.mark.parametrize("executor", ["loop", "stack", "auto"])
def test_a_run_goes_on_with_the_servers_memory(tmp_path: Path, changes: dict[str, Any], executor: Any) -> None:
    data, path = federation(), tmp_path / "state"
    settings = FederationConfig(**{**FAST, "rounds": 3, "scheme": "fedsgd", "executor": executor, **changes})
    longer = dataclasses.replace(settings, rounds=6)
    uncut = start(line, data, longer)
    train(line, data, longer, state=uncut)
    train(line, data, settings, on_round=lambda state: state.save(path))
    resumed = State.load(path, data.devices)
    assert {name: len(rows) for name, rows in resumed.memory.items()} == dict.fromkeys(uncut.memory, 1)
    assert resumed.memory, "the server's is kept, whatever devices do with theirs"
    assert train(line, data, longer, state=resumed) == uncut.curves
    assert torch.equal(resumed.params, uncut.params)
    assert all(torch.equal(rows, uncut.memory[name]) for name, rows in resumed.memory.items())
    resumed.save(tmp_path / "resumed")
    uncut.save(tmp_path / "uncut")
    assert (tmp_path / "resumed").read_bytes() == (tmp_path / "uncut").read_bytes()


def test_memory_of_devices_is_not_the_servers(tmp_path: Path) -> None:
    data, path = federation(), tmp_path / "state"
    settings = FederationConfig(**{**FAST, **ADAM, "scheme": "fedsgd"})
    state = start(tiny, data, settings)
    train(tiny, data, settings, state=state)
    state.memory = {name: rows.repeat(5, 1) + torch.arange(5.0)[:, None] for name, rows in state.memory.items()}
    state.save(path)
    with pytest.raises(UserError, match="fit"):
        train(tiny, data, dataclasses.replace(settings, rounds=3), state=State.load(path))


def test_several_servers_at_once_equal_each_alone() -> None:
    runs = [(federation(), 0), (federation(sizes=(7, 30, 11), seed=3), 1), (federation(seed=2), 5)]
    settings = FederationConfig(**{**FAST, **ADAM, "rounds": 5, "scheme": "fedsgd", "participation": 0.7})
    states = [start(tiny, data, settings, seed) for data, seed in runs]
    train_many(tiny, runs, settings, states=states)
    for state, (data, seed) in zip(states, runs, strict=True):
        alone = start(tiny, data, settings, seed)
        train(tiny, data, settings, seed, state=alone)
        assert close(state.params, alone.params)
        assert all(close(rows, alone.memory[name]) for name, rows in state.memory.items())


def test_a_gradient_costs_as_much_to_send_as_a_model() -> None:
    changes = {"stragglers": 1, "participation": 0.8, "rounds": 4}
    gradients = finished(tiny, federation(), scheme="fedsgd", **ADAM, **changes).curves
    models = finished(tiny, federation(), scheme="fedavg", **changes).curves
    assert (gradients.uploads, gradients.downloads) == (models.uploads, models.downloads)
    assert gradients.links == models.links
