"""What commands share: lines for the user, bars, outputs checked beforehand. Loads no compiler."""

import os
import shlex
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Table

from d2dfl.errors import UserError
from d2dfl.storage import check_output
from d2dfl.terminal import in_time

# No markup: square brackets in a path or a name are what they are.
console = Console(stderr=True, markup=False, highlight=False)
if not console.is_terminal:
    console = Console(stderr=True, markup=False, highlight=False, width=100)  # a pipe has no width of its own


def say(text: str) -> None:
    """One line about what was done; the terminal wraps it, so that a path can be copied whole."""
    console.print(text, soft_wrap=True)


@contextmanager
def bar(
    label: str, *ends: ProgressColumn, total: float | None = 1.0, shown: bool = True, **fields: Any
) -> Iterator[Callable[..., None]]:
    """A progress bar on a terminal, silent elsewhere and where it is not to be shown; `ends` are its columns on the right, the time left without any.

    Whoever has it calls `tell(completed=share)`, also with another `description`, `total` or one of the fields.
    """
    columns = (TextColumn("{task.description}"), BarColumn(), *(ends or (TimeRemainingColumn(),)))
    with Progress(*columns, console=console, transient=True, disable=not (console.is_terminal and shown)) as progress:
        yield partial(progress.update, progress.add_task(label, total=total, **fields))


def numbers_table(*columns: str, **options: Any) -> Table:
    """A table whose first column is left, and all others, of numbers, right aligned; options are those of rich."""
    table = Table(*columns, box=box.SIMPLE_HEAD, pad_edge=False, **options)
    for column in table.columns[1:]:
        column.justify = "right"
    return table


LONG_S = 60.0  # from which a prediction is worth a line


def announce(what: str, seconds: float) -> None:
    """Say beforehand that something takes long."""
    if seconds >= LONG_S:
        say(f"{what} takes about {in_time(seconds)}")


class Watch:
    """Tells once, after some seconds of a long task, how long the rest will take.

    Its pace counts from where the first step ended: until then also things are loaded and set up that are not done again.
    """

    def __init__(self, what: str, after_s: float = 10.0, clock: Callable[[], float] = time.monotonic) -> None:
        self.what, self.after_s, self.clock = what, after_s, clock
        self.start: float | None = None  # the share that it began with
        self.first: tuple[float, float] | None = None  # when the first step ended, and the share then
        self.told = False

    def __call__(self, share: float) -> None:
        if self.start is None:
            self.start = share
        if self.first is None and share > self.start:
            self.first = (self.clock(), share)
        if self.told or self.first is None or share <= self.first[1]:
            return
        began, done = self.first
        spent = self.clock() - began
        if spent >= self.after_s:
            left = spent * (1.0 - share) / (share - done)
            self.told = left >= LONG_S  # it may turn out to be slower later
            announce(f"the rest of {self.what}", left)


def to_resume(folder: Path) -> str:
    """The command that was typed, as it goes on in a folder."""
    typed = [word for word in sys.argv[1:] if word != "--resume"]
    for place, word in enumerate(typed):
        if word == "--out" or word.startswith("--out="):
            value = typed[place + 1 : place + 2] if word == "--out" else [word.removeprefix("--out=")]
            if value == [str(folder)]:
                return shlex.join(["d2dfl", *typed, "--resume"])
            typed = typed[:place] + typed[place + (2 if word == "--out" else 1) :]
            break
    return shlex.join(["d2dfl", *typed, "--resume", "--out", str(folder)])


def nothing_to_resume(folder: Path) -> str:
    """Said before a run that was to go on begins: after a kill at any moment the same command must do."""
    return f"nothing to resume in {folder}: a new run begins there; where another was meant, stop it and give its --out"


def say_results(folder: Path) -> None:
    """Where results are, and the command that makes a page of them."""
    say(f"results: {folder}; a page of them: {shlex.join(['d2dfl', 'report', str(folder)])}")


def check_outputs(*paths: Path | str | None, inputs: Sequence[Path | str | None] = ()) -> None:
    """Refuse before minutes of work, not after, what could not be written then, and what would replace an input.

    None and "-" name no file.
    """
    files = [Path(path) for path in paths if path not in (None, "-")]
    if any(path == "" for path in paths):
        raise UserError("an output has an empty name: name a file")
    for path in files:
        check_output(path)
    for given in inputs:
        if given and any(os.path.exists(path) and os.path.exists(given) and path.samefile(given) for path in files):
            raise UserError(f"an output would take the place of the input {str(given)!r}: name another file")
    places = list(map(os.path.realpath, files))
    twice = [path for number, path in enumerate(files) if places[number] in places[:number]]
    if twice:
        raise UserError(f"two outputs would go to {str(twice[0])!r}: name two files")


def check_picture(picture: Path | None) -> None:
    """Refuse beforehand a picture in a format that cannot be written."""
    if picture is not None:
        from d2dfl.report.drawing.picture import check_suffix

        check_suffix(picture)
