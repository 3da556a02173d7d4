"""A graph to draw, and what a drawn file must be."""

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np

from d2dfl.config.presets import preset
from d2dfl.discovery.evaluation import Evaluation, evaluate, graph_of
from d2dfl.network import Network
from d2dfl.network.graph import Graph


def example(devices: int = 12, links: bool = True) -> tuple[Network, Graph, Evaluation]:
    """A network in which everybody asks the most trusted device, or nobody asks anybody."""
    config = preset("best").with_(**{"network.devices": devices})
    network = Network.generate(config, 3)
    choice = network.trust.sum(axis=2).argmax(axis=1)[:, None] if links else np.full((devices, 1), -1)
    graph = graph_of(network, choice.astype(np.int32), over_ask=True)
    return network, graph, evaluate(network, graph, config.reward)


def check(path: Path) -> None:
    """The file is what its name says."""
    content = path.read_bytes()
    if path.suffix == ".png":
        assert content.startswith(b"\x89PNG\r\n\x1a\n")
        assert content.endswith(b"IEND\xaeB`\x82")
    elif path.suffix == ".pdf":
        assert content.startswith(b"%PDF-")
        assert content.rstrip().endswith(b"%%EOF")
    elif path.suffix == ".svg":
        assert ElementTree.fromstring(content).tag == "{http://www.w3.org/2000/svg}svg"
    else:
        assert plotly_arguments(content.decode())


def plotly_arguments(page: str) -> tuple[list[dict], dict]:
    """Traces and layout that a page hands to plotly."""
    (data,) = re.findall(r'<script type="application/json" id="d2dfl-data">(.*?)</script>', page, re.DOTALL)
    figure = json.loads(data)
    return figure["data"], figure["layout"]
