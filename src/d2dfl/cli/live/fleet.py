"""A fleet of peers on this machine as a live view: their folders are looked at twice a second, and nothing in them is touched."""

import json
import sqlite3
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from d2dfl.cli.live.hand_over import device_table, hand_over
from d2dfl.config import Config
from d2dfl.discovery.constants import LEARNER
from d2dfl.discovery.trace import Hear, Trace
from d2dfl.errors import UserError
from d2dfl.live.maps import LivingMap, first_map
from d2dfl.live.views import GRAPHS, TABLE, DiscoveryView, table_data
from d2dfl.network import Network
from d2dfl.peer.demo import LOG, MOVES
from d2dfl.peer.fleet_network import described_network
from d2dfl.peer.home import Home
from d2dfl.peer.moves import DeviceMove, MoveReader
from d2dfl.peer.reports import description, reading, status
from d2dfl.report.findings import Table

EVERY_S = 0.5
COLOURS: dict[str, int | None] = {LEARNER: 0}


class FleetView(DiscoveryView):
    """Devices that negotiate, then hand over."""

    devices: Table | None = None

    def table(self) -> Table | None:
        return self.devices


@contextmanager
def looking_at(out: Path, devices: int, view: FleetView) -> Iterator[None]:
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
        thread.join(20 * EVERY_S)


class FleetFolders:
    """What the folders of a fleet say, as records."""

    def __init__(self, out: Path, devices: int, view: FleetView) -> None:
        self.view = view
        self.folders = [out / f"device-{device}" for device in range(devices)]
        self.homes: list[Home] = []
        self.talk: FleetTalk | None = None

    def look(self) -> None:
        """A folder that is not there yet, or whose peer writes at this moment, is looked at again later.

        Before all are started they have keys and policies, but not yet their data.
        """
        if not all((folder / LOG).exists() for folder in self.folders):
            return
        try:
            if self.talk is None:
                self.homes = [Home(folder) for folder in self.folders]
                self.talk = FleetTalk(self.homes, self.view)
            found = [status(home) for home in self.homes]
            graphs = [_graph(home) for home in self.homes]
        except (UserError, sqlite3.Error, OSError):
            return
        self._show(self.talk, found, graphs)

    def _show(self, talk: "FleetTalk", found: Sequence[Mapping[str, Any]], graphs: Sequence[Any]) -> None:
        settled = [graph for graph in graphs if graph is not None]
        talk.listen(over=len(settled) == len(self.homes))
        if settled:
            layer = hand_over(talk.network, found, graphs, LEARNER)
            sent, wanted = sum(link.went[1] for link in layer.links), sum(sum(link.amounts) for link in layer.links)
            self.view.step(f"hand over: {sent:,.0f} of {wanted:,.0f} datapoints", min(sent / max(wanted, 1.0), 1.0))
            place = talk.place
            self.view.stand.put(
                GRAPHS,
                lambda: {**place.base, "layers": [place.layer(layer, COLOURS)], "moment": "went"},
                first_map(len(found)),
            )
        self.view.devices = table = device_table(found)
        self.view.stand.put(TABLE, lambda: table_data(table))


class FleetTalk:
    """The moves of all devices in the order in which they were made, as one trace of a discovery."""

    def __init__(self, homes: Sequence[Home], view: FleetView) -> None:
        plan = homes[0].settings.discovery.plan()
        self.view, self.config = view, plan.config
        self.network = _network(homes, plan.config)
        self.place = LivingMap.of("Fleet", self.network)
        self.order = {home.key().fingerprint.hex(): place for place, home in enumerate(homes)}
        self.readers = [MoveReader(home.folder / MOVES) for home in homes]
        self.newest: dict[int, DeviceMove] = {}
        self.slots = np.full((len(homes), plan.config.discovery.edges), -1, dtype=np.int32)
        self.trace = Trace(lambda: view.negotiate(self.trace))
        self.over = False
        view.begin(plan.config, ())
        view.maps[plan.seed] = self.place
        self.trace.begin(self.network, LEARNER, plan.seed, plan.config.discovery.edges)
        self.hear: Hear = self.trace.stage(0, 1)

    def listen(self, over: bool) -> None:
        """Hear what is new; `over`: all have settled, so that nothing more can come."""
        if self.over:
            return
        moves = [(move, device) for device, reader in enumerate(self.readers) for move in reader.newer()]
        for move, device in sorted(moves, key=lambda one: one[0].time_s):
            self._take(move, device)
        if over:
            self.over = True
            self.trace.settle(self.slots, self.messages, 1.0)
            self.view.found(self.trace)
        elif not self.newest:
            self.view.step("negotiate: devices look for each other", 0.0)
        else:
            self.view.step(f"negotiate: {self.messages:,} messages", self.share)

    @property
    def messages(self) -> int:
        return sum(move.messages for move in self.newest.values())

    @property
    def share(self) -> float:
        """The share of all accounts that is spent."""
        return sum(move.share for move in self.newest.values()) / len(self.order)

    def _take(self, move: DeviceMove, device: int) -> None:
        self.newest[device] = move
        heard = self.network.candidates[device].tolist()
        chosen = [heard.index(self.order[who]) for who in move.transmitters if self.order[who] in heard]
        self.slots[device] = -1
        self.slots[device, : len(chosen)] = chosen
        temperatures = [one.temperature for one in self.newest.values()]
        self.hear(self.slots, self.share, sum(temperatures) / len(temperatures), float(self.messages))


def _network(homes: Sequence[Home], config: Config) -> Network:
    """Devices before anything has moved, as their owners allow them to share."""
    told = {one["fingerprint"]: one for one in (description(home, time.time()) for home in homes)}
    with reading(homes[0]) as store:
        roster, _ = homes[0].roster(store)
    network = described_network(told, roster, unmeasured=0.0, threshold=config.network.threshold)
    names = tuple(home.settings.name for home in homes)
    return replace(network, device_names=names, partition_names=homes[0].settings.labels)


def _graph(home: Home) -> Any:
    """What a device has settled: whom it gives what; None until then."""
    with reading(home) as store:
        document = store.fact("graph")
    return None if document is None else json.loads(str(document))["links"]
