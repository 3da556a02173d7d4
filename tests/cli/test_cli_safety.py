"""What the command line promises about a user's files, and how it ends when something goes wrong."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from small_runs import COMPARE

from calling import SMALL, call
from d2dfl.discovery import methods
from d2dfl.network.files import load_network

DISCOVER = ["discover", *SMALL]


def snapshot(folder: Path) -> dict[str, tuple[int, bytes]]:
    return {
        str(path.relative_to(folder)): (path.lstat().st_mode, path.read_bytes() if path.is_file() else b"")
        for path in sorted(folder.rglob("*"))
    }


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)


def test_outputs_go_through_links_and_keep_modes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "secret").touch(mode=0o600)
    (tmp_path / "link").symlink_to("secret")
    assert call(monkeypatch, *DISCOVER, "--json", "link") == 0
    assert (tmp_path / "link").is_symlink()
    assert json.loads((tmp_path / "secret").read_text())["method"] == "marginal"
    assert stat.S_IMODE((tmp_path / "secret").stat().st_mode) == 0o600


def test_outputs_are_checked_before_anything_is_computed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("d2dfl.cli.graphs.discover", lambda *_, **__: pytest.fail("it computed"))
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "graph.json").write_text("mine")
    before = snapshot(tmp_path)
    for arguments, says in (
        (["--json", "none/g.json"], "there is no folder 'none'"),
        (["--json", ""], "empty name"),
        (["--json", "/"], "is a folder"),
        (["--json", "pipe"], "is a pipe"),
        (["--json", "/dev/null"], "is a device"),
        (["--graphml", "mine"], "is a folder"),
        (["--picture", "none/g.png"], "there is no folder"),
        (["--json", "x", "--graphml", "./x"], "two outputs would go to"),
        (["--out", "mine"], "not a run folder of d2dfl, and not empty"),
        (["--out", "pipe"], "there is a file of this name"),
        (["--config", "pipe"], "is a pipe: give a TOML file"),
    ):
        assert call(monkeypatch, *DISCOVER, *arguments) == 2
        assert says in capsys.readouterr().err
    assert snapshot(tmp_path) == before


def test_a_comparison_never_takes_the_place_of_another(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, *COMPARE) == 0
    first = snapshot(tmp_path / "runs" / "compare")
    assert call(monkeypatch, *COMPARE) == 0
    told = capsys.readouterr()
    assert "results: runs/compare-2" in told.err
    assert call(monkeypatch, *COMPARE, "--out", "runs/compare") == 2
    assert "holds this run already: go on with --resume" in capsys.readouterr().err
    assert call(monkeypatch, *COMPARE, "--resume") == 0
    again = capsys.readouterr()
    assert "runs/compare-2, which was finished before; nothing was run" in again.err
    tables = again.err.splitlines()[:-1]
    assert len(tables) > 4  # those of the run, as it printed them
    assert set(tables) <= set(told.err.splitlines())
    assert call(monkeypatch, "run", "--from", "runs/compare", "--out", "odd [bold]name[/]") == 0
    assert "results: odd [bold]name[/];" in capsys.readouterr().err
    for name in ("compare", "compare-2", "../odd [bold]name[/]"):
        assert snapshot(tmp_path / "runs" / name) == first


@pytest.mark.parametrize("harm", ["cut", "another digit", "no object"])
def test_results_that_were_damaged_are_noticed(
    harm: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By whoever shows them; a run of the same settings needs none of them, and is the way out."""
    assert call(monkeypatch, *COMPARE, "--out", "run") == 0
    file = tmp_path / "run" / "results.json"
    whole = file.read_text()
    digit = whole.index("0.") + 2
    other = whole[:digit] + ("1" if whole[digit] != "1" else "2") + whole[digit + 1 :]
    file.write_text({"cut": whole[: len(whole) // 2], "another digit": other, "no object": "[]"}[harm])
    harmed = snapshot(tmp_path / "run")
    capsys.readouterr()
    for command in (["report", "run"], [*COMPARE, "--resume", "--out", "run"], ["compare", "--resume", "--out", "run"]):
        assert call(monkeypatch, *command) == 2
        said = capsys.readouterr().err
        assert (
            said == "d2dfl: run/results.json is damaged: measure anew into another folder with d2dfl run --from run\n"
        )
        assert snapshot(tmp_path / "run") == harmed
    assert call(monkeypatch, "run", "--from", "run", "--out", "again") == 0
    assert (tmp_path / "again" / "results.json").read_text() == whole
    assert call(monkeypatch, "report", "again") == 0


def test_a_run_folder_that_was_changed_by_hand_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, *COMPARE, "--out", "run") == 0
    mark = json.loads((tmp_path / "run" / "run.json").read_text())
    for plan in (
        {},
        {"methods": "closest", "seeds": [0]},
        {"methods": ["nothing"], "seeds": [0]},
        {"methods": [["closest"]], "seeds": [0]},
        {"methods": ["closest"], "seeds": 3},
        {"methods": ["closest"], "seeds": [-1]},
        {"methods": ["closest"], "seeds": [True]},
        {"methods": ["closest"], "seeds": [10**40]},
        {"methods": ["closest"], "seeds": ["0"]},
    ):
        (tmp_path / "run" / "run.json").write_text(json.dumps({**mark, "plan": plan}))
        capsys.readouterr()
        assert call(monkeypatch, "run", "--from", "run", "--out", "again") == 2
        assert capsys.readouterr().err.count("\n") == 1
        assert not (tmp_path / "again").exists()


def test_the_default_page_does_not_take_the_place_of_a_page_of_ones_own(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, *COMPARE, "--out", "run") == 0
    (tmp_path / "run" / "report.html").write_text("<p>mine")
    assert call(monkeypatch, "report", "run") == 2
    assert "not a page of d2dfl" in capsys.readouterr().err
    assert (tmp_path / "run" / "report.html").read_text() == "<p>mine"
    for name in ("thesis.tex", "run/run.json", "mine.html"):
        if not (tmp_path / name).exists():
            (tmp_path / name).write_text("mine")
        kept = (tmp_path / name).read_bytes()
        assert call(monkeypatch, "report", "run", "--out", name) == 2
        assert (tmp_path / name).read_bytes() == kept
    (tmp_path / "page-figures").mkdir()
    (tmp_path / "page-figures" / "mine").touch()
    assert call(monkeypatch, "report", "run", "--out", "page.html", "--figures") == 2
    assert not (tmp_path / "page.html").exists()
    (tmp_path / "run" / "report.html").unlink()
    for _ in range(2):
        assert call(monkeypatch, "report", "run", "--figures") == 0
    assert list((tmp_path / "run" / "report-figures").rglob("*.pdf"))


PLUGINS = {
    "import sys; sys.exit(0)": "own.py, line 1, fails with SystemExit: 0",
    "from d2dfl.discovery.methods import METHODS; METHODS['odd'] = 1": "registers 'odd' as a method: give a Method",
    "raise KeyboardInterrupt": "",
    "def broken(": "fails with SyntaxError",
    "1 / 0": "fails with ZeroDivisionError",
    "def f(): f()\nf()": "fails with RecursionError",
    "class Odd(Exception):\n    def __str__(self): return 1\nraise Odd": "fails with Odd",
}


@pytest.mark.parametrize("text", PLUGINS)
def test_what_a_plugin_does_wrong_is_said(
    text: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "own.py").write_text(text)
    try:
        code = call(monkeypatch, "--plugin", "own.py", "methods")
    finally:
        methods.METHODS.pop("odd", None)
    assert code == (2 if PLUGINS[text] else 130)
    assert PLUGINS[text] in capsys.readouterr().err


@pytest.mark.parametrize(
    "act", ["raise ValueError('too\\nbad')", "import sys; sys.exit(0)", "raise EOFError", "return None"]
)
def test_what_a_method_of_a_plugin_does_wrong_is_said_to_be_its_own(
    act: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "own.py").write_text(
        "from d2dfl.discovery.methods import METHODS, Method\n"
        f"def find(task):\n    {act}\n"
        "METHODS['own'] = Method('own', 'Own', find, True, 'mine')\n"
    )
    try:
        code = call(monkeypatch, "--plugin", "own.py", *DISCOVER, "--method", "own")
    finally:
        methods.METHODS.pop("own", None)
    said = capsys.readouterr().err
    assert code == 2
    assert said.count("\n") == 1
    assert (
        "own.py, line 3, fails with" in said if act != "return None" else "the method 'own' gave no LinkChoice" in said
    )


def test_a_fault_of_ours_is_said_to_be_ours(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for error in (KeyError("x\x1b[2J"), EOFError(), SystemExit(0), RecursionError("deep")):

        def broken(*_: object, error: BaseException = error, **__: object) -> None:
            raise error

        monkeypatch.setattr("d2dfl.cli.graphs.discover", broken)
        assert call(monkeypatch, *DISCOVER) == 3
        said = capsys.readouterr().err
        assert said.count("\n") == 1
        assert "a fault of d2dfl, not yours" in said
        assert "\x1b" not in said
        (kept,) = tmp_path.glob("d2dfl-fault-*.txt")
        assert f"the traceback is in {kept}" in said
        assert "in broken" in kept.read_text()
        kept.unlink()


def test_a_sentence_stays_a_sentence(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(monkeypatch, "discover", "--devices", "9" * 5000) == 2
    said = capsys.readouterr().err
    assert said.startswith("d2dfl: Invalid value for '--devices': '999")
    assert len(said) < 1000


def test_full_memory_is_bad_luck_and_not_a_fault(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr("d2dfl.cli.graphs.discover", full)
    assert call(monkeypatch, *DISCOVER) == 2
    assert "does not fit in memory" in capsys.readouterr().err


def test_a_stop_is_no_fault(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("d2dfl.cli.graphs.discover", stop)
    assert call(monkeypatch, *DISCOVER) == 130
    assert capsys.readouterr().err.strip() == "d2dfl: stopped; nothing was kept"


@pytest.mark.parametrize("name", ["mine.npz", "mine.json"])
def test_a_network_does_not_take_the_place_of_data(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    """docs/own-data.md once saved a user's data and a network under the same name."""
    file = tmp_path / name
    file.write_text('{"drop": [[0, 0.1], [0.1, 0]]}')  # links alone are no network
    if name.endswith(".npz"):
        np.savez(file, X=np.ones((4, 2)), y=np.arange(4), device=np.arange(4))
    before = file.read_bytes()
    assert call(monkeypatch, "network", "--devices", "4", "--save", name) == 2
    error = capsys.readouterr().err
    assert f"{name} is there and is no network of d2dfl: name another file" in error
    assert error.count("\n") == 1
    assert file.read_bytes() == before
    file.unlink()
    for devices in ("4", "5"):  # a network is replaced
        assert call(monkeypatch, "network", "--devices", devices, "--save", name) == 0
    assert load_network(file).devices == 5


def test_an_output_does_not_take_the_place_of_an_input(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, "network", "--devices", "4", "--save", "mine.json") == 0
    (tmp_path / "c.toml").write_text("[network]\n")
    os.link("mine.json", "other.json")
    before = snapshot(tmp_path)
    for arguments in (
        ["--network", "mine.json", "--json", "mine.json"],
        ["--network", "mine.json", "--json", "other.json"],
        ["--config", "c.toml", "--json", "c.toml"],
    ):
        assert call(monkeypatch, "discover", *arguments) == 2
        assert "take the place of the input" in capsys.readouterr().err
    assert call(monkeypatch, *DISCOVER, "--out", "") == 2
    assert call(monkeypatch, "run", "--from", "x", "--rounds", "1") == 2
    assert "give no others beside it" in capsys.readouterr().err
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("tail", ["methods | head -1 > /dev/null", "--help | true", "methods >&-", "methods >&- 2>&-"])
def test_whoever_reads_may_stop_reading(tail: str) -> None:
    command = f"{sys.executable} -m d2dfl {tail}; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_bounds_are_shown(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert call(monkeypatch, "fields") == 0
    said = capsys.readouterr().out
    assert "1 to 100,000,000" in said
    assert "total-variation" in said


def test_a_folder_that_is_no_run_says_what_it_lacks(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "run.json").write_text("{", encoding="utf-8")
    (tmp_path / "damaged" / "findings.json").write_text("{}", encoding="utf-8")
    (tmp_path / "file").write_text("", encoding="utf-8")
    reasons = {
        "nowhere": "there is nothing of that name",
        "empty": "it has no run.json",
        "damaged": "is damaged, or not",
    }
    for name, reason in reasons.items():
        assert call(monkeypatch, "run", "--from", str(tmp_path / name)) == 2
        assert reason in capsys.readouterr().err
    for name, reason in {"file": "is a file: give the folder", "damaged": "run its command anew"}.items():
        assert call(monkeypatch, "report", str(tmp_path / name)) == 2
        assert reason in capsys.readouterr().err


def test_links_in_a_circle_are_one_sentence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "loop").symlink_to("loop")
    for given in (("--from", "loop", "--out", "new"), ("--from", "new", "--out", "loop")):
        assert call(monkeypatch, "run", *given) == 2
        assert "is not a run folder of d2dfl" in capsys.readouterr().err
