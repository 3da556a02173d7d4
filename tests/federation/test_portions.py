"""Federations cut into portions: workers that have only their own devices give the bits of all in one place."""

import dataclasses
import pickle
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from federations import FAST, federation, tiny, tiny_conv
from torch import Tensor

from d2dfl import UserError
from d2dfl.federation import SCHEMES, Federated, FederationConfig, start, train_many
from d2dfl.federation.models import mlp
from d2dfl.federation.optimisers import Memory
from d2dfl.federation.portions import Portion, Portions
from d2dfl.federation.sums import PIECES
from d2dfl.federation.workplace import Order, Outcome
from d2dfl.progress import Share, silent

SERVED = [name for name, scheme in SCHEMES.items() if scheme.groups is not None or scheme.server_step]


class Apart:
    """Workers that share nothing: what they get went through bytes."""

    def __init__(self, *powers: float) -> None:
        self.powers = powers
        self.held: list[Portion] = []

    def place(self, portions: Portions) -> "Apart":
        self.portions = portions
        self.bounds = list(portions.cut(self.powers))
        self.held = [pickle.loads(pickle.dumps(portions.portion(one))) for one in self.bounds]
        self.places = [held.workplace() for held in self.held]
        return self

    def train(self, models: Tensor, memory: Memory, order: Order, tell: Share = silent) -> Sequence[Outcome]:
        self.portions.check(order)
        outcomes: list[Outcome] = []
        keeps = self.portions.job.settings.momentum_rule == "keep" and not self.portions.scheme.server_step
        for bounds, place in zip(self.bounds, self.places, strict=True):
            entries, part = order.between(bounds)
            rows = torch.from_numpy(order.memory[entries])
            own = {name: held[rows] for name, held in memory.items()} if keeps else memory
            outcomes += place.train(models, own, pickle.loads(pickle.dumps(part)))
            for name, held in memory.items() if keeps else ():
                held[rows] = own[name]
        return outcomes


def many(seed: int = 0, shape: tuple[int, ...] = (6,)) -> Federated:
    return federation(sizes=(9, 20, 0, 13, 5, 8, 8, 30, 0, 3, 11, 2), seed=seed, shape=shape)


@pytest.mark.parametrize("scheme", SERVED)
@pytest.mark.parametrize("rule", ["keep", "reset", "mix"])
@pytest.mark.parametrize(("factory", "executor"), [(tiny, "loop"), (tiny, "stack"), (mlp, "auto"), (tiny_conv, "auto")])
def test_portions_change_no_bit(scheme: str, rule: Any, factory: Any, executor: Any) -> None:
    settings = FederationConfig(
        **FAST, scheme=scheme, momentum_rule=rule, executor=executor, participation=0.8, block=3
    )
    shape = (1, 6, 6) if factory is tiny_conv else (6,)
    runs = [(many(shape=shape), 0), (many(3, shape), 1)]
    for powers in ((1, 1), (1, 2, 5), (1,) * 9):
        near, far = ([start(factory, data, settings, seed) for data, seed in runs] for _ in range(2))
        train_many(factory, runs, settings, states=near)
        cluster = Apart(*powers)
        train_many(factory, runs, settings, states=far, cluster=cluster)
        for one, other in zip(near, far, strict=True):
            assert torch.equal(one.params, other.params)
            assert all(torch.equal(held, other.memory[name]) for name, held in one.memory.items())
            assert one.curves == other.curves
            assert (one.done == other.done).all()


def test_a_portion_holds_its_own_devices_and_no_datapoint_of_others() -> None:
    data, settings = federation(sizes=(10,) * 40), FederationConfig(**FAST)
    cluster = Apart(1, 3)
    train_many(mlp, [(data, 0)], settings, cluster=cluster)
    small, large = cluster.held
    assert len(small.runs[0].devices) == 10
    assert len(large.runs[0].devices) == 30
    assert len(small.inputs) == 100
    for portion in cluster.held:
        (own,) = portion.runs
        for device, members in zip(own.devices, np.split(own.members, np.cumsum(own.sizes)[:-1]), strict=True):
            assert np.array_equal(portion.inputs[members], data.inputs[data.members[device]])


def test_power_says_how_many_devices_a_worker_gets() -> None:
    data, settings = federation(sizes=(1,) * 1000), FederationConfig(**FAST)
    cluster = Apart(1, 1, 2, 4)
    train_many(mlp, [(data, 0)], settings, cluster=cluster)
    counts = [len(portion.runs[0].devices) for portion in cluster.held]
    assert sum(counts) == 1000
    assert np.abs(np.array(counts) - [125, 125, 250, 500]).max() <= 1000 / PIECES
    assert (cluster.bounds[0][0], cluster.bounds[-1][1]) == (0, PIECES)


def test_groups_that_change_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Devices stay where their data is."""
    changing = dataclasses.replace(
        SCHEMES["fedavg"], name="changing", groups=lambda moment: np.argsort(-moment.weights, kind="stable")
    )
    monkeypatch.setitem(SCHEMES, "changing", changing)
    settings = FederationConfig(**FAST, scheme="changing", participation=0.5)
    with pytest.raises(UserError, match="change from round to round, and devices stay where their data is"):
        train_many(mlp, [(many(), 0)], settings, cluster=Apart(1, 1))
