"""What a fleet hands over, as records that a page shows."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from d2dfl.experiment.findings.maps import rounded_rows, shown_distances
from d2dfl.network import Network
from d2dfl.report.findings import Layer, Link, Table

Counts = NDArray[np.float64]


def hand_over(
    network: Network,
    found: Sequence[Mapping[str, Any]],
    graphs: Sequence[Mapping[str, Mapping[str, int]] | None],
    name: str,
) -> Layer:
    """The graph that devices have settled, and what has moved over it by now; by the status and the links of each device."""
    order = {peer["fingerprint"]: place for place, peer in enumerate(found)}
    labels = [network.partition_name(place) for place in range(network.partitions)]
    after, links = network.counts.astype(np.float64), []
    for sender, graph in enumerate(graphs):
        for who, given in (graph or {}).items():
            receiver, amounts = order[who], tuple(float(given.get(label, 0)) for label in labels)
            after[sender] -= amounts
            after[receiver] += amounts
            got = float(found[receiver]["received_from"].get(found[sender]["name"], 0))
            slot = network.candidates[receiver].tolist().index(sender)
            trusted = int(network.trust[receiver, slot].sum())
            links.append(Link(sender, receiver, 0.0, trusted, amounts, (got, got)))
    held = np.array([[peer["holds"].get(label, 0) for label in labels] for peer in found], dtype=np.float64)
    return Layer(
        name=name,
        title="handed over",
        after=rounded_rows(after, 1),
        satisfied=tuple((after >= network.threshold).sum(axis=1).tolist()),
        links=tuple(links),
        distance=shown_distances(after, network),
        went=rounded_rows(held, 1),
        went_distance=shown_distances(held, network),
    )


def device_table(found: Sequence[Mapping[str, Any]]) -> Table:
    """A line a device."""
    rows = []
    for peer in found:
        gave = peer["outgoing"].get("done", {}).get("datapoints", 0) or 0
        got = sum(peer["received_from"].values())
        waiting = sum(one["transfers"] for phase, one in peer["outgoing"].items() if phase != "done")
        rows.append((peer["name"], f"{sum(peer['holds'].values()):,}", f"{gave:,}", f"{got:,}", f"{waiting:,}"))
    columns = ("device", "holds", "gave", "got", "under way")
    return Table("Devices", columns, tuple(rows), "under way: hand-overs that are not acknowledged yet")
