"""What each operation does to the tables."""

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from d2dfl.peer.store import operations as do
from d2dfl.peer.store.audit import SALT_BYTES, chained, line_of
from d2dfl.peer.store.records import ENDED
from d2dfl.peer.store.schema import NEW_POINT
from d2dfl.peer.wire.messages import decode_points

if TYPE_CHECKING:
    from d2dfl.peer.store.store import Store


def _seen(store: "Store", op: do.Seen, now: float) -> None:
    store.db.execute("INSERT OR REPLACE INTO seen VALUES (?, ?, ?)", (op.sender, op.run, op.counter))


def _note(store: "Store", op: do.Note, now: float) -> None:
    number, before = store.head
    more = {"peer": op.peer.hex(), "transfer": op.transfer.hex(), "points": op.points, "digest": op.digest.hex()}
    salt = store.secret(b"d2dfl/audit/1" + number.to_bytes(8, "big"))[:SALT_BYTES]
    content = line_of(number + 1, now, op.kind, salt, **more, text=op.text)
    store.head = (number + 1, chained(before, content))
    store.db.execute("INSERT INTO audit VALUES (?, ?, ?)", (number + 1, content, store.head[1]))
    store.db.execute("INSERT OR REPLACE INTO facts VALUES ('audit_lines', ?), ('audit_head', ?)", store.head)


def _take_in(store: "Store", op: do.TakeIn, now: float) -> None:
    first = int(store.fact("points") or 0)
    store.db.execute("INSERT INTO shards VALUES (?, ?, ?)", (op.name, op.digest, len(op.rows)))
    store.db.executemany(
        NEW_POINT,
        ((store.own, first + place, *row) for place, row in enumerate(op.rows)),
    )
    _fact(store, do.Fact("points", first + len(op.rows)), now)


def _plan(store: "Store", op: do.Plan, now: float) -> None:
    total = sum(map(len, op.pieces))
    store.db.execute(
        "INSERT INTO outgoing VALUES (?, ?, 'open', ?, ?, ?, ?, ?, 0, ?, ?, ?, ?)",
        (
            op.id,
            op.receiver,
            op.keep,
            op.round,
            len(op.pieces),
            total,
            op.size,
            op.salt,
            op.digest,
            json.dumps(op.labels),
            op.day,
        ),
    )
    for piece, numbers in enumerate(op.pieces):
        for number in numbers:
            marked = store.db.execute(
                "UPDATE points SET leaving = ?, piece = ? WHERE origin = ? AND number = ? AND leaving IS NULL",
                (op.id, piece, store.own, number),
            )
            if marked.rowcount != 1:
                raise RuntimeError("a datapoint of a plan is not free")
            store.db.execute(
                "INSERT INTO given SELECT ?, number, ?, label FROM points WHERE origin = ? AND number = ?",
                (op.receiver, op.id, store.own, number),
            )
    for label, number in op.labels:
        _show(store, op.receiver, label, number)
    _spend(store, do.Spend(op.day, "sent points", total), now)
    store.db.execute("UPDATE facts SET value = value + 1 WHERE name = 'transfers'")


def _show(store: "Store", receiver: bytes, label: str, number: int) -> None:
    store.db.execute(
        "INSERT INTO shown VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET number = number + excluded.number",
        (receiver, label, number),
    )


def _expose(store: "Store", op: do.Expose, now: float) -> None:
    store.db.execute("UPDATE outgoing SET exposed = 1 WHERE id = ?", (op.id,))


def _spend(store: "Store", op: do.Spend, now: float) -> None:
    store.db.execute(
        "INSERT INTO days VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET amount = amount + excluded.amount",
        (op.day, op.what, op.amount),
    )


def _stop(store: "Store", op: do.Stop, now: float) -> None:
    store.db.execute("UPDATE outgoing SET phase = 'cancelling' WHERE id = ? AND phase = 'open'", (op.id,))


def _release(store: "Store", op: do.Release, now: float) -> None:
    transfer = store.outgoing(op.id)
    if transfer is None or transfer.phase in ENDED:
        return
    if transfer.keep == "copy":
        store.db.execute("UPDATE points SET leaving = NULL, piece = NULL WHERE leaving = ?", (op.id,))
    else:
        store.db.execute("DELETE FROM points WHERE leaving = ?", (op.id,))
    store.db.execute("UPDATE outgoing SET phase = 'done' WHERE id = ?", (op.id,))


def _take_back(store: "Store", op: do.TakeBack, now: float) -> None:
    transfer = store.outgoing(op.id)
    if transfer is None or transfer.phase in ENDED:
        return
    store.db.execute("UPDATE points SET leaving = NULL, piece = NULL WHERE leaving = ?", (op.id,))
    store.db.execute("UPDATE outgoing SET phase = 'returned' WHERE id = ?", (op.id,))
    store.db.execute(  # an order to forget is told to whoever was given what it is about
        "DELETE FROM given WHERE transfer = ? AND number NOT IN (SELECT number FROM forgotten WHERE origin = ?)",
        (op.id, store.own),
    )
    if not transfer.exposed:  # what may have been seen counts for ever
        for label, number in transfer.labels:
            _show(store, transfer.receiver, label, -number)
        (day,) = store.db.execute("SELECT day FROM outgoing WHERE id = ?", (op.id,)).fetchone()
        _spend(store, do.Spend(day, "sent points", -transfer.points), now)


def _open(store: "Store", op: do.Open, now: float) -> None:
    points = sum(number for _, number in op.labels)
    store.db.execute(
        "INSERT INTO incoming VALUES (?, ?, 'receiving', ?, ?, ?, 0, ?, ?, ?)",
        (op.id, op.sender, op.pieces, points, op.size, op.salt, op.digest, json.dumps(op.labels)),
    )


def _keep(store: "Store", op: do.Keep, now: float) -> None:
    store.db.execute("INSERT INTO pieces VALUES (?, ?, ?)", (op.id, op.number, op.content))
    store.db.execute(
        "UPDATE incoming SET next = ?, left_bytes = left_bytes - ? WHERE id = ? AND next = ?",
        (op.number + 1, len(op.content), op.id, op.number),
    )


def _adopt(store: "Store", op: do.Adopt, now: float) -> None:
    for content in list(store.pieces(op.id)):
        for point in decode_points(content):
            store.db.execute(
                # One that is here already came from the same origin, which keeps copies; one that was to be forgotten is not taken.
                "INSERT OR IGNORE INTO points SELECT ?, ?, ?, ?, ?, ?, NULL, NULL WHERE NOT EXISTS "
                "(SELECT 1 FROM forgotten WHERE origin = ? AND number = ?)",
                (op.sender, point.number, point.label, point.form, point.content, op.id, op.sender, point.number),
            )
    store.db.execute("DELETE FROM pieces WHERE transfer = ?", (op.id,))
    store.db.execute("UPDATE incoming SET phase = 'committed' WHERE id = ?", (op.id,))


def _refuse(store: "Store", op: do.Refuse, now: float) -> None:
    store.db.execute("DELETE FROM pieces WHERE transfer = ?", (op.id,))
    store.db.execute(
        "INSERT INTO incoming VALUES (?, ?, 'refused', 0, 0, 0, 0, x'', x'', '[]') ON CONFLICT DO UPDATE SET phase = 'refused'",
        (op.id, op.sender),
    )


def _heard(store: "Store", op: do.Heard, now: float) -> None:
    found = store.db.execute("SELECT hash FROM heads WHERE peer = ? AND lines = ?", (op.peer, op.lines)).fetchone()
    if found is None:
        store.db.execute("INSERT INTO heads VALUES (?, ?, ?)", (op.peer, op.lines, op.hash))
    elif found[0] != op.hash:
        _note(store, do.Note("two-stories", peer=op.peer, text=f"line {op.lines} of its audit was another before"), now)


def _order(store: "Store", op: do.Order, now: float) -> None:
    store.db.executemany("INSERT INTO orders VALUES (?, ?)", [(op.id, number) for number in op.numbers])
    store.db.executemany("INSERT INTO order_receivers VALUES (?, ?, 0, '')", [(op.id, who) for who in op.receivers])
    store.db.execute("UPDATE facts SET value = value + 1 WHERE name = 'transfers'")


def _erase(store: "Store", op: do.Erase, now: float) -> None:
    pairs = [(op.origin, number) for number in op.numbers]
    store.db.executemany("INSERT OR IGNORE INTO forgotten VALUES (?, ?)", pairs)
    store.db.executemany("DELETE FROM points WHERE origin = ? AND number = ?", pairs)


def _answered(store: "Store", op: do.Answered, now: float) -> None:
    store.db.execute(
        "UPDATE order_receivers SET done = 1, used_in = ? WHERE id = ? AND receiver = ?",
        (json.dumps(op.used_in), op.id, op.receiver),
    )


def _fact(store: "Store", op: do.Fact, now: float) -> None:
    store.db.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (op.name, op.value))


CHANGES: dict[type[do.Operation], Callable[["Store", Any, float], None]] = {
    do.Seen: _seen,
    do.Note: _note,
    do.TakeIn: _take_in,
    do.Plan: _plan,
    do.Expose: _expose,
    do.Spend: _spend,
    do.Stop: _stop,
    do.Release: _release,
    do.TakeBack: _take_back,
    do.Open: _open,
    do.Keep: _keep,
    do.Adopt: _adopt,
    do.Refuse: _refuse,
    do.Heard: _heard,
    do.Order: _order,
    do.Erase: _erase,
    do.Answered: _answered,
    do.Fact: _fact,
}
