"""Where the tasks of a grid save how far they are: a folder each, below the checkpoints of their run folder."""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from d2dfl.experiment.cells.files import file_name, set_aside

FOLDER = "checkpoints"


class SavedTasks:
    """The places of tasks, by their keys; a place belongs to one payload alone."""

    def __init__(self, folder: Path, payloads: Mapping[str, str], resume: bool) -> None:
        self._folder = folder.absolute() / FOLDER  # a worker may be in another folder by now
        self.places = {key: self._folder / file_name(f"{key} {payload}") for key, payload in payloads.items()}
        if not resume:  # a new run does not go on with an old one, and takes nothing away
            for place in self.places.values():
                set_aside(place)

    def clear(self, key: str) -> None:
        """Remove what a task has saved: its result is kept."""
        if self.places[key].is_dir():
            from d2dfl.experiment.folder.checkpoints import Checkpoints  # imports PyTorch

            Checkpoints(self.places[key]).clear()
            for path in (self.places[key], self._folder):
                with suppress(OSError):  # not empty
                    path.rmdir()
