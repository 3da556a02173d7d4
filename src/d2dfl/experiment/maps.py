"""Devices and graphs as records that can be shown (findings.Map)."""

from collections.abc import Sequence

import numpy as np

from d2dfl.discovery.discover import Discovery
from d2dfl.network import Network
from d2dfl.report.findings import Layer, Link, Map

MANY = 2000  # devices from which a map, its links and its GraphML say nothing any more, and take minutes


def map_of(title: str, network: Network, layers: Sequence[Layer]) -> Map:
    """The map of a network with the graphs of several methods; where nobody knows where devices stand, by their losses."""
    return Map(
        title=title,
        partitions=tuple(network.partition_name(place) for place in range(network.partitions)),
        positions=_places(network),
        cluster=tuple(network.cluster.tolist()),
        threshold=_rows(network.threshold, 1),
        before=_rows(network.counts, 1),
        layers=tuple(layers),
        devices=tuple(map(network.device_name, range(network.devices))) if network.device_names else (),
        unit="" if network.positions is None else "m",
    )


def _places(network: Network) -> tuple[tuple[float, ...], ...]:
    if network.positions is not None:
        return _rows(network.positions, 1)
    from d2dfl.report.drawing.scene import layout  # imports SciPy, which a short discovery does without

    return _rows(layout(network), 6)


def layer_of(title: str, found: Discovery, name: str | None = None) -> Layer:
    """The graph of one discovery."""
    network, graph = found.network, found.graph
    links = []
    for receiver, edge in zip(*graph.links, strict=True):
        slot = graph.slots[receiver, edge]
        links.append(
            Link(
                transmitter=int(graph.transmitter[receiver, edge]),
                receiver=int(receiver),
                loss=round(float(graph.drop[receiver, edge]), 4),
                trusted=int(network.trust[receiver, slot].sum()),
                amounts=tuple(round(float(amount), 1) for amount in graph.allocated[receiver, edge]),
            )
        )
    return Layer(
        name=name or found.method,
        title=title,
        after=_rows(found.evaluation.counts_after, 1),
        satisfied=tuple(int(count) for count in found.evaluation.labels_satisfied),
        links=tuple(links),
    )


def _rows(values: np.ndarray[tuple[int, ...], np.dtype[np.float64]], digits: int) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(round(float(value), digits) for value in row) for row in values)
