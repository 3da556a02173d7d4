"""A training's state in a file: a run goes on to the same bits, and a file that is not as it was is refused."""

import dataclasses
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from federations import FAST, SETTINGS, federation, finished, tiny
from torch import Tensor

from d2dfl import UserError
from d2dfl.federation import (
    SCHEMES,
    FederationConfig,
    State,
    start,
    train,
)
from d2dfl.federation.models import mlp
from d2dfl.federation.sealed import read_sealed, write_sealed


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


@pytest.mark.parametrize("scheme", SCHEMES)
def test_what_nobody_goes_on_with_is_saved_without_what_optimisers_remember(tmp_path: Path, scheme: str) -> None:
    data, settings = federation(), dataclasses.replace(SETTINGS, scheme=scheme)
    state = start(tiny, data, settings)
    curves = train(tiny, data, settings, state=state)
    state.save(tmp_path / "last", settings.rounds)
    again = State.load(tmp_path / "last")
    assert torch.equal(again.params, state.params)
    assert train(tiny, data, settings, state=again) == curves, "it has all its rounds"
    assert {name: held.shape for name, held in again.memory.items()} == {
        name: held.shape for name, held in state.memory.items()
    }
    assert not any(held.any() for held in again.memory.values())
    state.save(tmp_path / "longer", settings.rounds + 1)
    assert all(torch.equal(held, state.memory[name]) for name, held in State.load(tmp_path / "longer").memory.items())


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


def test_rows_of_a_state_are_what_the_engine_trains() -> None:
    data = federation()
    state = start(tiny, data, SETTINGS)
    seen: list[Tensor] = []
    train(tiny, data, SETTINGS, state=state, on_round=lambda now: seen.append(now.params.clone()))
    assert len(seen) == 4
    assert torch.equal(seen[-1], state.params)
