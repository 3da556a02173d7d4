"""Graphs side by side, as a library has them."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from d2dfl import Network, preset
from d2dfl.discovery.methods import METHODS, Method
from d2dfl.errors import MissingExtraError
from d2dfl.experiment import graphs
from d2dfl.experiment.cells.files import stored
from d2dfl.progress import Share, silent
from d2dfl.report.findings import Findings

CONFIG = preset("best").with_(**{"network.devices": 5, "marginal.messages": 100})


def test_graphs_of_several_methods_and_their_folder(tmp_path: Path) -> None:
    network, seen = Network.generate(CONFIG, 1), []

    @contextmanager
    def watch(method: Method) -> Iterator[Share]:
        seen.append(method.name)
        yield silent

    methods = [METHODS["closest"], METHODS["uniform"]]
    result = graphs.compare_graphs(network, CONFIG, methods, 1, tmp_path / "out", watch=watch)
    assert [item.method for item in result.discoveries] == seen == ["closest", "uniform"]
    assert result.best == max(item.evaluation.objective for item in result.discoveries)
    rows = json.loads((tmp_path / "out" / "comparison.json").read_text())
    assert [row["objective"] for row in rows] == [item.evaluation.objective for item in result.discoveries]
    assert len(stored(tmp_path / "out")) == len(Findings.load(tmp_path / "out").tables[0].rows) == 2
    again = graphs.compare_graphs(network, CONFIG, methods, 1)  # nothing is written
    assert [item.graph.edges for item in again.discoveries] == [item.graph.edges for item in result.discoveries]


def test_a_method_that_lacks_its_package_is_left_out_only_if_that_is_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    find = graphs.discover

    def lacking(*arguments: Any, method: str, **options: Any) -> object:
        if method == "uniform":
            raise MissingExtraError("uniform", "luck", "more")
        return find(*arguments, method=method, **options)

    monkeypatch.setattr(graphs, "discover", lacking)
    methods, network = [METHODS["closest"], METHODS["uniform"]], Network.generate(CONFIG, 1)
    result = graphs.compare_graphs(network, CONFIG, methods, skip=True)
    assert [item.method for item in result.discoveries] == ["closest"]
    assert result.left_out[0].startswith("uniform needs the package luck")
    with pytest.raises(MissingExtraError):
        graphs.compare_graphs(network, CONFIG, methods)
