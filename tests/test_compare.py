"""From data to curves: the whole road, cut runs included."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from d2dfl import Config, UserError, preset
from d2dfl.compare import Comparison, Progress, compare
from d2dfl.data.datasets import load
from d2dfl.findings import Findings
from d2dfl.report import markdown, write_all
from d2dfl.simulate import IID, data_set, methods_named, prepare, setting_of

torch.set_num_threads(1)  # two threads on busy cores are slower


def small(**changes: object) -> Config:
    base = {
        "network.devices": 5,
        "data.samples": 40,
        "data.allocation": "labels:2",
        "federation.rounds": 3,
        "federation.interval": 3,
        "marginal.messages": 100,
        "network.trust": "full",
    }
    return preset("best").with_(**{**base, **changes})


def quiet(_: str, __: float) -> None:
    pass


def result_of(folder: Path, config: Config, resume: bool = False, progress: Progress = quiet) -> Comparison:
    return compare(config, ["marginal", "closest"], [0, 1], folder, resume, progress)


def test_settings_and_yardstick_hold_the_same_data() -> None:
    config = small()
    setting = setting_of(config, 1, data_set(config, 0))
    assert [len(held) for held in setting.holdings] == [40] * 5
    assert ((setting.network.counts > 0).sum(axis=1) == 2).all()
    shuffled = prepare(config, setting, IID)
    assert sorted(np.concatenate(shuffled.data.members)) == sorted(np.concatenate(setting.holdings))
    untouched = prepare(config, setting, "none")
    assert all((a == b).all() for a, b in zip(untouched.data.members, setting.holdings, strict=True))
    moved = prepare(config, setting, "marginal")
    assert moved.exchanged is not None
    assert moved.exchanged.moved > 0
    held = sum(len(points) for points in moved.data.members)
    assert held + len(moved.exchanged.lost) == 200


def test_comparison_measures_and_writes(tmp_path: Path) -> None:
    longer = {"federation.rounds": 12, "federation.interval": 10, "data.allocation": "labels:1"}
    result = result_of(tmp_path / "run", small(**longer))
    assert [row.method for row in result.rows] == ["marginal", "closest", "none", "iid"]
    rows = {row.method: row for row in result.rows}
    assert rows["none"].gap_closed == 0.0
    assert rows["iid"].gap_closed == 1.0
    assert rows["marginal"].distance < rows["none"].distance
    assert rows["marginal"].joules > rows["none"].joules  # the exchange is charged
    write_all(result, tmp_path / "run")
    names = {path.name for path in (tmp_path / "run").iterdir()}
    assert names == {
        "config.toml",
        "run.json",
        "results.json",
        "table.md",
        "curves.csv",
        "curves.png",
        "curves.svg",
        "graphs.png",
        "graphs.html",
        "findings.json",
    }
    assert markdown(result).count("\n| ") == 4
    stored = json.loads((tmp_path / "run" / "results.json").read_text())
    assert len(stored["cells"]) == 8
    for cell, book in zip(stored["cells"], result.ledgers, strict=True):
        assert np.sum(cell["device_joules"]) == pytest.approx(book.total_j)
        assert cell["joules"][-1] == pytest.approx(book.total_j)
    found = Findings.load(tmp_path / "run")
    assert [line.name for line in found.charts[0].lines] == ["marginal", "closest", "none", "iid"]
    assert [layer.name for layer in found.maps[0].layers] == ["marginal", "closest", "none"]
    assert np.sum(found.bars[0].values) == pytest.approx(sum(row.joules for row in result.rows))


def test_scores_are_logged_while_training_and_no_round_twice(tmp_path: Path) -> None:
    def stop(what: str, share: float) -> None:
        if what == "train" and share > 0.4:
            raise KeyboardInterrupt

    config = small(**{"federation.rounds": 5})
    with pytest.raises(KeyboardInterrupt):
        compare(config, ["closest"], [0], tmp_path, False, stop, ["csv"])
    early = (tmp_path / "log.csv").read_text().splitlines()
    result = compare(config, ["closest"], [0], tmp_path, True, quiet, ["csv"])
    rows = [line.split(",") for line in (tmp_path / "log.csv").read_text().splitlines()[1:]]
    assert 1 < len(early) < len(rows)
    assert len({tuple(row[:3]) for row in rows}) == len(rows)
    method, seed, curve = result.cells[0]
    logged = [float(row[3]) for row in rows if row[0] == f"{method}-seed-{seed}" and row[2] == "score"]
    assert logged == curve.scores
    with pytest.raises(UserError, match="there is no log 'diary'"):
        compare(config, ["closest"], [0], tmp_path / "other", False, quiet, ["diary"])
    assert not (tmp_path / "other").exists()


def test_no_share_of_a_gap_that_is_not_there(tmp_path: Path) -> None:
    alike = compare(small(**{"data.allocation": "iid"}), ["closest"], [0, 1], tmp_path, False, quiet)
    assert {row.gap_closed for row in alike.rows} == {None}


def test_a_cut_run_goes_on_to_the_same_numbers(tmp_path: Path) -> None:
    whole = result_of(tmp_path / "whole", small()).to_dict()

    def cut(what: str, share: float) -> None:
        if what == "train" and share > 0.5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        result_of(tmp_path / "cut", small(), progress=cut)
    assert (tmp_path / "cut" / "checkpoint").exists()
    assert not (tmp_path / "cut" / "results.json").exists()
    resumed = result_of(tmp_path / "cut", small(), resume=True).to_dict()
    assert resumed == whole
    assert not list((tmp_path / "cut").glob("checkpoint*"))


def test_another_run_is_not_gone_on_with(tmp_path: Path) -> None:
    result_of(tmp_path, small(**{"federation.rounds": 1}))
    with pytest.raises(UserError, match="another run"):
        result_of(tmp_path, small(**{"federation.rounds": 2}), resume=True)
    (tmp_path / "run.json").write_text('{"format": 99}')
    with pytest.raises(UserError, match="another version"):
        result_of(tmp_path, small(**{"federation.rounds": 1}), resume=True)
    (tmp_path / "run.json").write_text("{")
    with pytest.raises(UserError, match="not a readable run folder"):
        result_of(tmp_path, small(**{"federation.rounds": 1}), resume=True)


def test_a_method_changes_nothing_in_another(tmp_path: Path) -> None:
    config = small(**{"federation.executor": "loop"})
    alone = compare(config, ["closest"], [0], tmp_path / "a", False, quiet)
    beside = compare(config, ["marginal", "closest"], [0], tmp_path / "b", False, quiet)
    curves = [[c.scores for m, _, c in result.cells if m == "closest"] for result in (alone, beside)]
    assert curves[0] == curves[1]


def test_impossible_requests_are_refused() -> None:
    dataset = load("digits")
    with pytest.raises(UserError):
        setting_of(small(**{"data.samples": 5000}), 0, dataset)
    with pytest.raises(UserError):
        setting_of(small(**{"data.allocation": "labels:11"}), 0, dataset)
    with pytest.raises(UserError, match="the methods are"):
        methods_named("closest,nothing")
