"""From data to curves: the whole road."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from comparisons import compared, small
from d2dfl import UserError, preset
from d2dfl.data.datasets import load
from d2dfl.discovery.methods import IID, methods_named
from d2dfl.experiment.compare import compare
from d2dfl.experiment.findings.comparison import against_table, findings, markdown, shown_cells, table_of
from d2dfl.experiment.inputs import data_set
from d2dfl.experiment.pipeline import prepare
from d2dfl.experiment.setting import setting_of
from d2dfl.report.findings import Findings

torch.set_num_threads(1)  # two threads on busy cores are slower


def test_settings_and_yardstick_hold_the_same_data() -> None:
    config = small()
    setting = setting_of(config, 1, data_set(config, 0))
    assert [len(held) for held in setting.holdings] == [40] * 5
    assert ((setting.network.counts > 0).sum(axis=1) == 2).all()
    shuffled = prepare(config, setting, IID)
    assert sorted(np.concatenate(shuffled.holdings)) == sorted(np.concatenate(setting.holdings))
    untouched = prepare(config, setting, "none")
    assert all((a == b).all() for a, b in zip(untouched.holdings, setting.holdings, strict=True))
    moved = prepare(config, setting, "marginal")
    assert moved.exchanged is not None
    assert moved.exchanged.moved > 0
    held = sum(len(points) for points in moved.holdings)
    assert held + len(moved.exchanged.lost) == 200


def test_a_model_that_is_not_there_is_refused_before_any_discovery(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("d2dfl.experiment.compare.discover", None)
    with pytest.raises(UserError, match="the models are"):
        compare(small(**{"federation.model": "nothing"}), ["closest"], [0])


def test_cluster_budgets_are_held_for_every_method_alike() -> None:
    """R9: the reward only pays for keeping to them; rules do not even hear of it."""
    over = {}
    for kept in ("hard", "soft"):
        config = small(**{"exchange.budget": kept, "channel.budget_share": 0.1, "channel.reliability": 0.0})
        setting = setting_of(config, 1, data_set(config, 0))
        transfers = prepare(config, setting, "most-trusted").exchanged.transfers
        cluster, budget = setting.network.cluster, setting.network.budget
        taken = np.zeros(len(budget))
        for one in transfers:
            taken[cluster[one.receiver]] += len(one.sent) * (cluster[one.transmitter] != cluster[one.receiver])
        over[kept] = (taken > budget).sum()
    assert over["hard"] == 0 < over["soft"]
    assert small().exchange.budget == preset("paper").exchange.budget == "hard"


def test_comparison_measures_and_writes(tmp_path: Path) -> None:
    longer = {"federation.rounds": 12, "federation.interval": 10, "data.allocation": "labels:1", "network.devices": 10}
    result = compared(tmp_path / "run", small(**longer))
    assert [row.method for row in result.rows] == ["marginal", "closest", "none", "iid"]
    rows = {row.method: row for row in result.rows}
    assert rows["none"].gap_closed == 0.0
    assert rows["iid"].gap_closed == 1.0
    assert rows["marginal"].distance < rows["none"].distance
    assert rows["marginal"].joules > rows["none"].joules  # the exchange is charged
    names = {path.name for path in (tmp_path / "run").iterdir()}
    assert names == {
        "config.toml",
        "run.json",
        "results.json",
        "cells",
        "table.md",
        "curves.csv",
        "curves.png",
        "curves.svg",
        "graphs.png",
        "graphs.html",
        "findings.json",
        "models",
        "holdings",
        "graphs",
        "traces",
    }
    assert markdown(result).count("\n| ") == 4 + 1 + 3  # iid is held against nobody
    assert "12 rounds of 10 minibatches, 2 seeds" in Findings.load(tmp_path / "run").setting
    full = replace(result, config=result.config.with_(**{"federation.scheme": "fedsgd"}))
    assert "12 rounds of one full gradient, 2 seeds" in findings(full).setting
    stored = json.loads((tmp_path / "run" / "results.json").read_text())
    assert len(list((tmp_path / "run" / "cells").iterdir())) == len(stored["device_joules"]) == 8
    for cell, values, book in zip(stored["device_joules"], result.values, result.ledgers, strict=True):
        assert np.sum(cell["joules"]) == pytest.approx(book.until())
        assert values["joules"]["first-order"][-1] == pytest.approx(book.until())
    found = Findings.load(tmp_path / "run")
    assert [line.name for line in found.charts[0].lines] == ["marginal", "closest", "none", "iid"]
    assert [layer.name for layer in found.maps[0].layers] == ["marginal", "closest", "none"]
    assert np.sum(found.bars[0].values) == pytest.approx(sum(row.joules for row in result.rows))


def test_methods_are_held_against_the_best_other_one_on_the_same_seeds(tmp_path: Path) -> None:
    result = compared(tmp_path / "run", small(), ["marginal", "closest"], [0, 1, 2])
    ends = {  # by seed; seeds differ more than methods do
        "marginal": (0.60, 0.71, 0.82),
        "closest": (0.50, 0.60, 0.70),
        "none": (0.51, 0.59, 0.705),
        "iid": (0.90, 0.90, 0.90),
    }
    values = [
        {**values, "scores": [ends[cell.method][cell.seed]] * len(values["scores"])}
        for cell, values in zip(result.cells, result.values, strict=True)
    ]
    result = replace(result, values=tuple(values))
    rows = {row.method: row for row in result.rows}
    ours = rows["marginal"].against
    assert ours is not None
    # Against none, whose mean is 0.6017: 0.09, 0.12, 0.115; t(0.975, 2) = 4.3027
    half = 4.3027 * np.std([0.09, 0.12, 0.115], ddof=1) / 3**0.5
    assert (ours.method, ours.gain, ours.standing) == ("none", pytest.approx(0.325 / 3), "ahead")
    assert ours.interval == pytest.approx((0.325 / 3 - half, 0.325 / 3 + half), abs=1e-5)
    assert rows["closest"].against.standing == "behind"
    assert rows["iid"].against is None
    low, high = rows["marginal"].interval
    assert (low + high) / 2 == pytest.approx(0.71)
    assert f"0.710 ± {high - 0.71:.3f}" in shown_cells(rows["marginal"])
    lines = {row[0]: row[1:] for row in against_table(result).rows}
    assert lines["marginal"] == ("none", f"+0.108 [{0.325 / 3 - half:.3f}, {0.325 / 3 + half:.3f}]", "ahead")
    assert set(lines) == {"marginal", "closest", "none"}
    assert json.loads(json.dumps(result.to_dict(), allow_nan=False))["rows"][0]["against"]["standing"] == "ahead"
    told = {**ends, "marginal": (0.60, 0.58, 0.75)}  # ahead in the mean, by less than its interval
    close = [
        {**values, "scores": [told[cell.method][cell.seed]] * len(values["scores"])}
        for cell, values in zip(result.cells, result.values, strict=True)
    ]
    first = replace(result, values=tuple(close)).rows[0].against
    assert first is not None
    assert (first.gain > 0, first.standing) == (True, "nobody can tell")


def test_the_table_says_what_it_shows(tmp_path: Path) -> None:
    config = small(**{"data.samples": 0, "network.devices": 10, "federation.rounds": 1, "federation.interval": 1})
    result = compared(tmp_path / "one", config, ["closest"], [0])
    table = table_of(result)
    assert not any("±" in cell for row in table.rows for cell in row)
    assert shown_cells(replace(result.rows[0], gap_closed=-0.001, moved=-0.0))[2:5:2] == ["0.00", "0"]
    flat = [{**values, "scores": [0.5] * len(values["scores"]), "higher_is_better": False} for values in result.values]
    flat[0]["scores"] = [0.6] * len(flat[0]["scores"])  # worse, where lower is better: it never gets to 0.5
    unknown = table_of(replace(result, values=tuple(flat))).words
    assert "– in gap closed: iid is not clearly better than none (fewer than 3 seeds: by more than 0.02)" in unknown
    assert "– in rounds: " in unknown
    assert "score: accuracy (lower is better)," in unknown
    assert "score: accuracy," in table.words
    assert "as it went, not as it was expected" in table.words
    held = [len(points) for points in result.prepared[0].setting.holdings]
    first, second, *_ = (tmp_path / "one" / "config.toml").read_text().splitlines()
    assert config.data.samples == 0
    assert second == "[network]"  # what devices hold is network.samples_per_device at the most
    assert first == f"# used: 10 devices with {held[0]} of the 1,438 datapoints of digits each (labels:2)"
    assert held[0] != config.network.samples_per_device
    stored = json.loads((tmp_path / "one" / "results.json").read_text())
    assert stored["used"]["datapoints_by_device"] == held
    assert "± 0." in markdown(compared(tmp_path / "two", small(), ["closest"], [0, 1]))
    said = (tmp_path / "two" / "config.toml").read_text().splitlines()[1]
    assert said == "# these do not count here: network.samples_per_device (data.samples says it)"


def test_scores_are_logged_while_training_and_no_round_twice(tmp_path: Path) -> None:
    def stop(what: str, share: float) -> None:
        if what == "train" and share > 0.4:
            raise KeyboardInterrupt

    config = small(**{"federation.rounds": 5})
    out = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        compared(out, config, ["closest"], [0], progress=stop, logs=["csv"])
    early = (out / "log.csv").read_text().splitlines()
    result = compared(out, config, ["closest"], [0], "resume", logs=["csv"])
    rows = [line.split(",") for line in (out / "log.csv").read_text().splitlines()[1:]]
    assert 1 < len(early) < len(rows)
    assert len({tuple(row[:3]) for row in rows}) == len(rows)
    cell, values = result.cells[0], result.values[0]
    logged = [float(row[3]) for row in rows if row[0] == f"{cell.method}-seed-{cell.seed}" and row[2] == "score"]
    assert logged == values["scores"]
    with pytest.raises(UserError, match="there is no log 'diary'"):
        compared(tmp_path / "other", config, ["closest"], [0], logs=["diary"])
    assert not (tmp_path / "other").exists()


def test_no_share_of_a_gap_that_is_not_there() -> None:
    alike = compare(small(**{"data.allocation": "iid"}), ["closest"], [0, 1])
    assert {row.gap_closed for row in alike.rows} == {None}


def test_a_method_changes_nothing_in_another() -> None:
    config = small(**{"federation.executor": "loop"})
    alone = compare(config, ["closest"], [0])
    beside = compare(config, ["marginal", "closest"], [0])
    curves = [
        [values["scores"] for cell, values in zip(result.cells, result.values, strict=True) if cell.method == "closest"]
        for result in (alone, beside)
    ]
    assert curves[0] == curves[1]


def test_impossible_requests_are_refused() -> None:
    dataset = load("digits")
    with pytest.raises(UserError):
        setting_of(small(**{"data.samples": 5000}), 0, dataset)
    with pytest.raises(UserError):
        setting_of(small(**{"data.allocation": "labels:11"}), 0, dataset)
    with pytest.raises(UserError, match="the methods are"):
        methods_named("closest,nothing")
