"""Whole trainings: learning, repeating, stopping and going on, and several runs at once."""

import dataclasses
from typing import Any

import numpy as np
import pytest
import torch
from federations import SETTINGS, federation, finished, tiny, tiny_conv

from d2dfl import UserError
from d2dfl.data.datasets import load
from d2dfl.federation import (
    SCHEMES,
    Curves,
    Federated,
    FederationConfig,
    model_of,
    start,
    train,
    train_many,
)
from d2dfl.federation.models import mlp


def digits(devices: int) -> Federated:
    dataset = load("digits")
    order = np.random.default_rng(0).permutation(len(dataset.train_inputs))
    return Federated.of(dataset, np.array_split(order, devices))


def test_ten_devices_learn_the_digits() -> None:
    shares: list[float] = []
    curves = train(mlp, digits(10), FederationConfig(rounds=6, learning_rate=0.05), progress=shares.append)
    assert curves.last_score > 0.9
    assert curves.rounds == [1, 2, 3, 4, 5, 6]
    assert curves.minibatches == [10, 20, 30, 40, 50, 60]
    assert curves.training_losses[-1] < curves.training_losses[0]
    assert shares == pytest.approx([number / 6 for number in range(7)])


def test_the_trained_model_can_be_taken_out() -> None:
    data = digits(3)
    settings = FederationConfig(rounds=2)
    state = start(mlp, data, settings)
    curves = train(mlp, data, settings, state=state)
    right = model_of(mlp, data, state)(torch.from_numpy(data.test_inputs)).argmax(1).numpy() == data.test_targets
    assert right.mean() == pytest.approx(curves.last_score)


def test_devices_of_a_decentralised_run_are_scored_one_by_one() -> None:
    curves = finished(tiny, federation(), scheme="decentralised").curves
    assert [len(scores) for scores in curves.device_scores] == [5, 5]
    assert curves.scores[-1] == pytest.approx(np.mean(curves.device_scores[-1]))
    assert curves.spreads[-1] == pytest.approx(np.std(curves.device_scores[-1]))
    shared = finished(tiny, federation()).curves
    assert [len(scores) for scores in shared.device_scores] == [1, 1]
    assert shared.spreads == [0, 0]


@pytest.mark.parametrize("scheme", [name for name, scheme in SCHEMES.items() if scheme.shared])
def test_after_a_round_of_a_shared_scheme_all_rows_are_equal(scheme: str) -> None:
    state = finished(tiny, federation(), scheme=scheme, stragglers=1, participation=0.7)
    assert (state.params == state.params[:1]).all()
    assert state.round == 2


def test_evaluation_is_rare_when_asked_and_always_last() -> None:
    curves = train(tiny, federation(), dataclasses.replace(SETTINGS, evaluate_every=3))
    assert curves.rounds == [3, 4]
    assert len(curves.training_losses) == 4


def test_the_same_seed_gives_the_same_bits() -> None:
    first, again, other = (finished(tiny, federation(), seed) for seed in (1, 1, 2))
    assert torch.equal(first.params, again.params)
    assert first.curves == again.curves
    assert not torch.equal(first.params, other.params)


def test_a_device_without_data_takes_no_step_and_has_no_weight() -> None:
    whole = finished(tiny, federation())
    assert whole.done.tolist() == [6, 6, 0, 6, 6]
    assert (whole.memory["momentum"][2] == 0).all()
    data = federation()
    without = dataclasses.replace(data, members=[held for held in data.members if len(held)])
    settings = {"scheme": "fedsgd", "executor": "loop"}
    assert torch.equal(finished(tiny, data, **settings).params[0], finished(tiny, without, **settings).params[0])


def test_a_round_in_which_nobody_with_data_takes_part_changes_nothing() -> None:
    data = dataclasses.replace(federation(), members=[np.arange(0), np.arange(0), np.arange(5)])
    state = finished(tiny, data, participation=0.0, rounds=6)
    idle = np.isnan(state.curves.training_losses)
    assert 0 < idle.sum() < 6
    assert state.done.tolist() == [0, 0, 3 * int((~idle).sum())]


@pytest.mark.parametrize("executor", ["loop", "stack"])
def test_a_loss_that_is_no_number_names_round_and_device(executor: Any) -> None:
    data = federation()
    data.inputs[data.members[3][:4]] = np.nan
    with pytest.raises(UserError, match="the loss of device 3 is no longer a number in round 1"):
        finished(tiny, data, executor=executor, batch=100)


def test_an_exploding_model_is_one_sentence() -> None:
    with pytest.raises(UserError, match="no longer a number in round"):
        finished(tiny_conv, federation(shape=(1, 6, 6)), learning_rate=1e20, rounds=5)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_several_runs_at_once_equal_separate_runs(scheme: str) -> None:
    other = federation(sizes=(7, 30, 11), seed=3)
    shared = dataclasses.replace(federation(), members=federation().members[::-1])
    runs = [(federation(), 0), (other, 1), (shared, 5)]
    settings = dataclasses.replace(SETTINGS, scheme=scheme, participation=0.7)
    seen: list[tuple[int, int]] = []
    shares: list[float] = []
    together = train_many(
        tiny, runs, settings, progress=shares.append, on_round=lambda number, state: seen.append((number, state.round))
    )
    assert seen == [(number, done) for done in (1, 2, 3, 4) for number in (0, 1, 2)]
    assert shares[-1] == 1
    for curves, (data, seed) in zip(together, runs, strict=True):
        _assert_same(curves, train(tiny, data, settings, seed))


def test_runs_that_do_not_fit_together_follow_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = [(federation(), seed) for seed in range(3)]
    seen: list[tuple[int, int]] = []
    monkeypatch.setattr("d2dfl.federation.training.free_bytes", lambda _: 45_000)
    shares: list[float] = []
    states = [start(tiny, data, SETTINGS, seed) for data, seed in runs]
    curves = train_many(
        tiny,
        runs,
        SETTINGS,
        progress=shares.append,
        on_round=lambda number, state: seen.append((number, state.round)),
        states=states,
    )
    assert seen[:2] == [(0, 1), (1, 1)], "two fit together"
    assert seen[-4:] == [(2, done) for done in (1, 2, 3, 4)], "the third follows"
    assert shares == sorted(shares)
    assert [state.curves for state in states] == curves
    looped = train_many(tiny, runs, dataclasses.replace(SETTINGS, executor="loop"))
    for one, other in zip(curves, looped, strict=True):
        _assert_same(one, other)


def _assert_same(one: Curves, other: Curves) -> None:
    assert one.scores == other.scores
    assert (one.rounds, one.uploads, one.links) == (other.rounds, other.uploads, other.links)
    assert np.allclose(one.losses, other.losses, rtol=1e-4)
    assert np.allclose(one.training_losses, other.training_losses, rtol=1e-4, equal_nan=True)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"members": [np.arange(0)] * 2}, "no device holds any data"),
        ({"members": [np.arange(3), np.array([47])]}, "device 1 holds datapoints 47 to 47: give numbers from 0 to 46"),
        ({"outputs": 2}, "labels run from 0 to 2: give whole numbers from 0 to 1"),
        ({"targets": np.zeros(3, dtype=np.int64)}, "differ in number"),
        ({"test_inputs": np.zeros((0, 6)), "test_targets": np.zeros(0, dtype=np.int64)}, "test set is empty"),
        ({"loss": "hinge"}, "the losses are cross-entropy, mse, triplet"),
        ({"loss": "mse"}, "the model has 3 outputs and a target 1 values"),
        ({"loss": "mse", "outputs": 1, "test_targets": np.full(11, np.nan)}, "a target of the regression is no number"),
        ({"loss": "triplet", "targets": np.zeros(47)}, "labels run from 0.0 to 0.0: give whole numbers from 0 on"),
        ({"loss": "triplet", "targets": np.full(47, -1)}, "labels run from -1 to -1: give whole numbers from 0 on"),
    ],
)
def test_bad_data_is_refused_in_one_sentence(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        dataclasses.replace(federation(), **changes)


def test_a_dataset_is_learned_by_its_kind_unless_told_otherwise() -> None:
    dataset = load("digits")
    members = np.array_split(np.arange(len(dataset.train_inputs)), 4)
    plain = Federated.of(dataset, members)
    assert (plain.loss, plain.outputs) == ("cross-entropy", 10)
    assert plain.targets is dataset.train_targets
    pseudo = (dataset.train_targets + 1) % 10
    semi = Federated.of(dataset, members, targets=pseudo)
    assert semi.targets is pseudo
    assert semi.test_targets is dataset.test_targets
    encoder = Federated.of(dataset, members, loss="triplet")
    assert (encoder.outputs, encoder.test_targets is dataset.test_targets) == (8, True)
    assert Federated.of(dataset, members, loss="triplet", outputs=3).outputs == 3
    numbers = dataclasses.replace(
        dataset,
        class_names=(),
        train_targets=dataset.train_targets.astype(np.float32),
        test_targets=dataset.test_targets.astype(np.float32),
    )
    regression = Federated.of(numbers, members)
    assert (regression.loss, regression.outputs) == ("mse", 1)
    with pytest.raises(UserError, match="digits has no classes, which linear evaluation needs"):
        Federated.of(numbers, members, loss="triplet")
    with pytest.raises(UserError, match="differ in number"):
        Federated.of(dataset, members, targets=pseudo[1:])
    with pytest.raises(UserError, match="labels run from 0 to 10: give whole numbers from 0 to 9"):
        Federated.of(dataset, members, targets=np.where(np.arange(len(pseudo)), pseudo, 10))
    with pytest.raises(UserError, match="the model has 2 outputs"):
        Federated.of(numbers, members, outputs=2)


def test_settings_are_checked() -> None:
    with pytest.raises(UserError, match="federation.interval cannot be 0"):
        FederationConfig(interval=0)
    with pytest.raises(UserError, match="federation.executor cannot be"):
        FederationConfig(executor="gpu")  # type: ignore[arg-type]  # wrong on purpose
