"""One sentence about what came out, the command that makes it again, and how every device fared."""

import shlex
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from calling import call
from comparisons import compared, small
from d2dfl import Config, discover, preset
from d2dfl.cli.commands.options import Learning
from d2dfl.config import split_path
from d2dfl.experiment.compare import compare
from d2dfl.experiment.comparison import Comparison
from d2dfl.experiment.findings.comparison import findings
from d2dfl.experiment.findings.device_scores import KEY, _tested, device_scores, device_table
from d2dfl.experiment.findings.seed_maps import drawn_seeds
from d2dfl.experiment.findings.summary import graph_findings
from d2dfl.experiment.findings.takeaways import comparison_command, comparison_takeaway
from d2dfl.network import Network
from d2dfl.report.findings import Findings
from d2dfl.transfer import held_counts

torch.set_num_threads(1)  # two threads on busy cores are slower


@pytest.fixture(scope="module")
def three() -> Comparison:
    return compare(small(), ["marginal", "closest"], [0, 1, 2])


def ended(result: Comparison, ends: dict[str, tuple[float, ...]]) -> Comparison:
    """The same with other scores."""
    values = [
        {**values, "scores": [ends[cell.method][cell.seed]] * len(values["scores"])}
        for cell, values in zip(result.cells, result.values, strict=True)
    ]
    return replace(result, values=tuple(values))


def said(result: Comparison) -> str:
    return comparison_takeaway(result.results, result.rows)


def test_the_sentence_says_who_is_best_and_whether_that_can_be_told(three: Comparison) -> None:
    ends = {
        "marginal": (0.80, 0.81, 0.82),
        "closest": (0.70, 0.712, 0.72),
        "none": (0.6, 0.61, 0.62),
        "iid": (0.9, 0.91, 0.92),
    }
    assert said(ended(three, ends)) == (
        "Marginal (ours) ends best: accuracy 0.810 against 0.610 without an exchange and 0.910 on shuffled data, 67 % of the "
        "gap; the exchange helps, and Marginal (ours) is ahead of Closest."
    )
    close = {**ends, "closest": (0.82, 0.80, 0.805)}
    assert said(ended(three, close)).endswith("the exchange helps, but nobody can tell Marginal (ours) from Closest.")
    worse = {**ends, "marginal": (0.5, 0.51, 0.52), "closest": (0.4, 0.41, 0.42)}
    assert said(ended(three, worse)) == (
        "No exchange ends best: accuracy 0.610 against 0.510 with Marginal (ours), the best method, and 0.910 on shuffled data; "
        "the exchange harms."
    )
    alike = {**ends, "marginal": (0.61, 0.62, 0.6), "closest": (0.4, 0.41, 0.42)}
    assert said(ended(three, alike)) == (  # 0.610 is not best against 0.610
        "Marginal (ours) ends as no exchange does: accuracy 0.610 with both and 0.910 on shuffled data; nobody can tell whether "
        "the exchange helps."
    )
    level = {**ends, "marginal": (0.5, 0.71, 0.62), "closest": (0.4, 0.41, 0.42)}
    assert "nobody can tell whether the exchange helps" in said(ended(three, level))
    unsure = {**ends, "marginal": (0.5, 0.71, 0.65), "closest": (0.5, 0.7, 0.64)}  # two things that nobody can tell
    assert said(ended(three, unsure)).endswith(
        "nobody can tell whether the exchange helps, and nobody can tell Marginal (ours) from Closest."
    )


def test_two_seeds_tell_nothing(three: Comparison) -> None:
    some = [number for number, cell in enumerate(three.cells) if cell.seed < 2]
    two = replace(
        three,
        cells=tuple(three.cells[n] for n in some),
        values=tuple(three.values[n] for n in some),
        prepared=tuple(three.prepared[n] for n in some),
    )
    assert "2 seeds cannot tell whether the exchange helps" in said(two)


CHANGES = {
    "network.devices": 7,
    "network.trust": "block:0.5",
    "discovery.no_link": True,
    "qlearning.temperature": 0.2,
    "federation.scheme": "fedprox",
}


@pytest.mark.parametrize("name", ["best", "paper"])
@pytest.mark.parametrize("paradigm", ["supervised", "unsupervised"])
def test_the_command_gives_the_same_settings(name: str, paradigm: str) -> None:
    config = preset(name, paradigm).with_(**CHANGES)
    words = shlex.split(comparison_command(config, ["marginal", "none", "iid"], [0, 1]))
    assert words[:6] == ["d2dfl", "compare", "--methods", "marginal", "--seeds", "2"]
    given = dict(zip(words[6::2], words[7::2], strict=True))
    settings = [words[place + 1] for place, word in enumerate(words) if word == "--set"]
    options = Learning(
        preset_name=given.get("--preset", "best"), paradigm=given.get("--paradigm", "supervised"), settings=settings
    )
    assert options.config() == config
    assert len(settings) <= len(CHANGES)
    for text in settings:
        split_path(text.partition("=")[0])


def test_other_seeds_are_a_run_or_nothing() -> None:
    assert comparison_command(Config(), ["marginal"], [5]) == "d2dfl run --method marginal --seed 5"
    assert comparison_command(Config(), ["marginal", "closest"], [5]) == ""


@pytest.mark.parametrize("links", [["--edges", "5"], ["--edges", "2"], ["--set", "discovery.edges=3"], []])
def test_several_graphs_are_found_again_from_their_folder(
    links: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    first = ["compare-graphs", "--devices", "6", "--methods", "closest,uniform", *links]
    assert call(monkeypatch, *first, "--out", str(tmp_path / "one")) == 0
    found = Findings.load(tmp_path / "one")
    words = shlex.split(found.command, comments=True)
    monkeypatch.chdir(tmp_path / "one")
    assert call(monkeypatch, *words[1:], "--out", str(tmp_path / "two")) == 0
    again = Findings.load(tmp_path / "two")
    assert again.maps[0].layers == found.maps[0].layers
    edges = int(links[-1].rpartition("=")[2]) if links else 1
    receivers = [link.receiver for link in found.maps[0].layers[-1].links]
    assert min(edges, 3) <= max(receivers.count(one) for one in receivers) <= edges


def test_a_graph_is_found_again_from_its_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    first = ["discover", "--devices", "6", "--method", "closest", "--seed", "3", "--set", "channel.rate=0.7"]
    assert call(monkeypatch, *first, "--out", str(tmp_path / "one")) == 0
    found = Findings.load(tmp_path / "one")
    assert found.takeaway.startswith("Closest finds ")
    assert "datapoints are expected to move" in found.takeaway
    assert found.command.startswith("# in the run folder, beside network.npz\n")
    words = shlex.split(found.command, comments=True)
    assert words[:2] == ["d2dfl", "discover"]
    monkeypatch.chdir(tmp_path / "one")
    assert call(monkeypatch, *words[1:], "--out", str(tmp_path / "two")) == 0
    again = Findings.load(tmp_path / "two")
    assert again.tables == found.tables
    assert again.maps[0].layers == found.maps[0].layers


def test_several_graphs_have_a_best() -> None:
    config = preset("best").with_(**{"network.devices": 6})
    network = Network.generate(config, 0)
    items = [discover(network, config, method=name) for name in ("closest", "none")]
    found = graph_findings(items, None)
    assert found.takeaway.startswith("Closest finds the best of 2 graphs")
    assert "compare-graphs --methods closest,none --seed 0 --network network.npz --edges 5" in found.command
    assert found.tables[0].meanings[0] == ""


def test_scores_of_devices_are_those_on_their_own_labels() -> None:
    scores = np.array([[1.0, 0.5, np.nan, 0.0]])  # one model for all; nobody tests label 2
    held = np.array([[4, 0, 0, 0], [1, 1, 5, 0], [0, 2, 0, 6], [0, 0, 3, 0]], dtype=np.float64)
    assert device_scores(scores, held) == [1.0, 0.75, 0.125, None]
    own = np.array([[1.0, 0.0], [0.0, 1.0]])  # a model a device
    assert device_scores(own, np.array([[3.0, 1.0], [3.0, 1.0]])) == [0.75, 0.25]


def test_many_models_are_tested_on_fewer_datapoints() -> None:
    assert _tested(360, 25).tolist() == list(range(360))
    few = _tested(10_000, 25)
    assert (len(few), few[0], few[-1]) == (800, 0, 9_999)
    assert len(_tested(10_000, 200)) == 400
    assert len(_tested(10_000, 1)) == 10_000


def test_every_device_of_every_seed_is_in_the_record(tmp_path: Path) -> None:
    result = compared(tmp_path / "run", small(**{"federation.scheme": "decentralised"}), ["closest"], [0, 1])
    found = Findings.load(tmp_path / "run")
    assert [item.title for item in found.maps] == ["Seed 0", "Seed 1"]
    table = next(table for table in found.tables if table.title == "By device")
    assert len(table.rows) == 2 * 5
    assert table.columns == ("device", "seed", "held", "closest", "none", "iid")
    values = dict(zip([(cell.method, cell.seed) for cell in result.cells], result.values, strict=True))
    for device, seed, held, *scores in table.rows:
        assert held == "40"
        wanted = [values[name, int(seed)][KEY][int(device)] for name in ("closest", "none", "iid")]
        assert [float(score) for score in scores] == pytest.approx(wanted, abs=5e-4)
    chart = next(chart for chart in found.charts if chart.title == "Every device on its own labels")
    sorted_ = np.mean([np.sort(values["none", seed][KEY]) for seed in (0, 1)], axis=0)
    assert chart.lines[1].mean == pytest.approx(sorted_)
    layer = found.maps[1].layers[0]
    assert layer.scores == pytest.approx(values["closest", 1][KEY], abs=1e-4)


def test_the_map_holds_what_went_beside_what_was_expected(three: Comparison) -> None:
    found = findings(three)
    for place, item in enumerate(three.prepared[:2]):
        layer, moved = found.maps[0].layers[place], item.exchanged
        assert moved is not None
        assert sum(link.went[0] for link in layer.links) == moved.moved
        assert sum(link.went[0] - link.went[1] for link in layer.links) == moved.dropped
        held = held_counts(moved.holdings, item.setting.partitioning.partition_of, item.setting.network.partitions)
        assert np.array(layer.went).tolist() == held.tolist()
        population = item.setting.network.counts.sum(axis=0) / item.setting.network.counts.sum()
        away = np.abs(held / held.sum(axis=1, keepdims=True) - population).sum(axis=1) / 2
        assert layer.went_distance == pytest.approx(away, abs=1e-4)
        expected = np.array(layer.after)
        away = np.abs(expected / expected.sum(axis=1, keepdims=True) - population).sum(axis=1) / 2
        assert layer.distance == pytest.approx(away, abs=2e-3)


def test_a_page_holds_only_so_many_links(three: Comparison, monkeypatch: pytest.MonkeyPatch) -> None:
    assert drawn_seeds(three) == [0, 1, 2]
    monkeypatch.setattr("d2dfl.experiment.findings.seed_maps.MOST_LINKS", 1)
    assert drawn_seeds(three) == [0]
    assert findings(three).notes == (
        "the map shows all seeds but the last 2: their graphs have too many links for a page",
    )


def test_no_table_where_nobody_was_scored(three: Comparison) -> None:
    bare = [{name: value for name, value in values.items() if name != KEY} for values in three.values]
    assert device_table(replace(three, values=tuple(bare)).results, ["a"], {}) is None
