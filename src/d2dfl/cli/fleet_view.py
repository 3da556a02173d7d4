"""A fleet of peers on this machine as a live view: what their folders say is looked at every second, and nothing is touched."""

import math
import sqlite3
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from d2dfl.discovery.equations.diversity import distances_to
from d2dfl.errors import UserError
from d2dfl.live.maps import LivingMap
from d2dfl.live.views import GRAPHS, TABLE, DiscoveryView, table_data
from d2dfl.peer.home import Home
from d2dfl.peer.reports import description, status
from d2dfl.report.findings import Layer, Link, Map, Table
from d2dfl.storage import read_json

EVERY_S = 1.0
COLOURS: dict[str, int | None] = {"": 0}
Rows = tuple[tuple[float, ...], ...]


@contextmanager
def looking_at(out: Path, devices: int, view: DiscoveryView) -> Iterator[None]:
    """Look at the folders of a demo in a thread of its own, for as long as it lasts, and once more at its end."""
    over = threading.Event()
    fleet = FleetFolders(out, devices, view)

    def look() -> None:
        while not over.wait(EVERY_S):
            fleet.look()
        fleet.look()

    thread = threading.Thread(target=look, name="d2dfl-fleet-view", daemon=True)
    view.step("prepare: keys, data and policies", 0.0)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(10 * EVERY_S)


class FleetFolders:
    """What the folders of a fleet say, as records."""

    def __init__(self, out: Path, devices: int, view: DiscoveryView) -> None:
        self.out, self.devices, self.view = out, devices, view
        self.graph: Mapping[str, Any] | None = None
        self.place: LivingMap | None = None
        self.grants: dict[tuple[str, str], int] = {}  # giver and receiver, by fingerprint -> labels

    def look(self) -> None:
        """A folder that is not there yet, or whose peer writes at this moment, is looked at again later."""
        try:
            if self.graph is None:
                self.graph = read_json(self.out / "graph.json", "the graph of a fleet")
                self.place = LivingMap(_map(self.graph))
            homes = [Home(self.out / f"device-{device}") for device in range(self.devices)]
            if not self.grants:
                for told in [description(home, time.time()) for home in homes]:
                    self.grants |= {(told["fingerprint"], who): len(labels) for who, labels in told["grants"].items()}
            found = [status(home) for home in homes]
        except (UserError, sqlite3.Error, OSError):
            return
        self._show(self.graph, found)

    def _show(self, graph: Mapping[str, Any], found: Sequence[Mapping[str, Any]]) -> None:
        place = self.place
        if place is None:
            return
        layer = _layer(graph, found, place.item, self.grants)
        sent = sum(sum(link.went[:1]) for link in layer.links)
        wanted = max(sum(sum(link.amounts) for link in layer.links), 1.0)
        self.view.step(f"hand over: {sent:,.0f} of about {wanted:,.0f} datapoints", min(sent / wanted, 1.0))
        self.view.stand.put(GRAPHS, lambda: {**place.base, "layers": [place.layer(layer, COLOURS)], "moment": "went"})
        table = _table(found)
        self.view.stand.put(TABLE, lambda: table_data(table))


def _map(graph: Mapping[str, Any]) -> Map:
    """Devices on a circle; of every label one datapoint is enough."""
    before = np.array(graph["counts_before"], dtype=np.float64)
    devices, labels = before.shape
    turns = [2 * math.pi * device / devices for device in range(devices)]
    return Map(
        title="Fleet",
        partitions=tuple(map(str, range(labels))),
        positions=tuple((round(math.sin(turn), 4), round(math.cos(turn), 4)) for turn in turns),
        cluster=(0,) * devices,
        threshold=((1.0,) * labels,) * devices,
        before=_rows(before),
        layers=(),
        unit="",
        distance=_distances(before, before),
    )


def _layer(
    graph: Mapping[str, Any],
    found: Sequence[Mapping[str, Any]],
    item: Map,
    grants: Mapping[tuple[str, str], int],
) -> Layer:
    """The graph as it was found, and what has moved over it by now."""
    before, after = np.array(item.before), np.array(graph["expected_counts_after"], dtype=np.float64)
    held = np.array([[peer["holds"].get(label, 0) for label in item.partitions] for peer in found], dtype=np.float64)
    links = []
    for (sender, receiver), amounts in zip(graph["edges"], graph["expected_datapoints"], strict=True):
        got = found[receiver]["received_from"].get(found[sender]["name"], 0)
        trusted = grants.get((found[sender]["fingerprint"], found[receiver]["fingerprint"]), 0)
        links.append(Link(sender, receiver, 0.0, trusted, tuple(map(float, amounts)), (float(got), float(got))))
    return Layer(
        name="",
        title="handed over",
        after=_rows(after),
        satisfied=tuple((after >= 1).sum(axis=1).tolist()),
        links=tuple(links),
        distance=_distances(after, before),
        went=_rows(held),
        went_distance=_distances(held, before),
    )


def _table(found: Sequence[Mapping[str, Any]]) -> Table:
    rows = []
    for peer in found:
        gave = peer["outgoing"].get("done", {}).get("datapoints", 0) or 0
        got = sum(peer["received_from"].values())
        waiting = sum(one["transfers"] for phase, one in peer["outgoing"].items() if phase != "done")
        rows.append((peer["name"], f"{sum(peer['holds'].values()):,}", f"{gave:,}", f"{got:,}", f"{waiting:,}"))
    columns = ("device", "holds", "gave", "got", "under way")
    return Table("Devices", columns, tuple(rows), "under way: hand-overs that are not acknowledged yet")


def _rows(values: "np.ndarray[Any, np.dtype[np.float64]]") -> Rows:
    return tuple(tuple(float(value) for value in row) for row in values.round(1))


def _distances(
    counts: "np.ndarray[Any, np.dtype[np.float64]]", before: "np.ndarray[Any, np.dtype[np.float64]]"
) -> tuple[float, ...]:
    found = distances_to(counts, before.sum(axis=0), "total-variation")
    return tuple(round(float(value), 4) for value in found)
