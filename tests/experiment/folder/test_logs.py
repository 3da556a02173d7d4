"""Logs of a training: complete while it runs, and no round twice after a crash."""

import csv
import math
import os
import sys
from pathlib import Path

import pytest

from d2dfl.errors import MissingExtraError, UserError
from d2dfl.experiment.folder.logs import LOGS, open_logs, run_name

HEADER = b"run,step,name,value\n"
Rows = dict[tuple[str, str], list[tuple[int, float]]]  # (run, name) -> (step, value) in the order of the file


def rows_of_csv(folder: Path) -> Rows:
    found: Rows = {}
    with (folder / "log.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            found.setdefault((row["run"], row["name"]), []).append((int(row["step"]), float(row["value"])))
    return found


def rows_of_tensorboard(folder: Path) -> Rows:
    accumulator = pytest.importorskip(
        "tensorboard.backend.event_processing.event_accumulator",
        reason="no TensorBoard: make test EXTRAS=ray,tensorboard",
    )
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


FOREIGN = {
    "a text": b"my notes",
    "lines of text": b"my notes\nof last year\n",
    "other columns": b"time,value\n1,2\n",
    "a short row": HEADER + b"a,0\n",
    "a long row": HEADER + b"a,0,score,0.5,more\n",
    "an empty row": HEADER + b"\n",
    "a step that is no number": HEADER + b"a,first,score,0.5\n",
    "a step of 5,000 digits": HEADER + b"a," + b"9" * 5000 + b",score,0.5\n",
    "a value that is no number": HEADER + b"a,0,score,good\n",
    "bytes that are no text": HEADER + b"a,0,score,0.5\n\xff\xfe\n",
    "NULs": HEADER + b"a,0,score,0.5\n" + b"\0" * 40 + b"\n",
    "a quotation without end": HEADER + b'"a,0,score,0.5\nb,0,score,0.5\n',
    "a huge cell": HEADER + b"a" * 200_000 + b",0,score,0.5\n",
}


@pytest.mark.parametrize("resume", [True, False])
@pytest.mark.parametrize("content", FOREIGN.values(), ids=FOREIGN.keys())
def test_a_damaged_or_foreign_csv_is_one_sentence_and_stays(tmp_path: Path, content: bytes, resume: bool) -> None:
    (tmp_path / "log.csv").write_bytes(content)
    with pytest.raises(UserError) as caught:
        open_logs(["csv"], tmp_path, resume=resume)
    assert str(tmp_path / "log.csv") in str(caught.value)
    assert "\n" not in str(caught.value)
    assert (tmp_path / "log.csv").read_bytes() == content
    assert [path.name for path in tmp_path.iterdir()] == ["log.csv"]


@pytest.mark.parametrize("resume", [True, False])
@pytest.mark.parametrize("kind", ["pipe", "folder", "circle"])
def test_a_csv_that_is_no_file(tmp_path: Path, kind: str, resume: bool) -> None:
    path = tmp_path / "log.csv"
    {"pipe": os.mkfifo, "folder": os.mkdir, "circle": lambda it: it.symlink_to(it)}[kind](path)
    with pytest.raises(UserError, match="log.csv"):
        open_logs(["csv"], tmp_path, resume=resume)
    assert os.path.lexists(path)


def test_damage_during_a_run_is_one_sentence_too(tmp_path: Path) -> None:
    with open_logs(["csv"], tmp_path) as logs:
        logs.log("a", 0, {"score": 0.25})
        damaged = (tmp_path / "log.csv").read_bytes() + b"\0\0\n"
        (tmp_path / "log.csv").write_bytes(damaged)
        with pytest.raises(UserError, match="line 3 of .* is no row of a log"):
            logs.log("b", 0, {"score": 0.25})
    assert (tmp_path / "log.csv").read_bytes() == damaged


def everything(folder: Path) -> dict[str, bytes | None]:
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


@pytest.mark.parametrize("resume", [True, False])
@pytest.mark.parametrize(
    "place",
    ["notes.txt", "a/notes.txt", "a/events.txt", "a/b/events.out.tfevents.1.host.2.0", "a/events.out.tfevents.x"],
)
def test_a_folder_that_tensorboard_did_not_make_stays(tmp_path: Path, place: str, resume: bool) -> None:
    pytest.importorskip("tensorboard", reason="no TensorBoard: make test EXTRAS=ray,tensorboard")
    for run in ("tensorboard/a/events.out.tfevents.1.host.2.0", f"tensorboard/{place}"):
        (tmp_path / run).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / run).write_text("mine")
    (tmp_path / "log.csv").write_bytes(HEADER + b"a,0,score,0.5\n")
    before = everything(tmp_path)
    with pytest.raises(UserError, match="move .* away"):
        open_logs(["csv", "tensorboard"], tmp_path, resume=resume)
    assert everything(tmp_path) == before


@pytest.mark.parametrize("place", ["tensorboard", "tensorboard/a", "tensorboard/a/events.out.tfevents.1.host.2.0"])
def test_links_in_the_place_of_tensorboard_are_not_followed(tmp_path: Path, place: str) -> None:
    pytest.importorskip("tensorboard", reason="no TensorBoard: make test EXTRAS=ray,tensorboard")
    theirs = tmp_path / "theirs" / "a" / "events.out.tfevents.1.host.2.0"
    theirs.parent.mkdir(parents=True)
    theirs.write_text("mine")
    link = tmp_path / "run" / place
    link.parent.mkdir(parents=True)
    link.symlink_to(tmp_path / "theirs" / Path(place).relative_to("tensorboard"))
    with pytest.raises(UserError, match="move .* away"):
        open_logs(["tensorboard"], tmp_path / "run")
    assert theirs.read_text() == "mine"
    assert link.is_symlink()


def test_a_run_named_by_dots_stays_in_its_folder(name: str, tmp_path: Path) -> None:
    with open_logs([name], tmp_path / "run") as logs:
        logs.log("..", 0, {"score": 1.0})
    assert list(READERS[name](tmp_path / "run").values()) == [[(0, 1.0)]]
    assert [path.name for path in (tmp_path / "run").iterdir()] == [name if name == "tensorboard" else "log.csv"]


def test_a_log_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is no log 'paper': the logs are csv, tensorboard"):
        open_logs(["csv", "paper"], tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_no_logs_are_fine(tmp_path: Path) -> None:
    with open_logs([], tmp_path) as logs:
        logs.log("a", 0, {"score": 0.25})
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="cannot make the folder"):
        open_logs(["csv"], tmp_path / "file" / "run")


def test_tensorboard_that_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'd2dfl\[tensorboard\]'"):
        open_logs(["csv", "tensorboard"], tmp_path / "run")
    assert not (tmp_path / "run").exists()
