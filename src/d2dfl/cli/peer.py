"""What the commands of one device do."""

import io
import json
import re
import secrets
import signal
import sqlite3
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Queue
from typing import TYPE_CHECKING

from d2dfl.cli.output import say
from d2dfl.errors import MissingExtraError, UserError
from d2dfl.storage import TakenError, check_output, locked, make_folder, write_whole
from d2dfl.terminal import plain

try:
    import cryptography as _cryptography  # noqa: F401  # only to see whether it is there
    import msgspec as _msgspec  # noqa: F401  # likewise
except ImportError:
    raise MissingExtraError("a peer", "msgspec and cryptography", "peer") from None

from d2dfl.peer import auditing, preflight, reports
from d2dfl.peer.datapoints import arrays, take_in
from d2dfl.peer.forgetting import forgettable
from d2dfl.peer.home import MOST_LABELS, Home, make_home
from d2dfl.peer.moves import MoveFile
from d2dfl.peer.runtime import WAITING, WISHES, Clock, Running
from d2dfl.peer.store.store import StoreFullError
from d2dfl.peer.transports.zenoh import check_free

if TYPE_CHECKING:
    from d2dfl.peer.discovery import GraphFile
    from d2dfl.peer.peer import Peer
    from d2dfl.peer.store.store import Store


Reasons = dict[tuple[bytes, str], str]  # receiver, label → why it gets less than the graph wants


def labels_of(text: str) -> tuple[str, ...]:
    """Names by commas, or how many."""
    if re.fullmatch("[0-9]+", text):
        if len(text) > 9 or not 0 < int(text) <= MOST_LABELS:
            raise UserError(f"there are {text:.20} labels: give 1 to {MOST_LABELS:,}, or their names by commas")
        return tuple(map(str, range(int(text))))
    return tuple(part.strip() for part in text.split(","))


def init_and_print(folder: Path, name: str, data: str, labels: str, listen: str, address: str) -> None:
    request = make_home(folder, name, data, labels_of(labels), listen, address=address)
    home = Home(folder)
    say(f"fingerprint {home.key().fingerprint.hex()}")
    say(f"wrote {request}: give it to the roster's owner, who runs `d2dfl fleet approve {request.name}`")
    say("nothing is shared: policy.toml says who may have what; owner.key signs it, and may be kept elsewhere")


def join_and_print(folder: Path, admission: Path) -> None:
    home = Home(folder)
    try:
        with locked(folder):
            roster = home.join(admission)
        say(f"{home.settings.name} is in the roster number {roster.number}, with {len(roster.members) - 1} others")
    except TakenError:
        from d2dfl.storage import read_json, read_text

        content = read_json(admission, "an admission")
        wish = read_text(admission) if content.get("kind") == "roster" else str(content.get("roster"))
        _wish(folder, {"roster": wish})
        say("the peer runs: it will look at the roster within a second")


def policy_and_print(folder: Path, sign: bool) -> None:
    home = Home(folder)
    if sign:
        say(f"signed: policy number {home.sign_policy(time.time())}")
    with reports.reading(home) as store:
        found = home.policy(store)
        try:
            name_of = home.roster(store)[0].name_of
        except UserError:
            name_of = _first_digits
    for rule in found.grants:
        until = time.strftime("%Y-%m-%d", time.gmtime(rule.until_s - 1))
        labels = "all labels" if rule.labels is None else ", ".join(sorted(rule.labels))
        over = " (it is over)" if rule.until_s <= time.time() else ""
        sys.stdout.write(
            plain(f"grant {name_of(rule.to or b'')}: {rule.number} each of {labels}, until {until}{over}") + "\n"
        )
    for rule in found.forbids:
        labels = "all labels" if rule.labels is None else ", ".join(sorted(rule.labels))
        sys.stdout.write(plain(f"forbid {'everybody' if rule.to is None else name_of(rule.to)}: {labels}") + "\n")
    if not found.grants:
        sys.stdout.write("nothing is shared\n")


def members_and_print(folder: Path) -> None:
    home = Home(folder)
    with reports.reading(home) as store:
        roster, _ = home.roster(store)
    for member, cluster in zip(roster.members, roster.clusters[0], strict=True):
        more = ", thrown out" if member.revoked else ", this device" if member.public == home.key().public else ""
        text = f"{member.name}  {member.fingerprint.hex()}  {member.address}  cluster {cluster}{more}"
        sys.stdout.write(plain(text) + "\n")


def _first_digits(who: bytes) -> str:
    return who.hex()[:16]


def check_and_print(folder: Path, seconds: float) -> None:
    home = Home(folder)
    wrong = 0
    for what, fine, said in preflight.check(home):
        wrong += not fine
        sys.stdout.write(plain(f"{'ok   ' if fine else 'WRONG'} {what}: {said}") + "\n")
    if not wrong and seconds:
        with opened(home) as store:
            for name, link in preflight.who_answers(home, store, seconds).items():
                fine, said = preflight.compared(link)
                wrong += not fine
                mark = "WRONG" if not fine else "-    " if link.round_trip_s is None else "ok   "
                sys.stdout.write(plain(f"{mark} {name}: {said}") + "\n")
    if wrong:
        raise UserError(f"{wrong} of these would go wrong")


def preview_and_print(folder: Path, graph: Path | None) -> None:
    rows = reports.preview(Home(folder), graph)
    for row in rows:
        why = f" ({row['why']})" if row["why"] else ""
        text = f"{row['receiver']}: {row['would_give']} of {row['wanted']} with label {row['label']}{why}"
        sys.stdout.write(plain(text + (f", {row['given']} were given before" if row["given"] else "")) + "\n")
    if not rows:
        sys.stdout.write("nothing would go from this device: no link, no datapoint or nobody else in the roster\n")


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


def status_and_print(folders: list[Path], as_json: bool) -> None:
    found = [reports.status(Home(folder)) for folder in folders]
    if as_json:
        sys.stdout.write(json.dumps(found if len(found) > 1 else found[0], indent=1) + "\n")
        return
    for item in found:
        held = ", ".join(f"{label}: {number}" for label, number in item["holds"].items()) or "nothing"
        sys.stdout.write(
            plain(f"{item['name']}  {item['fingerprint'][:16]}  {item['listen']}  policy {item['policy']}") + "\n"
        )
        sys.stdout.write(plain(f"  holds {sum(item['holds'].values()):,} ({held})") + "\n")
        for way in ("outgoing", "incoming"):
            for phase, row in item[way].items():
                sys.stdout.write(f"  {way} {phase}: {row['transfers']} transfers, {row['datapoints']} datapoints\n")
        for name, link in item["links"].items():
            trip = "–" if link["round_trip_s"] is None else f"{1000 * link['round_trip_s']:.1f} ms"
            loss = "–" if link["loss"] is None else f"{link['loss']:.3f}"
            sys.stdout.write(plain(f"  link with {name}: loss {loss}, round trip {trip}") + "\n")
        for interface, level in item["signal_dbm"].items():
            sys.stdout.write(plain(f"  radio {interface}: {level:.0f} dBm") + "\n")
        if item["waiting_to_forget"]:
            sys.stdout.write(f"  {item['waiting_to_forget']} receivers have not confirmed yet that they forgot\n")
        sys.stdout.write(f"  audit: {item['audit']['lines']} lines, head {item['audit']['head'][:16]}\n")


def audit_and_print(folder: Path, action: str, against: list[Path], as_json: bool) -> None:
    home = Home(folder)
    if action == "verify":
        sys.stdout.write(auditing.verify_audit(home, against) + "\n")
    elif action != "show":
        raise UserError(f"audit cannot {action!r:.40}: give show or verify")
    elif as_json:
        sys.stdout.write(json.dumps(auditing.exported_audit(home)) + "\n")
    else:
        for line in auditing.audit_lines(home):
            when = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(line["time"]))
            more = [f"{key} {str(line[key])[:16] if key in ('peer', 'digest') else str(line[key])[-16:] if key == 'transfer' else line[key]}"
                    for key in ("peer", "transfer", "points", "digest", "text") if key in line]  # fmt: skip
            sys.stdout.write(plain(f"{line['line']:6} {when} {line['kind']:16} {', '.join(more)}") + "\n")


def forget_and_print(folder: Path, points: list[int]) -> None:
    home = Home(folder)
    with reports.reading(home) as store:
        forgettable(store, points)
        used = store.used_in(store.own, points)
    try:
        with opened(home) as store:
            peer = home.peer(store, time.time())
            peer.forgetting.order(points, time.time())
            waiting = len({receiver for _, receiver in store.pending_orders()})
            peer.close(time.time())
    except TakenError:
        _wish(folder, {"forget": points})
        say("the peer runs: it will tell the receivers within a second; `d2dfl peer status` says who has confirmed")
    else:
        say(f"forgotten here; {waiting} receivers are told when this peer runs")
    for name in used:
        say(f"was used in the training {name}: that is not undone")


def _wish(folder: Path, wish: dict[str, object]) -> None:
    make_folder(folder / WISHES)
    write_whole(folder / WISHES / f"{time.time_ns()}-{secrets.token_hex(4)}.json", json.dumps(wish).encode())


def export_and_print(folder: Path, out: Path) -> None:
    import numpy as np

    home = Home(folder)
    check_output(out)
    if out.suffix == ".json":
        write_whole(out, json.dumps(reports.description(home, time.time()), indent=1).encode())
    elif out.suffix == ".npz":
        with reports.reading(home) as store:
            inputs, targets, points = arrays(store)
        buffer = io.BytesIO()
        origins = np.array([origin.hex() for origin, _ in points], dtype="U64")
        numbers = np.array([number for _, number in points], dtype=np.int64)
        np.savez_compressed(buffer, inputs=inputs, targets=targets, origins=origins, numbers=numbers)
        write_whole(out, buffer.getvalue())
    else:
        raise UserError(f"cannot tell the format of {str(out)!r}: name a file that ends in .npz or .json")
    say(f"wrote {out}")
