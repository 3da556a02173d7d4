"""What a device shows its owner: whether it would work, what it would give, what it holds, what it did."""

import io
import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from d2dfl.cli.output import say
from d2dfl.errors import UserError
from d2dfl.peer import auditing, preflight, reports, service
from d2dfl.peer.datapoints import arrays
from d2dfl.peer.home import Home
from d2dfl.storage import TakenError, check_output, write_whole
from d2dfl.terminal import plain

if TYPE_CHECKING:
    from d2dfl.peer.store.store import Store


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
    with preflight.listening(home, store) as (transport, inbox):
        answers = preflight.who_answers(home, store, transport, inbox, seconds)
    for name, link in answers.items():
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


def status_and_print(folder: Path, as_json: bool) -> None:
    found = reports.status(Home(folder))
    if as_json:
        sys.stdout.write(json.dumps(found, indent=1) + "\n")
    else:
        print_status([found])


def print_status(found: list[dict[str, Any]]) -> None:
    """Peers as people read them, one after the other."""
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
            heard = f"last heard {_moment(link['last_heard_s'])}" if link.get("last_heard_s") else "not heard yet"
            sys.stdout.write(plain(f"  link with {name}: loss {loss}, round trip {trip}, {heard}") + "\n")
        for interface, level in item["signal_dbm"].items():
            sys.stdout.write(plain(f"  radio {interface}: {level:.0f} dBm") + "\n")
        if item["waiting_to_forget"]:
            sys.stdout.write(f"  {item['waiting_to_forget']} receivers have not confirmed yet that they forgot\n")
        sys.stdout.write(f"  audit: {item['audit']['lines']} lines, head {item['audit']['head'][:16]}\n")


def _moment(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(seconds))


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
            when = _moment(line["time"])
            more = [f"{key} {str(line[key])[:16] if key in ('peer', 'digest') else str(line[key])[-16:] if key == 'transfer' else line[key]}"
                    for key in ("peer", "transfer", "points", "digest", "text") if key in line]  # fmt: skip
            sys.stdout.write(plain(f"{line['line']:6} {when} {line['kind']:16} {', '.join(more)}") + "\n")


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
