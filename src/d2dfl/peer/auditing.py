"""The audit of a peer: to be read, to be handed out, and to be compared with what others tell."""

import json
from pathlib import Path
from typing import Any

from d2dfl.errors import UserError
from d2dfl.peer.home import Home
from d2dfl.peer.reports import reading
from d2dfl.peer.store.audit import first_fault
from d2dfl.peer.store.store import Store
from d2dfl.storage import read_json

Heads = dict[tuple[str, str], str]  # (peer, lines) → hash, as it was told to anybody


def audit_lines(home: Home) -> list[dict[str, Any]]:
    with reading(home) as store:
        return [json.loads(content) for _, content, _ in _lines(home, store)]


def exported_audit(home: Home) -> dict[str, Any]:
    """The audit with its hashes, and what others have said of theirs: for whoever compares."""
    with reading(home) as store:
        heads = store.db.execute("SELECT peer, lines, hash FROM heads ORDER BY peer, lines").fetchall()
        return {
            "fingerprint": store.own.hex(),
            "lines": [[line, content.decode(), hash_.hex()] for line, content, hash_ in _lines(home, store)],
            "heads": [[peer.hex(), lines, hash_.hex()] for peer, lines, hash_ in heads],
        }


def _lines(home: Home, store: Store) -> list[tuple[int, bytes, bytes]]:
    """Lines, contents, hashes; refused where one is not even bytes: a database takes any kind in any column."""
    lines = list(store.audit())
    for line, content, hash_ in lines:
        if not isinstance(content, bytes) or not isinstance(hash_, bytes):
            raise UserError(f"the audit of {home.settings.name} is broken: line {line} was changed")
    return lines


def verify_audit(home: Home, against: list[Path]) -> str:
    """Verify the chain here, and against exported audits of others; raises a UserError where stories differ."""
    with reading(home) as store:
        fault = store.audit_fault()
    if fault:
        raise UserError(f"the audit of {home.settings.name} is broken: {fault}")
    mine = exported_audit(home)
    told: Heads = {}
    _hear(told, mine, home.folder)
    for path in against:
        other = read_json(path, "an audit that `peer audit show --json` wrote")
        _compare(mine, other, path)
        _hear(told, other, path)
    return f"{len(mine['lines'])} lines are whole" + (f", and agree with {len(against)} others" if against else "")


def _hear(told: Heads, teller: Any, path: Path) -> None:
    """Refuse a head that was told to somebody else in another way: whoever did that keeps two audits."""
    for peer, number, hash_ in teller["heads"]:
        place = str(peer), str(number)
        if number and told.setdefault(place, str(hash_)) != str(hash_):
            raise UserError(
                f"{path}: two stories: {place[0][:16]} told others another line {place[1]:.20} of its audit"
            )


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
        raise UserError(f"{path} is no audit: give a file that `d2dfl peer audit show --json` wrote") from None
