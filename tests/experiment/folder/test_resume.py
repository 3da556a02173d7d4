"""Runs that are cut, and folders that are not ours."""

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from comparisons import compared, contents, small
from d2dfl import Config, UserError
from d2dfl.experiment.compare import compare, plan_of
from d2dfl.experiment.folder.checkpoints import Checkpoints
from d2dfl.experiment.folder.store import folder_to_resume, free_folder, new_run_folder, run_folder

torch.set_num_threads(1)  # two threads on busy cores are slower


class CutError(BaseException):
    """The power went off."""


@pytest.fixture(scope="module", params=["auto", "cnn-lite"])
def whole(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Config, dict[str, bytes]]:
    """A run that nobody cut. A CNN trains one run after the other, an MLP all at once."""
    folder, config = (
        tmp_path_factory.mktemp("whole"),
        small(**{"federation.model": request.param, "federation.interval": 2}),
    )
    compared(folder / "run", config, seeds=[0])
    return config, contents(folder / "run")


@pytest.mark.parametrize("when", [0.1, 0.5, 0.9])
def test_a_cut_run_goes_on_to_the_same_files(
    tmp_path: Path, whole: tuple[Config, dict[str, bytes]], when: float
) -> None:
    config, files = whole

    def cut(what: str, share: float) -> None:
        if what == "train" and share > when:
            raise CutError

    with pytest.raises(CutError):
        compared(tmp_path / "cut", config, seeds=[0], progress=cut)
    assert (tmp_path / "cut" / "checkpoint.json").exists() == bool(list((tmp_path / "cut").glob("checkpoints/*")))
    assert not (tmp_path / "cut" / "results.json").exists()
    compared(tmp_path / "cut", config, seeds=[0], again="resume")
    assert contents(tmp_path / "cut") == files
    assert not list((tmp_path / "cut").glob("checkpoint*"))


def test_trainings_that_ended_take_little_of_the_disk(tmp_path: Path) -> None:
    """What optimisers of all devices remember is on the disk once, however many trainings there are."""
    config = small(**{"federation.model": "cnn-lite", "federation.interval": 2, "network.devices": 4})
    taken: list[int] = []

    def look(what: str, share: float) -> None:
        if what == "train" and share > 0:
            taken.append(Checkpoints(tmp_path / "run").taken)

    compared(tmp_path / "run", config, seeds=[0], progress=look)
    begun, ended = taken[0], min(taken)
    assert ended < 0.5 * begun, "a model alone, and not the momentum of four devices"
    assert begun < max(taken) <= 1.05 * (begun + 3 * ended), "one that trains, and three that ended"
    assert Checkpoints(tmp_path / "run").taken == 0


def saved_rounds(monkeypatch: pytest.MonkeyPatch, out: Path, config: Config, pause_s: float) -> list[dict[int, int]]:
    """Rounds of the trainings that were saved, each time; a round is said to take a second."""
    saved: list[dict[int, int]] = []
    seconds, save = itertools.count(), Checkpoints.save

    def look(self: Checkpoints, states: Any, trainings: int, rounds: int) -> None:
        saved.append({number: state.round for number, state in states.items()})
        save(self, states, trainings, rounds)

    class Clock:
        monotonic = staticmethod(lambda: next(seconds) / 2)  # asked when it may be time, and when states are saved

    monkeypatch.setattr(Checkpoints, "save", look)
    monkeypatch.setattr("d2dfl.experiment.compare.time", Clock)
    monkeypatch.setattr("d2dfl.experiment.compare.PAUSE_S", pause_s)
    compared(out, config, seeds=[0])
    return saved


def test_states_are_saved_at_first_at_last_and_now_and_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = small(**{"federation.interval": 1, "federation.rounds": 8})
    saved = saved_rounds(monkeypatch, tmp_path / "one", config, 1.5)
    rounds = [set(found.values()) for found in saved]
    assert rounds[0] == {1}
    assert rounds[-1] == {8}
    assert 2 < len(rounds) < 8
    assert contents(tmp_path / "one") == contents_of_all_rounds(tmp_path / "all", config, monkeypatch)


def contents_of_all_rounds(out: Path, config: Config, monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """The same run with every round saved."""
    assert len(saved_rounds(monkeypatch, out, config, 0.0)) == 8
    return contents(out)


@pytest.mark.parametrize("model", ["auto", "cnn-lite"])
@pytest.mark.parametrize("before", [True, False])
def test_a_run_can_be_cut_at_every_single_write(
    tmp_path: Path, model: str, before: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process ends just before, or just after, the first, the second, … file takes its place or is removed."""
    length = {"federation.rounds": 2, "federation.interval": 1, "data.samples": 20, "network.devices": 3}
    config = small(**{"federation.model": model, **length})

    def measured(out: Path) -> None:
        with run_folder(out, plan_of(config, ["closest"], [0]), "resume") as record:
            if not record.finished:
                compare(config, ["closest"], [0], record)
            record.finish()

    measured(tmp_path / "whole")
    left = itertools.count()

    def dying(act: Callable[..., Any]) -> Callable[..., Any]:
        def instead(*arguments: Any, **named: Any) -> Any:
            now = next(left)
            if now == 0 and before:
                raise CutError
            done = act(*arguments, **named)
            if now == 0:
                raise CutError
            return done

        return instead

    for cut in range(100):
        out, left = tmp_path / f"cut-{cut}", itertools.count(-cut)
        for name in ("replace", "unlink", "rmdir"):
            monkeypatch.setattr(Path, name, dying(getattr(Path, name)))
        try:
            measured(out)
            break  # it has fewer writes than that
        except CutError:
            monkeypatch.undo()
            measured(out)
            assert contents(out) == contents(tmp_path / "whole")
    assert cut >= (6 if model == "auto" else 14)


def test_a_damaged_checkpoint_is_refused(tmp_path: Path) -> None:
    def cut(what: str, share: float) -> None:
        if what == "train" and share > 0.5:
            raise CutError

    out = tmp_path / "run"
    with pytest.raises(CutError):
        compared(out, small(), progress=cut)
    good = {path: path.read_bytes() for path in (out / "checkpoint.json", *(out / "checkpoints").iterdir())}
    draws = np.random.default_rng(1)
    for path, content in good.items():
        for place in draws.integers(8 * len(content), size=20).tolist():
            flipped = bytearray(content)
            flipped[place // 8] ^= 1 << place % 8
            path.write_bytes(flipped)
            with pytest.raises(UserError):
                Checkpoints(out).open([5] * 8)
        path.write_bytes(content)
    with pytest.raises(UserError, match="fit together"):
        Checkpoints(out).open([6] * 8)
    with pytest.raises(UserError, match="not the checkpoint of this run"):
        Checkpoints(out).open([5] * 9)
    path.unlink()
    with pytest.raises(UserError, match="there is no file"):
        compared(out, small(), again="resume")
    path.write_bytes(content)
    assert (
        compared(out, small(), again="resume").to_dict() == compare(small(), ["marginal", "closest"], [0, 1]).to_dict()
    )


def test_another_run_is_neither_gone_on_with_nor_lost(tmp_path: Path) -> None:
    out, one = tmp_path / "run", small(**{"federation.rounds": 1})
    compared(out, one)
    before = contents(out)
    for config, again, says in (
        (one, "refuse", "holds this run already"),
        (small(), "refuse", "holds another run already"),
        (small(), "resume", "another run"),
    ):
        with pytest.raises(UserError, match=says):
            compared(out, config, again=again)  # type: ignore[arg-type]  # words of a closed set
    assert contents(out) == before
    mark = json.loads(before["run.json"])
    for text, says in (
        (json.dumps({**mark, "format": 99}), "another version"),
        (json.dumps({**mark, "plan": 1}), "changed by hand"),
        ("{", "not a run folder"),
        ('{"made_by": "me"}', "not a run folder"),
        ("[" * 100_000, "not a run folder"),
    ):
        (out / "run.json").write_text(text)
        for again in ("refuse", "resume"):
            with pytest.raises(UserError, match=says):
                compared(out, one, again=again)  # type: ignore[arg-type]  # as above


def test_a_folder_of_the_users_own_stays_as_it_is(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    (mine / "checkpoint-7").mkdir(parents=True)
    for name in ("results.json", "config.toml", "checkpoint-7/weights", "run.json"):
        (mine / name).write_text("mine")
    before = contents(mine)
    for again in ("refuse", "resume"):
        with pytest.raises(UserError, match="not a run folder of d2dfl, and not empty"):
            compared(mine, small(), again=again)  # type: ignore[arg-type]  # words of a closed set
    assert contents(mine) == before


def test_what_fails_before_a_first_result_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for out in (tmp_path / "new" / "deep", tmp_path / "empty"):
        with pytest.raises(UserError, match="stragglers"):
            compared(out, small(**{"federation.stragglers": 5}), logs=["csv"])
        assert list(tmp_path.rglob("*")) == [tmp_path / "empty"]


def test_numbered_folders(tmp_path: Path) -> None:
    default, config = tmp_path / "runs" / "compare", small(**{"federation.rounds": 1})
    plan = plan_of(config, ["closest"], [0])
    assert free_folder(default) == default
    assert folder_to_resume(default, plan) is None
    compared(default, small(**{"federation.rounds": 2}), ["closest"], [0])
    second = tmp_path / "runs" / "compare-2"
    assert free_folder(default) == second
    assert folder_to_resume(default, plan) is None
    compared(tmp_path / "runs" / "compare-3", config, ["closest"], [0])
    (tmp_path / "runs" / "compare-4").mkdir()
    (tmp_path / "runs" / "compare-4" / "mine").touch()
    assert folder_to_resume(default, plan) == tmp_path / "runs" / "compare-3"  # numbers may be missing, or others' own
    assert free_folder(default) == second
    with new_run_folder(default, plan) as first, new_run_folder(default, plan) as other:
        assert (first.path.name, other.path.name) == ("compare-2", "compare-5")
