"""Before a run: what would go wrong, and who answers."""

import datetime
import json
import shutil
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from queue import Queue
from typing import Any

from d2dfl.errors import UserError
from d2dfl.peer.datapoints import look_through
from d2dfl.peer.home import Home
from d2dfl.peer.identity.certificates import validity
from d2dfl.peer.probing import Link
from d2dfl.peer.reports import reading
from d2dfl.peer.runtime import WAITING, Clock, Running
from d2dfl.peer.store.store import Store
from d2dfl.peer.transports import Transport

LOW_DISK = 100 << 20
CLOCKS_S = 3600.0  # clocks may be so far apart
CLOCK_S = 5.0  # how long a run waits for others to say what time it is
SOON = datetime.timedelta(days=30)


def check(home: Home) -> Iterator[tuple[str, bool, str]]:
    """Preflight: what was looked at, whether it is fine, and what would go wrong."""
    key = home.key()
    yield "key", True, key.fingerprint.hex()
    with reading(home) as store:
        yield "store", True, f"SQLite {sqlite3.sqlite_version}, rollback journal, synchronous=EXTRA"
        yield from _said(
            "roster", lambda: f"number {home.roster(store)[0].number}, {len(home.roster(store)[0].members)} devices"
        )
        yield from _said("certificate", lambda: check_certificate(home, key.public, store))
        yield from _said("clock", lambda: check_clock(store))
        yield from _said("policy", lambda: check_policy(home, store))
        fault = store.audit_fault()
        yield "audit", fault is None, fault or f"{store.head[0]} lines"
        free = shutil.disk_usage(home.folder).free
        yield "disk", free > LOW_DISK, f"{free / 2**30:.1f} GiB free"
        yield from _said("data", lambda: _data(home, store))


def _said(what: str, look: Any) -> Iterator[tuple[str, bool, str]]:
    try:
        yield what, True, look()
    except UserError as error:
        yield what, False, str(error)


def check_certificate(home: Home, public: bytes, store: Store) -> str:
    """Refuse a certificate that does not count now or that the roster's owner did not issue; a clock that is years behind is found by it, too."""
    path = home.files["certificate"]
    if not path.exists():
        raise UserError(
            f"{home.settings.name} has no certificate yet: let the roster's owner approve it, then d2dfl peer join"
        )
    owner = home.roster(store)[0].owner
    pem, issuer = home.certificates(owner)
    starts, ends = validity(pem, public, str(path))
    first, last = validity(issuer, owner, str(home.files["authority"]))
    starts, ends = max(starts, first), min(ends, last)
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
    try:
        last = float(json.loads(row[0])["time"]) if row else 0.0
    except (ValueError, KeyError, TypeError):
        raise UserError("the last line of the audit cannot be read: call d2dfl peer audit verify") from None
    if now < last - 3600:
        raise UserError(f"the clock is {(last - now) / 86_400:.1f} days behind this peer's last line: set it first")
    return datetime.datetime.fromtimestamp(now, datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")


def before_a_run(home: Home, store: Store, now: float) -> None:
    """Refuse what would go wrong, before anything is changed."""
    from d2dfl.peer.transports.zenoh import check_free

    check_clock(store, now)
    home.roster(store)
    check_certificate(home, home.key().public, store)
    home.policy_bytes()
    check_free(home.settings.listen)
    for _ in look_through(store, home.settings.data, home.folder, home.settings.labels):
        pass


def check_policy(home: Home, store: Store) -> str:
    """Refuse a policy that would not be obeyed: then nothing is shared."""
    policy = home.policy(store)
    return f"number {policy.number}: {len(policy.grants)} grants, {len(policy.forbids)} forbids"


def _data(home: Home, store: Store) -> str:
    number = shards = 0
    for shard, _ in look_through(store, home.settings.data, home.folder, home.settings.labels):
        number, shards = number + len(shard.inputs), shards + 1
    return f"{shards} shards, {number:,} datapoints"


@contextmanager
def listening(home: Home, store: Store) -> Iterator[tuple[Transport, "Queue[bytes]"]]:
    """This device's end of the network, and what comes there."""
    from d2dfl.peer.transports.zenoh import ZenohTransport

    inbox = Queue[bytes](WAITING)
    others = [member.address for member in home.roster(store)[0].others(store.own)]
    transport = ZenohTransport(store.own, home.settings.listen, others, home.files, inbox)
    try:
        yield transport, inbox
    finally:
        transport.close()


def who_answers(
    home: Home, store: Store, transport: Transport, inbox: "Queue[bytes]", seconds: float, patient: bool = True
) -> dict[str, Link]:
    """Greet everybody for some seconds, and move nothing: name → what is known of the link then.

    Who is not patient ends once all have said what time it is there. The audit gets no line: the clock may be wrong, and a check is to find that.
    """
    clock = Clock()
    peer = home.peer(store, clock(), greets_only=True)
    running = Running(home, peer, transport, inbox, clock)
    others, end = [member.fingerprint for member in peer.roster.others(peer.own)], clock() + seconds
    while clock() < end and (patient or any(not peer.links.get(who, Link()).heard for who in others)):
        running.once()
    return {peer.roster.name_of(who): peer.links.get(who, Link()) for who in others}


def agree_on_clock(home: Home, store: Store, transport: Transport, inbox: "Queue[bytes]") -> None:
    """Refuse a clock that most of those who answer know otherwise, before any time is written down. Where nobody answers it is believed."""
    links = who_answers(home, store, transport, inbox, CLOCK_S, patient=False)
    found = {name: link for name, link in links.items() if link.heard}
    odd = {name: link.ahead_s for name, link in found.items() if abs(link.ahead_s) >= CLOCKS_S}
    if 2 * len(odd) > len(found):
        name, ahead = next(iter(odd.items()))
        raise UserError(f"the clock of {name} is {_apart(ahead)} this one: set the wrong one; nothing has moved")


def compared(link: Link) -> tuple[bool, str]:
    """Whether an answer came, and the other's clock agrees with this one."""
    if link.round_trip_s is None:
        return True, "no answer"
    said = f"answers in {1000 * link.round_trip_s:.1f} ms"
    if abs(link.ahead_s) < CLOCKS_S:
        return True, said
    return False, f"{said}, and its clock is {_apart(link.ahead_s)} this one: set the wrong one"


def _apart(ahead_s: float) -> str:
    return f"{abs(ahead_s) / 86_400:.1f} days {'ahead of' if ahead_s > 0 else 'behind'}"
