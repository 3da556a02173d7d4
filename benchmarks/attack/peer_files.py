"""Damaged files of a peer: its store, keys, roster, policy, settings, certificate, what it measured, and a graph that it is given."""

import json
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from attack.text_files import _harmed, _with_odd

if TYPE_CHECKING:
    from d2dfl.peer.owner import FleetFolder

Reader = Callable[[Path], object]


def mutated(seed: int, count: int, folder: Path) -> Iterator[tuple[str, Path, Reader]]:
    """`count` files, one after another; nothing at all without the extra `peer`."""
    try:
        kinds = samples(folder)
    except ImportError:
        return
    for number in range(count):
        rng = random.Random(f"{seed} {number}")
        name, (path, content, reader) = list(kinds.items())[number % len(kinds)]
        what, harmed = "damaged", content
        if path.suffix in (".json", ".signed", ".admission", ".request") and rng.random() < 0.5:
            what, harmed = "odd value", json.dumps(_with_odd(json.loads(content), rng)).encode()
        else:
            harmed = _harmed(content, rng) if rng.random() < 0.8 else content[: rng.randrange(len(content))]
        path.write_bytes(harmed)
        yield f"{name}: {what}, {number}", path, reader
        path.with_name(f"{path.name}-journal").unlink(missing_ok=True)
        path.write_bytes(content)


def fleet_of_two(folder: Path) -> "FleetFolder":
    """A peer with data and all its files, in a fleet of two."""
    from d2dfl.peer import reports
    from d2dfl.peer.datapoints import take_in
    from d2dfl.peer.home import Home, make_home
    from d2dfl.peer.owner import FleetFolder, read_request

    fleet = FleetFolder(folder / "fleet")
    fleet.create()
    for name in ("kitchen", "hall"):
        (folder / name / "data").mkdir(parents=True)
        np.savez(folder / name / "data" / "one.npz", inputs=np.zeros((6, 4), np.float32), targets=np.arange(6) % 2)
        make_home(folder / name, name, "data", ("cat", "dog"), "127.0.0.1:7447")
        fleet.approve(read_request(folder / name / f"{name}.request"))
    home = folder / "kitchen"
    fleet.approve(read_request(home / "kitchen.request"))
    Home(home).join(folder / "fleet" / "kitchen.admission")
    hall = Home(folder / "hall").key().fingerprint.hex()
    (home / "policy.toml").write_text(f'[[grant]]\nto = "{hall}"\nlabels = ["cat"]\nnumber = 2\nuntil = 2099-01-01\n')
    Home(home).sign_policy()
    store = Home(home).store()
    take_in(store, "data", home, ("cat", "dog"), time.time())
    store.close()
    link = {"probes": 9, "heard": 9, "loss": 0.0, "round_trip_s": 0.1}
    measured = {"own": "", "links": {hall: link}, "history": [{"time_s": 1.0, "loss": {hall: 0.1}}], "signal_dbm": {}}
    (home / "links.json").write_text(json.dumps(measured))
    (folder / "graph.json").write_text(json.dumps({"edges": [[0, 1]], "expected_datapoints": [[2.0, 1.0]]}))
    (folder / "export.json").write_text(json.dumps(reports.description(Home(home), time.time())))
    return fleet


def samples(folder: Path) -> dict[str, tuple[Path, bytes, Reader]]:
    """Of each file of a peer its path, its content, and who reads it."""
    from d2dfl.peer import auditing, preflight, reports
    from d2dfl.peer.datapoints import arrays
    from d2dfl.peer.fleet_network import network_of, trace_of
    from d2dfl.peer.home import Home
    from d2dfl.peer.owner import read_request
    from d2dfl.peer.service import opened

    fleet, home = fleet_of_two(folder), folder / "kitchen"

    def used(path: Path) -> None:
        """All that looks into a peer's folder, and what a start does before it listens."""
        own = Home(home)
        for look in (
            lambda: reports.status(own),
            lambda: list(preflight.check(own)),
            lambda: auditing.verify_audit(own, []),
        ):
            look()
        reports.preview(own, folder / "graph.json")
        with opened(own) as store:
            arrays(store)
            own.peer(store, time.time()).close(time.time())

    def joined(path: Path) -> None:
        Home(home).join(path)

    def described(path: Path) -> None:
        roster = fleet.roster()
        trace_of([path], roster)
        network_of([path], roster)

    readers: dict[str, tuple[Path, Reader]] = {
        name: (home / name, used)
        for name in (
            "store.db",
            "device.key",
            "peer.toml",
            "policy.signed",
            "certificate.pem",
            "authority.pem",
            "links.json",
        )
    }
    readers |= {
        "policy.toml": (home / "policy.toml", lambda path: Home(home).sign_policy()),
        "owner.key": (home / "owner.key", lambda path: Home(home).sign_policy()),
        "request": (home / "kitchen.request", read_request),
        "admission": (folder / "fleet" / "kitchen.admission", joined),
        "roster": (folder / "fleet" / "roster.json", lambda path: fleet.roster()),
        "graph": (folder / "graph.json", used),
        "export": (folder / "export.json", described),
    }
    return {name: (path, path.read_bytes(), reader) for name, (path, reader) in readers.items()}
