"""Devices and graphs as records that can be shown (findings.Map)."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from d2dfl.config.metrics import SHOWN
from d2dfl.discovery.discover import Discovery
from d2dfl.discovery.equations.diversity import distances_to
from d2dfl.discovery.evaluation import Evaluation
from d2dfl.network import Network
from d2dfl.network.graph import Graph
from d2dfl.report.findings import Layer, Link, Map
from d2dfl.transfer import ExchangeResult, held_counts

Counts = np.ndarray[tuple[int, ...], np.dtype[np.float64]]

MANY = 2000  # devices from which a map, its links and its GraphML say nothing any more, and take minutes


def map_of(title: str, network: Network, layers: Sequence[Layer]) -> Map:
    """The map of a network with the graphs of several methods; where nobody knows where devices stand, by their losses."""
    return Map(
        title=title,
        partitions=tuple(network.partition_name(place) for place in range(network.partitions)),
        positions=_places(network),
        cluster=tuple(network.cluster.tolist()),
        threshold=rounded_rows(network.threshold, 1),
        before=rounded_rows(network.counts, 1),
        layers=tuple(layers),
        devices=tuple(map(network.device_name, range(network.devices))) if network.device_names else (),
        unit="" if network.positions is None else "m",
        distance=shown_distances(network.counts, network),
    )


def _places(network: Network) -> tuple[tuple[float, ...], ...]:
    if network.positions is not None:
        return rounded_rows(network.positions, 1)
    from d2dfl.report.drawing.scene import layout  # imports SciPy, which a short discovery does without

    return rounded_rows(layout(network), 6)


def layer_of(title: str, found: Discovery, name: str | None = None) -> Layer:
    """The graph of one discovery."""
    return graph_layer(name or found.method, title, found.network, found.graph, found.evaluation)


def graph_layer(name: str, title: str, network: Network, graph: Graph, worth: Evaluation) -> Layer:
    """A graph, and what it is worth."""
    links = []
    for receiver, edge in zip(*graph.links, strict=True):
        slot = graph.slots[receiver, edge]
        links.append(
            Link(
                transmitter=int(graph.transmitter[receiver, edge]),
                receiver=int(receiver),
                loss=round(float(graph.drop[receiver, edge]), 4),
                trusted=int(network.trust[receiver, slot].sum()),
                amounts=tuple(
                    round(amount, 3) if amount else 0.0 for amount in graph.allocated[receiver, edge].tolist()
                ),
            )
        )
    return Layer(
        name=name,
        title=title,
        after=rounded_rows(worth.counts_after, 1),
        satisfied=tuple(int(count) for count in worth.labels_satisfied),
        links=tuple(links),
        distance=shown_distances(worth.counts_after, network),
    )


def with_exchange(
    layer: Layer,
    network: Network,
    moved: ExchangeResult,
    partition_of: NDArray[np.int64],
    scores: Sequence[float | None],
) -> Layer:
    """The same graph with what really moved over it, and the scores of devices where all have one."""
    over = {(one.transmitter, one.receiver): (len(one.sent), len(one.arrived)) for one in moved.transfers}
    held = held_counts(moved.holdings, partition_of, network.partitions)
    links = (replace(link, went=over.get((link.transmitter, link.receiver), (0, 0))) for link in layer.links)
    known = [round(score, 4) for score in scores if score is not None]
    return replace(
        layer,
        links=tuple(links),
        went=rounded_rows(held, 1),
        went_distance=shown_distances(held, network),
        scores=tuple(known) if len(known) == network.devices else (),
    )


def shown_distances(counts: Counts, network: Network) -> tuple[float, ...]:
    """[device] total variation to what all devices held together before any exchange."""
    found = distances_to(np.asarray(counts, dtype=np.float64), network.counts.sum(axis=0), SHOWN)
    return tuple(round(float(value), 4) for value in found)


def rounded_rows(values: Counts, digits: int) -> tuple[tuple[float, ...], ...]:
    """An array as a record keeps it."""
    return tuple(tuple(round(float(value), digits) for value in row) for row in values)
