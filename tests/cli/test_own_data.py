"""Own data and own links on the command line; a run says which files it was made with."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from d2dfl.cli.app import main

ROWS = 120
DRAWS = np.random.default_rng(0)
Y = np.arange(ROWS) % 3
X = DRAWS.normal(size=(ROWS, 2)) + Y[:, None]
DEVICE = (Y + (DRAWS.random(ROWS) < 0.3)) % 4
QUICK = ["--rounds", "1", "--method", "closest", "--set", "federation.interval=1"]


def call(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    """The exit code of `d2dfl` with these arguments."""
    monkeypatch.setattr(sys, "argv", ["d2dfl", *arguments])
    with pytest.raises(SystemExit) as caught:
        main()
    return int(caught.value.code or 0)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Somewhere with data and links."""
    monkeypatch.chdir(tmp_path)
    np.savez("mine.npz", X=X, y=np.array(["a", "b", "c"])[Y], device=DEVICE)
    np.savez("links.npz", drop=np.full((4, 4), 0.1))
    lines = ["one,two,species,site", *(f"{a},{b},{y},{d}" for (a, b), y, d in zip(X, Y, DEVICE, strict=True))]
    Path("mine.csv").write_text("\n".join(lines))
    return tmp_path


def contents(path: Path) -> dict[str, bytes]:
    return {str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*") if file.is_file()}


def test_arrays_links_and_what_comes_out(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = ["--data", "mine.npz", "--network", "links.npz", "--trust", "full", "--out", "run"]
    assert call(monkeypatch, "run", *given, *QUICK) == 0
    with np.load(folder / "run" / "holdings" / "none-seed-0.npz") as held:
        assert (DEVICE[held["rows"]] == held["device"]).all(), "rows are those of the file"
        assert len(held["rows"]) == 96
    graph = json.loads((folder / "run" / "graphs" / "closest-seed-0.json").read_text())
    assert set(graph["drop"]) == {0.1}
    assert call(monkeypatch, "run", "--from", "run", "--out", "again") == 0
    assert contents(folder / "again") == contents(folder / "run")


def test_a_table_and_compare(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["--data", "mine.csv", "--label", "species", "--device", "site", "--out", "run"]
    few = ["--methods", "closest", "--seeds", "2", "--rounds", "1", "--set", "federation.interval=1"]
    assert call(monkeypatch, "compare", *given, *few) == 0
    assert "datapoints of mine.csv each (as the data says), fedavg" in capsys.readouterr().err
    mark = json.loads((folder / "run" / "run.json").read_text())
    assert "sha256" in mark["config"]
    dealt = ["--data", "mine.csv", "--label-column", "species", "--devices", "5", "--out", "dealt"]
    assert call(monkeypatch, "run", *dealt, *QUICK, "--set", "data.allocation=labels:1") == 0


def test_settings_that_files_say_otherwise_are_marked(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The file gives who holds what and who trusts whom; one of its five devices holds nothing."""
    np.savez("trusting.npz", drop=np.full((5, 5), 0.1), trust=np.ones((5, 5, 3)), format=2)
    given = ["--data", "mine.npz", "--network", "trusting.npz", "--out", "run"]
    assert call(monkeypatch, "run", *given, *QUICK) == 0
    assert "1 device without data: 4" in " ".join(capsys.readouterr().err.split())
    first, second, *_ = (folder / "run" / "config.toml").read_text().splitlines()
    assert first.startswith("# used: 5 devices with 0 to ")
    assert second == (
        "# these do not count here: network.samples_per_device, network.labels_per_device, data.allocation; "
        "network.trust (trusting.npz says it)"
    )
    assert call(monkeypatch, "run", *given, *QUICK, "--resume") == 0


def test_a_changed_file_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["--data", "mine.npz", "--network", "links.npz", *QUICK]
    assert call(monkeypatch, "run", *given, "--out", "run") == 0
    before = contents(folder / "run")
    np.savez("mine.npz", X=X + 1, y=Y, device=DEVICE)
    capsys.readouterr()
    assert call(monkeypatch, "run", "--from", "run", "--out", "again") == 2
    assert "mine.npz is not the file that the run was made with" in capsys.readouterr().err
    assert not (folder / "again").exists()
    assert call(monkeypatch, "run", *given, "--out", "run", "--resume") == 2
    assert "mine.npz has changed since run began: give it as it was, or another folder" in capsys.readouterr().err
    assert contents(folder / "run") == before


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--data", "mine.csv"], "mine.csv has no 'label': name the column with --label-column"),
        (
            ["--data", "mine.csv", "--label-column", "species"],
            "name the column with --device-column, or deal the rows out",
        ),
        (["--data", "mine.npz", "--label-column", "y"], "--label-column names a column of a .csv or .parquet"),
        (["--device-column", "site"], "--device-column names a column of a .csv or .parquet"),
        (["--data", "mine.npz", "--devices", "5"], "leave out --devices"),
        (["--data", "mine.npz", "--dataset", "digits"], "give only one of them"),
        (["--data", "mine.txt"], "give a file that ends in .npz, .csv or .parquet"),
        (["--data", "nothing.npz"], "there is no file 'nothing.npz'"),
        (["--data", "mine.npz", "--paradigm", "regression"], "mine.npz: y holds text"),
        (["--network", "nothing.npz"], "there is no file 'nothing.npz'"),
        (["--network", "links.npz", "--devices", "7"], "--devices says 7 and links.npz has 4 devices"),
        (["--network", "trusting.npz", "--trust", "full"], "trusting.npz says who trusts whom"),
        (["--from", "run", "--data", "mine.npz"], "give no others beside it"),
    ],
)
def test_one_sentence(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    says: str,
) -> None:
    np.savez("trusting.npz", drop=np.full((4, 4), 0.1), trust=np.ones((4, 4, 10)), format=2)
    assert call(monkeypatch, "run", *arguments, "--out", "run") == 2
    error = capsys.readouterr().err
    assert says in error
    assert error.count("\n") == 1
    assert not (folder / "run").exists()


def test_links_around_a_dataset_of_ours(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert call(monkeypatch, "run", "--network", "links.npz", *QUICK, "--out", "run") == 0
    graph = json.loads((folder / "run" / "graphs" / "closest-seed-0.json").read_text())
    assert graph["devices"] == 4
