"""The audit: lines that are chained by hashes. Content is one JSON object a line, with digests where there was data.

Heads go to all members, lines do not: so each line has a salt, or who knows two heads could guess what stands between them.
"""

import hashlib
import json
from collections.abc import Iterable
from typing import Any

START = bytes(32)
SALT_BYTES = 16


def line_of(number: int, time_s: float, kind: str, salt: bytes, **more: Any) -> bytes:
    """The bytes of a line."""
    found = {"line": number, "time": round(time_s, 3), "kind": kind, "salt": salt.hex()}
    found |= {name: value for name, value in more.items() if value}
    return json.dumps(found, sort_keys=True, separators=(",", ":")).encode()


def chained(before: bytes, content: bytes) -> bytes:
    """The hash that stands for a line and all before it."""
    return hashlib.sha256(before + content).digest()


def first_fault(lines: Iterable[tuple[int, bytes, bytes]]) -> tuple[str | None, list[bytes]]:
    """What is wrong with (line, content, hash), None if nothing is; and the hashes that were computed on the way."""
    before = START
    hashes: list[bytes] = []
    for expected, (number, content, said) in enumerate(lines, start=1):
        if number != expected:
            return f"line {expected} is missing or out of order", hashes
        if not isinstance(content, bytes) or not isinstance(said, bytes):  # a database takes any kind in any column
            return f"line {expected} was changed", hashes
        try:
            named = json.loads(content)["line"]
        except (ValueError, KeyError, TypeError):
            return f"line {expected} cannot be read", hashes
        before = chained(before, content)
        if before != said or named != expected:
            return f"line {expected} was changed", hashes
        hashes.append(before)
    return None, hashes
