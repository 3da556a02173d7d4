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
from torch import Tensor, nn

from d2dfl import UserError
from d2dfl.federation import Federated, FederationConfig, State, start, train, train_many, triplet
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
    assert state.params.flatten().tolist() == pytest.approx([-0.1], abs=1e-6)
    assert state.memory["mean"].tolist() == [[pytest.approx(0.1 * 0.495)]], "the mean of what was sent"


def piecewise(factory: Any, data: Federated, settings: FederationConfig) -> tuple[Tensor, list[float]]:
    """One round by the loop of local steps: each device's gradient by a step of its own, and then their mean."""
    local = dataclasses.replace(settings, scheme="fedavg", interval=1, batch=10_000, optimiser="sgd", momentum=0.0)
    state = start(factory, data, local)
    before = state.params[0].clone()
    curves = train(factory, data, local, state=state)
    return before - state.params[0], curves.training_losses


@pytest.mark.parametrize("points", [1, 14, 1024])  # pieces in a block: one, two, all
@pytest.mark.parametrize("loss", ["cross-entropy", "literal", "all"])
@pytest.mark.parametrize("factory", [tiny, tiny_conv])
def test_blocks_give_the_mean_of_the_devices_gradients(
    factory: Any, loss: Any, points: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("loop", "shared"):
        monkeypatch.setattr(f"d2dfl.federation.executors.{module}.PIECE", 7)
    monkeypatch.setattr("d2dfl.federation.executors.shared.POINTS", {"cpu": points})
    data = federation(sizes=(9, 20, 0, 14, 1), shape=(2, 6, 6))
    if loss != "cross-entropy":
        data = dataclasses.replace(data, loss=triplet(views=loss), outputs=4)
    settings = FederationConfig(
        **{**FAST, "rounds": 1, "learning_rate": 1.0, "momentum": 0.0, "executor": "loop", "scheme": "fedsgd"}
    )
    expected, losses = piecewise(factory, data, settings)
    state = start(factory, data, settings)
    before = state.params[0].clone()
    curves = train(factory, data, settings, state=state)
    assert torch.allclose(before - state.params[0], expected, rtol=1e-4, atol=1e-6)
    assert curves.training_losses == pytest.approx(losses, rel=1e-5)


def test_a_full_gradient_is_taken_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("d2dfl.federation.executors.shared.POINTS", {"cpu": 512})
    sizes: list[int] = []

    class Watched(nn.Linear):
        def forward(self, inputs: Tensor) -> Tensor:
            if self.training:
                sizes.append(len(inputs))
            return super().forward(inputs)

    def watched(shape: tuple[int, ...], outputs: int) -> nn.Module:
        return nn.Sequential(Watched(math.prod(shape), outputs))

    monkeypatch.setattr("d2dfl.federation.executors.shared.draws_nothing", lambda _: True)
    finished(watched, federation(sizes=(600, 300, 500, 20, 580)), scheme="fedsgd", executor="loop", rounds=1)
    assert max(sizes) == 512
    assert 2000 <= sum(sizes) < 2300, "little is done in vain"


def test_random_layers_draw_for_each_device_by_itself() -> None:
    def random(shape: tuple[int, ...], outputs: int) -> nn.Module:
        return nn.Sequential(nn.Linear(6, 8), nn.Dropout(0.5), nn.Linear(8, outputs))

    data = federation()
    one, again = (finished(random, data, scheme="fedsgd", executor="loop", rounds=2) for _ in range(2))
    assert torch.equal(one.params, again.params)
    other = dataclasses.replace(data, members=[data.members[0], *([np.arange(0)] * 4)])
    alone = finished(random, other, scheme="fedsgd", executor="loop", rounds=1)
    settings = FederationConfig(**{**FAST, "rounds": 1, "scheme": "fedsgd", "executor": "loop"})
    expected, _ = piecewise(random, other, settings)
    moved = start(random, other, settings).params[0] - alone.params[0]
    assert torch.allclose(moved, expected, rtol=1e-4, atol=1e-6), "as in local steps"


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
