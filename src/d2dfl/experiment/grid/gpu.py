"""Cells on one GPU: many processes discover and exchange, this one trains.

A worker of its own for each training would compile the same code again, and hold as much of the card's memory again.
"""

import json
import os
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import joblib

from d2dfl.experiment.cells.cell import Cell, Values
from d2dfl.experiment.cells.files import Cells, measured
from d2dfl.experiment.cells.steps import prepared, train_prepared
from d2dfl.experiment.grid.engines import json_text, leave_with, limit_threads, one_line
from d2dfl.experiment.grid.grid import Failure, GridOutcome, GridProgress, GridTask, time_left
from d2dfl.experiment.grid.saved import SavedTasks
from d2dfl.experiment.pipeline import PreparedCell


def run_on_gpu(
    tasks: Sequence[GridTask],
    folder: Path,
    workers: int | None,
    on_progress: Callable[[GridProgress], None],
    resume: bool = False,
    watched: Path | None = None,
) -> GridOutcome:
    """The grid of cells that train; those of a task at once, without the ones that could not be prepared.

    Tasks train one after the other in the order given, so that a run that is cut leaves whole experiments behind. With `resume`
    a task goes on from what it has saved.
    """
    began = time.monotonic()
    saved = SavedTasks(folder, {task.key: json_text(dict(task.payload), task.key) for task in tasks}, resume)
    trainer = Trainer(tuple(tasks), Cells.open(folder), saved, on_progress)
    trainer.tell(None)
    try:
        for task, answer in zip(trainer.tasks, _prepared_in_parallel(trainer.tasks, workers, watched), strict=True):
            trainer.train(task, answer)
    except BrokenProcessPool as error:  # a process that died takes all that wait for it along
        for task in trainer.tasks:
            if task.key not in trainer.ended:
                trainer.blame(task.key, f"a process that prepares died: {one_line(error)}", "")
    return GridOutcome(trainer.results, tuple(trainer.failures), time.monotonic() - began)


@dataclass
class Trainer:
    """What is done, what failed, and at what pace."""

    tasks: Sequence[GridTask]
    cells: Cells
    saved: SavedTasks
    on_progress: Callable[[GridProgress], None]
    results: dict[str, Any] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)
    ended: set[str] = field(default_factory=set)  # tasks
    spent: float = 0.0  # seconds

    def train(self, task: GridTask, answer: "Sequence[PreparedCell | Broken]") -> None:
        start = time.monotonic()
        good: list[tuple[dict[str, Any], PreparedCell]] = []
        for values, item in zip(task.payload["cells"], answer, strict=True):
            if isinstance(item, Broken):
                self.blame(f"{task.key}/{values['method']}", item.reason, item.trace)
            else:
                good.append((values, item))
        try:
            found = list(zip(good, _trained(good, self.saved.places[task.key]), strict=True))
        except Exception:  # one that breaks must not end the others: each alone
            found = [((values, item), result) for values, item in good for result in self._alone(task, values, item)]
        payload = {**task.payload, "cells": [values for (values, _), _ in found]}
        result = measured([values for _, values in found], time.monotonic() - start)
        try:
            self.cells.keep(task.key, json.dumps(payload), json.dumps(result, allow_nan=False))
            self.saved.clear(task.key)
            self.results[task.key] = result
        except Exception as error:
            self.blame(task.key, one_line(error), traceback.format_exc())
        self.ended.add(task.key)
        self.spent += time.monotonic() - start
        self.tell(task.key)

    def _alone(self, task: GridTask, values: dict[str, Any], item: PreparedCell) -> list[Values]:
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
        self.on_progress(GridProgress(len(self.results), len(self.tasks), len(self.failures), remaining, key))


def _trained(good: "Sequence[tuple[dict[str, Any], PreparedCell]]", place: Path | None = None) -> list[Values]:
    """The cells that were prepared, all at once."""
    cells = [Cell.from_plain(values) for values, _ in good]
    return train_prepared(cells, [item for _, item in good], place) if cells else []


def _prepared_in_parallel(
    tasks: Sequence[GridTask], workers: int | None, watched: Path | None
) -> "Iterator[list[PreparedCell | Broken]]":
    """What each task prepares, in their order, a few ahead of the training."""
    width = workers or max(joblib.cpu_count() - 1, 1)
    options = {"inner_max_num_threads": 1, "initializer": leave_with, "initargs": (os.getpid(), watched)}
    with joblib.parallel_config(backend="loky", **options):
        parallel = joblib.Parallel(n_jobs=max(width, 2), return_as="generator", pre_dispatch=2 * width, batch_size=1)
        answers: Iterator[list[PreparedCell | Broken]] = parallel(
            joblib.delayed(_prepare)(dict(task.payload)) for task in tasks
        )
        yield from answers


def _prepare(payload: dict[str, Any]) -> "list[PreparedCell | Broken]":
    """What a worker does: all cells of a task up to the exchange, each for itself."""
    limit_threads(1)
    found: list[PreparedCell | Broken] = []
    for values in payload["cells"]:
        try:
            found.append(prepared(Cell.from_plain(values)))
        except Exception as error:
            found.append(Broken(one_line(error), traceback.format_exc()))
    return found


@dataclass(frozen=True)
class Broken:
    """A cell that could not be prepared."""

    reason: str
    trace: str
