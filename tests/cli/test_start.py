"""What a newcomer types first: it is there at once, and says what it should."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import d2dfl
from calling import SMALL, call
from d2dfl.config.presets import PRESETS
from d2dfl.config.sections.learning import PARADIGMS
from d2dfl.discovery.methods import METHODS
from d2dfl.experiment.folder.logs import LOGS
from d2dfl.federation import SCHEMES
from d2dfl.network.trust import RULES
from d2dfl.paper import SCALES
from demo_findings import comparison, write

HEAVY = ("numpy", "numba", "torch", "scipy", "matplotlib", "rich")
LOADED = """
import runpy, sys
sys.argv = ["d2dfl", *sys.argv[1:]]
try:
    runpy.run_module("d2dfl", run_name="__main__")
except SystemExit as end:
    assert not end.code, end.code
print("loaded", *sys.modules)
"""


def loaded(*arguments: str) -> set[str]:
    """Packages that a command has loaded when it ends."""
    done = subprocess.run([sys.executable, "-c", LOADED, *arguments], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split()[1:])


@pytest.mark.parametrize(
    "arguments",
    [["--help"], ["-h"], ["--version"], ["methods"], ["methods", "--json"], ["fields"], ["discover", "--help"]]
    + [
        [name, "--help"]
        for name in ("run", "compare", "compare-graphs", "reproduce", "report", "network", "data", "peer", "fleet")
    ],
)
def test_help_and_lists_load_nothing_large(arguments: list[str]) -> None:
    assert not loaded(*arguments) & set(HEAVY)


def test_the_list_of_experiments_loads_neither_pytorch_nor_a_compiler() -> None:
    assert not loaded("reproduce", "list") & {"numba", "torch", "scipy", "sklearn", "matplotlib"}


@pytest.mark.parametrize("method", ["marginal", "closest", "qlearning"])
def test_a_discovery_loads_only_what_runs_kept_kernels(method: str) -> None:
    command = ["discover", "--devices", "5", "--method", method, "--set", "qlearning.steps=5"]
    loaded(*command)  # compiles them where nobody has
    found = loaded(*command)
    assert not found & {"torch", "sklearn", "networkx", "matplotlib", "ssl"}
    # Numba takes bare SciPy; its linear algebra is what only compiling needs.
    assert not found & {"scipy.linalg", "scipy.spatial", "scipy.special"}


@pytest.mark.parametrize("arguments", [["data", "list"], ["data", "info", "fmnist"]])
def test_what_is_known_of_datasets_needs_no_compiler(arguments: list[str]) -> None:
    assert not loaded(*arguments) & {"numba", "torch", "scipy", "sklearn", "matplotlib"}


def test_the_list_says_what_its_times_leave_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A second, it said of experiments that took twelve."""
    assert call(monkeypatch, "reproduce", "list") == 0
    assert "To load packages and to draw takes about 10 s more" in capsys.readouterr().out


def test_a_set_that_is_not_here_names_the_command_that_fetches_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("D2DFL_DATA", str(tmp_path))
    assert call(monkeypatch, "data", "info", "fmnist") == 0
    assert "fetch it with `d2dfl data fetch fmnist`" in capsys.readouterr().out


@pytest.mark.parametrize("more", [[], ["--figures"]])
def test_a_page_needs_no_compiler(more: list[str], tmp_path: Path) -> None:
    write(comparison(), tmp_path)
    found = loaded("report", str(tmp_path), "--out", str(tmp_path / "page.html"), *more)
    assert (tmp_path / "page.html").exists()
    assert not found & {"numba", "torch"}


@pytest.mark.parametrize(
    "arguments", [["methods"], ["data", "list"], ["data", "info", "fmnist"], ["reproduce", "list"]]
)
def test_a_reader_that_has_seen_enough_is_no_fault(arguments: list[str]) -> None:
    """As in `d2dfl reproduce list | true`."""
    end, start = os.pipe()
    os.close(end)
    with os.fdopen(start, "wb") as closed:
        done = subprocess.run(
            [sys.executable, "-m", "d2dfl", *arguments], stdout=closed, stderr=subprocess.PIPE, text=True, check=False
        )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_version_and_the_name(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(monkeypatch, "--version") == 0
    assert capsys.readouterr().out == f"d2dfl {d2dfl.__version__}\n"
    done = subprocess.run([sys.executable, "-m", "d2dfl", "-h"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("Usage: d2dfl [OPTIONS]")
    assert call(monkeypatch, "data", "info", "-h") == 0
    assert "Usage: d2dfl data info" in capsys.readouterr().out


def test_shells_can_complete() -> None:
    asked = {**os.environ, "_D2DFL_COMPLETE": "complete_bash", "COMP_WORDS": "d2dfl comp", "COMP_CWORD": "1"}
    done = subprocess.run([sys.executable, "-m", "d2dfl"], env=asked, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["compare-graphs", "compare"]
    shown = {**os.environ, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    command = [sys.executable, "-m", "d2dfl", "--show-completion", "bash"]
    done = subprocess.run(command, env=shown, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "_D2DFL_COMPLETE=complete_bash" in done.stdout


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("d2dfl discover --method mar", ["marginal"]),
        ("d2dfl compare --methods closest,uni", ["closest,uniform"]),
        ("d2dfl compare --dataset dig", ["digits"]),
        ("d2dfl run --set federation.ro", ["federation.rounds="]),
        ("d2dfl run --set reward.budget_rule=h", ["reward.budget_rule=hinge"]),
        ("d2dfl run --set exchange.lossy=t", ["exchange.lossy=true"]),
        ("d2dfl run --set federation.nonsense=", []),
        ("d2dfl discover --trust bl", ["block"]),
        ("d2dfl data info dig", ["digits"]),
        ("d2dfl fields rewa", ["reward"]),
        ("d2dfl reproduce curve-s", ["curve-supervised", "curve-semi"]),
        ("d2dfl reproduce --scale sm", ["small"]),
        ("d2dfl reproduce all --engine ra", ["ray"]),
    ],
)
def test_values_are_completed(typed: str, offered: list[str]) -> None:
    words = len(typed.split()) - 1
    asked = {**os.environ, "_D2DFL_COMPLETE": "complete_bash", "COMP_WORDS": typed, "COMP_CWORD": str(words)}
    done = subprocess.run([sys.executable, "-m", "d2dfl"], env=asked, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.split()) == (0, offered), done.stderr


def test_fewer_partitions_than_a_device_usually_holds(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    few = ["discover", "--devices", "4", "--method", "closest", "--partitions"]
    assert call(monkeypatch, *few, "2") == 0
    assert call(monkeypatch, *few, "2", "--labels-per-device", "3") == 2
    assert "cannot be 3: there are only 2 partitions" in capsys.readouterr().err
    assert call(monkeypatch, *few, "1", "--labels-per-device", "2") == 2
    assert "cannot be 2: there is only 1 partition\n" in capsys.readouterr().err


def test_settings_are_found_by_a_word(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(monkeypatch, "fields", "GATE") == 0
    said = capsys.readouterr().out
    assert "reward.gate" in said
    assert "channel.kind" not in said
    assert call(monkeypatch, "fields", "--json", "--preset", "paper") == 0
    rows = {row["setting"]: row for row in json.loads(capsys.readouterr().out)}
    assert rows["reward.gate"] == {**rows["reward.gate"], "value": "5", "may_be": "0 to 100,000"}
    assert len(rows) > 80
    assert call(monkeypatch, "fields", "nowhere") == 2
    assert "no setting has 'nowhere' in it" in capsys.readouterr().err


def test_methods_as_json(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(monkeypatch, "methods", "--json") == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in rows] == list(METHODS)
    assert [row["name"] for row in rows if row["reference"]] == ["optimum"]


@pytest.mark.parametrize("path", ["d2dfl.discovery.discover", "d2dfl.discovery.methods", "d2dfl"])
@pytest.mark.parametrize("after", [True, False])
def test_a_plugin_before_or_after_the_command(
    after: bool, path: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "own.py").write_text(
        f"from {path} import METHODS\nfrom d2dfl.discovery.methods import Method\n"
        "METHODS['own'] = Method('own', 'Own', lambda task: None, False, 'mine')\n"
    )
    plugin = ["--plugin", str(tmp_path / "own.py")]
    try:
        assert call(monkeypatch, *(["methods", *plugin] if after else [*plugin, "methods"])) == 0
        assert "own           mine" in capsys.readouterr().out
    finally:
        METHODS.pop("own", None)


def test_no_yardstick_unless_asked_for(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(monkeypatch, "discover", *SMALL, "--method", "closest") == 0
    said = capsys.readouterr().err
    assert "share of the best" not in said
    assert "optimum" not in said
    assert "datapoints moved, expected" in said
    assert call(monkeypatch, "discover", *SMALL, "--method", "closest", "--reference") == 0
    said = capsys.readouterr().err
    rows = {
        line[:55].strip(): [float(cell) for cell in line[55:].split()]
        for line in said.splitlines()
        if "objective" in line and "alone" not in line
    }
    found, none = rows["objective"], rows["objective without any exchange"][0]
    share = rows["share of the best known objective (no exchange is 0)"]
    best = max(found)
    for value, of in zip(found, share, strict=True):  # what the reader can check
        assert (value - none) / (best - none) == pytest.approx(of, abs=0.01)
    assert call(monkeypatch, "discover", *SMALL, "--method", "none") == 0
    assert "–: nothing is sent" in capsys.readouterr().err


def test_graphs_side_by_side_are_four_with_one_link(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, "compare-graphs", *SMALL, "--set", "qlearning.steps=50", "--json", "-") == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["method"] for row in rows] == ["marginal", "qlearning", "closest", "uniform"]
    assert {row["config"]["discovery"]["edges"] for row in rows} == {1}


def test_special_methods_are_known_to_the_registry_alone() -> None:
    """No other file asks for a method by its name."""
    package = Path(d2dfl.__file__).parent
    own = {"discovery/methods", "paper", "config"}  # the paper's contenders and a setting's default name methods
    found = [
        f"{path.relative_to(package)}: {line.strip()}"
        for path in package.rglob("*.py")
        if not any(path.is_relative_to(package / folder) for folder in own)
        for line in path.read_text(encoding="utf-8").splitlines()
        for name in METHODS
        if any(sign in line for sign in (f'== "{name}"', f'!= "{name}"', f'in ("{name}"', f'method == "{name}"'))
    ]
    assert [line for line in found if not line.startswith("env")] == []  # there "marginal" is a kind of reward


def test_help_names_every_choice(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def words(command: str) -> str:
        assert call(monkeypatch, command, "--help") == 0
        return "".join(capsys.readouterr().out.replace("│", "").split())  # a line may end inside a name

    for command, names in (
        ("discover", (*RULES, *PARADIGMS, *PRESETS, *METHODS)),
        ("compare", (*RULES, *SCHEMES, *PARADIGMS, *PRESETS, *LOGS)),
        ("reproduce", SCALES),
    ):
        said = words(command)
        assert [name for name in names if name not in said] == []
