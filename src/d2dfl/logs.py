"""Logs of a training while it runs: TensorBoard, and a CSV file that any program reads.

A run that goes on after a crash may repeat rounds. The first step that a run logs after opening replaces all that the
folder holds of this run from that step on, so that no round is there twice. One process at a time writes to a folder.
"""

import csv
import io
import re
import shutil
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

from d2dfl.errors import MissingExtraError, UserError
from d2dfl.storage import write_whole

HEADER = ["run", "step", "name", "value"]


class Log(Protocol):
    """One place to write to."""

    def log(self, run: str, step: int, values: Mapping[str, float]) -> None:
        """Write the values of a step, to be seen at once."""

    def close(self) -> None:
        """Write no more."""


class CsvLog:
    """`log.csv`: one row for each run, step and name."""

    def __init__(self, folder: Path, resume: bool) -> None:
        self._path = folder / "log.csv"
        self._begun: set[str] = set()
        if not resume or not self._path.exists():
            write_whole(self._path, _rows_text([HEADER]))
        self._file = self._path.open("ab")

    def log(self, run: str, step: int, values: Mapping[str, float]) -> None:
        if run not in self._begun:
            self._begun.add(run)
            self._rewind(run, step)
        self._file.write(_rows_text([[run, step, name, repr(float(value))] for name, value in values.items()]))
        self._file.flush()

    def _rewind(self, run: str, step: int) -> None:
        """Remove what a run wrote from this step on, and the half row of a run that was cut."""
        text = self._path.read_text(encoding="utf-8")
        rows = list(csv.reader(io.StringIO(text[: text.rfind("\n") + 1], newline="")))[1:]
        kept = _rows_text([HEADER, *(row for row in rows if row[0] != run or int(row[1]) < step)])
        if kept != text.encode():
            self._file.close()
            write_whole(self._path, kept)
            self._file = self._path.open("ab")

    def close(self) -> None:
        self._file.close()


def _rows_text(rows: Sequence[Sequence[str | int]]) -> bytes:
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows(rows)
    return buffer.getvalue().encode()


class TensorBoardLog:
    """`tensorboard/RUN`: event files. Show them with `tensorboard --logdir FOLDER/tensorboard`."""

    def __init__(self, folder: Path, resume: bool) -> None:
        self._open = _summary_writer()
        self._writers: dict[str, Any] = {}
        self._folder = folder / "tensorboard"
        if not resume:
            shutil.rmtree(self._folder, ignore_errors=True)

    def log(self, run: str, step: int, values: Mapping[str, float]) -> None:
        if run not in self._writers:
            # From `purge_step` on, readers forget what earlier files say.
            place = self._folder / re.sub(r"[^\w.+-]", "_", run)
            self._writers[run] = self._open(str(place), purge_step=step)
        for name, value in values.items():
            self._writers[run].add_scalar(name, float(value), step)
        self._writers[run].flush()

    def close(self) -> None:
        for writer in self._writers.values():
            writer.close()


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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def run_name(method: str, seed: int) -> str:
    """What a training is called in logs."""
    return f"{method}-seed-{seed}"


def check_logs(names: Sequence[str]) -> None:
    """A `UserError` for a log that does not exist or lacks its package: before anything is made."""
    for name in names:
        if name not in LOGS:
            raise UserError(f"there is no log {name!r}: choose from {', '.join(LOGS)}")
    if "tensorboard" in names:
        _summary_writer()


def open_logs(names: Sequence[str], folder: Path, *, resume: bool = False) -> Logs:
    """Logs of these names in a run folder; without `resume` they start empty."""
    check_logs(names)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return Logs([LOGS[name](folder, resume) for name in dict.fromkeys(names)])
    except OSError as error:
        raise UserError(f"cannot write logs to {str(folder)!r}: {error.strerror}") from None
