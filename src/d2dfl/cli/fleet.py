"""What the commands of a fleet do."""

import io
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from d2dfl.cli.output import say
from d2dfl.cli.peer import showing
from d2dfl.errors import UserError
from d2dfl.peer import reports
from d2dfl.peer.home import Home
from d2dfl.peer.owner import FleetFolder, read_request
from d2dfl.storage import check_output, write_whole
from d2dfl.terminal import plain

if TYPE_CHECKING:
    from d2dfl.cli.commands.watching import Watching
    from d2dfl.cli.live.session import LiveSession


def approve_and_print(request: Path, fingerprint: str | None, folder: Path) -> None:
    member, fleet = read_request(request), FleetFolder(folder)
    own = member.fingerprint.hex()
    say(f"{member.name} at {member.address} asks to join, with the fingerprint")
    say(own)
    if fingerprint is None:
        if not sys.stdin.isatty():
            raise UserError(
                "read the fingerprint on the device and give it with --fingerprint: there is nobody to ask here"
            )
        sys.stderr.write("Type the first 8 digits that the device shows: ")
        sys.stderr.flush()
        fingerprint = sys.stdin.readline().strip()
    typed = fingerprint.lower().replace(" ", "")
    if len(typed) < 8 or not own.startswith(typed):
        raise UserError("the fingerprints differ: nothing was signed")
    if not fleet.is_there:
        fleet.create()
        say(f"{folder} is a new fleet; its key, {folder / 'fleet.key'}, signs the roster: keep it safe")
    admission = fleet.approve(member)
    say(f"wrote {admission}: on the device, call `d2dfl peer join {admission.name}`")


def revoke_and_print(name: str, folder: Path) -> None:
    roster = FleetFolder(folder).revoke(name)
    say(
        f"{name} is thrown out with roster number {roster.number}: give {folder / 'roster.json'} to a running peer with `d2dfl peer join`"
    )


def status_and_print(homes: list[Path], as_json: bool) -> None:
    found = homes or sorted(path.parent for path in Path().glob("**/peer.toml"))[:1000]
    if not found:
        raise UserError("there is no peer's folder here: name some")
    peers, broken = [], []
    for folder in found:
        try:
            peers.append(reports.status(Home(folder)))
        except UserError as error:  # the others are shown all the same
            broken.append(f"{folder}: {error}")
    if as_json:  # a list, also of one
        sys.stdout.write(json.dumps(peers, indent=1) + "\n")
    else:
        showing.print_status(peers)
    if broken:
        raise UserError(f"not all folders can be read ({'; '.join(broken)}): mend these, or name the others")


def network_and_print(exports: list[Path], save: Path, trace: Path | None, folder: Path) -> None:
    from d2dfl.network.files import check_network_name, check_replaceable, save_network
    from d2dfl.peer.fleet_network import network_of, trace_of

    check_network_name(save)
    check_output(save)
    check_replaceable(save)
    if trace is not None and trace.suffix != ".npz":
        raise UserError(f"cannot tell the format of {str(trace)!r}: name a trace that ends in .npz")
    roster = FleetFolder(folder).roster()
    network = network_of(exports, roster)
    recorded = None if trace is None else trace_of(exports, roster)
    save_network(network, save)
    say(f"wrote {save}: {len(roster.members)} devices")
    if trace is not None and recorded is not None:
        check_output(trace)
        buffer = io.BytesIO()
        np.savez_compressed(buffer, loss=recorded[0], seconds=recorded[1])
        write_whole(trace, buffer.getvalue())
        say(
            f"wrote {trace}: {len(recorded[0])} moments; replay them with --set channel.dynamic=true --set channel.trace={trace}"
        )


def clusters_and_print(exports: list[Path], reliability: float, allowance: float, folder: Path) -> None:
    from d2dfl.peer.fleet_network import network_of

    fleet = FleetFolder(folder)
    network = network_of(exports, fleet.roster(), reliability)
    roster = fleet.sign_clusters(network.cluster.tolist(), allowance)
    for number, budget in enumerate(roster.clusters[1]):
        there = zip(roster.members, roster.cluster, strict=True)
        names = [member.name for member, place in there if place == number and not member.revoked]
        if not names:
            continue
        sys.stdout.write(plain(f"cluster {number}, {budget:g} from outside: {', '.join(names)}") + "\n")
    say(f"signed roster number {roster.number}: give {folder / 'roster.json'} to a running peer with `d2dfl peer join`")


def demo_and_print(devices: int, out: Path, seed: int, watching: "Watching") -> None:
    from d2dfl.peer.demo import run_demo

    with _watched(watching, out, devices) as session:
        result = run_demo(devices, out, seed, say, watched=session is not None)
        for row in result.rows:
            sys.stdout.write(plain(row) + "\n")
        say(f"a page of what happened: {result.page}")
        if session:
            session.finish()
    if result.faults:
        raise UserError(f"the demo went wrong: {result.faults[0]}")


@contextmanager
def _watched(watching: "Watching", out: Path, devices: int) -> "Iterator[LiveSession | None]":
    if not watching.live:
        yield None
        return
    from d2dfl.cli.live.fleet import FleetView, looking_at
    from d2dfl.cli.live.session import live_session

    with live_session(watching, f"A fleet of {devices} devices", FleetView, elsewhere=True) as session:
        if session is None:
            yield None
            return
        assert isinstance(session.view, FleetView)
        with looking_at(out, devices, session.view):
            yield session
