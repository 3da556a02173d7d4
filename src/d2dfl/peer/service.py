"""What a device does, to be called from Python as `d2dfl peer` calls it: join, run, forget; a process alone works in a folder."""

import json
import secrets
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from d2dfl.errors import UserError
from d2dfl.peer import preflight, reports
from d2dfl.peer.datapoints import shard_files, take_in
from d2dfl.peer.discovery import GraphFile
from d2dfl.peer.forgetting import forgettable
from d2dfl.peer.home import Home, read_admission
from d2dfl.peer.identity.keys import verify
from d2dfl.peer.identity.roster import Roster, open_roster
from d2dfl.peer.moves import MoveFile
from d2dfl.peer.negotiation.negotiation import Negotiation
from d2dfl.peer.peer import Peer
from d2dfl.peer.reports import handed_over
from d2dfl.peer.runtime import WISHES, Clock, Running
from d2dfl.peer.store.store import Store, StoreFullError
from d2dfl.progress import silent
from d2dfl.storage import TakenError, locked, make_folder, write_whole

Say = Callable[[str], None]


@dataclass(frozen=True)
class RunResult:
    """How a run has ended."""

    found: bool  # a graph
    done: bool  # all of it was handed over, and all that was to come has come
    short: dict[tuple[str, str], str]  # receiver's name, label → why it got less than the graph wants
    gave: dict[str, int]  # receiver's name → datapoints of transfers that were ended
    got: dict[str, int]
    holds: int
    open_transfers: int


@contextmanager
def opened(home: Home) -> Iterator[Store]:
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


def join(home: Home, admission: Path) -> str:
    """Take what the roster's owner has signed; a peer that runs looks at a newer roster within a second. What has happened, in words."""
    try:
        with locked(home.folder):
            roster = home.join(admission)
        return f"{home.settings.name} is in the roster number {roster.number}, with {len(roster.members) - 1} others"
    except TakenError:
        parts = read_admission(admission)
        with reports.reading(home) as store:
            roster = open_roster(parts["roster"].encode(), store.fact("roster_owner"), verify, str(admission))
        home.check_certificates(parts, roster, str(admission))
        home.write_certificates(parts, roster.owner)
        _wish(home, {"roster": parts["roster"]})
        more = " and go on with the new certificate" if "certificate" in parts else ""
        return f"the peer runs: it will look at the roster{more} within a second"


def run(
    home: Home,
    graph: Path | None = None,
    *,
    stay: bool = False,
    seconds: float = 600.0,
    moves: Path | None = None,
    say: Say = silent,
) -> RunResult:
    """Find the graph with the other devices (or take one), hand datapoints over along it, take what others give; to the end of the round."""
    clock = Clock()
    with opened(home) as store:
        preflight.before_a_run(home, store, clock())
        try:
            preflight.check_policy(home, store)
        except UserError as error:
            say(f"nothing is shared until there is another policy: {error}")
        named = home.graph(store.own, graph)
        with preflight.listening(home, store) as (transport, inbox):
            preflight.agree_on_clock(home, store, transport, inbox)
            watch = None if moves is None else MoveFile(moves)
            files = shard_files(home.settings.data, home.folder)  # before they are read: what comes meanwhile is new
            came = take_in(store, home.settings.data, home.folder, home.settings.labels, clock())
            if came:
                say(f"took in {came:,} datapoints")
            peer = home.peer(store, clock())
            running = Running(home, peer, transport, inbox, clock, files)
            result = _run(running, named, watch, stay, seconds, say)
        held, left = sum(store.counts().values()), len(store.open_outgoing())
        return replace(result, holds=held, open_transfers=left)


def _run(
    running: Running, graph: GraphFile | None, watch: MoveFile | None, stay: bool, seconds: float, say: Say
) -> RunResult:
    peer, clock, before = running.peer, running.clock, handed_over(running.peer.store)
    told = before

    def over(peer: Peer) -> None:
        nonlocal told
        since, told = told, handed_over(peer.store)
        say("; ".join(_listed(peer.roster, *part) for part in zip(("gave", "got"), since, told, strict=True)))

    try:
        peer.follow(running.home.discovery(peer, clock()) if graph is None else graph)
        running.tell = lambda peer: _tell(peer, say)
        running.over, running.warn = over, say
        if watch is not None:
            running.watch = watch
        done = running.until_done(stay, seconds)
        if not done:
            over(peer)
        found = peer.discovery is not None and peer.discovery.links() is not None
        short = {(peer.roster.name_of(who), label): why for (who, label), why in peer.giving.reasons.items()}
        gave, got = (_named(peer.roster, *part) for part in zip(before, handed_over(peer.store), strict=True))
        return RunResult(found, done, short if found else {}, gave, got, 0, 0)
    finally:
        running.write_links()
        if watch is not None:
            watch.close()
        peer.close(clock())


def _tell(peer: Peer, say: Say) -> None:
    """Once the links are settled."""
    talk = peer.discovery
    if isinstance(talk, Negotiation) and talk.attempt is not None:
        takers, givers = len(talk.links() or {}), len(talk.senders())
        say(
            f"found the graph with {len(talk.members) - 1} others in {talk.ended_s - talk.began_s:.1f} s, "
            f"{talk.attempt.sent.total():,} messages from here: gives to {takers}, gets from {givers}"
        )


def _named(roster: Roster, before: Counter[bytes], now: Counter[bytes]) -> dict[str, int]:
    """What has come since, by the names of those with whom it was."""
    return dict(sorted((roster.name_of(who), number) for who, number in (now - before).items()))


def _listed(roster: Roster, verb: str, before: Counter[bytes], now: Counter[bytes]) -> str:
    way = "to" if verb == "gave" else "from"
    return f"{verb} " + (
        ", ".join(f"{n:,} {way} {name}" for name, n in _named(roster, before, now).items()) or "nothing"
    )


def forget(home: Home, points: Sequence[int]) -> tuple[int | None, list[str]]:
    """Delete datapoints here and at whoever got them: how many receivers are to be told (None: the peer runs, and tells them), and what was trained on them."""
    with reports.reading(home) as store:
        forgettable(store, points)
        used = store.used_in(store.own, points)
    try:
        with opened(home) as store:
            peer = home.peer(store, time.time())
            peer.forgetting.order(points, time.time())
            waiting = len({receiver for _, receiver in store.pending_orders()})
            peer.close(time.time())
            return waiting, used
    except TakenError:
        _wish(home, {"forget": list(points)})
        return None, used


def _wish(home: Home, wish: dict[str, object]) -> None:
    make_folder(home.folder / WISHES)
    write_whole(home.folder / WISHES / f"{time.time_ns()}-{secrets.token_hex(4)}.json", json.dumps(wish).encode())
