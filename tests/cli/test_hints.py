"""What to type next: hints can be copied into a shell, and what is missing is named."""

import subprocess
import sys
from pathlib import Path

import pytest
from small_runs import COMPARE

from calling import SMALL, call
from d2dfl import plugins
from d2dfl.discovery import methods
from d2dfl.experiment.cells.results import Against
from d2dfl.experiment.findings.comparison import _difference
from d2dfl.terminal import with_ends

PLUGIN = """
from d2dfl.discovery.methods import METHODS, Method
from d2dfl.discovery.methods.rules import closest
METHODS["own"] = Method("own", "Own", closest, False, "a rule", learns=False, by_default=False)
"""


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(plugins, "_loaded", {})


def test_folders_in_hints_are_quoted_and_reports_stay_apart(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("my run", "other"):
        assert call(monkeypatch, *COMPARE, "--out", name) == 0
    assert "a page of them: d2dfl report 'my run'\n" in capsys.readouterr().err
    assert call(monkeypatch, "report", "my run") == call(monkeypatch, "report", "other/findings.json") == 0
    pages = [(tmp_path / name / "report.html").read_bytes() for name in ("my run", "other")]
    assert all(pages)
    for name in ("report.html", "report-2.html"):  # of several runs
        assert not (tmp_path / name).exists()
        assert call(monkeypatch, "report", "my run", "other") == 0
        assert (tmp_path / name).exists()
    capsys.readouterr()
    assert call(monkeypatch, "report", "") == 2
    assert "a run folder has an empty name" in capsys.readouterr().err


def test_a_slip_in_the_folder_to_resume_is_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, *COMPARE) == 0
    capsys.readouterr()
    for out in (["--out", "runs/comparr"], ["--out=runs/comparr"]):
        assert call(monkeypatch, *COMPARE, *out, "--resume") == 2
        said = capsys.readouterr().err
        assert "there is nothing to resume in runs/comparr, but in runs/compare: d2dfl compare --methods" in said
        assert said.endswith("--resume --out runs/compare\n")
        assert "comparr" not in said.partition("but in")[2]
    assert not (tmp_path / "runs" / "comparr").exists()


def test_a_run_with_a_plugin_names_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "my own.py").write_text(PLUGIN)
    arguments = [*COMPARE[:2], "own", *COMPARE[3:]]
    assert call(monkeypatch, "--plugin", "my own.py", *arguments, "--out", "run") == 0
    methods.METHODS.pop("own")  # as in another process
    plugins._loaded.clear()
    capsys.readouterr()
    assert call(monkeypatch, "run", "--from", "run", "--out", "again") == 2
    said = capsys.readouterr().err
    assert "there is no method 'own'" in said
    assert said.endswith("run was made with a plug-in: give it with --plugin 'my own.py'\n")
    assert call(monkeypatch, "--plugin", "my own.py", "run", "--from", "run", "--out", "again") == 0
    methods.METHODS.pop("own")


def test_the_reference_is_said_to_look_at_the_objective_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, "discover", *SMALL, "--method", "closest", "--reference") == 0
    assert "optimum raises the objective alone" in capsys.readouterr().err
    assert call(monkeypatch, "discover", *SMALL, "--method", "closest") == 0
    assert "objective alone" not in capsys.readouterr().err


def test_an_end_beside_zero_does_not_read_as_zero() -> None:
    assert with_ends(0.016, 0.0004, 0.03, 3) == "0.0160 [0.0004, 0.0300]"
    assert with_ends(-0.016, -0.03, -0.00004, 3) == "-0.01600 [-0.03000, -0.00004]"
    assert with_ends(0.01, -0.0001, 0.03, 3) == "0.010 [0.000, 0.030]"
    assert with_ends(0.01, 0.0, 0.03, 3) == "0.010 [0.000, 0.030]"
    assert _difference(Against("other", 0.012, (0.0002, 0.024), "ahead")) == "+0.0120 [0.0002, 0.0240]"
    assert _difference(Against("other", 0.0, None, "too few seeds")) == "0.000"


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        ("discover --json --devices 3", "--devices stands where the option before it wants its value"),
        ("discover --method closest --json --reference", "--reference stands where the option before it wants"),
        ("network --save --devices", "--devices stands where the option before it wants"),
        ("discover --method=", "there is no method ''"),
        ("run --method=", "there is no method ''"),
        ("reproduce list --scale huge", "list shows every scale and measures nothing: give it without options"),
        ("reproduce list --json", "give it without options"),
        ("reproduce list kmeans", "list stands alone"),
        ("reproduce all kmeans", "all stands alone"),
        ("compare --methods all,closest", "'all,closest' names all beside others: give it alone"),
        ("compare-graphs --methods closest,all", "names all beside others"),
    ],
)
def test_a_slip_is_said_as_it_is(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str], typed: str, says: str
) -> None:
    assert call(monkeypatch, *typed.split()) == 2
    assert says in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_one_device_is_one(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(monkeypatch, "discover", "--devices", "1", "--method", "closest") == 0
    assert "1 device, 10 partitions, 1 reliable cluster;" in "".join(capsys.readouterr())
    assert call(monkeypatch, "network", "--devices", "1", "--save", "one.npz") == 0
    assert "one.npz: 1 device, 10 partitions, 1 reliable cluster\n" in capsys.readouterr().err


def test_a_notice_about_a_plugin_is_a_sentence_without_lines_of_our_code(tmp_path: Path) -> None:
    text = "from d2dfl.config.metrics import METRICS, Metric\ndef own(one, other):\n    import json\n    return 0.5\n"
    (tmp_path / "own.py").write_text(text + "METRICS['own'] = Metric('own', 'half of everything', own)\n")
    line = [sys.executable, "-m", "d2dfl", "discover", *SMALL, "--method", "closest", "--set", "reward.metric=own"]
    done = subprocess.run([*line, "--plugin", "own.py"], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    said = [line for line in done.stderr.splitlines() if "metric" in line]
    assert said == ["d2dfl: the metric 'own' cannot be compiled and is called in Python: slow, for small networks only"]
    assert ".py" not in done.stderr
