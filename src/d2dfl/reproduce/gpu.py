"""Cells on one GPU: many processes discover and exchange, this one trains.

A worker of its own for each training would compile the same code again, and hold as much of the card's memory again.
"""

import json
import os
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import joblib
import numpy as np
from numpy.typing import NDArray

from d2dfl.config import Config
from d2dfl.data import Dataset
from d2dfl.engines import leave_with, limit_threads, one_line
from d2dfl.exchange import Exchanged
from d2dfl.grid import Cells, Failure, Outcome, Progress, Task, time_left
from d2dfl.methods import Discovery
from d2dfl.reproduce.work import Values, cell_of, dataset_of, prepared, trained
from d2dfl.simulate import Prepared, Setting, learning

Answer = tuple["list[Sent] | None", str, str]  # prepared cells, or the reason and the traceback


def run_on_gpu(
    tasks: Sequence[Task], folder: Path, workers: int | None, on_progress: Callable[[Progress], None]
) -> Outcome:
    """The grid of cells that train; each task's cells train at once."""
    began, cells = time.monotonic(), Cells.open(folder)
    order = sorted(tasks, key=lambda task: -task.cost)
    results: dict[str, Any] = {}
    failures: list[Failure] = []
    spent = 0.0

    def tell(key: str | None) -> None:
        left = [task.cost for task in order if task.key not in results and task.key not in {f.key for f in failures}]
        done = sum(task.cost for task in order if task.key in results)
        remaining = time_left(left, 1, spent / done if done else None)
        on_progress(Progress(len(results), len(order), len(failures), remaining, key))

    tell(None)
    for task, answer in zip(order, _prepared_in_parallel(order, workers), strict=True):
        start = time.monotonic()
        items, reason, trace = answer
        if items is not None:
            try:
                values = _trained(task, items)
                result = {"values": values, "seconds": time.monotonic() - start}
                cells.keep(task.key, json.dumps(dict(task.payload)), json.dumps(result, allow_nan=False))
                results[task.key] = result
            except Exception as error:  # one cell that breaks must not end the others
                reason, trace = one_line(error), traceback.format_exc()
        if task.key not in results:
            cells.blame(task.key, reason, trace)
            failures.append(Failure(task.key, reason))
        spent += time.monotonic() - start
        tell(task.key)
    return Outcome(results, tuple(failures), 0, time.monotonic() - began)


def _prepared_in_parallel(tasks: Sequence[Task], workers: int | None) -> Iterator[Answer]:
    """In the order of the tasks, a few ahead of the training."""
    width = workers or max(joblib.cpu_count() - 1, 1)
    options = {"inner_max_num_threads": 1, "initializer": leave_with, "initargs": (os.getpid(),)}
    with joblib.parallel_config(backend="loky", **options):
        parallel = joblib.Parallel(n_jobs=max(width, 2), return_as="generator", pre_dispatch=2 * width, batch_size=1)
        answers: Iterator[Answer] = parallel(joblib.delayed(_prepare)(dict(task.payload)) for task in tasks)
        yield from answers


def _prepare(payload: dict[str, Any]) -> Answer:
    """What a worker does: all cells of a task up to the exchange."""
    try:
        limit_threads(1)
        return [Sent.of(prepared(cell_of(values))) for values in payload["cells"]], "", ""
    except Exception as error:
        return None, one_line(error), traceback.format_exc()


@dataclass(frozen=True)
class Sent:
    """A prepared cell without the data set, which would travel with every one of them."""

    method: str
    setting: Setting
    discovery: Discovery | None
    exchanged: Exchanged | None
    members: tuple[NDArray[np.int64], ...]

    @classmethod
    def of(cls, item: Prepared) -> "Sent":
        setting = replace(item.setting, dataset=cast(Dataset, None))  # put back by `whole`
        return cls(item.method, setting, item.discovery, item.exchanged, tuple(item.data.members))

    def whole(self, config: Config) -> Prepared:
        setting = replace(self.setting, dataset=dataset_of(config))
        data = learning(config, setting, self.members)
        return Prepared(self.method, setting, self.discovery, self.exchanged, data)


def _trained(task: Task, items: Sequence[Sent]) -> list[Values]:
    chosen = [cell_of(values) for values in task.payload["cells"]]
    return trained(chosen, [item.whole(cell.config) for cell, item in zip(chosen, items, strict=True)])
