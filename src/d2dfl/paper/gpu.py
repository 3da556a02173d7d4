"""Cells on one GPU: many processes discover and exchange, this one trains.

A worker of its own for each training would compile the same code again, and hold as much of the card's memory again.
"""

import json
import os
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import joblib
import numpy as np
from numpy.typing import NDArray

from d2dfl.config import Config
from d2dfl.data import Dataset
from d2dfl.discovery.discover import Discovery
from d2dfl.experiment.engines import leave_with, limit_threads, one_line
from d2dfl.experiment.grid import Cells, Failure, Outcome, Progress, Task, time_left
from d2dfl.experiment.setting import Prepared, Setting, learning
from d2dfl.paper.cells import Values, cell_of, dataset_of, prepared, trained
from d2dfl.transfer import ExchangeResult


def run_on_gpu(
    tasks: Sequence[Task], folder: Path, workers: int | None, on_progress: Callable[[Progress], None]
) -> Outcome:
    """The grid of cells that train; those of a task at once, without the ones that could not be prepared.

    Tasks train one after the other in the order given, so that a run that is cut leaves whole experiments behind.
    """
    began = time.monotonic()
    trainer = Trainer(tuple(tasks), Cells.open(folder), on_progress)
    trainer.tell(None)
    try:
        for task, answer in zip(trainer.tasks, _prepared_in_parallel(trainer.tasks, workers), strict=True):
            trainer.train(task, answer)
    except BrokenProcessPool as error:  # a process that died takes all that wait for it along
        for task in trainer.tasks:
            if task.key not in trainer.ended:
                trainer.blame(task.key, f"a process that prepares died: {one_line(error)}", "")
    return Outcome(trainer.results, tuple(trainer.failures), 0, time.monotonic() - began)


@dataclass
class Trainer:
    """What is done, what failed, and at what pace."""

    tasks: Sequence[Task]
    cells: Cells
    on_progress: Callable[[Progress], None]
    results: dict[str, Any] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)
    ended: set[str] = field(default_factory=set)  # tasks
    spent: float = 0.0  # seconds

    def train(self, task: Task, answer: "Sequence[Sent | Broken]") -> None:
        start = time.monotonic()
        good: list[tuple[dict[str, Any], Sent]] = []
        for values, item in zip(task.payload["cells"], answer, strict=True):
            if isinstance(item, Broken):
                self.blame(f"{task.key}/{values['method']}", item.reason, item.trace)
            else:
                good.append((values, item))
        try:
            found = list(zip(good, _trained(good), strict=True))
        except Exception:  # one that breaks must not end the others: each alone
            found = [((values, item), result) for values, item in good for result in self._alone(task, values, item)]
        payload = {**task.payload, "cells": [values for (values, _), _ in found]}
        result = {"values": [values for _, values in found], "seconds": time.monotonic() - start}
        try:
            self.cells.keep(task.key, json.dumps(payload), json.dumps(result, allow_nan=False))
            self.results[task.key] = result
        except Exception as error:
            self.blame(task.key, one_line(error), traceback.format_exc())
        self.ended.add(task.key)
        self.spent += time.monotonic() - start
        self.tell(task.key)

    def _alone(self, task: Task, values: dict[str, Any], item: "Sent") -> list[Values]:
        """The values of one cell, or none where it breaks."""
        try:
            return _trained([(values, item)])
        except Exception as error:
            self.blame(f"{task.key}/{values['method']}", one_line(error), traceback.format_exc())
            return []

    def blame(self, key: str, reason: str, trace: str) -> None:
        self.cells.blame(key, reason, trace)
        self.failures.append(Failure(key, reason))

    def tell(self, key: str | None) -> None:
        left = [task.cost for task in self.tasks if task.key not in self.ended]
        done = sum(task.cost for task in self.tasks if task.key in self.ended)
        remaining = time_left(left, 1, self.spent / done if done else None)
        self.on_progress(Progress(len(self.results), len(self.tasks), len(self.failures), remaining, key))


def _trained(good: "Sequence[tuple[dict[str, Any], Sent]]") -> list[Values]:
    """The cells that were prepared, all at once."""
    cells = [cell_of(values) for values, _ in good]
    items = [item.whole(cell.config) for cell, (_, item) in zip(cells, good, strict=True)]
    return trained(cells, items) if cells else []


def _prepared_in_parallel(tasks: Sequence[Task], workers: int | None) -> "Iterator[list[Sent | Broken]]":
    """In the order of the tasks, a few ahead of the training."""
    width = workers or max(joblib.cpu_count() - 1, 1)
    options = {"inner_max_num_threads": 1, "initializer": leave_with, "initargs": (os.getpid(),)}
    with joblib.parallel_config(backend="loky", **options):
        parallel = joblib.Parallel(n_jobs=max(width, 2), return_as="generator", pre_dispatch=2 * width, batch_size=1)
        answers: Iterator[list[Sent | Broken]] = parallel(
            joblib.delayed(_prepare)(dict(task.payload)) for task in tasks
        )
        yield from answers


def _prepare(payload: dict[str, Any]) -> "list[Sent | Broken]":
    """What a worker does: all cells of a task up to the exchange, each for itself."""
    limit_threads(1)
    found: list[Sent | Broken] = []
    for values in payload["cells"]:
        try:
            found.append(Sent.of(prepared(cell_of(values))))
        except Exception as error:
            found.append(Broken(one_line(error), traceback.format_exc()))
    return found


@dataclass(frozen=True)
class Broken:
    """A cell that could not be prepared."""

    reason: str
    trace: str


@dataclass(frozen=True)
class Sent:
    """A prepared cell without the data set, which would travel with every one of them."""

    method: str
    setting: Setting
    discovery: Discovery | None
    exchanged: ExchangeResult | None
    members: tuple[NDArray[np.int64], ...]

    @classmethod
    def of(cls, item: Prepared) -> "Sent":
        setting = replace(item.setting, dataset=cast(Dataset, None))  # put back by `whole`
        return cls(item.method, setting, item.discovery, item.exchanged, tuple(item.data.members))

    def whole(self, config: Config) -> Prepared:
        setting = replace(self.setting, dataset=dataset_of(config))
        data = learning(config, setting, self.members)
        return Prepared(self.method, setting, self.discovery, self.exchanged, data)
