"""What all systems train, and its files: arrays, minibatches, first weights and settings."""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch

from d2dfl.config import FederationConfig
from d2dfl.data.datasets import load
from d2dfl.federation import MODELS, Federated, model_of, start
from d2dfl.federation.batches import Batches


@dataclass(frozen=True)
class TaskPlan:
    """What is trained."""

    name: str
    model: str
    devices: int
    samples: int  # of a device
    batch: int
    steps: int  # of a device in a round
    learning_rate: float
    trials: int  # rounds that choose the best setting of a system
    cycles: int  # rounds that are timed
    seed: int = 0
    participation: float = 1.0
    pool: int = 0  # datapoints that devices share, each with all it holds in every minibatch; 0: everybody has its own

    @property
    def rounds(self) -> int:
        """The first (start-up) and the last (ours evaluates in it) are not timed."""
        return 1 + self.trials + self.cycles + 1

    @property
    def title(self) -> str:
        return (
            f"{self.devices} devices, {self.model}, {self.samples} datapoints a device, minibatches of "
            f"{min(self.batch, self.samples)}, {self.steps} steps a round, SGD {self.learning_rate:g} with momentum "
            f"0.9, FedAvg, float32, {self.rounds} rounds"
        )

    def smaller(self) -> Self:
        """For a quick look."""
        return replace(self, devices=min(self.devices, 25) // 5, trials=1, cycles=2)


TASKS = {
    "alexnet": TaskPlan("alexnet", "alexnet", 25, 240, 64, 4, 0.001, trials=1, cycles=4),
    "digits": TaskPlan("digits", "mlp", 100, 14, 64, 10, 0.01, trials=4, cycles=25),
    "digits, one epoch": TaskPlan("digits, one epoch", "mlp", 100, 14, 64, 1, 0.1, trials=4, cycles=25),
}


def write_task(plan: TaskPlan, folder: Path) -> None:
    """The arrays, the minibatches, the first weights and the settings, once for all systems."""
    arrays = _images(plan) if plan.model == "alexnet" else _digits(plan)
    written = {**arrays, "members": _members(plan, len(arrays["inputs"]))}
    members = written["members"]
    if not plan.pool:
        batches = Batches(list(members), plan.seed, plan.batch)
        rounds = [
            [batches.draw(device, number * plan.steps, plan.steps) for device in range(plan.devices)]
            for number in range(plan.rounds)
        ]
        written["batches"] = np.array(rounds)
    for name, array in written.items():
        np.save(folder / f"{name}.npy", array)
    data = Federated(
        arrays["inputs"], arrays["targets"], list(members), arrays["test_inputs"], arrays["test_targets"], 10
    )
    factory, settings = MODELS[plan.model], FederationConfig(momentum_rule="reset")
    torch.save(model_of(factory, data, start(factory, data, settings, plan.seed)), folder / "model.pt")
    known = {"model": plan.model, "outputs": 10, "seed": plan.seed, "batch": plan.batch}
    known |= {"learning_rate": plan.learning_rate, "momentum": 0.9, "steps": plan.steps}
    (folder / "settings.json").write_text(json.dumps(known | {"participation": plan.participation}))


def _members(plan: TaskPlan, held: int) -> Any:
    """[device, datapoint] who holds what."""
    if not plan.pool:
        return np.arange(plan.devices * plan.samples).reshape(plan.devices, plan.samples)
    draws = np.random.default_rng(1)
    return np.stack([draws.choice(held, plan.samples, replace=False) for _ in range(plan.devices)])


def _images(plan: TaskPlan) -> dict[str, Any]:
    """Colour images: patches that tell the class, under noise, so that a few rounds teach something but not all."""
    generator = np.random.default_rng(7)
    train, test = plan.pool or plan.devices * plan.samples, 1000
    patterns = np.kron(generator.normal(size=(10, 3, 4, 4)), np.ones((8, 8)))
    targets = generator.integers(0, 10, train + test)
    noise = generator.normal(size=(train + test, 3, 32, 32))
    inputs = (patterns[targets] / 2 + noise).astype(np.float32)
    return _split(inputs, targets, train)


def _digits(plan: TaskPlan) -> dict[str, Any]:
    """Handwritten digits, shuffled over the devices."""
    dataset = load("digits")
    order = np.random.default_rng(0).permutation(len(dataset.train_inputs))[: plan.pool or plan.devices * plan.samples]
    return {
        "inputs": dataset.train_inputs[order],
        "targets": dataset.train_targets[order],
        "test_inputs": dataset.test_inputs,
        "test_targets": dataset.test_targets,
    }


def _split(inputs: Any, targets: Any, train: int) -> dict[str, Any]:
    return {
        "inputs": inputs[:train],
        "targets": targets[:train],
        "test_inputs": inputs[train:],
        "test_targets": targets[train:],
    }
