"""More devices than a map can show: other pictures and files, and no state of what does not train."""

import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from comparisons import compared, contents, small
from d2dfl import UserError, preset
from d2dfl.discovery.equations.diversity import distances_to
from d2dfl.experiment.cells.cell import Cell
from d2dfl.experiment.cells.steps import dataset_of, prepared
from d2dfl.experiment.compare import compare, plan_of
from d2dfl.experiment.findings.crowd import distance_chart, draw_crowd
from d2dfl.experiment.folder.store import run_folder
from d2dfl.experiment.pipeline import federations_of
from d2dfl.federation import State, train_many, training
from d2dfl.report.findings import Findings
from d2dfl.transfer import held_counts

torch.set_num_threads(1)  # two threads on busy cores are slower


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three devices are a crowd."""
    for module in ("folder.exports", "findings.comparison"):
        monkeypatch.setattr(f"d2dfl.experiment.{module}.MANY", 3)


@pytest.mark.usefixtures("few")
def test_a_crowd_has_a_histogram_and_arrays_instead_of_a_map(tmp_path: Path) -> None:
    result = compared(tmp_path / "run", small(), ["closest"], [0])
    found = Findings.load(tmp_path / "run")
    assert found.maps == ()
    assert [picture.file for picture in found.pictures] == ["graphs.png"]
    chart = found.charts[-1]
    assert [line.title for line in chart.lines] == ["before the exchange", "Closest", "i.i.d. shuffle"]
    assert all(sum(line.mean) == pytest.approx(1) for line in chart.lines)
    files = {path.name for path in (tmp_path / "run" / "graphs").iterdir()}
    assert files == {"closest-seed-0.npz", "none-seed-0.npz"}
    assert not (tmp_path / "run" / "graphs.html").exists()
    item = result.prepared[0]
    assert item.discovery is not None
    with np.load(tmp_path / "run" / "graphs" / "closest-seed-0.npz") as arrays:
        pairs = list(zip(arrays["transmitter"].tolist(), arrays["receiver"].tolist(), strict=True))
        assert pairs == item.discovery.graph.edges
        assert np.allclose(arrays["expected_counts_after"], item.discovery.evaluation.counts_after)
    counts = held_counts(item.setting.holdings, item.setting.truth, 10)
    before = distances_to(counts, counts.sum(axis=0), "total-variation")
    assert np.average(chart.lines[0].x, weights=chart.lines[0].mean) == pytest.approx(before.mean(), abs=0.02)


def test_a_crowd_without_positions_is_a_histogram(tmp_path: Path) -> None:
    series = [("none", "before", np.linspace(0, 1, 50)), ("mine", "after", np.full(50, 0.2))]
    draw_crowd(series, None, tmp_path / "plain.png")
    draw_crowd(series, np.random.default_rng(0).random((50, 2)), tmp_path / "where.png")
    assert (tmp_path / "plain.png").read_bytes() != (tmp_path / "where.png").read_bytes()
    assert distance_chart(series).lines[1].mean[8] == 1


def test_states_are_held_of_what_trains_now_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A CNN trains one run after the other: when one has ended, nobody holds its state any more."""
    alive: weakref.WeakSet[Any] = weakref.WeakSet()

    class Seen(State):
        __hash__ = object.__hash__

        def __init__(self, *values: Any, **named: Any) -> None:
            super().__init__(*values, **named)
            alive.add(self)

    monkeypatch.setattr(training, "State", Seen)
    config = small(**{"federation.model": "cnn-lite", "federation.interval": 1, "federation.rounds": 2})
    cells = [Cell("", "closest", "closest", seed, config) for seed in (0, 1, 2)]
    counted: list[int] = []
    ready = federations_of(config, [prepared(cell) for cell in cells], dataset_of(config))

    def note(states: object) -> None:
        counted.append(len(alive))

    train_many(ready.factory, ready.runs, config.federation, states=ready.starts, on_group=note)
    assert counted == [1] * 6
    assert not alive


def test_the_models_of_a_run_folder_are_files_and_the_same(tmp_path: Path) -> None:
    config = small(**{"federation.scheme": "decentralised", "federation.neighbours": 1})
    written = compared(tmp_path / "run", config, ["closest"], [0])
    assert written.weights == ()
    held = compare(config, ["closest"], [0])
    for name, weights in zip(("closest", "none", "iid"), held.weights, strict=True):
        loaded = torch.load(tmp_path / "run" / "models" / f"{name}-seed-0.pt", weights_only=True)
        assert loaded.keys() == weights.keys()
        assert all(torch.equal(loaded[key], weights[key]) and len(weights[key]) == 5 for key in loaded)


def test_a_repeated_datapoint_is_said(tmp_path: Path) -> None:
    config = preset("best").with_(
        **{
            "network.devices": 100,
            "data.samples": 20,
            "data.repeat": True,
            "federation.rounds": 1,
            "federation.interval": 1,
            "federation.model": "mlp",
            "marginal.messages": 60,
        }
    )
    result = compared(tmp_path / "run", config, ["closest"], [0])
    assert [len(held) for held in result.prepared[0].setting.holdings] == [20] * 100
    assert "a datapoint at 1.4 devices on average" in (tmp_path / "run" / "config.toml").read_text()


def test_a_comparison_whose_rows_are_in_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same files as with rows in memory, also when it was cut; and one sentence before anything where no room is left."""
    config = small(**{"federation.scheme": "decentralised", "federation.neighbours": 1, "federation.interval": 1})
    compared(tmp_path / "memory", config, ["closest"], [0])
    monkeypatch.setattr("d2dfl.federation.room.SMALL", 0)
    monkeypatch.setattr("d2dfl.memory.free_bytes", lambda: 1000.0)
    told: list[str] = []
    plan = plan_of(config, ["closest"], [0])

    def cut(what: str, share: float) -> None:
        if what == "train" and share > 0.5:
            raise KeyboardInterrupt

    with (
        pytest.raises(KeyboardInterrupt),
        run_folder(tmp_path / "file", plan) as record,
    ):
        compare(config, ["closest"], [0], record, progress=cut, notice=told.append)
    assert len(told) == 1
    assert f"they are kept in a file in {tmp_path / 'file'}" in told[0]
    compared(tmp_path / "file", config, ["closest"], [0], again="resume")
    assert contents(tmp_path / "file") == contents(tmp_path / "memory")
    monkeypatch.setattr("shutil.disk_usage", lambda _: type("Usage", (), {"free": 10}))
    stages: list[str] = []
    with (
        pytest.raises(
            UserError, match="5 devices that keep a model and a momentum of .* set federation.momentum_rule=reset"
        ),
        run_folder(tmp_path / "none", plan) as record,
    ):
        compare(config, ["closest"], [0], record, progress=lambda what, _: stages.append(what))
    assert stages == [], "before anything is computed"
    assert not (tmp_path / "none").exists()
