"""What people take out of a run folder is what was trained, held and found."""

import json
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import torch

from d2dfl import Config, preset
from d2dfl.experiment.compare import compare
from d2dfl.experiment.comparison import Comparison
from d2dfl.experiment.folder.exports import write_exports
from d2dfl.federation import model_named

torch.set_num_threads(1)  # two threads on busy cores are slower


def small(**changes: object) -> Config:
    base = {
        "network.devices": 4,
        "network.trust": "full",
        "data.samples": 30,
        "data.allocation": "labels:2",
        "federation.rounds": 2,
        "federation.interval": 2,
        "federation.model": "mlp",
    }
    return preset("best").with_(**{**base, **changes})


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    return compare(small(), ["closest"], [0, 1])


@pytest.fixture(scope="module")
def folder(comparison: Comparison, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("run")
    write_exports(comparison, path)
    return path


def test_a_file_for_every_method_and_seed(folder: Path) -> None:
    all_names = {f"{method}-seed-{seed}" for method in ("closest", "none", "iid") for seed in (0, 1)}
    assert {path.name for path in (folder / "models").iterdir()} == {f"{name}.pt" for name in all_names}
    assert {path.name for path in (folder / "holdings").iterdir()} == {f"{name}.npz" for name in all_names}
    graphs = {name for name in all_names if not name.startswith("iid")}
    expected = {f"{name}.{suffix}" for name in graphs for suffix in ("json", "graphml")}
    assert {path.name for path in (folder / "graphs").iterdir()} == expected


def test_weights_give_the_score_that_was_measured(comparison: Comparison, folder: Path) -> None:
    for cell, values in zip(comparison.cells, comparison.values, strict=True):
        method, seed, data = cell.method, cell.seed, comparison.dataset
        model = model_named("mlp")((1, 8, 8), 10)
        model.load_state_dict(torch.load(folder / "models" / f"{method}-seed-{seed}.pt", weights_only=True))
        with torch.no_grad():
            answers = model(torch.from_numpy(data.test_inputs)).argmax(dim=1).numpy()
        assert (answers == data.test_targets).mean() == pytest.approx(values["scores"][-1], abs=1e-6)


def test_holdings_are_those_that_were_trained_on(comparison: Comparison, folder: Path) -> None:
    for cell, item in zip(comparison.cells, comparison.prepared, strict=True):
        method, seed = cell.method, cell.seed
        with np.load(folder / "holdings" / f"{method}-seed-{seed}.npz") as held:
            rows, device = held["rows"], held["device"]
        assert [rows[device == number].tolist() for number in range(4)] == [part.tolist() for part in item.holdings]


def test_graphs_are_those_that_were_found(comparison: Comparison, folder: Path) -> None:
    for item in comparison.prepared:
        if item.discovery is None:
            continue
        name = f"{item.method}-seed-{item.setting.seed}"
        record = json.loads((folder / "graphs" / f"{name}.json").read_text())
        graph = item.discovery.graph
        assert [tuple(edge) for edge in record["edges"]] == graph.edges
        assert record["devices"] == 4
        assert len(record["drop"]) == len(record["expected_datapoints"]) == len(graph.edges)
        drawn = nx.read_graphml(folder / "graphs" / f"{name}.graphml", node_type=int)
        assert sorted(drawn.edges) == sorted(graph.edges)
    assert any(item.discovery and item.discovery.graph.edges for item in comparison.prepared)


def test_the_same_comparison_gives_the_same_bytes(comparison: Comparison, folder: Path, tmp_path: Path) -> None:
    write_exports(compare(small(), ["closest"], [0, 1]), tmp_path)
    mine, theirs = (
        {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}
        for root in (tmp_path, folder)
    )
    assert mine == theirs


def test_models_of_all_devices_where_there_is_no_server() -> None:
    done = compare(small(**{"federation.scheme": "decentralised", "federation.neighbours": 1}), ["closest"], [0])
    assert all(len(tensor) == 4 for tensor in done.weights[0].values())
