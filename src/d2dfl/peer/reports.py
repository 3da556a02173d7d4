"""What a peer's folder says about itself: status, what others may know of it, what a run would give."""

import json
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from d2dfl.errors import UserError
from d2dfl.peer.datapoints import form_of, look_through
from d2dfl.peer.discovery import FixedGraph, stored_graph
from d2dfl.peer.giving import THROWN_OUT, TOO_LARGE, why_no_more
from d2dfl.peer.handover.content import ROOM
from d2dfl.peer.handover.limits import DAY_S
from d2dfl.peer.home import Home
from d2dfl.peer.measured import links_of, measured
from d2dfl.peer.store.store import Store


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
        name_of = namer(home, store)
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


def handed_over(store: Store) -> tuple[Counter[bytes], Counter[bytes]]:
    """Datapoints of all transfers that are over: given to whom, got from whom."""
    gave = "SELECT receiver, sum(points) FROM outgoing WHERE phase = 'done' GROUP BY receiver"
    got = "SELECT sender, sum(points) FROM incoming WHERE phase = 'committed' GROUP BY sender"
    return Counter(dict(store.db.execute(gave))), Counter(dict(store.db.execute(got)))


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


def preview(home: Home, graph: Path | None = None) -> list[dict[str, Any]]:
    """What a run would give now: a row for each receiver and label of the graph, and why less.

    Where no graph is found yet: what each member could get at most, and nothing more would even be told to it.
    """
    with reading(home) as store:
        roster, _ = home.roster(store)
        found, (own, size) = home.graph(store.own, graph) or _kept_graph(store), _own_points(home, store)
        links: Mapping[bytes, Mapping[str, int]] | None
        if found is None:
            links = {member.fingerprint: own for member in roster.others(store.own)}
        else:
            found.know(roster)
            links = found.links()
        if links is None:
            raise UserError(
                f"the graph has {getattr(found, 'devices', 0)} devices, and the roster here {len(roster.members)}: "
                "take the newer one with d2dfl peer join, or run, and another device will bring it"
            )
        policy, now = home.policy(store), time.time()
        today = max(0, home.settings.limits.points_a_day - store.spent(int(now // DAY_S), "sent points"))
        rows: list[dict[str, Any]] = []
        left = []
        for receiver, amounts in links.items():
            for label, wanted in sorted(amounts.items()):  # as a run goes through them
                done = 0 if found is None else store.planned(found.round, receiver, label)
                granted = policy.allowance(receiver, label, now)
                room = granted - store.shown(receiver, label)
                here = own.get(label, 0) - store.given_before(receiver, label) + store.lent(receiver, label)
                gets, why = max(0, min(wanted - done, room, here, today)), ""
                if roster.active(receiver) is None:
                    gets, why = 0, THROWN_OUT
                elif gets and size + len(label.encode()) > home.settings.limits.bytes_a_day:
                    gets, why = 0, TOO_LARGE
                if found is not None:  # else it is what each could get, if no other did
                    today -= gets
                    own[label] = own.get(label, 0) - (gets if home.settings.keep == "move" else 0)
                left.append((wanted - done - gets, granted, room - gets))
                rows.append(
                    {"receiver": roster.name_of(receiver), "label": label, "wanted": wanted, "given": done, "would_give": gets, "why": why}
                )  # fmt: skip
        for row, more in zip(rows, left, strict=True):  # why there is no more, once all have had theirs
            rest = today if found is not None else today - row["would_give"]
            row["why"] = row["why"] or why_no_more(*more, rest, 0)
        return rows


def _own_points(home: Home, store: Store) -> tuple[dict[str, int], int]:
    """Own datapoints by label, as a run would have them: with shards that it would take in first; and the size of one, without its label."""
    labels, counts = home.settings.labels, Counter(store.counts(own_only=True))
    found = store.db.execute("SELECT length(form) + length(content) FROM points LIMIT 1").fetchone()
    size = 0 if found is None else int(found[0])
    for shard, new in look_through(store, home.settings.data, home.folder, labels):
        if new:
            counts.update(labels[target] for target in shard.targets.tolist())
            size = size or len(form_of(shard, labels)) + shard.inputs[:1].nbytes
    return dict(sorted(counts.items())), size + ROOM


def _kept_graph(store: Store) -> FixedGraph | None:
    """Of a round that is not over."""
    document = store.fact("graph")
    kept = None if document is None else stored_graph(str(document))
    return None if kept is None or kept.round.hex() == store.fact("graph_done") else kept


def namer(home: Home, store: Store) -> Callable[[bytes], str]:
    """What a device is called, by its fingerprint; the fingerprint's first digits where there is no roster yet."""
    try:
        roster, _ = home.roster(store)
        return roster.name_of
    except UserError:
        return lambda who: who.hex()[:16]


def known_prints(home: Home, store: Store) -> set[bytes]:
    """Fingerprints of those to whom something may be given, as the roster here knows them; its own is none."""
    try:
        roster, _ = home.roster(store)
    except UserError:
        return set()
    return {member.fingerprint for member in roster.others(store.own)}
