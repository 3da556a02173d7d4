"""The files of measured cells: one layout and one format for every run folder, whoever measured them.

A file holds the cells of a task (its payload) and what was measured of them (its result, see `measured`), with a checksum.
"""

import hashlib
import itertools
import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from d2dfl.errors import UserError
from d2dfl.experiment.cells.cell import Cell, Values
from d2dfl.storage import json_checksum, make_folder, read_json, write_whole

FORMAT = 2
CELLS, FAILURES = "cells", "failures"  # folders


@dataclass(frozen=True)
class Cells:
    """The files of a grid, each with a checksum.

    Only the process that asked for the grid writes them: a worker may be on a machine that does not see the folder.
    """

    folder: Path

    @classmethod
    def open(cls, folder: Path) -> "Cells":
        """Make the folder of the cells; that of failures comes with the first one."""
        make_folder(folder / CELLS)
        return cls(folder)

    def take(self, payloads: Mapping[str, str], resume: bool) -> dict[str, Any]:
        """Results that are there already. What else stands in the place of a result is set aside, never removed.

        Also without `resume`: else a new run that is cut would later go on with results of the old one.
        """
        found = {}
        for key, payload in payloads.items():
            with suppress(OSError):
                self._failure(key).unlink(missing_ok=True)
            stored = read_cell(self._cell(key)) if resume else None
            if stored and stored["key"] == key and json.dumps(stored["payload"], sort_keys=True) == payload:
                found[key] = stored["result"]
            else:
                set_aside(self._cell(key))
        with suppress(OSError):  # not empty, not there, or not a folder
            (self.folder / FAILURES).rmdir()
        return found

    def keep(self, key: str, payload: str, result: str) -> None:
        """Write a result."""
        content = {"format": FORMAT, "key": key, "payload": json.loads(payload), "result": json.loads(result)}
        if read_cell(self._cell(key)) == content:  # a run that was cut after it had written this
            return
        text = json.dumps({**content, "sha256": json_checksum(content)}, allow_nan=False)
        set_aside(self._cell(key))
        write_whole(self._cell(key), f"{text}\n".encode())

    def blame(self, key: str, reason: str, trace: str) -> None:
        """Write why a task has no result."""
        make_folder(self.folder / FAILURES)
        write_whole(self._failure(key), f"{key}\n{reason}\n\n{trace}".encode(errors="backslashreplace"))

    def _cell(self, key: str) -> Path:
        return self.folder / CELLS / f"{file_name(key)}.json"

    def _failure(self, key: str) -> Path:
        return self.folder / FAILURES / f"{file_name(key)}.txt"


def keep_cells(folder: Path, found: Mapping[Cell, Values]) -> None:
    """Write what was measured of cells that no grid worked on, as a grid does."""
    store = Cells.open(folder)
    for cell, values in found.items():
        payload = {"experiment": "", "cells": [cell.to_plain(placed=False)]}
        store.keep(f"{cell.method}/seed {cell.seed}", json.dumps(payload), json.dumps(measured([values])))


def file_name(key: str) -> str:
    """A name that any file system takes; the digest keeps keys apart that look alike without their odd characters."""
    plain = re.sub(r"[^A-Za-z0-9.-]+", "_", key).strip("._-")[:80]
    return f"{plain}-{hashlib.sha256(key.encode(errors='surrogatepass')).hexdigest()[:10]}"


def read_cell(path: Path) -> dict[str, Any] | None:
    """A whole cell, or None: also where it is damaged, which its checksum tells."""
    try:
        cell = read_json(path)
    except UserError:
        return None
    if not isinstance(cell, dict) or cell.keys() != {"format", "key", "payload", "result", "sha256"}:
        return None
    told = cell.pop("sha256")
    return cell if cell["format"] == FORMAT and told == json_checksum(cell) else None


def set_aside(path: Path) -> None:
    """Give a file that stands in the way another name; it may be somebody's."""
    if path.exists() or path.is_symlink():
        names = (path.with_name(f"{path.name}.aside-{number}") for number in itertools.count(1))
        path.rename(next(name for name in names if not name.exists() and not name.is_symlink()))


@dataclass(frozen=True)
class StoredCell:
    """What a cell's file says."""

    values: Mapping[str, Any]
    seconds: float  # 0: unknown


def measured(values: Sequence[Values], seconds: float = 0.0) -> dict[str, Any]:
    """The result of a task: values of its cells, and the seconds that all of them took, 0 where nobody knows."""
    return {"values": list(values), "seconds": seconds}


def stored(folder: Path) -> dict[str, StoredCell]:
    """All measured cells of a run folder, whichever grouping they were measured in; damaged files are passed over."""
    found: dict[str, StoredCell] = {}
    for path in sorted((folder / CELLS).glob("*.json")):
        cell = read_cell(path)
        try:
            if cell is not None:
                keys, result = keys_of(cell["payload"]), cell["result"]
                for key, values in zip(keys, result["values"], strict=True):
                    found[key] = StoredCell(values, result["seconds"] / len(keys))
        except (ValueError, KeyError, TypeError, ArithmeticError):
            continue
    return found


def keys_of(payload: Mapping[str, Any]) -> list[str]:
    """What the cells of a task are known by, whichever task they stand in."""
    return [json.dumps([payload["experiment"], cell], sort_keys=True) for cell in payload["cells"]]
