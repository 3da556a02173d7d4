"""What the command line says when it is stopped, or when it cannot begin."""

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from small_runs import COMPARE

from calling import call


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


def stop(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def test_a_comparison_without_a_finished_round_keeps_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("d2dfl.experiment.compare.train_many", stop)
    assert call(monkeypatch, *COMPARE) == 130
    assert capsys.readouterr().err.strip() == "d2dfl: stopped; nothing was kept: no round of training was finished"
    assert not list(tmp_path.rglob("run.json"))


def test_a_service_manager_stops_it_as_a_user_does(tmp_path: Path) -> None:
    longer = [*COMPARE, "--rounds", "2000"]
    process = subprocess.Popen([sys.executable, "-m", "d2dfl", *longer], stderr=subprocess.PIPE, text=True)
    while process.poll() is None and not list(tmp_path.rglob("checkpoint.json")):
        time.sleep(0.05)
    process.terminate()
    said = process.communicate()[1]
    assert process.returncode == 130
    assert "d2dfl: stopped; finished rounds are kept, but for the last 10 s; to go on: d2dfl compare " in said


def test_a_comparison_that_was_stopped_says_how_to_go_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from d2dfl.experiment.folder.checkpoints import Checkpoints

    save = Checkpoints.save

    def then_stop(self: Checkpoints, *plan: Any) -> None:
        save(self, *plan)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Checkpoints, "save", then_stop)
        assert call(patched, *COMPARE) == 130
    said = capsys.readouterr().err.strip()
    assert said.startswith("d2dfl: stopped; finished rounds are kept, but for the last 10 s; to go on: d2dfl compare ")
    command = said.partition("to go on: ")[2].split()
    with monkeypatch.context() as patched:  # typed once more without --resume: it says what is there
        patched.setattr("d2dfl.experiment.compare.train_many", stop)
        assert call(patched, *COMPARE) == 130
    again = capsys.readouterr().err
    assert (
        "runs/compare holds this run, unfinished; a new one begins. To go on with it instead: d2dfl compare " in again
    )
    assert "--resume --out runs/compare\n" in again
    assert command[-3:] == ["--resume", "--out", "runs/compare"]
    assert call(monkeypatch, *command[1:]) == 0
    assert (tmp_path / "runs" / "compare" / "table.md").exists()
    capsys.readouterr()
    with monkeypatch.context() as patched:  # it is finished: nothing to say
        patched.setattr("d2dfl.experiment.compare.train_many", stop)
        assert call(patched, *COMPARE) == 130
    assert "unfinished" not in capsys.readouterr().err


@pytest.mark.parametrize("command", ["compare", "run"])
def test_a_folder_knows_its_own_settings(
    command: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from d2dfl.experiment.folder.checkpoints import Checkpoints

    save = Checkpoints.save

    def then_stop(self: Checkpoints, *plan: Any) -> None:
        save(self, *plan)
        raise KeyboardInterrupt

    assert call(monkeypatch, *COMPARE, "--out", "whole") == 0
    with monkeypatch.context() as patched:
        patched.setattr(Checkpoints, "save", then_stop)
        assert call(patched, *COMPARE, "--out", "cut") == 130
    capsys.readouterr()
    assert call(monkeypatch, "compare", "--devices", "9", "--resume", "--out", "cut") == 2
    said = capsys.readouterr().err
    assert "whose network.devices was 4: give the same settings as then, or none, or another folder" in said
    assert call(monkeypatch, command, "--resume", "--out", "cut") == 0
    assert (tmp_path / "cut" / "results.json").read_bytes() == (tmp_path / "whole" / "results.json").read_bytes()


@pytest.mark.parametrize("out", [[], ["--out", "mine"]])
def test_nothing_to_resume_is_said(
    out: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("d2dfl.experiment.compare.train_many", stop)
    assert call(monkeypatch, *COMPARE, "--resume", *out) == 130
    assert f"nothing to resume in {out[1] if out else 'runs/compare'}: a new run begins" in capsys.readouterr().err
    monkeypatch.setattr("d2dfl.paper.run.run_grid", stop)
    assert call(monkeypatch, "reproduce", "example", "--resume", *out) == 130
    named = out[1] if out else "runs/reproduce-tiny"
    assert f"nothing to resume in {named}: a new run begins" in capsys.readouterr().err


def test_a_reproduction_that_was_stopped_says_what_was_kept(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from d2dfl.paper import run

    monkeypatch.setattr(run, "run_grid", stop)
    command = ["reproduce", "example", "--out", "out"]
    assert call(monkeypatch, *command) == 130
    assert "stopped; nothing was kept: no cell was finished" in capsys.readouterr().err

    def half(_tasks: object, _work: object, folder: Path, **_: object) -> None:
        (folder / "cells").mkdir()
        (folder / "cells" / "one.json").touch()
        raise KeyboardInterrupt

    monkeypatch.setattr(run, "run_grid", half)
    assert call(monkeypatch, *command) == 130
    said = capsys.readouterr().err
    assert "1 finished cell kept in out; to go on: d2dfl reproduce example --out out --resume" in said


def test_a_log_that_lacks_its_package_is_refused_at_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    monkeypatch.setattr("d2dfl.experiment.folder.store.make_folder", lambda _: pytest.fail("it made a folder"))
    assert call(monkeypatch, *COMPARE, "--log", "tensorboard") == 2
    assert "pip install 'd2dfl[tensorboard]'" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_too_many_devices_for_the_data_is_said_with_what_to_type(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, "run", "--method", "none", "--devices", "500") == 2
    said = capsys.readouterr().err
    assert "digits has 1,438 datapoints to train on, too few for labels:3 at each of 500 devices" in said
    assert "give --devices" in said
    assert "or --set data.allocation=labels:" in said
    assert "0 datapoints" not in said
