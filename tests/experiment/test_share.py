"""Own data on own devices: every row is accounted for, links and trust are kept to, and training works with any model."""

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
import torch
from torch import nn

import d2dfl
from d2dfl import Config, Network, ShareResult, UserError, preset, share
from d2dfl.experiment.findings.comparison import write_all
from d2dfl.experiment.findings.maps import layer_of, map_of
from d2dfl.network.files import save_network
from d2dfl.report.findings import Map, read_record
from d2dfl.report.page.widgets import map_widget
from d2dfl.transfer import exchange, held_counts

torch.set_num_threads(1)  # two threads on busy cores are slower

ROWS = 240
DRAWS = np.random.default_rng(0)
Y = DRAWS.integers(0, 3, ROWS)
X = DRAWS.normal(size=(ROWS, 4)) + 2 * np.eye(4)[Y]
DEVICE = (Y + (DRAWS.random(ROWS) < 0.2)) % 4
LINKS = DRAWS.uniform(0.0, 0.3, (4, 4))


def shared(**changes: Any) -> ShareResult:
    return share(X, Y, DEVICE, **{"links": LINKS, "trust": "full", "method": "closest", **changes})


@pytest.mark.parametrize("keep", ["delete", "acknowledged", "copy"])
def test_every_row_is_accounted_for(keep: str) -> None:
    result = shared(config=preset("best").with_(**{"exchange.keep": keep}))
    assert sum(len(rows) for part in result.sent.values() for rows in part.values()) > 10
    for device in range(4):
        assert set(result.before[device]) == set(np.flatnonzero(device == DEVICE))
        sent = {row for rows in result.sent[device].values() for row in rows}
        lost = {row for rows in result.lost[device].values() for row in rows}
        got = {row for rows in result.received[device].values() for row in rows}
        away = {"delete": sent, "acknowledged": sent - lost, "copy": set()}[keep]
        assert set(result.rows[device]) == (set(result.before[device]) - away) | got
        for other, rows in result.received[device].items():
            assert set(rows) == set(result.sent[other][device]) - set(result.lost[other][device])
    held = np.concatenate(list(result.rows.values()))
    assert sorted({*held, *result.gone}) == list(range(ROWS))
    assert len(result.gone) == (
        sum(len(rows) for part in result.lost.values() for rows in part.values()) if keep == "delete" else 0
    )


def test_it_is_the_same_road_step_by_step() -> None:
    """Network, discover, exchange by hand give what `share` gives."""
    config = preset("best").with_(**{"network.devices": 4, "network.trust": "full"})
    before = [np.flatnonzero(device == DEVICE) for device in range(4)]
    counts = held_counts(before, Y, 3)
    trust = np.ones((4, 4, 3))
    threshold = np.repeat(counts.sum(axis=1, keepdims=True) / 3, 3, axis=1)
    network = Network.from_arrays(counts=counts, threshold=threshold, trust=trust, drop=LINKS)
    found = d2dfl.discover(network, config, seed=7, method="closest")
    moved = exchange(found.graph, before, Y, threshold, seed=7, within=network)
    result = shared(seed=7)
    assert result.graph.edges == found.graph.edges
    for mine, theirs in zip(result.rows.values(), moved.holdings, strict=True):
        assert mine.tolist() == theirs.tolist()


def test_nothing_moves_over_links_and_to_devices_that_are_closed() -> None:
    links = np.ones((4, 4))
    links[1, 0] = 0.0  # 1 hears 0, and nobody hears anybody else
    open_one = shared(links=links)
    assert open_one.graph.edges == [(0, 1)]
    assert [list(part) for part in open_one.sent.values()] == [[1], [], [], []]
    assert len(open_one.gone) == 0
    trust = np.zeros((4, 4, 3))
    assert shared(trust=trust).graph.edges == []
    trust[2, :, 1] = 1  # everybody lets 2 have class 1 alone
    one_class = shared(trust=trust, method="marginal")
    assert {receiver for _, receiver in one_class.graph.edges} <= {2}
    assert all((Y[rows] == 1).all() for rows in one_class.received[2].values())
    assert one_class.received[2]


def test_devices_have_names_and_may_be_empty() -> None:
    names = np.array(["kitchen", "hall", "attic", "cellar"])
    by_name = share(
        X, Y, names[DEVICE], devices=[*names, "shed"], links=np.zeros((5, 5)), trust="full", method="closest"
    )
    assert by_name.names == (*names, "shed")
    assert len(by_name.before["shed"]) == len(by_name.rows["shed"]) == 0
    assert "shed" in by_name.summary()
    alone = share(X, Y, np.zeros(ROWS, int), method="closest")
    assert alone.rows[0].tolist() == list(range(ROWS))


def test_rows_are_found_by_the_names_that_the_user_gave() -> None:
    for names in (np.array(["ü", "b", "a", "c"]), np.arange(1, 5), np.array([1.0, 2.0, 3.0, 4.0]), [7, 3, 20, 11]):
        names = np.asarray(names)
        given = names.tolist() if names.dtype.kind != "f" else names.astype(int).tolist()
        result = share(X, Y, names[DEVICE], links=np.zeros((4, 4)), trust="full", method="closest")
        assert result.names == tuple(sorted(given))
        assert list(result.rows) == list(result.names)
        for place, name in enumerate(names.tolist()):
            mine = set(np.flatnonzero(place == DEVICE))
            assert set(result.before[name]) == mine
            came = [row for rows in result.received[name].values() for row in rows]
            left = [row for rows in result.sent[name].values() for row in rows]
            assert set(result.rows[name]) == mine - set(left) | set(came)
            for other, rows in result.received[name].items():
                assert other in given
                assert set(rows) == set(result.sent[other][name])
    assert result.rows["20"] is result.rows[20] is result.rows[np.int64(20)]
    assert 0 not in result.rows
    assert result.rows.get(0) is None
    assert repr(result.sent[3]).startswith("{")
    for error in (UserError, KeyError):
        with pytest.raises(error) as caught:
            result.rows[0]
        assert str(caught.value) == "there is no device 0 here: there are 3, 7, 11, 20"


def test_other_links(tmp_path: Path) -> None:
    network = Network.generate(preset("best").with_(**{"network.devices": 4, "network.partitions": 3}), 5)
    save_network(network, tmp_path / "network.npz")
    one, other = (shared(links=given, trust=None) for given in (network, tmp_path / "network.npz"))
    assert one.graph.edges == other.graph.edges
    assert share(X, Y, DEVICE, rss=np.full((4, 4), 0.3), method="closest").names == (0, 1, 2, 3)
    assert share(X, Y, DEVICE, method="closest", seed=1).discovery.network.positions is not None
    dealt = share(X, Y, devices=3, method="none", preset="paper", config=None)
    assert list(dealt.rows) == [0, 1, 2]
    assert share(X, Y, devices=["a", "b"], method="none").names == ("a", "b")


def test_targets_choose_the_paradigm() -> None:
    assert shared().discovery.config.partition.paradigm == "supervised"
    prices = X @ [1.0, 2.0, 3.0, 4.0]
    regression = share(X, prices, DEVICE, trust="full", method="closest")
    assert regression.discovery.config.partition.paradigm == "regression"
    assert regression.discovery.network.partitions == 10
    few = share(X, Y.astype(float), DEVICE, trust="full", method="closest")
    assert few.discovery.network.partitions == 3
    semi = share(X, Y, DEVICE, trust="full", method="closest", paradigm="semi")
    assert semi.discovery.config.partition.components == 4


def test_our_learner_brings_devices_nearer_to_the_whole() -> None:
    result = share(X, Y, DEVICE, links=LINKS, trust="full", edges=2)
    worth = result.discovery.evaluation
    assert worth.distance_after["total-variation"] < 0.3 * worth.distance_before["total-variation"]
    counts = held_counts(list(result.rows.values()), Y, 3)
    shares = counts / counts.sum(axis=1, keepdims=True)
    assert np.abs(shares - counts.sum(axis=0) / counts.sum()).sum(axis=1).mean() / 2 < 0.2


class Named(nn.Module):
    def __init__(self, shape: tuple[int, ...], outputs: int) -> None:
        super().__init__()
        self.layer = nn.Linear(shape[0], outputs)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.layer(inputs)


class Fixed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.layer(inputs)


@pytest.mark.parametrize("model", [None, "mlp", Named, Fixed, Fixed(), lambda shape, outputs: Named(shape, outputs)])
def test_any_model_trains_with_and_without_the_exchange(model: Any) -> None:
    result = shared().compare(model, rounds=3)
    assert [row.method for row in result.rows] == ["closest", "none", "iid"]
    assert all(values["rounds"][-1] == 3 for values in result.values)
    assert all(row.score > 0.4 for row in result.rows)
    own = model is not None and model != "mlp"
    assert all((next(iter(weights)) == "layer.weight") == own for weights in result.weights)


def test_comparison_by_methods_and_seeds_on_own_links_and_test_part() -> None:
    given = shared(test=(X[:30], Y[:30]))
    result = given.compare("mlp", rounds=1, methods=["uniform"], seeds=[3, 4])
    assert [(cell.method, cell.seed) for cell in result.cells] == [
        (method, seed) for seed in (3, 4) for method in ("uniform", "none", "iid")
    ]
    none = next(item for item in result.prepared if item.method == "none")
    assert [rows.tolist() for rows in none.holdings] == [rows.tolist() for rows in given.before.values()]
    assert len(result.dataset.test_inputs) == 30
    network = none.setting.network
    assert network.drop[0, network.candidates[0] == 2] == LINKS[0, 2]
    assert result.to_dict() == given.compare("mlp", rounds=1, methods="uniform", seeds=[3, 4]).to_dict()


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"links": 2 * LINKS + 1}, "links holds .*received power goes into rss"),
        ({"links": LINKS[:3]}, "links has the shape"),
        ({"links": np.zeros((3, 3))}, "links has 3 devices and device names 4, such as 3: they must be the same"),
        (
            {"links": np.zeros((6, 6))},
            "links has 6 devices and device names 4 of them: device 4 holds no row; say devices=6",
        ),
        ({"links": None, "rss": np.full((4, 4), -70.0)}, "rss holds -70: give received power in a linear unit, 10 "),
        ({"devices": 3, "links": None}, "device names 4, such as 3, and devices says 3"),
        ({"rss": LINKS}, "links and rss are both given"),
        ({"links": "nothing.npz"}, "there is no file"),
        ({"trust": np.full((4, 4), 0.5)}, "trust holds values other"),
        ({"trust": "sometimes"}, "there is no trust rule"),
        ({"method": "nothing"}, "there is no method"),
        ({"paradigm": "magic"}, "there is no paradigm"),
        ({"preset": "best", "config": Config()}, "config and preset"),
        ({"seed": -1}, "seed cannot be -1"),
        ({"edges": 0}, "discovery.edges cannot be 0"),
        ({"devices": 6, "links": None, "paradigm": "semi"}, "device 4 holds no datapoints"),
    ],
)
def test_what_cannot_be_is_one_sentence(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(UserError, match=says) as caught:
        shared(**changes)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("model", "says"),
    [
        (nn.Linear(3, 3), "model cannot take inputs of the shape"),
        (nn.Linear(4, 7), "model gives outputs of the shape (7,): the data asks for 3 numbers"),
        (lambda shape, outputs: 3, "model makes an int"),
        (lambda shape: Fixed(), "model takes 1 argument"),
        (5, "model is an int"),
        ("nothing", "there is no model 'nothing'"),
        (nn.Sequential(nn.BatchNorm1d(4), nn.Linear(4, 3)), "use GroupNorm"),
    ],
)
def test_a_model_that_does_not_fit_is_one_sentence(model: Any, says: str) -> None:
    with pytest.raises(UserError) as caught:
        shared().compare(model, rounds=1)
    assert says in str(caught.value)


def test_rows_that_are_dealt_out_are_said_first_and_advice_is_python() -> None:
    dealt = share(X, Y, devices=3, method="none", config=preset("best").with_(**{"data.allocation": "iid"}))
    assert dealt.summary().startswith("no device was given: 240 of the 240 rows were dealt out to 3 devices by iid\n")
    assert "no device was given" in dealt._repr_html_()
    assert "no device was given" not in shared().summary()
    with pytest.raises(UserError) as caught:
        share(X[:40], Y[:40], method="closest")
    advice = str(caught.value).partition("give ")[2]
    assert re.fullmatch(
        r'devices=\d+ or fewer, or config=preset\("best"\).with_\(\*\*{"data.allocation": "labels:\d"}\)', advice
    )


def test_links_that_carry_nothing_are_not_counted_as_if_they_did() -> None:
    """12 devices with one row of 3 classes each want a third of a row of each class: nothing can move."""
    one_each = share(X[:12], Y[:12], np.arange(12), links=np.zeros((12, 12)), trust="full", method="closest")
    links = len(one_each.graph.edges)
    assert links > 3
    summary = one_each.summary()
    assert f"closest found {links} links, 0 of which carry rows: 0 rows sent, 0 of them lost" in summary
    assert summary.endswith(
        f"{links} links carry nothing: rows move whole, and less than one was left to move; "
        "12 devices want less than one row of each class (network.threshold)"
    )
    with pytest.raises(UserError, match="X has 12 rows, 0 of them at devices that hold more than one, too few to keep"):
        one_each.compare(rounds=1)
    assert "carry" not in shared().summary()


def test_names_are_in_all_that_is_shown(tmp_path: Path) -> None:
    names = np.array(["ü-bahn", "a <b>", "c$_x$", "a very long name indeed"])
    classes = np.array(["cat", "dog & co", "eel"])
    result = share(X, classes[Y], names[DEVICE], devices=list(names), links=LINKS, trust="full", method="closest")
    network, graph = result.discovery.network, result.graph
    assert network.device_names == tuple(names)
    assert network.partition_names == tuple(classes)
    parsed = nx.parse_graphml(graph.to_graphml(network), node_type=int)
    assert [parsed.nodes[device]["name"] for device in range(4)] == list(names)
    held = json.loads(parsed.nodes[0]["counts"])
    assert held == {
        name: int(((DEVICE == 0) & (place == Y)).sum()) for place, name in enumerate(classes) if name in held
    }
    sender, receiver = graph.edges[0]
    moved = json.loads(parsed.edges[sender, receiver]["expected_by_partition"])
    assert set(moved) <= set(classes)
    assert sum(moved.values()) == pytest.approx(parsed.edges[sender, receiver]["expected_datapoints"], rel=1e-4)
    texts = {text.get_text() for text in result.plot(tmp_path / "graph.html").axes[0].texts}
    assert {"ü-bahn", "a <b>", "c$_x$", "a very…deed"} <= texts
    page = (tmp_path / "graph.html").read_text()
    for said in ("ü-bahn", "dog &amp; co", "a very…deed"):
        assert said in page or json.dumps(said)[1:-1] in page or said.replace("&", "\\u0026") in page
    graph.to_graphml(tmp_path / "links.graphml")
    graph.to_graphml(network, tmp_path / "all.graphml")
    assert "ü-bahn" in (tmp_path / "all.graphml").read_text(encoding="utf-8")
    assert nx.read_graphml(tmp_path / "links.graphml").number_of_edges() == len(graph.edges)
    with pytest.raises(UserError, match="to_graphml got two paths"):
        graph.to_graphml("one.graphml", "two.graphml")
    comparison = result.compare(rounds=1)
    write_all(comparison, tmp_path)
    with np.load(tmp_path / "holdings" / "closest-seed-0.npz") as file:
        assert file["names"].tolist() == list(names)
    record = json.loads((tmp_path / "graphs" / "closest-seed-0.json").read_text())
    assert record["names"] == list(names)
    assert record["partitions"] == list(classes)
    assert np.shape(record["expected_counts_after"]) == (4, 3)
    assert np.shape(record["expected_datapoints"]) == (len(record["edges"]), 3)
    assert "network.samples_per_device" in (tmp_path / "config.toml").read_text().splitlines()[1]


def test_names_are_on_the_page() -> None:
    names = np.array(["kitchen", "hall", "attic", "cellar"])
    result = share(X, Y, names[DEVICE], trust="full", method="closest")
    drawn = map_of("A house", result.discovery.network, [layer_of("Closest", result.discovery)])
    assert drawn.devices == tuple(sorted(names))
    assert drawn.partitions == ("0", "1", "2")
    widget = str(map_widget([drawn], {"closest": 0}))
    assert '"names": ["attic"' in widget.replace("&quot;", '"') or '"names":["attic"' in widget.replace("&quot;", '"')
    assert read_record(Map, json.loads(json.dumps(dataclasses.asdict(drawn)))) == drawn


def test_pictures_and_short_words(tmp_path: Path) -> None:
    result = shared()
    assert len(repr(result)) < 120
    assert repr(result).startswith("<ShareResult: 4 devices, closest found")
    assert result.summary().count("\n") == 5
    assert "<table>" in result._repr_html_()
    figure = result.plot(tmp_path / "graph.png")
    assert (tmp_path / "graph.png").stat().st_size > 1000
    assert figure.axes
    assert result.plot().axes
