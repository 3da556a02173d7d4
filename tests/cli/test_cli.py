"""The command line as its users call it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from small_runs import COMPARE

from calling import SMALL, call
from d2dfl.cli.output import Watch
from d2dfl.config.presets import preset
from d2dfl.config.sections.learning import PARADIGMS
from d2dfl.experiment.cells.files import read_cell
from d2dfl.report.findings import Findings


def test_json_on_standard_output_is_nothing_but_json(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, "discover", *SMALL, "--reference", "--seed", "3", "--json", "-") == 0
    result = json.loads(capsys.readouterr().out)
    assert result["seed"] == 3
    assert result["config"]["network"]["devices"] == 6
    assert len(result["expected_counts_after"]) == 6
    assert result["share_of_best_known"] <= 1.0


def test_all_outputs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    files = {"--json": "g.json", "--picture": "g.svg", "--graphml": "g.graphml"}
    arguments = [part for option, name in files.items() for part in (option, str(tmp_path / name))]
    assert call(monkeypatch, "discover", *SMALL, *arguments, "--out", str(tmp_path / "all")) == 0
    for name in files.values():
        assert (tmp_path / name).stat().st_size > 100
    assert {path.name for path in (tmp_path / "all").iterdir()} == {
        "cells",
        "config.toml",
        "findings.json",
        "graph.graphml",
        "graph.html",
        "graph.json",
        "graph.png",
        "network.npz",
        "run.json",
        "traces",
    }


def test_a_saved_network_gives_the_same_graph(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(tmp_path / "net.npz")
    assert call(monkeypatch, "network", "--devices", "6", "--seed", "2", "--save", file) == 0
    edges = []
    for source in (["--devices", "6"], ["--network", file]):
        capsys.readouterr()
        assert call(monkeypatch, "discover", *source, "--seed", "2", "--json", "-") == 0
        edges.append(json.loads(capsys.readouterr().out)["edges"])
    assert edges[0] == edges[1]


def test_comparison(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = "marginal,closest,most-trusted,uniform,none,greedy,optimum"
    assert (
        call(monkeypatch, "compare-graphs", *SMALL, "--methods", names, "--json", "-", "--out", str(tmp_path / "c"))
        == 0
    )
    captured = capsys.readouterr()
    rows = json.loads(captured.out)
    assert [row["method"] for row in rows] == names.split(",")
    assert max(row["share_of_best_known"] for row in rows) == 1.0
    assert {path.name for path in (tmp_path / "c").iterdir()} == {
        "cells",
        "comparison.json",
        "config.toml",
        "findings.json",
        "run.json",
        "graphs.html",
        "graphs.png",
        "network.npz",
    }
    for name in names.split(","):
        assert name in captured.err
    cells = [read_cell(path) for path in (tmp_path / "c" / "cells").iterdir()]
    found = {cell["key"]: cell["result"]["values"][0] for cell in cells if cell}
    assert found.keys() == {f"{name}/seed 0" for name in names.split(",")}
    for row in rows:
        values = found[f"{row['method']}/seed 0"]
        assert (values["objective"], values["share"]) == (row["objective"], row["share_of_best_known"])
        assert values["expected_moved"] == row["expected_datapoints_moved"]
        assert values["expected_after"] == row["distance_to_iid"]["after"]
    note = Findings.load(tmp_path / "c").tables[0].words
    for sentence in (
        "share: of the way from no exchange to the best objective of these methods",
        "dist: distance to i.i.d. after the exchange (lower is better)",
        "arrive: expected share of datapoints that arrive",
        "inter: share of inter-cluster datapoints",
        "–: nothing is sent",
    ):
        assert sentence in note
        assert sentence in captured.err


def test_preset_chooses_the_method_and_the_later_setting_wins(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "c.toml"
    file.write_text("[qlearning]\nsteps = 50\n[network]\ndevices = 9\n")
    arguments = [
        "discover",
        "--preset",
        "paper",
        "--config",
        str(file),
        "--set",
        "network.devices=8",
        "--devices",
        "6",
        "--json",
        "-",
    ]
    assert call(monkeypatch, *arguments) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["method"], result["steps"]) == ("qlearning", 50)
    assert result["config"]["network"]["devices"] == 6


def test_no_edges_are_explained(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(monkeypatch, "discover", *SMALL, "--trust", "none") == 0
    assert "6 devices have no link: is trusted with nothing" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["discover", "--method", "nothing"], "the methods are"),
        (["discover", "--preset", "nothing"], "the presets are"),
        (["discover", "--set", "reward.nothing=1"], "section reward has"),
        (["discover", "--labels-per-device", "11"], "only 10 partitions"),
        (["discover", "--devices", "0"], "network.devices"),
        (["discover", "--devices", "many"], "--devices"),
        (["discover", "--seed", "-1"], "--seed"),
        (["discover", "--edges", "0"], "discovery.edges"),
        (["discover", "--trust", "sometimes"], "trust rule"),
        (["discover", "--network", "missing.npz"], "no file"),
        (["discover", "--network", "missing.txt"], ".npz or .json"),
        (["discover", "--network", "x.npz", "--devices", "5"], "only one of them"),
        (["discover", "--picture", "graph.bmp"], ".png"),
        (["discover", "--config", "missing.toml"], "TOML"),
        (["discover", "--nothing"], "--nothing"),
        (["compare-graphs", "--methods", "closest,nothing"], "the methods are"),
        (["network", "--save", "net.txt"], ".npz or .json"),
        (["run", "--dataset", "nothing"], "the datasets are"),
        (["run", "--scheme", "nothing"], "the schemes are"),
        (["compare", "--set", "data.samples=5000"], "at most 57"),
        (["compare", "--set", "federation.model=nothing"], "the models are"),
        (["data", "info", "nothing"], "the datasets are"),
        (["nothing"], "nothing"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(
    arguments: list[str], says: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert call(monkeypatch, *arguments) == 2
    captured = capsys.readouterr()
    assert says in captured.err
    assert captured.err.count("\n") == 1
    assert captured.out == ""
    assert list(tmp_path.iterdir()) == []


def test_what_was_written_is_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    files = ["--json", "g.json", "--picture", "g.svg"]
    assert call(monkeypatch, "discover", *SMALL, "--method", "closest", *files, "--graphml", "g.graphml") == 0
    assert capsys.readouterr().err.endswith("wrote g.json\nwrote g.svg\nwrote g.graphml\n")
    assert call(monkeypatch, "compare-graphs", *SMALL, "--methods", "closest", *files) == 0
    assert capsys.readouterr().err.endswith("wrote g.json\nwrote g.svg\n")


def test_a_failed_write_leaves_the_old_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "net.npz"
    np.savez(file, counts=[[1.0]])
    before = file.read_bytes()
    assert call(monkeypatch, "discover", "--network", str(file)) == 2
    assert file.read_bytes() == before
    assert call(monkeypatch, "discover", *SMALL, "--json", str(tmp_path / "none" / "x.json")) == 2
    assert not (tmp_path / "none").exists()


def test_lists(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(monkeypatch, "methods") == 0
    assert "qlearning" in capsys.readouterr().out
    assert call(monkeypatch, "fields") == 0
    assert "reward.gate" in capsys.readouterr().out
    assert call(monkeypatch, "--help") == 0
    assert "discover" in capsys.readouterr().out


def test_as_a_program() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "d2dfl", "discover", "--devices", "x"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_a_notebook_that_calls_it_may_draw_with_what_is_not_here(tmp_path: Path) -> None:
    backend = {**os.environ, "MPLBACKEND": "module://matplotlib_inline.backend_inline"}
    line = [
        sys.executable,
        "-m",
        "d2dfl",
        "discover",
        "--method",
        "closest",
        "--devices",
        "4",
        "--picture",
        "graph.png",
    ]
    done = subprocess.run(line, cwd=tmp_path, env=backend, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "graph.png").stat().st_size > 1000


def watched(*told: tuple[float, float]) -> None:
    """A training that tells shares of itself at times."""
    now = [0.0]
    watch = Watch("the training", clock=lambda: now[0])
    for now[0], share in told:
        watch(share)


def test_a_long_training_is_announced_once(capsys: pytest.CaptureFixture[str]) -> None:
    watched((0.0, 0.0), (2.0, 0.1), (3.0, 0.1), (7.0, 0.2), (22.0, 0.2), (22.0, 0.3), (40.0, 0.4))
    assert capsys.readouterr().err == "the rest of the training takes about 3 min\n"


def test_a_training_that_turns_out_to_be_long_is_announced_then(capsys: pytest.CaptureFixture[str]) -> None:
    watched((0.0, 0.0), (0.0, 0.1), (11.0, 0.6), (200.0, 0.7))  # 9 s to go, then 100
    assert capsys.readouterr().err == "the rest of the training takes about 2 min\n"


def test_what_a_training_loads_before_its_first_step_does_not_count_as_its_pace(
    capsys: pytest.CaptureFixture[str],
) -> None:
    watched((0.0, 0.0), (12.0, 0.05), *((12.0 + step, 0.05 + 0.05 * step) for step in range(1, 19)))
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(("dataset", "said"), [("wine", "there is no dataset"), ("digits", "too few for labels:3")])
def test_what_cannot_begin_is_said_before_how_long_it_would_take(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, dataset: str, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert call(monkeypatch, "compare", "--dataset", dataset, "--devices", "5000") == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert said in line


def test_a_long_discovery_is_announced_when_it_begins(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("d2dfl.cli.learn.discovery_seconds", lambda *_: 90.0)
    assert call(monkeypatch, *COMPARE) == 0
    assert capsys.readouterr().err.count("the discovery of 1 method takes about 2 min") == 1


def test_an_unknown_option_names_the_nearest(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, "compare", "--round", "3") == 2
    assert capsys.readouterr().err == "d2dfl: there is no option --round: did you mean --rounds?\n"
    assert call(monkeypatch, "compare", "--colour") == 2
    assert capsys.readouterr().err == "d2dfl: there is no option --colour\n"
    assert call(monkeypatch, "run", "--seeds", "3") == 2
    assert "this command takes one --seed" in capsys.readouterr().err


def test_folders_of_graphs_can_be_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert call(monkeypatch, "discover", *SMALL, "--out", "one") == 0
    assert call(monkeypatch, "compare-graphs", *SMALL, "--methods", "closest,uniform", "--out", "two") == 0
    assert call(monkeypatch, "report", "one", "two", "--out", "page.html") == 0
    page = (tmp_path / "page.html").read_text()
    assert "Closest and Uniform" in page
    assert "exp. moved" in page


def test_help_says_which_paradigms_have_other_numbers_of_devices(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, "run", "--help") == 0
    said = " ".join(capsys.readouterr().out.split())
    usual = preset("best").network.devices
    others = {name: preset("best", name).network.devices for name in PARADIGMS}
    other = [name for name, devices in others.items() if devices != usual]
    assert {others[name] for name in other} == {10}
    assert f"[default: {usual}, or 10 where --paradigm is {' or '.join(other)}]" in said


def test_help_of_a_command_names_no_option_that_it_lacks(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, "replay", "--help") == 0
    assert "--live" not in capsys.readouterr().out
