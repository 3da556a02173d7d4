"""What a device does with its store: it runs a round with the others, and forgets what its owner wants back."""

import json
import signal
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Queue
from typing import TYPE_CHECKING

from d2dfl.cli.output import say
from d2dfl.cli.peer.wishes import leave_wish
from d2dfl.errors import UserError
from d2dfl.peer import preflight, reports
from d2dfl.peer.datapoints import take_in
from d2dfl.peer.home import Home
from d2dfl.peer.moves import MoveFile
from d2dfl.peer.runtime import WAITING, Clock, Running
from d2dfl.peer.store.store import StoreFullError
from d2dfl.peer.transports.zenoh import check_free
from d2dfl.storage import TakenError, locked

if TYPE_CHECKING:
    from d2dfl.peer.discovery import GraphFile
    from d2dfl.peer.peer import Peer
    from d2dfl.peer.store.store import Store

Reasons = dict[tuple[bytes, str], str]  # receiver, label → why it gets less than the graph wants


@contextmanager
def opened(home: Home) -> Iterator["Store"]:
    """The store, alone: no other process works in this folder."""
    with locked(home.folder):
        store = home.store()
        try:
            yield store
        except (UnicodeDecodeError, json.JSONDecodeError) as error:
            raise UserError(f"the store of {home.settings.name} is damaged: {error!s:.120}") from None
        except (StoreFullError, sqlite3.DatabaseError) as error:
            raise UserError(
                f"the store of {home.settings.name} cannot be written: {error or 'the disk is full'}"
            ) from None
        finally:
            store.close()


def run_and_print(folder: Path, graph: Path | None, stay: bool, seconds: float, moves: Path | None = None) -> None:
    home, clock = Home(folder), Clock()
    with opened(home) as store:
        preflight.check_clock(store, clock())
        roster, _ = home.roster(store)
        preflight.check_certificate(home, home.key().public)
        check_free(home.settings.listen)
        watch = None if moves is None else MoveFile(moves)
        found = home.graph(store.own, graph)
        came = take_in(store, home.settings.data, home.folder, home.settings.labels, clock())
        if came:
            say(f"took in {came:,} datapoints")
        done, reasons = _run(home, store, clock, found, stay, seconds, watch)
        if reasons is None:
            raise UserError(
                f"found no graph with the others in {seconds:g} s: nothing has moved; `d2dfl peer check` says who answers"
            )
        roster, _ = home.roster(store)  # it may have grown
        for (receiver, label), why in sorted(reasons.items()):
            say(f"not all of {label} went to {roster.name_of(receiver)}: {why}")
        held = sum(store.counts().values())
        left = len(store.open_outgoing())
        say(
            f"holds {held:,} datapoints"
            + ("" if done else f"; {left} transfers are open, and go on with the next start")
        )


def _found(peer: "Peer") -> None:
    """Once the links are settled."""
    from d2dfl.peer.negotiation.negotiation import Negotiation

    talk = peer.discovery
    if isinstance(talk, Negotiation) and talk.attempt is not None:
        takers, givers = len(talk.links() or {}), len(talk.senders())
        say(
            f"found the graph with {len(talk.members) - 1} others in {talk.ended_s - talk.began_s:.1f} s, "
            f"{talk.attempt.sent.total():,} messages from here: gives to {takers}, gets from {givers}"
        )


def _stop(*_: object) -> None:
    """A service manager's way to say Ctrl-C."""
    raise KeyboardInterrupt


def _run(
    home: Home,
    store: "Store",
    clock: Clock,
    graph: "GraphFile | None",
    stay: bool,
    seconds: float,
    watch: MoveFile | None,
) -> tuple[bool, Reasons | None]:
    """Whether the round was ended, and why less was given than the graph wants; None where there is no graph."""
    from d2dfl.peer.transports.zenoh import ZenohTransport

    inbox: Queue[bytes] = Queue(WAITING)
    roster, _ = home.roster(store)
    others = [member.address for member in roster.others(store.own)]
    transport = ZenohTransport(store.own, home.settings.listen, others, home.files, inbox)
    try:
        peer = home.peer(store, clock())
        peer.follow(home.discovery(peer, clock()) if graph is None else graph)
        running = Running(home, peer, transport, inbox, clock)
        running.tell = _found
        if watch is not None:
            running.watch = watch
        signal.signal(signal.SIGTERM, _stop)
        try:
            done = running.until_done(stay, seconds)
            known = peer.discovery is not None and peer.discovery.links() is not None
            return done, peer.giving.reasons if known else None
        except KeyboardInterrupt:
            raise KeyboardInterrupt("everything that was agreed is kept: the next start goes on") from None
        finally:
            running.write_links()
            if watch is not None:
                watch.close()
            peer.close(clock())
    finally:
        transport.close()


def forget_and_print(folder: Path, points: list[int]) -> None:
    home = Home(folder)
    try:
        with opened(home) as store:
            peer = home.peer(store, time.time())
            peer.forgetting.order(points, time.time())
            waiting, used = len({receiver for _, receiver in store.pending_orders()}), store.used_in(store.own, points)
            peer.close(time.time())
    except TakenError:
        with reports.reading(home) as store:
            known = int(store.fact("points") or 0)
            if any(not 0 <= number < known for number in points):
                raise UserError(f"datapoints of this device are 0 to {known - 1}") from None
            used = store.used_in(store.own, points)
        leave_wish(folder, {"forget": points})
        say("the peer runs: it will tell the receivers within a second; `d2dfl peer status` says who has confirmed")
    else:
        say(f"forgotten here; {waiting} receivers are told when this peer runs")
    for name in used:
        say(f"was used in the training {name}: that is not undone")
