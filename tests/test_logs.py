"""Logs of a training: complete while it runs, and no round twice after a crash."""

import csv
import math
import sys
from pathlib import Path

import pytest

from d2dfl.errors import MissingExtraError, UserError
from d2dfl.logs import LOGS, open_logs, run_name

Rows = dict[tuple[str, str], list[tuple[int, float]]]  # (run, name) -> (step, value) in the order of the file


def rows_of_csv(folder: Path) -> Rows:
    found: Rows = {}
    with (folder / "log.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            found.setdefault((row["run"], row["name"]), []).append((int(row["step"]), float(row["value"])))
    return found


def rows_of_tensorboard(folder: Path) -> Rows:
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    found: Rows = {}
    for place in sorted((folder / "tensorboard").iterdir()):
        events = accumulator.EventAccumulator(str(place))
        events.Reload()
        for name in events.Tags()["scalars"]:
            found[place.name, name] = [(event.step, event.value) for event in events.Scalars(name)]
    return found


READERS = {"csv": rows_of_csv, "tensorboard": rows_of_tensorboard}


@pytest.fixture(params=list(LOGS))
def name(request: pytest.FixtureRequest) -> str:
    """Every log there is, as far as its package is installed."""
    if request.param == "tensorboard":
        pytest.importorskip("tensorboard", reason="no TensorBoard: make test EXTRAS=ray,tensorboard")
    return str(request.param)


def test_values_are_there_while_training(name: str, tmp_path: Path) -> None:
    with open_logs([name, name], tmp_path) as logs:
        for step in range(3):
            for seed in (0, 1):
                logs.log(run_name("marginal", seed), step, {"score": step / 4 + seed, "loss": 2.0**-step})
            found = READERS[name](tmp_path)  # not closed yet
            assert found["marginal-seed-1", "score"] == [(done, done / 4 + 1) for done in range(step + 1)]
    assert set(found) == {(f"marginal-seed-{seed}", value) for seed in (0, 1) for value in ("score", "loss")}
    assert found["marginal-seed-0", "loss"] == [(0, 1.0), (1, 0.5), (2, 0.25)]


def test_a_run_that_goes_on_repeats_no_round(name: str, tmp_path: Path) -> None:
    with open_logs([name], tmp_path) as logs:
        for step in range(5):  # the checkpoint is from round 2, the crash came in round 5
            logs.log("a", step, {"score": float(step)})
            logs.log("b", step, {"score": -float(step)})
    with open_logs([name], tmp_path, resume=True) as logs:
        for step in range(3, 7):
            logs.log("a", step, {"score": step + 0.5})
    found = READERS[name](tmp_path)
    assert found["a", "score"] == [(0, 0.0), (1, 1.0), (2, 2.0), (3, 3.5), (4, 4.5), (5, 5.5), (6, 6.5)]
    assert found["b", "score"] == [(step, -float(step)) for step in range(5)]


def test_a_new_run_starts_empty(name: str, tmp_path: Path) -> None:
    for run in ("old", "new"):
        with open_logs([name], tmp_path) as logs:
            logs.log(run, 0, {"score": 1.0})
    assert READERS[name](tmp_path) == {("new", "score"): [(0, 1.0)]}


def test_numbers_that_are_none_and_names_that_are_odd(name: str, tmp_path: Path) -> None:
    with open_logs([name], tmp_path) as logs:
        logs.log("../a,b", 0, {"loss": math.nan})
    [((_, value), [(step, loss)])] = READERS[name](tmp_path).items()
    assert (value, step) == ("loss", 0)
    assert math.isnan(loss)
    assert not list(tmp_path.parent.glob("a*b"))


def test_half_a_row_of_a_run_that_was_cut_is_removed(tmp_path: Path) -> None:
    with open_logs(["csv"], tmp_path) as logs:
        logs.log("a", 0, {"score": 0.25})
    with (tmp_path / "log.csv").open("a") as file:
        file.write("a,1,sco")
    with open_logs(["csv"], tmp_path, resume=True) as logs:
        logs.log("a", 1, {"score": 0.5})
    assert (tmp_path / "log.csv").read_text() == "run,step,name,value\na,0,score,0.25\na,1,score,0.5\n"


def test_a_log_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is no log 'paper': choose from csv, tensorboard"):
        open_logs(["csv", "paper"], tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_no_logs_are_fine(tmp_path: Path) -> None:
    with open_logs([], tmp_path) as logs:
        logs.log("a", 0, {"score": 0.25})
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="cannot write logs"):
        open_logs(["csv"], tmp_path / "file" / "run")


def test_tensorboard_that_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'd2dfl\[tensorboard\]'"):
        open_logs(["csv", "tensorboard"], tmp_path / "run")
    assert not (tmp_path / "run").exists()
