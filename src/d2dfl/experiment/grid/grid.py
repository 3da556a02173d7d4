"""Many independent tasks in parallel through joblib: on this machine, on a Ray cluster, or on another joblib backend.

Payloads and results pass through JSON, and a task knows its payload only, so that neither the engine nor the number of
workers nor the order of completion can change a result. Every result is one file, written whole as soon as it is there. What was
under way when a grid was cut goes on from what its task has saved, where workers and this process see the same files.
"""

import itertools
import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from d2dfl.errors import UserError
from d2dfl.experiment.cells.files import Cells
from d2dfl.experiment.grid.engines import Crew, PoolDiedError, Reply, engine_named, function_named, json_text
from d2dfl.experiment.grid.saved import SavedTasks
from d2dfl.progress import silent

DEATHS = 2  # of the pool while a task ran alone; once may have been somebody else's hunger for memory


@dataclass(frozen=True)
class GridTask:
    """One call of the work: whatever its payload names, a cell or several that train together."""

    key: str  # unique; its file is named after it
    payload: Mapping[str, Any]  # plain JSON values: all that the work needs
    cost: float = 1.0  # expected, in any unit: the longest start first, and the estimate of the time left weighs by it
    kind: str = ""  # tasks of a kind keep a pace of their own


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
    watched: Path | None = None,
) -> GridOutcome:
    """Call `work`, named "package.module:function", with the payload of every task, and keep what it returns.

    Its second argument is a folder in which the task may save how far it is, or None.

    A task that fails or kills its process is reported in the outcome; the others go on. With `resume` only those tasks
    are worked on that have no whole result for this payload in the folder, from what they have saved. One grid at a time
    may work in a folder. `watched` is a folder in which workers of this machine tell of their discoveries (overheard.py).
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
    with engine_named(engine, work, workers, threads, watched) as crew:
        cells = Cells.open(folder)
        found = cells.take(payloads, resume)
        saved = SavedTasks(folder, payloads, resume)
        grid = _Grid(tasks, payloads, cells, found, saved, crew.workers, on_progress)
        grid.work(crew)
    return GridOutcome(
        results={task.key: grid.results[task.key] for task in tasks if task.key in grid.results},
        failures=tuple(grid.failures[task.key] for task in tasks if task.key in grid.failures),
        seconds=time.monotonic() - began,
    )


class _Grid:
    """What is done, what failed, and at what pace."""

    def __init__(
        self,
        tasks: Sequence[GridTask],
        payloads: Mapping[str, str],
        cells: Cells,
        found: Mapping[str, Any],
        saved: SavedTasks,
        workers: int,
        on_progress: Callable[[GridProgress], None],
    ) -> None:
        self.results, self.failures = dict(found), dict[str, Failure]()
        self._left = {task.key: task for task in tasks if task.key not in found}
        self._payloads, self._cells, self._saved, self._workers = payloads, cells, saved, workers
        self._total, self._on_progress = len(tasks), on_progress
        # Tasks that succeeded, and their seconds: a failure says nothing about pace.
        self._ended: list[tuple[GridTask, float]] = []
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
        def calls() -> Iterator[tuple[str, str, Path | None]]:
            for task in batch:
                taken.append(task.key)
                yield task.key, self._payloads[task.key], self._saved.places[task.key] if crew.here else None

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
            self._saved.clear(reply.key)
            self.results[reply.key] = json.loads(reply.result)
            self._ended.append((task, reply.seconds))
        self._tell(reply.key)

    def _tell(self, key: str | None) -> None:
        remaining_s = time_of(list(self._left.values()), self._ended, self._workers)
        self._on_progress(GridProgress(len(self.results), self._total, len(self.failures), remaining_s, key))


def time_of(left: Sequence[GridTask], ended: Sequence[tuple[GridTask, float]], workers: int) -> float | None:
    """Seconds that tasks still take, by those that have ended; None: too early to say.

    A method may take twenty times as long as the others (one that trains a net of its own), and what a task was expected to
    cost does not know it. So each kind of tasks has its own pace, once more of it have ended than the workers compile.
    """
    usual = pace_of([(task.cost, seconds) for task, seconds in ended], workers)
    kinds: dict[str, list[tuple[float, float]]] = {}
    for task, seconds in ended:
        kinds.setdefault(task.kind, []).append((task.cost, seconds))
    own = {kind: pace_of(paces, 0) for kind, paces in kinds.items() if len(paces) > 2 * workers}
    if usual is None:
        return time_left([task.cost for task in left], workers, None)
    return time_left([task.cost * (own.get(task.kind) or usual) for task in left], workers, 1.0)


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
