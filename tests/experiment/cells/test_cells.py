"""One store: whoever measured the cells of a run folder, one reader finds all of them."""

import json
from pathlib import Path

import pytest

from calling import call
from comparisons import compared, small
from d2dfl.experiment.cells.cell import Cell
from d2dfl.experiment.cells.files import Cells, StoredCell, keys_of, measured, stored
from d2dfl.network.files import save_network
from d2dfl.paper.run import ReproductionRequest, reproduce

FEW = ["--devices", "6", "--set", "marginal.messages=200"]


def read(folder: Path) -> dict[tuple[str, int], StoredCell]:
    """What is stored, by method and seed."""
    cells = {key: Cell.from_plain(json.loads(key)[1]) for key in stored(folder)}
    assert len(cells) == len(list((folder / "cells").iterdir()))  # every file was read
    return {(cell.method, cell.seed): stored(folder)[key] for key, cell in cells.items()}


def test_cells_of_a_comparison(tmp_path: Path) -> None:
    result = compared(tmp_path, small(), ("closest",), (0, 1))
    found = stored(tmp_path)
    for cell, values in zip(result.cells, result.values, strict=True):
        (key,) = keys_of({"experiment": "", "cells": [cell.to_plain(placed=False)]})
        assert found[key].values == json.loads(json.dumps(values))
        assert found[key].seconds == 0.0
    assert read(tmp_path).keys() == {(name, seed) for name in ("closest", "none", "iid") for seed in (0, 1)}


def test_cells_of_a_discovery_and_of_several(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, many = tmp_path / "one", tmp_path / "many"
    assert call(monkeypatch, "discover", *FEW, "--method", "closest", "--seed", "3", "--out", str(one)) == 0
    assert call(monkeypatch, "compare-graphs", *FEW, "--methods", "closest,uniform", "--out", str(many)) == 0
    assert read(one).keys() == {("closest", 3)}
    assert read(many).keys() == {("closest", 0), ("uniform", 0)}
    for key, item in stored(many).items():
        assert not Cell.from_plain(json.loads(key)[1]).trains
        assert item.values["objective"]


def test_a_value_of_a_cell_is_the_same_quantity_in_every_run_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = small(**{"federation.rounds": 1})
    (tmp_path / "c.toml").write_text(config.to_toml())
    result = compared(tmp_path / "run", config, ("closest",), (0,))
    setting = result.prepared[0].setting
    save_network(setting.reported_network, tmp_path / "net.npz")
    arguments = ["--config", str(tmp_path / "c.toml"), "--network", str(tmp_path / "net.npz"), "--method", "closest"]
    assert call(monkeypatch, "discover", *arguments, "--out", str(tmp_path / "graph")) == 0
    (graph,), trained = stored(tmp_path / "graph").values(), read(tmp_path / "run")["closest", 0]
    both = graph.values.keys() & trained.values.keys()
    assert both == {"met", "lacked", "arrived", "success", "inter", "messages"}
    assert {name: graph.values[name] for name in both} == {name: trained.values[name] for name in both}


def test_cells_of_a_reproduction(tmp_path: Path) -> None:
    script = tmp_path / "mine.py"
    script.write_text(
        "from d2dfl.paper import NONE, Experiment, Point, Shown, each, sweep_table\n"
        "def points(scale): return [Point('here', {}, contenders=(NONE,))]\n"
        "def measure(cell): return {'seed': cell.seed}\n"
        "def show(results): return Shown(tables=(sweep_table(results, 'Seeds', lambda cell: cell['seed']),))\n"
        "EXPERIMENT = Experiment('mine', points, show, each(measure))\n"
    )
    assert not reproduce(ReproductionRequest([str(script)], "tiny", tmp_path / "out", workers=1)).failures
    assert read(tmp_path / "out").keys() == {("none", 0), ("none", 1)}


def test_a_group_shares_its_seconds(tmp_path: Path) -> None:
    payload = {"experiment": "", "cells": [{"seed": 0}, {"seed": 1}]}
    result = measured([{"score": 0.5}, {"score": 0.75}], seconds=4.0)
    Cells.open(tmp_path).keep("group", json.dumps(payload), json.dumps(result))
    assert [(item.values["score"], item.seconds) for item in stored(tmp_path).values()] == [(0.5, 2.0), (0.75, 2.0)]
