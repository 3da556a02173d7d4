"""What the commands of one device do."""

import io
import json
import re
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from d2dfl.cli.output import say
from d2dfl.errors import MissingExtraError, UserError
from d2dfl.storage import TakenError, check_output, write_whole
from d2dfl.terminal import plain

try:
    import cryptography as _cryptography  # noqa: F401  # only to see whether it is there
    import msgspec as _msgspec  # noqa: F401  # likewise
except ImportError:
    raise MissingExtraError("a peer", "msgspec and cryptography", "peer") from None

from d2dfl.peer import auditing, preflight, reports, service
from d2dfl.peer.datapoints import arrays
from d2dfl.peer.home import Home, make_home
from d2dfl.peer.settings import MOST_LABELS

if TYPE_CHECKING:
    from d2dfl.peer.store.store import Store


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
    say(service.join(Home(folder), admission))


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
        try:
            with service.opened(home) as store:
                wrong = _greet_and_print(home, store, seconds)
        except TakenError:
            sys.stdout.write("-     others: this peer runs; `d2dfl peer status` shows its links\n")
    if wrong:
        raise UserError(f"{wrong} of these would go wrong")


def _greet_and_print(home: Home, store: "Store", seconds: float) -> int:
    """Who answers; how many of them something is wrong with."""
    wrong = 0
    for name, link in preflight.who_answers(home, store, seconds).items():
        fine, said = preflight.compared(link)
        wrong += not fine
        mark = "WRONG" if not fine else "-    " if link.round_trip_s is None else "ok   "
        sys.stdout.write(plain(f"{mark} {name}: {said}") + "\n")
    return wrong


def preview_and_print(folder: Path, graph: Path | None) -> None:
    rows = reports.preview(Home(folder), graph)
    for row in rows:
        why = f" ({row['why']})" if row["why"] else ""
        text = f"{row['receiver']}: {row['would_give']} of {row['wanted']} with label {row['label']}{why}"
        sys.stdout.write(plain(text + (f", {row['given']} were given before" if row["given"] else "")) + "\n")
    if not rows:
        sys.stdout.write("nothing would go from this device: no link, no datapoint or nobody else in the roster\n")


def run_and_print(folder: Path, graph: Path | None, stay: bool, seconds: float, moves: Path | None = None) -> None:
    home = Home(folder)
    signal.signal(signal.SIGTERM, _stop)
    try:
        result = service.run(home, graph, stay=stay, seconds=seconds, moves=moves, say=say)
    except KeyboardInterrupt:
        raise KeyboardInterrupt("everything that was agreed is kept: the next start goes on") from None
    if not result.found:
        raise UserError(
            f"found no graph with the others in {seconds:g} s: nothing has moved; `d2dfl peer check` says who answers"
        )
    for (receiver, label), why in sorted(result.short.items()):
        say(f"not all of {label} went to {receiver}: {why}")
    left = f"; {result.open_transfers} transfers are open, and go on with the next start"
    say(f"holds {result.holds:,} datapoints" + ("" if result.done else left))


def _stop(*_: object) -> None:
    """A service manager's way to say Ctrl-C."""
    raise KeyboardInterrupt


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
    waiting, used = service.forget(Home(folder), points)
    if waiting is None:
        say("the peer runs: it will tell the receivers within a second; `d2dfl peer status` says who has confirmed")
    else:
        say(f"forgotten here; {waiting} receivers are told when this peer runs")
    for name in used:
        say(f"was used in the training {name}: that is not undone")


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
