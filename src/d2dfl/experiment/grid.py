"""Many independent tasks in parallel through joblib: on this machine, on a Ray cluster, or on another joblib backend.

Payloads and results pass through JSON, and a task knows its payload only, so that neither the engine nor the number of
workers nor the order of completion can change a result. Every result is one file, written whole as soon as it is there:
a grid that was cut at any moment goes on with `resume`.
"""

import hashlib
import itertools
import json
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from d2dfl.errors import UserError
from d2dfl.experiment.cell import Cell, Values
from d2dfl.experiment.engines import Crew, PoolDiedError, Reply, engine_named, function_named, json_text
from d2dfl.progress import silent
from d2dfl.storage import json_checksum, make_folder, read_json, write_whole

FORMAT = 2
DEATHS = 2  # of the pool while a task ran alone; once may have been somebody else's hunger for memory


@dataclass(frozen=True)
class GridTask:
    """One cell of a grid."""

    key: str  # unique; its file is named after it
    payload: Mapping[str, Any]  # plain JSON values: all that the work needs
    cost: float = 1.0  # expected, in any unit: the longest start first, and the estimate of the time left weighs by it


@dataclass(frozen=True)
class Failure:
    """A task without a result. The traceback is in the folder, under `failures`."""

    key: str
    reason: str  # one line


@dataclass(frozen=True)
class GridOutcome:
    """All that a grid came to, in the order of its tasks."""

    results: dict[str, Any]
    failures: tuple[Failure, ...]
    seconds: float


@dataclass(frozen=True)
class GridProgress:
    """How far a grid is; told at the start and whenever a task ends."""

    done: int
    total: int
    failed: int
    remaining_s: float | None  # None until more tasks than workers have finished in this run
    last_key: str | None  # of the task that ended last; None at the start


def run_grid(
    tasks: Sequence[GridTask],
    work: str,
    folder: Path,
    *,
    engine: str = "local",
    workers: int | None = None,
    threads: int = 1,
    resume: bool = False,
    on_progress: Callable[[GridProgress], None] = silent,
) -> GridOutcome:
    """Call `work`, named "package.module:function", with the payload of every task, and keep what it returns.

    A task that fails or kills its process is reported in the outcome; the others go on. With `resume` only those tasks
    are worked on that have no whole result for this payload in the folder. One grid at a time may work in a folder.
    """
    began = time.monotonic()
    if workers is not None and workers < 1:
        raise UserError(f"workers must be 1 or more, not {workers}")
    if threads < 1:
        raise UserError(f"threads must be 1 or more, not {threads}")
    twice = [key for key, times in Counter(task.key for task in tasks).items() if times > 1]
    if twice:
        raise UserError(f"two tasks have the key {twice[0]!r}: every task needs a key of its own")
    payloads = {task.key: json_text(dict(task.payload), f"the payload of task {task.key!r}") for task in tasks}
    function_named(work)  # here and now, or every task would fail on it
    # The folder comes last: whatever is wrong with the request leaves nothing behind.
    with engine_named(engine, work, workers, threads) as crew:
        cells = Cells.open(folder)
        found = cells.take(payloads, resume)
        grid = _Grid(tasks, payloads, cells, found, crew.workers, on_progress)
        grid.work(crew)
    return GridOutcome(
        results={task.key: grid.results[task.key] for task in tasks if task.key in grid.results},
        failures=tuple(grid.failures[task.key] for task in tasks if task.key in grid.failures),
        seconds=time.monotonic() - began,
    )


@dataclass(frozen=True)
class Cells:
    """The files of a grid, each with a checksum.

    Only the process that asked for the grid writes them: a worker may be on a machine that does not see the folder.
    """

    folder: Path

    @classmethod
    def open(cls, folder: Path) -> "Cells":
        """Make the folder of the cells; that of failures comes with the first one."""
        make_folder(folder / "cells")
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
            (self.folder / "failures").rmdir()
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
        make_folder(self.folder / "failures")
        write_whole(self._failure(key), f"{key}\n{reason}\n\n{trace}".encode(errors="backslashreplace"))

    def _cell(self, key: str) -> Path:
        return self.folder / "cells" / f"{file_name(key)}.json"

    def _failure(self, key: str) -> Path:
        return self.folder / "failures" / f"{file_name(key)}.txt"


def keep_cells(folder: Path, found: Mapping[Cell, Values]) -> None:
    """Write what was measured of cells that no grid worked on, as a grid does."""
    store = Cells.open(folder)
    for cell, values in found.items():
        payload = {"experiment": "", "cells": [cell.to_plain(placed=False)]}
        store.keep(f"{cell.method}/seed {cell.seed}", json.dumps(payload), json.dumps({"values": [values]}))


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


class _Grid:
    """What is done, what failed, and at what pace."""

    def __init__(
        self,
        tasks: Sequence[GridTask],
        payloads: Mapping[str, str],
        cells: Cells,
        found: Mapping[str, Any],
        workers: int,
        on_progress: Callable[[GridProgress], None],
    ) -> None:
        self.results, self.failures = dict(found), dict[str, Failure]()
        self._left = {task.key: task for task in tasks if task.key not in found}
        self._payloads, self._cells, self._workers = payloads, cells, workers
        self._total, self._on_progress = len(tasks), on_progress
        self._ended: list[
            tuple[float, float]
        ] = []  # cost and seconds of what succeeded: a failure says nothing about pace
        self._tell(None)

    def work(self, crew: Crew) -> None:
        """Work on all tasks. When a worker dies, all that were under way may be to blame: they wait, and run alone."""
        waiting = sorted(self._left.values(), key=lambda task: -task.cost)
        suspects: list[GridTask] = []
        deaths: Counter[str] = Counter()
        while waiting or suspects:
            batch = waiting or [suspects.pop(0)]
            taken: list[str] = []
            waiting = []
            try:
                self._work_on(batch, crew, taken)
            except PoolDiedError as died:
                if not taken:
                    raise UserError(f"the engine cannot start its workers: {died}") from died.__cause__
                left = [task for task in batch if task.key in self._left]
                if len(batch) > 1:
                    suspects += [task for task in left if task.key in taken]
                    waiting = [task for task in left if task.key not in taken]
                    continue
                deaths[batch[0].key] += 1
                if deaths[batch[0].key] == DEATHS:
                    reason = f"its process died, twice: out of memory, or a crash ({type(died.__cause__).__name__})"
                    self._settle(Reply(batch[0].key, None, reason, died.trace, 0.0))
                else:
                    suspects.insert(0, batch[0])

    def _work_on(self, batch: Sequence[GridTask], crew: Crew, taken: list[str]) -> None:
        def calls() -> Iterator[tuple[str, str]]:
            for task in batch:
                taken.append(task.key)
                yield task.key, self._payloads[task.key]

        # Closed at once when anything goes wrong here, Ctrl-C too: no worker goes on with what nobody waits for.
        with closing(crew.replies(calls(), len(batch))) as replies:
            for reply in replies:
                self._settle(reply)

    def _settle(self, reply: Reply) -> None:
        task = self._left.pop(reply.key)
        if reply.result is None:
            self._cells.blame(reply.key, reply.reason, reply.trace)
            self.failures[reply.key] = Failure(reply.key, reply.reason)
        else:
            self._cells.keep(reply.key, self._payloads[reply.key], reply.result)
            self.results[reply.key] = json.loads(reply.result)
            self._ended.append((task.cost, reply.seconds))
        self._tell(reply.key)

    def _tell(self, key: str | None) -> None:
        pace = pace_of(self._ended, self._workers)
        remaining_s = time_left([task.cost for task in self._left.values()], self._workers, pace)
        self._on_progress(GridProgress(len(self.results), self._total, len(self.failures), remaining_s, key))


def pace_of(ended: Sequence[tuple[float, float]], workers: int) -> float | None:
    """Seconds for a cost of 1, from cost and seconds of tasks in the order in which they ended; None: too early to say.

    The first task of every worker loads packages and is left out. The first of every kind compiles: half of the work
    went faster than what we say, half slower, so that a few of these do not make the rest look many times as long.
    """
    paces = sorted((seconds / cost, cost) for cost, seconds in ended[workers:] if cost > 0)
    passed = itertools.accumulate(cost for _, cost in paces)
    half = sum(cost for _, cost in paces) / 2
    return next((pace for (pace, _), cost in zip(paces, passed, strict=True) if cost >= half), None)


def time_left(costs: Sequence[float], workers: int, pace: float | None) -> float | None:
    """Seconds that tasks of these costs still take at this pace (seconds of one worker for a cost of 1).

    Shared by all workers, but never less than the longest task. Those under way count whole: they end before that.
    """
    if not costs:
        return 0.0
    return None if pace is None else pace * max(sum(costs) / workers, max(costs))
