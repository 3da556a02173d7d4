"""Logs of a training while it runs: TensorBoard, and a CSV file that any program reads.

A run that goes on after a crash may repeat rounds. The first step that a run logs after opening replaces all that the
folder holds of this run from that step on, so that no round is there twice. One process at a time writes to a folder.
"""

import csv
import importlib.util
import io
import os
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Protocol, Self

from d2dfl.errors import MissingExtraError, UserError
from d2dfl.registry import entry_named
from d2dfl.storage import make_folder, read_text, write_whole
from d2dfl.terminal import plain

LOG = "log.csv"
HEADER = ["run", "step", "name", "value"]
EVENTS = re.compile(r"events\.out\.tfevents\.[0-9]+\..+")  # what TensorBoard calls its files


class Log(Protocol):
    """One place to write to. Making one looks at what is there and touches nothing; `open` does."""

    def open(self) -> None:
        """Make ready to write."""

    def log(self, run: str, step: int, values: Mapping[str, float]) -> None:
        """Write the values of a step, to be seen at once."""

    def close(self) -> None:
        """Write no more."""


class CsvLog:
    """`log.csv`: one row for each run, step and name."""

    def __init__(self, folder: Path, resume: bool) -> None:
        self._path = folder / LOG
        self._begun: set[str] = set()
        self._file: IO[bytes] | None = None
        found = os.path.lexists(self._path)
        if found:
            _read_rows(self._path)  # refused here if it is not ours: `open` may replace it
        self._kept = found and resume

    def open(self) -> None:
        if not self._kept:
            write_whole(self._path, _rows_text([HEADER]))
        self._file = self._path.open("ab")

    def log(self, run: str, step: int, values: Mapping[str, float]) -> None:
        if run not in self._begun:
            self._begun.add(run)
            self._rewind(run, step)
        assert self._file is not None
        self._file.write(_rows_text([[run, step, name, repr(float(value))] for name, value in values.items()]))
        self._file.flush()

    def _rewind(self, run: str, step: int) -> None:
        """Remove what a run wrote from this step on, and the half row of a run that was cut."""
        text, rows = _read_rows(self._path)
        kept = _rows_text([HEADER, *(row for row in rows if row[0] != run or int(row[1]) < step)])
        if kept != text.encode():
            self.close()
            write_whole(self._path, kept)
            self._file = self._path.open("ab")

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


def _read_rows(path: Path) -> tuple[str, list[list[str]]]:
    """The text of a log and its whole rows. A file that we did not write so is one sentence, and stays as it is."""
    text = read_text(path, "a log that d2dfl wrote")
    lines = csv.reader(io.StringIO(text[: text.rfind("\n") + 1], newline=""), strict=True)
    rows: list[list[str]] = []
    try:
        for row in lines:
            if not (_is_row(row) if rows else row == HEADER):
                raise UserError(f"line {lines.line_num} of {plain(path)} is no row of a log: move the file away")
            rows.append(row)
    except csv.Error as error:
        raise UserError(
            f"line {lines.line_num} of {plain(path)} is no row of a log ({error}): move the file away"
        ) from None
    if text and not rows and not ",".join(HEADER).startswith(text):
        raise UserError(f"{plain(path)} is no log that d2dfl wrote: move the file away")
    return text, rows[1:]


def _is_row(row: Sequence[str]) -> bool:
    if len(row) != len(HEADER) or not re.fullmatch(r"[0-9]{1,18}", row[1]):
        return False
    try:
        float(row[3])
    except ValueError:
        return False
    return True


def _rows_text(rows: Sequence[Sequence[str | int]]) -> bytes:
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows(rows)
    return buffer.getvalue().encode()


class TensorBoardLog:
    """`tensorboard/RUN`: event files. Show them with `tensorboard --logdir FOLDER/tensorboard`."""

    def __init__(self, folder: Path, resume: bool) -> None:
        self._writer = _summary_writer()
        self._writers: dict[str, Any] = {}
        self._folder = folder / "tensorboard"
        runs, events = _our_events(self._folder)
        self._old = ([], []) if resume else (events, runs)

    def open(self) -> None:
        events, runs = self._old
        for path in events:
            path.unlink()
        for path in runs:
            path.rmdir()

    def log(self, run: str, step: int, values: Mapping[str, float]) -> None:
        if run not in self._writers:
            # From `purge_step` on, readers forget what earlier files say.
            place = self._folder / re.sub(r"[^\w.+-]|^\.+$", "_", run)
            self._writers[run] = self._writer(str(place), purge_step=step)
        for name, value in values.items():
            self._writers[run].add_scalar(name, float(value), step)
        self._writers[run].flush()

    def close(self) -> None:
        for writer in self._writers.values():
            writer.close()


def _our_events(folder: Path) -> tuple[list[Path], list[Path]]:
    """Folders of runs and event files in them. Anything else in the folder is not ours, and one sentence."""
    if not os.path.lexists(folder):
        return [], []
    runs = _inside(folder)
    events = [path for run in runs for path in _inside(run)]
    for path in events:
        if not EVENTS.fullmatch(path.name) or path.is_symlink() or not path.is_file():
            raise UserError(f"{str(path)!r} is no event file of TensorBoard: move {str(folder)!r} away")
    return runs, events


def _inside(folder: Path) -> list[Path]:
    if folder.is_symlink() or not folder.is_dir():
        raise UserError(f"{str(folder)!r} is not a folder that a log made: move it away")
    return sorted(folder.iterdir())


def _summary_writer() -> Callable[..., Any]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # deprecations inside the package are not ours to mend
            from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise MissingExtraError("the log tensorboard", "tensorboard", "tensorboard") from error
    return SummaryWriter


LOGS: dict[str, Callable[[Path, bool], Log]] = {"csv": CsvLog, "tensorboard": TensorBoardLog}


class Logs:
    """All logs that were asked for, as one."""

    def __init__(self, logs: Sequence[Log]) -> None:
        self._logs = logs

    def open(self) -> None:
        """Make ready to write."""
        try:
            for one in self._logs:
                one.open()
        except BaseException:
            self.close()
            raise

    def log(self, run: str, step: int, values: Mapping[str, float]) -> None:
        """Write the values of one step of a run; steps of a run come in rising order."""
        for one in self._logs:
            try:
                one.log(run, step, values)
            except OSError as error:
                raise UserError(f"cannot write the log of {run!r}: {error.strerror or error}") from None

    def close(self) -> None:
        """Write no more."""
        for one in self._logs:
            one.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def run_name(method: str, seed: int) -> str:
    """What a training is called in logs."""
    return f"{method}-seed-{seed}"


def check_logs(names: Sequence[str]) -> None:
    """A `UserError` for a log that does not exist or lacks its package: before anything is made."""
    for name in names:
        entry_named("log", name, dict.fromkeys(LOGS))
    if "tensorboard" in names and importlib.util.find_spec("tensorboard") is None:
        raise MissingExtraError("the log tensorboard", "tensorboard", "tensorboard")


def open_logs(names: Sequence[str], folder: Path, *, resume: bool = False) -> Logs:
    """Logs of these names in a run folder; without `resume` they start empty."""
    check_logs(names)
    make_folder(folder)
    try:
        logs = Logs([LOGS[name](folder, resume) for name in dict.fromkeys(names)])  # all look before one writes
        logs.open()
    except OSError as error:
        raise UserError(f"cannot write logs to {str(folder)!r}: {error.strerror}") from None
    return logs
