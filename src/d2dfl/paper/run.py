"""Experiments as one grid of cells, and what they found.

1. cells      every contender at every point with every seed; the same cell of two experiments is measured once (workload.py)
2. grid       all of them in parallel, each kept as a file
3. findings   tables, charts and verdicts of each experiment, made from the cells alone (findings.py)
"""

import os
import platform
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from d2dfl.config import Config
from d2dfl.data import datasets
from d2dfl.discovery.methods import METHODS, methods_lacking
from d2dfl.errors import UserError
from d2dfl.experiment.cells.cell import Cell
from d2dfl.experiment.cells.files import StoredCell, stored
from d2dfl.experiment.folder.mark import RunPlan, read_mark
from d2dfl.experiment.folder.store import RunFolder, run_folder
from d2dfl.experiment.grid.gpu import run_on_gpu
from d2dfl.experiment.grid.grid import Failure, GridOutcome, GridProgress, GridTask, run_grid
from d2dfl.paper.catalogue import load_experiment
from d2dfl.paper.experiment import SCALES, Experiment
from d2dfl.paper.findings import save_findings
from d2dfl.paper.workload import key_of, rate_of, tasks_of
from d2dfl.progress import silent
from d2dfl.registry import entry_named
from d2dfl.report.findings import FILE, Findings
from d2dfl.storage import TakenError

WORK = "d2dfl.paper.cells:run_task"
ON_GPU = 2  # workers, where an experiment trains in a way of its own


@dataclass(frozen=True)
class Reproduced:
    """Everything that was found, and what could not be measured."""

    findings: tuple[Findings, ...]
    failures: tuple[Failure, ...]
    notices: tuple[str, ...]
    seconds: Mapping[str, float]  # of one core, by experiment; a cell that two share counts for both


@dataclass(frozen=True)
class ReproductionRequest:
    """Which experiments, how large, how."""

    names: Sequence[str]
    scale: str
    out: Path
    seeds: int | None = None
    engine: str = "local"
    workers: int | None = None
    resume: bool = False
    show: bool = False  # measure nothing, show what is there
    exchange_only: bool = False  # only what ends with the exchange: cells that train are left out
    watched: Path | None = None  # where workers tell of their discoveries, for a live view


def plan_of(scale: str) -> RunPlan:
    """What the run folder of a reproduction is for."""
    entry_named("scale", scale, dict.fromkeys(SCALES))
    return RunPlan("reproduction", choices={"scale": scale})


def reproduce(
    request: ReproductionRequest,
    on_progress: Callable[[GridProgress], None] = silent,
    then: Callable[[Reproduced], None] = silent,
) -> Reproduced:
    """Measure and show experiments. One that cannot be measured is reported; the others go on.

    `then` is called with what was found while the folder is still ours alone, to write more into it.
    """
    plan = plan_of(request.scale)
    experiments = {name: load_experiment(name) for name in request.names}
    if request.show:
        read_mark(request.out)  # nothing is made where there is nothing to show
    with run_folder(request.out, plan, "add") as folder:
        done = _reproduced(experiments, request, folder, on_progress)
        then(done)
    return done


def _reproduced(
    experiments: Mapping[str, Experiment],
    request: ReproductionRequest,
    folder: RunFolder,
    on_progress: Callable[[GridProgress], None],
) -> Reproduced:
    lacking = methods_lacking()
    cells, failures = _cells(experiments, request, lacking)
    found = stored(request.out)
    if request.show and not found:
        raise UserError(f"{request.out} holds no measured cells: run the same command without --show first")
    if not request.show:
        if not request.resume:
            _refuse_what_is_there(experiments, cells, found, request.out)
        outcome = _measure(experiments, cells, found, request, on_progress)
        failures += outcome.failures
        found = stored(request.out)
    findings, seconds = [], {}
    for name, own in cells.items():
        kept = {cell: found[key] for cell in own if (key := key_of(experiments[name], name, cell)) in found}
        seconds[name] = sum(item.seconds for item in kept.values())
        try:
            values = {cell: kept[cell].values for cell in kept}
            findings.append(save_findings(experiments[name], name, request.scale, request.out, own, values))
        except (UserError, ValueError, LookupError, StopIteration, TypeError, AttributeError, ArithmeticError) as error:
            failures.append(Failure(name, f"too few cells to show it ({type(error).__name__}: {error})"))
            if not request.show:  # what it showed before is no longer so
                (request.out / experiments[name].name / FILE).unlink(missing_ok=True)
    if not request.show:
        _book(folder, seconds)
    notices = tuple(f"{METHODS[name].title} is left out: {METHODS[name].installation}" for name in lacking)
    return Reproduced(tuple(findings), tuple(failures), notices, seconds)


def _refuse_what_is_there(
    experiments: Mapping[str, Experiment],
    cells: Mapping[str, Sequence[Cell]],
    found: Mapping[str, StoredCell],
    folder: Path,
) -> None:
    """What was measured is never lost, and never mixed with what is measured anew."""
    for name, own in cells.items():
        if any(key_of(experiments[name], name, cell) in found for cell in own):
            raise TakenError(f"{folder} holds measurements of {name}: go on with --resume, or give another folder")


def _measure(
    experiments: Mapping[str, Experiment],
    cells: Mapping[str, Sequence[Cell]],
    found: Mapping[str, StoredCell],
    request: ReproductionRequest,
    on_progress: Callable[[GridProgress], None],
) -> GridOutcome:
    """Run the grid of all cells that are missing."""
    missing = {
        name: [cell for cell in own if key_of(experiments[name], name, cell) not in found]
        for name, own in cells.items()
    }
    tasks = tasks_of(
        experiments,
        missing,
        {name: rate_of(experiments[name], name, own, request.scale) for name, own in cells.items()},
    )
    on_gpu = torch.cuda.is_available() and request.engine == "local"
    training = [task for task in tasks if on_gpu and _trains(task)]
    first = (
        run_on_gpu(training, request.out, request.workers, on_progress, request.resume, request.watched)
        if training
        else None
    )
    rest = run_grid(
        [task for task in tasks if task not in training],
        WORK,
        request.out,
        engine=request.engine,
        workers=request.workers or (ON_GPU if on_gpu else None),
        resume=request.resume,  # what has a result that can be used is not among the tasks: from what they saved
        on_progress=on_progress,
        watched=request.watched,
    )
    return rest if first is None else replace(rest, failures=(*first.failures, *rest.failures))


def _trains(task: GridTask) -> bool:
    """Whether its cells train in the way of all that have no measure of their own."""
    return not task.payload["experiment"] and all(cell.get("trains", True) for cell in task.payload["cells"])


def _cells(
    experiments: Mapping[str, Experiment], request: ReproductionRequest, lacking: Collection[str]
) -> tuple[dict[str, list[Cell]], list[Failure]]:
    """The cells of every experiment whose data are there."""
    cells: dict[str, list[Cell]] = {}
    failures: list[Failure] = []
    for name, experiment in experiments.items():
        own = experiment.cells(request.scale, request.seeds)
        if request.exchange_only and experiment.trains:
            own = [cell for cell in own if not cell.trains]
            if not own:
                failures.append(Failure(name, "all of it trains: measure it without --exchange-only"))
                continue
        try:
            for config in {cell.config.data.dataset: cell.config for cell in own}.values():
                if not request.show:
                    _there(config)
        except UserError as error:
            failures.append(Failure(name, str(error)))
            continue
        cells[name] = [cell for cell in own if cell.method not in lacking]
    return cells, failures


def _there(config: Config) -> None:
    """Fetch a dataset here and now, not in every worker."""
    if config.data.dataset in datasets.names() and not datasets.status(config.data.dataset).ready:
        datasets.load(config.data.dataset, verify=config.data.verify, download=config.data.download)


def _book(folder: RunFolder, seconds: Mapping[str, float]) -> None:
    """When, where and how fast: all that a rerun may change."""
    before = read_mark(folder.path).get("core_seconds")
    known = {name: value for name, value in before.items() if name not in seconds} if isinstance(before, dict) else {}
    place = torch.cuda.get_device_name() if torch.cuda.is_available() else platform.processor() or platform.machine()
    folder.note(
        hardware=f"{place}, {os.cpu_count()} cores",
        core_seconds=known | {name: round(value, 1) for name, value in seconds.items()},
    )
