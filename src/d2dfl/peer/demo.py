"""A fleet on one machine: a process a device, digits, real TLS over loopback. Nothing here is needed by a peer."""

import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from d2dfl.data.datasets import load
from d2dfl.errors import UserError
from d2dfl.peer.auditing import exported_audit, verify_audit
from d2dfl.peer.datapoints import take_in
from d2dfl.peer.home import Home, make_home
from d2dfl.peer.owner import FleetFolder, read_request
from d2dfl.peer.page import write_page
from d2dfl.peer.reports import reading, status
from d2dfl.peer.transports.zenoh import free_ports
from d2dfl.rng import stream
from d2dfl.storage import make_folder, write_whole

LABELS = tuple(map(str, range(10)))
SECONDS = 50.0  # of a round
GRANTED = 60  # datapoints of a label
POINTS = 60  # datapoints of a device
MOVES = "moves.jsonl"  # of a device that is watched
LOG = "run.log"  # of a device that was started: from then on it holds its data


@dataclass(frozen=True)
class DemoResult:
    """What happened."""

    rows: list[str]
    page: Path
    faults: list[str]
    moved: int


def run_demo(devices: int, out: Path, seed: int, say: Callable[[str], None], watched: bool = False) -> DemoResult:
    """1. devices with keys, data, policies; 2. a process each, which find their graph and hand over; 3. count what is where.

    `watched`: devices write down their links while they negotiate.
    """
    if out.exists():
        raise UserError(f"{out} is there already: name another folder with --out")
    make_folder(out)
    try:
        return _demo(devices, out, seed, say, watched)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"{out} holds what the devices had by then: for another demo remove it, or name another folder with --out"
        ) from None


def _demo(devices: int, out: Path, seed: int, say: Callable[[str], None], watched: bool) -> DemoResult:
    homes = _make_devices(devices, out, seed)
    say(f"{devices} devices with {POINTS} digits each, of two labels; every one has a key and a policy of its own")
    for home in homes:
        store = home.store()
        take_in(store, "data", home.folder, LABELS, time.time())
        store.close()
    say(f"now {devices} processes look for their graph, and hand datapoints over along it")
    before, started = _census(homes), time.monotonic()
    faults = _run_all(homes, watched)
    edges = _found_edges(homes)
    after = _census(homes)
    faults += _faults(homes, before, after, out)
    seconds = time.monotonic() - started
    found = [status(home) for home in homes]
    moved = sum(sum(item["received_from"].values()) for item in found)
    rows = _table(found, before)
    rows.append(
        f"{len(edges)} links found and {moved} datapoints moved in {seconds:.1f} s; "
        f"{'none lost, none doubled' if not faults else faults[0]}"
    )
    page = out / "page.html"
    labels_before = [[before[home.folder][1].get(label, 0) for label in LABELS] for home in homes]
    write_page(page, found, labels_before, LABELS, edges, rows[-1])
    return DemoResult(rows, page, faults, moved)


def _make_devices(devices: int, out: Path, seed: int) -> list[Home]:
    data = load("digits", seed=0)
    inputs = np.asarray(data.train_inputs, dtype=np.float32)
    targets = np.asarray(data.train_targets)
    fleet = FleetFolder(out / "fleet")
    fleet.create()
    for device, port in enumerate(free_ports(devices)):
        folder = out / f"device-{device}"
        make_folder(folder / "data")
        held = np.isin(targets, [2 * device % 10, (2 * device + 1) % 10])
        rows = np.flatnonzero(held)[POINTS * (device // 5) :][:POINTS]
        with (folder / "data" / "digits.npz").open("wb") as file:
            np.savez(file, inputs=inputs[rows], targets=targets[rows])
        request = make_home(folder, f"device-{device}", "data", LABELS, f"127.0.0.1:{port}")
        with (folder / "peer.toml").open("a") as settings:
            settings.write(f"[discovery]\nseed = {seed}\nmessage_s = 0.002\n")
        fleet.approve(read_request(request))
    homes = [Home(out / f"device-{device}") for device in range(devices)]
    for home in homes:
        fleet.approve(read_request(home.folder / f"{home.settings.name}.request"))  # again, with the whole roster
        home.join(out / "fleet" / f"{home.settings.name}.admission")
    _write_policies(homes, seed)
    return homes


def _write_policies(homes: list[Home], seed: int) -> None:
    """Each owner lets others have its labels with probability 0.7; a forbid for the others."""
    draws = stream(seed, "fleet-demo-policies")
    prints = [home.key().fingerprint.hex() for home in homes]
    for device, home in enumerate(homes):
        lines = []
        for other, receiver in enumerate(prints):
            if other == device:
                continue
            labels = [label for label in LABELS if draws.random() < 0.7]
            if labels:
                lines.append(
                    f'[[grant]]\nto = "{receiver}"\nlabels = {json.dumps(labels)}\nnumber = {GRANTED}\nuntil = 2099-12-31\n'
                )
            missing = [label for label in LABELS if label not in labels]
            if missing:
                lines.append(f'[[forbid]]\nto = "{receiver}"\nlabels = {json.dumps(missing)}\n')
        write_whole(home.folder / "policy.toml", "\n".join(lines).encode())
        home.sign_policy()


def _found_edges(homes: list[Home]) -> list[list[int]]:
    """Links that the devices found, as each of them has written down what it gives."""
    prints = [home.key().fingerprint.hex() for home in homes]
    edges = []
    for giver, home in enumerate(homes):
        with reading(home) as store:
            document = store.fact("graph")
        links = json.loads(document)["links"] if document is not None else {}
        edges += [[giver, prints.index(taker)] for taker in links]
    return sorted(edges)


def _run_all(homes: list[Home], watched: bool) -> list[str]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "d2dfl", "peer", "run", "--for", str(SECONDS)]
    logs = [(home.folder / LOG).open("wb") for home in homes]
    running = []
    for home, log in zip(homes, logs, strict=True):
        moves = ["--moves", str(home.folder / MOVES)] if watched else []
        call = [*command, "--home", str(home.folder), *moves]
        running.append(subprocess.Popen(call, stdout=log, stderr=subprocess.STDOUT, env=environment))
    faults = []
    end = time.monotonic() + SECONDS + 30.0
    try:
        for home, process in zip(homes, running, strict=True):
            try:
                code = process.wait(timeout=max(0.1, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                code = -1
            if code:
                faults.append(f"{home.settings.name} ended with {code}: see {home.folder / LOG}")
    finally:
        for process in running:
            if process.poll() is None:
                process.kill()
                process.wait()
        for log in logs:
            log.close()
    return faults


def _census(homes: list[Home]) -> dict[Path, tuple[list[bytes], dict[str, int]]]:
    """By folder: digests of all datapoints, and how many of which label."""
    found = {}
    for home in homes:
        with reading(home) as store:
            rows = store.db.execute("SELECT origin, number, label, form, content FROM points").fetchall()
            digests = [
                hashlib.sha256(b"%b/%d/%b/%b/" % (o, n, label.encode(), form.encode()) + content).digest()
                for o, n, label, form, content in rows
            ]
            found[home.folder] = (digests, store.counts())
    return found


def _faults(homes: list[Home], before: dict[Path, Any], after: dict[Path, Any], out: Path) -> list[str]:
    first = sorted(digest for digests, _ in before.values() for digest in digests)
    last = sorted(digest for digests, _ in after.values() for digest in digests)
    faults = [] if first == last else [f"{len(first)} datapoints became {len(last)}, or others"]
    audits = []
    for home in homes:
        path = out / f"{home.settings.name}.audit.json"
        write_whole(path, json.dumps(exported_audit(home)).encode())
        audits.append(path)
    for home in homes:
        try:
            verify_audit(home, [path for path in audits if not path.name.startswith(f"{home.settings.name}.")])
        except UserError as error:
            faults.append(str(error))
    return faults


def _table(found: list[dict[str, Any]], before: dict[Path, tuple[list[bytes], dict[str, int]]]) -> list[str]:
    rows = [f"{'device':12} {'before':>7} {'gave':>7} {'got':>7} {'now':>7} {'labels before → now'}"]
    for item, (digests, labels) in zip(found, before.values(), strict=True):
        gave = item["outgoing"].get("done", {}).get("datapoints", 0)
        got = sum(item["received_from"].values())
        now = sum(item["holds"].values())
        rows.append(f"{item['name']:12} {len(digests):7} {gave:7} {got:7} {now:7} {len(labels)} → {len(item['holds'])}")
    return rows
