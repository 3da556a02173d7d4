"""Whole trainings: learning, repeating, stopping and going on, and several runs at once."""

import dataclasses
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from federations import FAST, federation, finished, tiny, tiny_conv
from torch import Tensor

from d2dfl import UserError
from d2dfl.data.datasets import load
from d2dfl.federation import (
    SCHEMES,
    Curves,
    Federated,
    FederationConfig,
    State,
    model_of,
    start,
    train,
    train_many,
)
from d2dfl.federation.models import mlp
from d2dfl.federation.sealed import read_sealed, write_sealed

SETTINGS = FederationConfig(**{**FAST, "rounds": 4})


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


class Killed(Exception):
    """The power went off."""


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("changes", [{"executor": "loop"}, {"executor": "stack", "participation": 0.6}])
def test_a_run_that_was_killed_goes_on_to_the_same_bits(tmp_path: Path, scheme: str, changes: dict[str, Any]) -> None:
    data = federation()
    settings = dataclasses.replace(SETTINGS, scheme=scheme, **changes)
    uncut = start(tiny, data, settings, 7)
    train(tiny, data, settings, 7, state=uncut)
    path = tmp_path / "state.pt"

    def save_then_die(state: State) -> None:
        state.save(path)
        if state.round == 2:
            raise Killed

    with pytest.raises(Killed):
        train(tiny, data, settings, 7, on_round=save_then_die)
    resumed = State.load(path)
    assert resumed.round == 2
    assert resumed.curves.uploads == uncut.curves.uploads[:2]
    assert resumed.curves.links == uncut.curves.links[:2]
    assert [len(models) for models in resumed.curves.downloads] == [5, 5]
    curves = train(tiny, data, settings, 7, state=resumed)
    assert curves == uncut.curves
    assert torch.equal(resumed.params, uncut.params)
    assert all(torch.equal(rows, uncut.memory[name]) for name, rows in resumed.memory.items())
    assert [file.name for file in tmp_path.iterdir()] == ["state.pt"]


def test_a_shared_model_is_saved_once(tmp_path: Path) -> None:
    data = federation(sizes=(4,) * 200)
    for rule in ("mix", "keep"):
        finished(mlp, data, momentum_rule=rule).save(tmp_path / rule)
    one_row = 4 * finished(mlp, data, rounds=1).params.shape[1]
    assert (tmp_path / "mix").stat().st_size < 2 * one_row + 30_000
    assert (tmp_path / "keep").stat().st_size > 200 * one_row


def test_states_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    data, path = federation(), tmp_path / "state.pt"
    state = finished(tiny, data)
    state.save(path)
    settings = FederationConfig(**FAST)
    with pytest.raises(UserError, match=r"with learning_rate 0\.1 and not 0\.2"):
        train(tiny, data, dataclasses.replace(settings, learning_rate=0.2), state=State.load(path))
    with pytest.raises(UserError, match="of seed 0 and not 3"):
        train(tiny, data, settings, 3, state=State.load(path))
    with pytest.raises(UserError, match="with 53 parameters"):
        train(mlp, data, settings, state=State.load(path))
    longer = dataclasses.replace(settings, rounds=3)
    assert train(tiny, data, longer, state=State.load(path)).rounds == [1, 2, 3]


def test_damaged_missing_and_unwritable_files_are_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "state.pt"
    state = finished(tiny, federation())
    state.save(path)
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(UserError, match="is damaged: it holds more or less than it says"):
        State.load(path)
    torch.save({"version": 99}, path)
    with pytest.raises(UserError, match="is damaged: its first bytes are wrong"):
        State.load(path)
    write_sealed(path, {"version": 99}, {})
    with pytest.raises(UserError, match="another version"):
        State.load(path)
    with pytest.raises(UserError, match="there is no file"):
        State.load(tmp_path / "none.pt")
    with pytest.raises(UserError, match="cannot write"):
        state.save(tmp_path / "missing" / "state.pt")


def test_no_flipped_bit_goes_unnoticed(tmp_path: Path) -> None:
    path = tmp_path / "state"
    finished(tiny, federation()).save(path)
    content = path.read_bytes()
    for place in np.random.default_rng(0).integers(8 * len(content), size=300).tolist():
        flipped = bytearray(content)
        flipped[place // 8] ^= 1 << place % 8
        path.write_bytes(flipped)
        with pytest.raises(UserError, match="is damaged"):
            State.load(path)


@pytest.mark.parametrize(
    ("part", "change"),
    [
        ("params", lambda held: held[:, :-1]),
        ("params", lambda held: np.repeat(held, 2, axis=0)),
        ("params", lambda held: held.astype(np.float64)),
        ("params", lambda held: held * np.nan),
        ("done", lambda held: held[:-1]),
        ("done", lambda held: held - 10**9),
        ("memory.momentum", lambda held: held[:, :-1]),
        ("memory.momentum", lambda held: held[0]),
        ("memory.momentum", None),
        ("round", lambda _: 1000),
        ("round", lambda _: "2"),
        ("curves", lambda curves: {**curves, "scores": curves["scores"][1:]}),
        ("curves", lambda curves: {**curves, "scores": ["a"] * len(curves["scores"])}),
        ("curves", lambda curves: {**curves, "links": [[1]] * len(curves["links"])}),
        ("curves", lambda curves: {"rounds": 3}),
        ("curves", lambda curves: {**curves, "scores": [10**400] * len(curves["scores"])}),
        ("curves", lambda curves: {**curves, "higher_is_better": not curves["higher_is_better"]}),
        ("curves", lambda curves: {**curves, "score_name": "<script>"}),
        ("curves", lambda curves: {**curves, "rounds": curves["rounds"][::-1]}),
        ("curves", lambda curves: {**curves, "uploads": [[1]] * len(curves["uploads"])}),
        ("curves", lambda curves: {**curves, "downloads": [[-1] * 5] * len(curves["uploads"])}),
        ("curves", lambda curves: {**curves, "links": [[[0, 99, 1]]] * len(curves["links"])}),
        ("curves", lambda curves: {**curves, "links": [[[0, 1, 10**30]]] * len(curves["links"])}),
        ("done", lambda held: held * 0),
        ("done", lambda held: held + 2**40),
        ("settings", lambda _: []),
    ],
)
def test_a_state_with_a_right_checksum_and_wrong_parts_is_refused(
    tmp_path: Path, part: str, change: Callable[[Any], Any] | None
) -> None:
    path, data = tmp_path / "state", federation()
    settings = dataclasses.replace(SETTINGS, momentum_rule="keep", scheme="decentralised")
    state = start(tiny, data, settings)
    train(tiny, data, settings, state=state)
    state.save(path)
    values, arrays, _ = read_sealed(path)
    held: dict[str, Any] = arrays if part in arrays else values
    if change is None:
        del held[part]
    else:
        held[part] = change(held[part])
    write_sealed(path, values, arrays)
    longer = dataclasses.replace(settings, rounds=settings.rounds + 1)
    with pytest.raises(UserError, match="fit|of a model with"):
        train(tiny, data, longer, state=State.load(path, data.devices))


def test_a_full_disk_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "state.pt"
    state = finished(mlp, federation())
    state.save(path)
    before = path.read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(UserError, match="cannot write"):
            state.save(path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert [file.name for file in tmp_path.iterdir()] == ["state.pt"]
    assert path.read_bytes() == before


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
        tiny, runs, SETTINGS, shares.append, lambda number, state: seen.append((number, state.round)), states
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


def test_the_direction_of_a_score_is_saved(tmp_path: Path) -> None:
    data = federation()
    values = (data.targets.astype(np.float32), data.test_targets.astype(np.float32))
    regression = dataclasses.replace(data, targets=values[0], test_targets=values[1], outputs=1, loss="mse")
    for number, (held, rising) in enumerate([(data, True), (regression, False)]):
        state = finished(tiny, held)
        state.save(tmp_path / f"{number}.pt")
        loaded = State.load(tmp_path / f"{number}.pt").curves
        assert loaded == state.curves
        assert loaded.higher_is_better == rising


def test_settings_are_checked() -> None:
    with pytest.raises(UserError, match="federation.interval cannot be 0"):
        FederationConfig(interval=0)
    with pytest.raises(UserError, match="federation.executor cannot be"):
        FederationConfig(executor="gpu")  # type: ignore[arg-type]  # wrong on purpose


def test_rows_of_a_state_are_what_the_engine_trains() -> None:
    data = federation()
    state = start(tiny, data, SETTINGS)
    seen: list[Tensor] = []
    train(tiny, data, SETTINGS, state=state, on_round=lambda now: seen.append(now.params.clone()))
    assert len(seen) == 4
    assert torch.equal(seen[-1], state.params)
