"""Records say in one short line what they hold, and show themselves in a notebook without letting texts in as HTML."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from d2dfl import Network, UserError, compare, discover, preset
from d2dfl.data.datasets import load
from d2dfl.notebook import table_html
from d2dfl.transfer import exchange

torch.set_num_threads(1)  # two threads on busy cores are slower
CONFIG = preset("best").with_(**{"network.devices": 40, "network.trust": "full", "federation.rounds": 1})


@pytest.fixture(scope="module")
def records() -> dict[str, Any]:
    network = Network.generate(CONFIG, 0)
    found = discover(network, CONFIG, method="closest")
    counts = network.counts.astype(np.int64)
    partition_of = np.concatenate([np.repeat(np.arange(10), row) for row in counts])
    holdings = np.split(np.arange(counts.sum()), np.cumsum(counts.sum(axis=1))[:-1])
    moved = exchange(found.graph, holdings, partition_of, network.threshold, seed=0)
    small = {"network.devices": 3, "data.samples": 20, "data.allocation": "labels:1", "federation.interval": 1}
    measured = compare(CONFIG.with_(**small), ["closest"], [0, 1])
    return {
        "Network": network,
        "Discovery by closest": found,
        "Graph": found.graph,
        "ExchangeResult": moved,
        "Dataset digits": load("digits"),
        "Comparison by accuracy": measured,
    }


def test_one_short_line(records: dict[str, Any]) -> None:
    for name, record in records.items():
        text = repr(record)
        assert text.startswith(f"<{name}: "), text
        assert "\n" not in text
        assert len(text) < 250, text
        assert "array(" not in text
    assert "40 devices" in repr(records["Network"])
    assert "2 seeds" in repr(records["Comparison by accuracy"])
    moved = records["ExchangeResult"]
    assert f"{moved.moved:,} datapoints sent" in repr(moved)
    assert f"{len(records['Graph'].edges)} links" in repr(records["Graph"])


def test_a_notebook_shows_a_table(records: dict[str, Any]) -> None:
    for name, record in records.items():
        html = record._repr_html_()
        # A comparison has a second one: each method against the best other.
        assert html.count("<table>") == html.count("</table>") == (2 if name.startswith("Comparison") else 1), name
        assert len(html) < 10_000
    assert "more link" in records["Graph"]._repr_html_()


def test_texts_are_no_html(records: dict[str, Any]) -> None:
    hostile = replace(records["Dataset digits"], name="<script>alert(1)</script>")
    assert "<script>" not in hostile._repr_html_()
    assert "<b>" not in table_html("<b>", ["<b>"], [["<b>"]], "<b>")


def test_pictures(records: dict[str, Any], tmp_path: Path) -> None:
    for name in ("Network", "Discovery by closest", "Comparison by accuracy"):
        figure = records[name].plot(str(tmp_path / "picture.png"))
        assert figure.axes
        assert (tmp_path / "picture.png").read_bytes()[:4] == b"\x89PNG"
        assert records[name].plot().axes
        with pytest.raises(UserError, match="name a file that ends in"):
            records[name].plot(tmp_path / "picture.bmp")
