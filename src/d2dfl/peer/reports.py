"""What a peer's folder says about itself: status, what a run would give, what would go wrong, the audit."""

import datetime
import json
import shutil
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from queue import Queue
from typing import Any

from d2dfl.errors import UserError
from d2dfl.peer.datapoints import read_shards
from d2dfl.peer.discovery import FixedGraph, stored_graph
from d2dfl.peer.home import Home
from d2dfl.peer.identity.certificates import validity
from d2dfl.peer.measured import links_of, measured
from d2dfl.peer.runtime import WAITING, Clock, Running
from d2dfl.peer.store.audit import first_fault
from d2dfl.peer.store.store import Store
from d2dfl.storage import read_bytes, read_json

LOW_DISK = 100 << 20
SOON = datetime.timedelta(days=30)


@contextmanager
def reading(home: Home) -> Iterator[Store]:
    """The store, to look at only; a run beside it is not disturbed."""
    store = home.store(read_only=True)
    try:
        yield store
    except (sqlite3.DatabaseError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise UserError(f"the store of {home.settings.name} is damaged: {error!s:.120}") from None
    finally:
        store.close()


def status(home: Home) -> dict[str, Any]:
    """A peer at a glance, as plain values."""
    with reading(home) as store:
        own = store.own.hex()
        rows = {
            way: store.db.execute(f"SELECT phase, count(*), sum(points) FROM {way} GROUP BY phase").fetchall()
            for way in ("outgoing", "incoming")
        }
        received = store.db.execute(
            "SELECT origin, count(*) FROM points WHERE origin != ? GROUP BY origin", (store.own,)
        )
        name_of = _namer(home, store)
        lines, head = store.head
        try:
            policy: int | str = home.policy(store).number
        except UserError as error:
            policy = str(error)
        return {
            "name": home.settings.name,
            "fingerprint": own,
            "listen": home.settings.listen,
            "holds": store.counts(),
            "received_from": {name_of(origin): number for origin, number in received},
            "outgoing": {
                phase: {"transfers": number, "datapoints": points} for phase, number, points in rows["outgoing"]
            },
            "incoming": {
                phase: {"transfers": number, "datapoints": points} for phase, number, points in rows["incoming"]
            },
            "waiting_to_forget": len(store.pending_orders()),
            "policy": policy,
            "audit": {"lines": lines, "head": head.hex()},
            "links": {name_of(bytes.fromhex(who)): link for who, link in links_of(home).items()},
            "signal_dbm": measured(home)["signal_dbm"],
        }


def description(home: Home, now: float) -> dict[str, Any]:
    """What `fleet network` needs of a peer: counts, who may have which label, links."""
    with reading(home) as store:
        roster, _ = home.roster(store)
        policy = home.policy(store)
        grants = {
            member.fingerprint.hex(): [
                label for label in home.settings.labels if policy.allowance(member.fingerprint, label, now)
            ]
            for member in roster.others(store.own)
        }
        held = store.counts()
        return {
            "fingerprint": store.own.hex(),
            "labels": list(home.settings.labels),
            "counts": [held.get(label, 0) for label in home.settings.labels],
            "grants": grants,
            "links": links_of(home),
            "history": measured(home)["history"],
            "signal_dbm": measured(home)["signal_dbm"],
        }


def preview(home: Home, graph: Path | None) -> list[dict[str, Any]]:
    """What a run would give now: a row for each receiver and label of the graph, and why less.

    Where no graph is found yet: what each member could get at most, and nothing more would even be told to it.
    """
    with reading(home) as store:
        roster, _ = home.roster(store)
        found = home.graph(store.own, graph) or _kept_graph(store)
        links: Mapping[bytes, Mapping[str, int]] | None
        if found is None:
            links = {member.fingerprint: store.counts(own_only=True) for member in roster.others(store.own)}
        else:
            found.know(roster)
            links = found.links()
        if links is None:
            raise UserError(
                f"the graph has {getattr(found, 'devices', 0)} devices, and the roster here {len(roster.members)}: "
                "take the newer one with d2dfl peer join, or run, and another device will bring it"
            )
        policy, now = home.policy(store), time.time()
        rows = []
        for receiver, amounts in links.items():
            for label, wanted in amounts.items():
                done = 0 if found is None else store.planned(found.round, receiver, label)
                granted = policy.allowance(receiver, label, now)
                room = max(0, granted - store.shown(receiver, label))
                here = store.counts(own_only=True).get(label, 0)
                gets = max(0, min(wanted - done, room, here)) if roster.active(receiver) else 0
                rows.append(
                    {"receiver": roster.name_of(receiver), "label": label, "wanted": wanted, "given": done, "would_give": gets,
                     "why": _why(wanted - done, gets, granted, room, roster.active(receiver) is not None)}
                )  # fmt: skip
        return rows


def _kept_graph(store: Store) -> FixedGraph | None:
    """Of a round that is not over."""
    document = store.fact("graph")
    kept = None if document is None else stored_graph(str(document))
    return None if kept is None or kept.round.hex() == store.fact("graph_done") else kept


def _why(wanted: int, gets: int, granted: int, room: int, known: bool) -> str:
    if not known:
        return "it was thrown out of the roster"
    if gets >= wanted:
        return ""
    if granted == 0:
        return "the policy does not grant it"
    return "the grant's number is used up" if room <= gets else "there are no more"


def check(home: Home) -> Iterator[tuple[str, bool, str]]:
    """Preflight: what was looked at, whether it is fine, and what would go wrong."""
    key = home.key()
    yield "key", True, key.fingerprint.hex()
    with reading(home) as store:
        yield from _said(
            "roster", lambda: f"number {home.roster(store)[0].number}, {len(home.roster(store)[0].members)} devices"
        )
        yield from _said("certificate", lambda: check_certificate(home, key.public))
        yield from _said("clock", lambda: check_clock(store))
        yield from _said("policy", lambda: _policy(home, store))
        fault = store.audit_fault()
        yield "audit", fault is None, fault or f"{store.head[0]} lines"
    free = shutil.disk_usage(home.folder).free
    yield "disk", free > LOW_DISK, f"{free / 2**30:.1f} GiB free"
    yield from _said("data", lambda: _data(home))


def _said(what: str, look: Any) -> Iterator[tuple[str, bool, str]]:
    try:
        yield what, True, look()
    except UserError as error:
        yield what, False, str(error)


def check_certificate(home: Home, public: bytes) -> str:
    """Refuse a certificate that does not count now; a clock that is years behind is found by it, too."""
    path = home.files["certificate"]
    if not path.exists():
        raise UserError(
            f"{home.settings.name} has no certificate yet: let the roster's owner approve it, then d2dfl peer join"
        )
    starts, ends = validity(read_bytes(path, "a certificate", 1 << 16), public, str(path))
    now = datetime.datetime.now(datetime.UTC)
    left = ends - now
    if now < starts:
        raise UserError(f"the certificate begins on {starts:%Y-%m-%d}, and the clock says {now:%Y-%m-%d}: set it first")
    if left < datetime.timedelta(0):
        raise UserError(
            f"the certificate ended on {ends:%Y-%m-%d}, or the clock is wrong: ask the roster's owner for another"
        )
    return f"until {ends:%Y-%m-%d}" + (", soon" if left < SOON else "")


def check_clock(store: Store, now: float | None = None) -> str:
    """Refuse a clock that stands before what was already written down: end dates would count for nothing."""
    now = time.time() if now is None else now
    row = store.db.execute("SELECT content FROM audit ORDER BY line DESC LIMIT 1").fetchone()
    last = json.loads(row[0])["time"] if row else 0.0
    if now < last - 3600:
        raise UserError(f"the clock is {(last - now) / 86_400:.1f} days behind this peer's last line: set it first")
    return datetime.datetime.fromtimestamp(now, datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")


def _policy(home: Home, store: Store) -> str:
    policy = home.policy(store)
    if policy.number < int(store.fact("policy") or 0):
        raise UserError(f"the policy is number {policy.number}, an older one: nothing will be shared")
    return f"number {policy.number}: {len(policy.grants)} grants, {len(policy.forbids)} forbids"


def _data(home: Home) -> str:
    number = shards = 0
    for _, _, inputs, _ in read_shards(home.settings.data, home.folder):
        number, shards = number + len(inputs), shards + 1
    return f"{shards} shards, {number:,} datapoints"


def who_answers(home: Home, seconds: float) -> dict[str, float | None]:
    """Speak to everybody for some seconds: name → round trip, None where nobody answered."""
    from d2dfl.peer.transports.zenoh import ZenohTransport

    store = home.store()
    try:
        clock: Clock = Clock()
        peer = home.peer(store, clock())
        inbox: Queue[bytes] = Queue(WAITING)
        others = [member.address for member in peer.roster.others(peer.own)]
        transport = ZenohTransport(peer.own, home.settings.listen, others, home.files, inbox)
        running = Running(home, peer, transport, inbox, clock)
        try:
            end = clock() + seconds
            while clock() < end:
                running.once()
        finally:
            transport.close()
        found = {}
        for member in peer.roster.others(peer.own):
            link = peer.links.get(member.fingerprint)
            found[member.name] = None if link is None else link.round_trip_s
        return found
    finally:
        store.close()


def audit_lines(home: Home) -> list[dict[str, Any]]:
    with reading(home) as store:
        return [json.loads(content) for _, content, _ in store.audit()]


def exported_audit(home: Home) -> dict[str, Any]:
    """The audit with its hashes, and what others have said of theirs: for whoever compares."""
    with reading(home) as store:
        heads = store.db.execute("SELECT peer, lines, hash FROM heads ORDER BY peer, lines").fetchall()
        return {
            "fingerprint": store.own.hex(),
            "lines": [[line, content.decode(), hash_.hex()] for line, content, hash_ in store.audit()],
            "heads": [[peer.hex(), lines, hash_.hex()] for peer, lines, hash_ in heads],
        }


def verify_audit(home: Home, against: list[Path]) -> str:
    """Verify the chain here, and against exported audits of others; raises a UserError where stories differ."""
    mine = exported_audit(home)
    with reading(home) as store:
        fault = store.audit_fault()
    if fault:
        raise UserError(f"the audit of {home.settings.name} is broken: {fault}")
    for path in against:
        _compare(mine, read_json(path, "an audit that `peer audit --json` wrote"), path)
    return f"{len(mine['lines'])} lines are whole" + (f", and agree with {len(against)} others" if against else "")


def _compare(mine: dict[str, Any], other: Any, path: Path) -> None:
    try:
        chain = [(int(line), text.encode(), bytes.fromhex(hash_)) for line, text, hash_ in other["lines"]]
        pairs = [(mine, other, chain), (other, mine, [(n, t.encode(), bytes.fromhex(h)) for n, t, h in mine["lines"]])]
        fault, _ = first_fault(chain)
        if fault:
            raise UserError(f"{path}: {fault}")
        for teller, told, lines in pairs:
            for peer, number, hash_ in teller["heads"]:
                if peer == told["fingerprint"] and number:
                    good = number <= len(lines) and lines[number - 1][2].hex() == hash_
                    if not good:
                        raise UserError(
                            f"{path}: two stories: line {number} of {peer[:16]} is not what it told {teller['fingerprint'][:16]}"
                        )
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, UserError):
            raise
        raise UserError(f"{path} is no audit: give a file that `d2dfl peer audit --json` wrote") from None


def _namer(home: Home, store: Store) -> Any:
    try:
        roster, _ = home.roster(store)
        return roster.name_of
    except UserError:
        return lambda who: who.hex()[:16]
