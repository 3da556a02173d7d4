"""Entries of a registry by their names."""

from collections.abc import Mapping
from typing import TypeVar

from d2dfl.errors import UserError

Entry = TypeVar("Entry")


def entry_named(kind: str, name: str, entries: Mapping[str, Entry]) -> Entry:
    """The entry of this name, or a UserError that lists the names; `kind` is what an entry is called."""
    if name not in entries:
        plural = f"{kind}es" if kind.endswith("s") else f"{kind}s"
        raise UserError(f"there is no {kind} {name!r:.80}: the {plural} are {', '.join(entries)}")
    return entries[name]
