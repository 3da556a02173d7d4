"""What a cut run goes on from: a file for the state of each training, and a switch that says which files are current.

A comparison has one in its run folder, a task of a grid has one of its own in a folder below (grid/saved.py).

A state is written beside the older one and synced; then the switch, one small file, is replaced; then what it no longer
names is removed. So a run that is cut at any moment finds a whole checkpoint, whatever trains together or in turn.
"""

import json
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from d2dfl.errors import UserError
from d2dfl.experiment.cells.files import set_aside
from d2dfl.federation import IN_MEMORY, Room, State
from d2dfl.storage import json_checksum, make_folder, read_json, sync_folder, write_whole

SWITCH, FOLDER = "checkpoint.json", "checkpoints"
FORMAT = 1
NAME = re.compile(r"[0-9]+-[0-9]+-[0-9a-f]{16}\.state")  # training, round, anything that no other file has


@dataclass(frozen=True)
class Checkpoints:
    """The checkpoint of a run folder, for the process that holds the folder's lock."""

    folder: Path
    current: dict[int, dict[str, Any]] = field(default_factory=dict)  # training -> file, round, checksum

    @property
    def there(self) -> bool:
        return (self.folder / SWITCH).exists()

    @property
    def taken(self) -> int:
        """Bytes that states take on the disk."""
        place = self.folder / FOLDER
        found = [path for path in place.iterdir() if NAME.fullmatch(path.name)] if place.is_dir() else []
        return sum(path.stat().st_size for path in found)

    def save(self, states: Mapping[int, State], trainings: int, rounds: int) -> None:
        """Make these states, by number of their training, part of the checkpoint; those of others stay as they are.

        Trainings end after so many rounds.
        """
        place = self.folder / FOLDER
        make_folder(place)
        for number, state in states.items():
            if state.round != self.current.get(number, {"round": 0})["round"]:
                name = f"{number}-{state.round}-{secrets.token_hex(8)}.state"
                checksum = state.save(place / name, rounds)
                self.current[number] = {"file": name, "round": state.round, "sha256": checksum}
        self._switch(trainings)
        self._remove({entry["file"] for entry in self.current.values()})

    def open(self, devices: Sequence[int], room: Room = IN_MEMORY) -> list[int]:
        """Rounds that every training has done; each state is read once, so that a damaged one is found now."""
        if not self.there:
            return [0] * len(devices)
        rounds = [0] * len(devices)
        for number, (entry, many) in enumerate(zip(self._entries(len(devices)), devices, strict=True)):
            if entry is not None:
                rounds[number] = self._state(entry, many, room).round
                self.current[number] = entry
        return rounds

    def state(self, number: int, devices: int, room: Room = IN_MEMORY) -> State:
        """The state of a training that `open` has seen begun."""
        return self._state(self.current[number], devices, room)

    def clear(self) -> None:
        """Remove the checkpoint: its run has written its results."""
        (self.folder / SWITCH).unlink(missing_ok=True)
        sync_folder(self.folder)
        self._remove(set())
        self.current.clear()
        if (self.folder / FOLDER).is_dir() and not any((self.folder / FOLDER).iterdir()):
            (self.folder / FOLDER).rmdir()

    def _switch(self, number: int) -> None:
        entries = [self.current.get(place) for place in range(number)]
        content = {"format": FORMAT, "states": entries, "sha256": json_checksum(entries)}
        write_whole(self.folder / SWITCH, json.dumps(content).encode())

    def _entries(self, number: int) -> list[dict[str, Any] | None]:
        path = self.folder / SWITCH
        content = read_json(path, "the checkpoint of a run")
        entries = content.get("states") if isinstance(content, dict) else None
        if not isinstance(entries, list) or content.get("sha256") != json_checksum(entries):
            raise UserError(f"{path} is damaged: {WAY_OUT}")
        if content.get("format") != FORMAT or len(entries) != number or not all(map(_is_entry, entries)):
            raise UserError(f"{path} is not the checkpoint of this run: {WAY_OUT}")
        return entries

    def _state(self, entry: dict[str, Any], devices: int, room: Room) -> State:
        path = self.folder / FOLDER / entry["file"]
        try:
            state = State.load(path, devices, entry["sha256"], room)
        except UserError as error:
            raise UserError(f"{error}; {WAY_OUT}") from None
        if state.round != entry["round"]:
            raise UserError(f"{path} is not of the round that the checkpoint names: {WAY_OUT}")
        return state

    def _remove(self, kept: set[str]) -> None:
        """Remove states that nothing names; what we did not write stays."""
        if (self.folder / FOLDER).is_dir():
            for path in (self.folder / FOLDER).iterdir():
                if NAME.fullmatch(path.name) and path.name not in kept:
                    path.unlink(missing_ok=True)


WAY_OUT = "run anew into another folder"


def of_task(place: Path, devices: Sequence[int]) -> tuple[Checkpoints, list[int]]:
    """The checkpoint of a task, and the rounds that its trainings have done; one that cannot be used is set aside."""
    kept = Checkpoints(place)
    try:
        return kept, kept.open(devices)
    except UserError:
        set_aside(place)
        return Checkpoints(place), [0] * len(devices)


def _is_entry(entry: Any) -> bool:
    if entry is None:
        return True
    kinds = {"file": str, "round": int, "sha256": str}
    right = isinstance(entry, dict) and entry.keys() == kinds.keys()
    right = right and all(type(entry[name]) is kind for name, kind in kinds.items())
    return right and NAME.fullmatch(entry["file"]) is not None
