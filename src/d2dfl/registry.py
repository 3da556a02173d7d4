"""Entries of a registry by their names."""

from collections.abc import Mapping
from typing import TypeVar

from d2dfl.errors import UnknownNameError
from d2dfl.words import plural

Entry = TypeVar("Entry")


def entry_named(kind: str, name: str, entries: Mapping[str, Entry]) -> Entry:
    """The entry of this name, or an UnknownNameError that lists the names; `kind` is what an entry is called."""
    if not isinstance(name, str) or name not in entries:
        raise no_such(kind, name, f"the {plural(kind)} are {', '.join(entries)}")
    return entries[name]


def no_such(kind: str, name: object, advice: str) -> UnknownNameError:
    """What is said of a name that nothing has."""
    return UnknownNameError(f"there is no {kind} {name!r:.80}: {advice}")
