"""One store: whoever measured the cells of a run folder, one reader finds all of them."""

import json
from pathlib import Path

import pytest
from calling import call
from comparisons import compared, small

from d2dfl.experiment.cell import Cell
from d2dfl.experiment.cells import Cells, keys_of, measured, stored
from d2dfl.paper.run import Request, reproduce

FEW = ["--devices", "6", "--set", "marginal.messages=200"]


def read(folder: Path) -> dict[tuple[str, int], object]:
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
    assert all(item.values["objective"] for item in stored(many).values())


def test_cells_of_a_reproduction(tmp_path: Path) -> None:
    script = tmp_path / "mine.py"
    script.write_text(
        "from d2dfl.paper import NONE, Experiment, Point, Shown, each, sweep_table\n"
        "def points(scale): return [Point('here', {}, contenders=(NONE,))]\n"
        "def measure(cell): return {'seed': cell.seed}\n"
        "def show(results): return Shown(tables=(sweep_table(results, 'Seeds', lambda cell: cell['seed']),))\n"
        "EXPERIMENT = Experiment('mine', points, show, each(measure))\n"
    )
    assert not reproduce(Request([str(script)], "tiny", tmp_path / "out", workers=1)).failures
    assert read(tmp_path / "out").keys() == {("none", 0), ("none", 1)}


def test_a_group_shares_its_seconds(tmp_path: Path) -> None:
    payload = {"experiment": "", "cells": [{"seed": 0}, {"seed": 1}]}
    result = measured([{"score": 0.5}, {"score": 0.75}], seconds=4.0)
    Cells.open(tmp_path).keep("group", json.dumps(payload), json.dumps(result))
    assert [(item.values["score"], item.seconds) for item in stored(tmp_path).values()] == [(0.5, 2.0), (0.75, 2.0)]
