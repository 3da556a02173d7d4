"""The store: what is asked of it, and how one event's operations become one transaction.

Rollback journal and synchronous=EXTRA: after a transaction has ended it survives a loss of power. No WAL: SQLite before 3.51.3
has a bug there. Deleted datapoints are overwritten in the file (secure_delete).
"""

import hmac
import json
import os
import secrets
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from d2dfl.errors import UserError
from d2dfl.peer.store.audit import START, first_fault
from d2dfl.peer.store.operations import Operation
from d2dfl.peer.store.records import Incoming, Outgoing
from d2dfl.peer.store.schema import APPLICATION, FACTS, NAMES, NEEDED, TABLES, VERSION
from d2dfl.peer.wire.messages import Point, encode_points

OLDEST = (3, 31, 0)  # SQLite
OUTGOING = "id, receiver, phase, keep, pieces, points, size, exposed, salt, digest, labels"
INCOMING = "id, sender, phase, pieces, points, left_bytes, next, salt, digest, labels"
# CANTOPEN: no journal can be made, as on a disk that has no room for another file
UNABLE = (
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_CANTOPEN,
)
Watch = Callable[[Operation | None], None]  # told before each operation, and with None before the transaction ends


class StoreFullError(Exception):
    """The disk is full, or does not take it now: nothing of the event has happened."""


class Store:
    """One connection to one file; made for one peer, whose fingerprint it knows."""

    def __init__(self, path: Path | str, own: bytes, watch: Watch | None = None, read_only: bool = False) -> None:
        if sqlite3.sqlite_version_info < OLDEST:
            raise UserError(f"this Python has SQLite {sqlite3.sqlite_version}: 3.31 or newer is needed")
        self.own, self.watch = own, watch
        if str(path) != ":memory:" and not os.path.exists(path):
            if read_only:
                raise UserError(f"there is no store {path}: call d2dfl peer init first")
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        target = f"{Path(path).absolute().as_uri()}?mode=ro" if read_only else path
        try:
            self.db = sqlite3.connect(
                target, isolation_level=None, check_same_thread=False, timeout=10.0, uri=read_only
            )
            self._prepare(path, read_only)
            self.head = self._last_line()
        except sqlite3.DatabaseError as error:
            raise UserError(f"cannot use the store {path}: {error}") from None
        self.full = ""  # why the last transaction could not be written; empty where it was
        self.changes = 0  # transactions that were ended: whoever watches the content asks only when this has moved

    def _prepare(self, path: Path | str, read_only: bool) -> None:
        if not read_only:
            journal = self.db.execute("PRAGMA journal_mode=DELETE").fetchone()[0]
            if journal not in ("delete", "memory"):  # somebody else has it open with another one
                raise UserError(f"the store {path} is written with the journal {journal}: end the program that does so")
            for pragma in ("synchronous=EXTRA", "secure_delete=ON"):
                self.db.execute(f"PRAGMA {pragma}")
        mark = self.db.execute("PRAGMA application_id").fetchone()[0]
        empty = not self.db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if empty and not read_only:
            self._create()
        elif mark != APPLICATION:
            raise UserError(f"{path} is no store of d2dfl: name another file")
        version = self.db.execute("PRAGMA user_version").fetchone()[0]
        if version != VERSION:
            which = "newer" if version > VERSION else "older"
            raise UserError(
                f"the store {path} is of a {which} version ({version}, not {VERSION}): it was left as it is"
            )
        there = {row[0] for row in self.db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        gone = [name for name in NAMES if name not in there]
        if gone:
            raise UserError(f"the store {path} is damaged: its table {gone[0]!r} is gone; it was left as it is")
        facts = dict(self.db.execute("SELECT name, value FROM facts").fetchall())
        broken = [name for name, kind in FACTS.items() if name in facts and not isinstance(facts[name], kind)]
        broken += [name for name in NEEDED if name not in facts]
        broken += ["roster_owner"] if ("roster" in facts) != ("roster_owner" in facts) else []
        if broken:
            raise UserError(f"the store {path} is damaged: its fact {broken[0]!r} is none; it was left as it is")
        if facts["own"] != self.own:
            raise UserError(f"the store {path} belongs to another key: it was left as it is")

    def _create(self) -> None:
        self.db.execute("BEGIN IMMEDIATE")
        for statement in TABLES.split(";"):
            if statement.strip():
                self.db.execute(statement)
        for name, value in (("own", self.own), ("secret", secrets.token_bytes(32)), ("run", 0), ("transfers", 0)):
            self.db.execute("INSERT INTO facts VALUES (?, ?)", (name, value))
        self.db.execute(f"PRAGMA application_id={APPLICATION}")
        self.db.execute(f"PRAGMA user_version={VERSION}")
        self.db.execute("COMMIT")

    def close(self) -> None:
        self.db.close()

    def apply(self, operations: Iterable[Operation], now: float) -> None:
        """Do all of it, or nothing."""
        from d2dfl.peer.store.changes import CHANGES

        head = self.head
        try:
            self.db.execute("BEGIN IMMEDIATE")
            for operation in operations:
                if self.watch is not None:
                    self.watch(operation)
                CHANGES[type(operation)](self, operation, now)
            if self.watch is not None:
                self.watch(None)
            self.db.execute("COMMIT")
        except BaseException as error:
            self.head = head
            with suppress(sqlite3.Error):
                if self.db.in_transaction:
                    self.db.execute("ROLLBACK")
                self.head = self._last_line()  # a disk can fail when all is written already: then it has happened
            if isinstance(error, sqlite3.OperationalError) and error.sqlite_errorcode & 0xFF in UNABLE:
                self.full = str(error)
                raise StoreFullError(self.full) from None
            raise
        self.changes, self.full = self.changes + 1, ""

    # What is asked.

    def fact(self, name: str) -> Any:
        found = self.db.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
        return None if found is None else found[0]

    def secret(self, purpose: bytes) -> bytes:
        """32 bytes that only this store can make."""
        return hmac.digest(bytes(self.fact("secret")), purpose, "sha256")

    def last_seen(self, sender: bytes) -> tuple[int, int]:
        found = self.db.execute("SELECT run, counter FROM seen WHERE sender = ?", (sender,)).fetchone()
        return (0, 0) if found is None else (found[0], found[1])

    def outgoing(self, transfer: bytes) -> Outgoing | None:
        found = self.db.execute(f"SELECT {OUTGOING} FROM outgoing WHERE id = ?", (transfer,)).fetchone()
        return None if found is None else _outgoing(found)

    def open_outgoing(self) -> list[Outgoing]:
        rows = self.db.execute(f"SELECT {OUTGOING} FROM outgoing WHERE phase IN ('open', 'cancelling') ORDER BY id")
        return [_outgoing(row) for row in rows]

    def incoming(self, transfer: bytes, sender: bytes) -> Incoming:
        found = self.db.execute(f"SELECT {INCOMING} FROM incoming WHERE id = ?", (transfer,)).fetchone()
        if found is None:
            return Incoming(
                id=transfer, sender=sender, phase="unknown", pieces=0, points=0, left=0, next=0, salt=b"", digest=b"", labels=()
            )  # fmt: skip
        return _incoming(found)

    def receiving(self, sender: bytes) -> list[bytes]:
        """Transfers from a sender of which pieces are put aside."""
        rows = self.db.execute("SELECT id FROM incoming WHERE phase = 'receiving' AND sender = ?", (sender,))
        return [row[0] for row in rows]

    def pieces(self, transfer: bytes) -> Iterator[bytes]:
        rows = self.db.execute("SELECT content FROM pieces WHERE transfer = ? ORDER BY number", (transfer,))
        return (row[0] for row in rows)

    def form(self) -> str | None:
        """What datapoints here look like; all are alike."""
        found = self.db.execute("SELECT form FROM points LIMIT 1").fetchone()
        return None if found is None else str(found[0])

    def piece(self, transfer: bytes, number: int) -> bytes:
        """A piece of an outgoing transfer, from its datapoints: the same bytes whenever it is asked for."""
        rows = self.db.execute(
            "SELECT number, label, form, content FROM points WHERE leaving = ? AND piece = ? ORDER BY number",
            (transfer, number),
        )
        return encode_points([Point(*row) for row in rows])

    def free_points(self, label: str, receiver: bytes, most: int, room_bytes: int) -> tuple[list[Point], bool]:
        """Own datapoints of a label that are not leaving and that a receiver was not given; and whether room was short."""
        rows = self.db.execute(
            "SELECT number, label, form, content FROM points p WHERE origin = ? AND label = ? AND leaving IS NULL AND NOT EXISTS "
            "(SELECT 1 FROM given g WHERE g.receiver = ? AND g.number = p.number) ORDER BY number LIMIT ?",
            (self.own, label, receiver, most),
        )
        found: list[Point] = []
        for row in rows:
            room_bytes -= len(row[3])
            if room_bytes < 0 and found:
                return found, True
            found.append(Point(*row))
        return found, False

    def counts(self, own_only: bool = False) -> dict[str, int]:
        """How many datapoints of which label are here; of one's own, those that are not leaving."""
        where = "WHERE origin = ? AND leaving IS NULL" if own_only else "WHERE ? IS NOT NULL"
        rows = self.db.execute(f"SELECT label, count(*) FROM points {where} GROUP BY label ORDER BY label", (self.own,))
        return dict(rows.fetchall())

    def shown(self, receiver: bytes, label: str) -> int:
        """Datapoints of a label that a receiver has, is about to get, or may have seen."""
        found = self.db.execute(
            "SELECT number FROM shown WHERE receiver = ? AND label = ?", (receiver, label)
        ).fetchone()
        return 0 if found is None else int(found[0])

    def planned(self, round_: bytes, receiver: bytes, label: str) -> int:
        """Datapoints that a round's transfers to a receiver have, but for those that came back."""
        found = self.db.execute(
            "SELECT count(*) FROM given g JOIN outgoing o ON o.id = g.transfer "
            "WHERE o.round = ? AND o.phase != 'returned' AND g.receiver = ? AND g.label = ?",
            (round_, receiver, label),
        )
        return int(found.fetchone()[0])

    def given_before(self, receiver: bytes, label: str) -> int:
        """Own datapoints of a label that a receiver was given, and that are still here."""
        found = self.db.execute(
            "SELECT count(*) FROM given g JOIN points p ON p.origin = ? AND p.number = g.number "
            "WHERE g.receiver = ? AND g.label = ? AND p.leaving IS NULL",
            (self.own, receiver, label),
        )
        return int(found.fetchone()[0])

    def lent(self, receiver: bytes, label: str) -> int:
        """Own datapoints of a label that are on their way to others as copies, and may go to this receiver when they have arrived."""
        found = self.db.execute(
            "SELECT count(*) FROM points p JOIN outgoing o ON o.id = p.leaving WHERE p.origin = ? AND p.label = ? AND o.keep = 'copy' "
            "AND NOT EXISTS (SELECT 1 FROM given g WHERE g.receiver = ? AND g.number = p.number)",
            (self.own, label, receiver),
        )
        return int(found.fetchone()[0])

    def spent(self, day: int, what: str) -> int:
        found = self.db.execute("SELECT amount FROM days WHERE day = ? AND what = ?", (day, what)).fetchone()
        return 0 if found is None else int(found[0])

    def holders(self, numbers: Sequence[int]) -> dict[bytes, list[int]]:
        """Who was given which of one's own datapoints."""
        found: dict[bytes, list[int]] = {}
        for number in numbers:
            for (receiver,) in self.db.execute("SELECT receiver FROM given WHERE number = ?", (number,)):
                found.setdefault(receiver, []).append(number)
        return found

    def transfers_with(self, numbers: Sequence[int]) -> set[bytes]:
        """Outgoing transfers with one of these datapoints."""
        found: set[bytes] = set()
        for number in numbers:
            found |= {row[0] for row in self.db.execute("SELECT transfer FROM given WHERE number = ?", (number,))}
        return found

    def pending_orders(self) -> list[tuple[bytes, bytes]]:
        """(order, receiver) that has not forgotten yet."""
        rows = self.db.execute("SELECT id, receiver FROM order_receivers WHERE done = 0 ORDER BY id, receiver")
        return [(row[0], row[1]) for row in rows]

    def was_told(self, order: bytes, receiver: bytes) -> bool:
        """Whether an order is for this receiver, or was."""
        rows = self.db.execute("SELECT 1 FROM order_receivers WHERE id = ? AND receiver = ?", (order, receiver))
        return rows.fetchone() is not None

    def order(self, order: bytes, receiver: bytes) -> list[int]:
        """The datapoints of an order that a receiver was given: of others it is told nothing."""
        rows = self.db.execute("SELECT number FROM orders WHERE id = ? ORDER BY number", (order,)).fetchall()
        given = self.db.execute(
            "SELECT o.number FROM orders o JOIN given g ON g.receiver = ? AND g.number = o.number WHERE o.id = ? ORDER BY o.number",
            (receiver, order),
        ).fetchall()
        return [
            row[0] for row in given or rows
        ]  # a store of before may have forgotten to whom a transfer was that came back

    def is_forgotten(self, origin: bytes, number: int) -> bool:
        rows = self.db.execute("SELECT 1 FROM forgotten WHERE origin = ? AND number = ?", (origin, number))
        return rows.fetchone() is not None

    def knows_head(self, peer: bytes, lines: int, hash_: bytes) -> bool:
        """Whether a peer has said this of its audit before."""
        rows = self.db.execute("SELECT 1 FROM heads WHERE peer = ? AND lines = ? AND hash = ?", (peer, lines, hash_))
        return rows.fetchone() is not None

    def used_in(self, origin: bytes, numbers: Sequence[int]) -> list[str]:
        """Trainings that had any of these datapoints."""
        names: set[str] = set()
        for number in numbers:
            rows = self.db.execute("SELECT name FROM uses WHERE origin = ? AND number = ?", (origin, number))
            names |= {row[0] for row in rows}
        return sorted(names)

    def audit(self) -> Iterator[tuple[int, bytes, bytes]]:
        """Lines, contents, hashes."""
        yield from self.db.execute("SELECT line, content, hash FROM audit ORDER BY line")

    def audit_fault(self) -> str | None:
        """What is wrong with the audit."""
        fault, hashes = first_fault(self.audit())
        if fault is None and (len(hashes), hashes[-1] if hashes else START) != self.head:
            return "the last lines are missing"
        return fault

    def _last_line(self) -> tuple[int, bytes]:
        lines, head = self.fact("audit_lines"), self.fact("audit_head")
        return (0, START) if lines is None else (int(lines), bytes(head))


def _outgoing(row: tuple[Any, ...]) -> Outgoing:
    id_, receiver, phase, keep, pieces, points, size, exposed, salt, digest, labels = row
    return Outgoing(
        id=id_, receiver=receiver, phase=phase, keep=keep, pieces=pieces, points=points, size=size,
        exposed=bool(exposed), salt=salt, digest=digest, labels=_labels(labels),
    )  # fmt: skip


def _incoming(row: tuple[Any, ...]) -> Incoming:
    id_, sender, phase, pieces, points, left, next_, salt, digest, labels = row
    return Incoming(
        id=id_, sender=sender, phase=phase, pieces=pieces, points=points, left=left, next=next_, salt=salt,
        digest=digest, labels=_labels(labels),
    )  # fmt: skip


def _labels(text: str) -> tuple[tuple[str, int], ...]:
    return tuple((name, number) for name, number in json.loads(text))
