"""The Graph record: who receives from whom, and how much of what. Exports to NetworkX, GraphML and JSON."""

import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from d2dfl.errors import UserError
from d2dfl.network import Network
from d2dfl.notebook import line, table_html
from d2dfl.storage import write_whole
from d2dfl.terminal import plain
from d2dfl.words import a_kind, counted

SHOWN = 30  # links in a notebook

if TYPE_CHECKING:
    import networkx as nx  # loaded when a graph is exported
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Graph:
    """Chosen links per receiver. Unused places hold -1 and zeros; a link over which nothing moves is no link."""

    slots: NDArray[np.int32]  # [receiver, edge] candidate slot
    transmitter: NDArray[np.int32]  # [receiver, edge] device behind the slot
    drop: NDArray[np.float64]  # [receiver, edge] probability that a packet is lost
    allocated: NDArray[np.float64]  # [receiver, edge, partition] datapoints sent

    @property
    def devices(self) -> int:
        return int(self.slots.shape[0])

    @property
    def links(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """(receiver, edge) of every link, by receiver."""
        receiver, edge = np.nonzero(self.transmitter >= 0)
        return receiver, edge

    @property
    def edges(self) -> list[tuple[int, int]]:
        """(transmitter, receiver) of every link."""
        receiver, edge = self.links
        return list(zip(self.transmitter[receiver, edge].tolist(), receiver.tolist(), strict=True))

    def __repr__(self) -> str:
        amount = f"{self.allocated.sum():,.0f} datapoints to send"
        return line("Graph", counted(self.devices, "device"), counted(len(self.edges), "link"), amount)

    def _repr_html_(self) -> str:
        receiver, edge = self.links
        amount, loss = self.allocated[receiver, edge].sum(axis=1), self.drop[receiver, edge]
        rows = [
            (f"{sender} → {taker}", f"{sent:,.1f}", f"{lost:.3f}")
            for (sender, taker), sent, lost in zip(self.edges[:SHOWN], amount, loss, strict=False)
        ]
        left = len(self.edges) - len(rows)
        note = f"and {counted(left, 'more link')}" if left else ""
        return table_html(repr(self)[1:-1], ("link", "datapoints to send", "loss probability"), rows, note)

    @property
    def received(self) -> NDArray[np.float64]:
        """[receiver, edge, partition] datapoints that are expected to arrive."""
        return np.asarray(self.allocated * (1.0 - self.drop)[:, :, None])

    def given(self) -> NDArray[np.float64]:
        """[device, partition] datapoints that each device sends away."""
        total = np.zeros((self.devices, self.allocated.shape[2]))
        receiver, edge = self.links
        np.add.at(total, self.transmitter[receiver, edge], self.allocated[receiver, edge])
        return total

    def counts_after(self, counts: NDArray[np.float64]) -> NDArray[np.float64]:
        """Expected counts after the exchange (paper eq. final_diversity_vector)."""
        return np.asarray(np.maximum(counts + self.received.sum(axis=1) - self.given(), 0.0))

    def plot(self, network: Network, path: str | Path | None = None) -> "Figure":
        """The graph on its network as a figure; with a path (.png, .svg, .pdf, .html) it is drawn there, too."""
        if not isinstance(network, Network):
            raise UserError(f"network is {a_kind(network)}: give the graph's Network, and the path behind it")
        from d2dfl.report.drawing.picture import network_figure

        return network_figure(network, self, None if path is None else Path(path))

    def to_networkx(self, network: Network | None = None) -> "nx.DiGraph[int]":
        """A directed graph, transmitter to receiver, with names, counts, positions and clusters where a network is given.

        Counts and datapoints by partition are JSON objects: GraphML has no other way to say which is which.
        """
        import networkx as nx

        names = () if network is None else network.partition_names

        result: nx.DiGraph[int] = nx.DiGraph()
        for device in range(self.devices):
            result.add_node(device, **({} if network is None else _node(network, device)))
        for receiver, edge in zip(*self.links, strict=True):
            amount = self.allocated[receiver, edge]
            result.add_edge(
                int(self.transmitter[receiver, edge]),
                int(receiver),
                drop=float(self.drop[receiver, edge]),
                expected_datapoints=float(amount.sum()),
                expected_by_partition=_by_partition(amount, names),
            )
        return result

    def to_graphml(self, network: Network | str | Path | None = None, path: str | Path | None = None) -> str:
        """GraphML text, for Gephi, yEd, igraph and others; with a path it is written there, too.

        to_graphml("graph.graphml") writes links alone, to_graphml(network, "graph.graphml") also what devices hold.
        """
        import networkx as nx

        if isinstance(network, str | Path):
            if path is not None:
                raise UserError(f"to_graphml got two paths, {str(network)!r:.80} first: give a network and a path")
            network, path = None, network
        buffer = io.BytesIO()
        nx.write_graphml(self.to_networkx(network), buffer)
        if path is not None:
            write_whole(Path(path), buffer.getvalue())
        return buffer.getvalue().decode()

    def to_dict(self) -> dict[str, Any]:
        """Plain lists, for JSON: edges [transmitter, receiver], and [edge][partition] datapoints that are to be sent."""
        receiver, edge = self.links
        return {
            "edges": [list(pair) for pair in self.edges],
            "expected_datapoints": self.allocated[receiver, edge].tolist(),
        }


def _node(network: Network, device: int) -> dict[str, Any]:
    node: dict[str, Any] = {
        "name": network.device_name(device),
        "cluster": int(network.cluster[device]),
        "counts": _by_partition(network.counts[device], network.partition_names),
    }
    if network.positions is not None:
        node |= {"x_m": float(network.positions[device, 0]), "y_m": float(network.positions[device, 1])}
    return node


def _by_partition(values: NDArray[np.float64], names: Sequence[str]) -> str:
    """A JSON object of what is not zero, by the partition's name or number."""
    found = {
        plain(names[place]) if names else str(place): float(f"{values[place]:g}")
        for place in np.flatnonzero(values).tolist()
    }
    return json.dumps(found, ensure_ascii=False)
