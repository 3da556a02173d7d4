"""Experiments as one grid of cells, and what they found.

1. cells      every contender at every point with every seed; the same cell of two experiments is measured once
2. grid       all of them in parallel, each kept as a file
3. findings   tables, charts and verdicts of each experiment, made from the cells alone
"""

import hashlib
import json
import os
import platform
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch

from d2dfl.config import Config
from d2dfl.data import datasets
from d2dfl.discovery.methods import METHODS, methods_lacking
from d2dfl.errors import UserError
from d2dfl.experiment.cell import Cell
from d2dfl.experiment.grid import Failure, Outcome, Progress, Task, read_cell, run_grid
from d2dfl.experiment.store import Plan, RunFolder, read_mark, run_folder
from d2dfl.federation.schemes import scheme_named
from d2dfl.paper.catalogue import claims_of, load_experiment
from d2dfl.paper.experiment import SCALES, Experiment
from d2dfl.paper.gpu import run_on_gpu
from d2dfl.paper.results import Results
from d2dfl.paper.verdicts import verdicts
from d2dfl.progress import silent
from d2dfl.registry import entry_named
from d2dfl.report.findings import FILE, Findings, counted, span
from d2dfl.storage import TakenError, make_folder

WORK = "d2dfl.paper.cells:run_task"
NO_RATES: Mapping[str, float] = MappingProxyType({})
USUAL_RATE = 1e-4  # seconds for a datapoint that is handled, where nobody measured it
ON_GPU = 2  # workers, where an experiment trains in a way of its own


@dataclass(frozen=True)
class Reproduced:
    """Everything that was found, and what could not be measured."""

    findings: tuple[Findings, ...]
    failures: tuple[Failure, ...]
    notices: tuple[str, ...]
    seconds: Mapping[str, float]  # of one core, by experiment; a cell that two share counts for both


@dataclass(frozen=True)
class Request:
    """Which experiments, how large, how."""

    names: Sequence[str]
    scale: str
    out: Path
    seeds: int | None = None
    engine: str = "local"
    workers: int | None = None
    resume: bool = False
    show: bool = False  # measure nothing, show what is there


def plan_of(scale: str) -> Plan:
    """What the run folder of a reproduction is for."""
    entry_named("scale", scale, dict.fromkeys(SCALES))
    return Plan("reproduction", choices={"scale": scale})


def reproduce(
    request: Request,
    on_progress: Callable[[Progress], None] = silent,
    then: Callable[[Reproduced], None] = lambda _: None,
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
    request: Request,
    folder: RunFolder,
    on_progress: Callable[[Progress], None],
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
        kept = {cell: found[key] for cell in own if (key := _key(experiments[name], name, cell)) in found}
        seconds[name] = sum(item.seconds for item in kept.values())
        try:
            findings.append(_shown(experiments[name], name, request, own, {cell: kept[cell].values for cell in kept}))
        except (UserError, ValueError, LookupError, StopIteration, TypeError, AttributeError, ArithmeticError) as error:
            failures.append(Failure(name, f"too few cells to show it ({type(error).__name__}: {error})"))
            if not request.show:  # what it showed before is no longer so
                (request.out / experiments[name].name / FILE).unlink(missing_ok=True)
    if not request.show:
        _book(folder, seconds)
    notices = tuple(f"{METHODS[name].title} is left out: pip install 'd2dfl[{name}]'" for name in lacking)
    return Reproduced(tuple(findings), tuple(failures), notices, seconds)


@dataclass(frozen=True)
class Stored:
    """What a cell's file says."""

    values: Mapping[str, Any]
    seconds: float


def stored(folder: Path) -> dict[str, Stored]:
    """All measured cells of a folder, whichever grouping they were measured in; damaged files are passed over."""
    found: dict[str, Stored] = {}
    for path in sorted((folder / "cells").glob("*.json")):
        cell = read_cell(path)
        try:
            if cell is not None:
                keys, result = _keys(cell["payload"]), cell["result"]
                for key, values in zip(keys, result["values"], strict=True):
                    found[key] = Stored(values, result["seconds"] / len(keys))
        except (ValueError, KeyError, TypeError, ArithmeticError):
            continue
    return found


def _keys(payload: Mapping[str, Any]) -> list[str]:
    """What the cells of a task are known by, whichever task they stand in."""
    return [json.dumps([payload["experiment"], cell], sort_keys=True) for cell in payload["cells"]]


def _refuse_what_is_there(
    experiments: Mapping[str, Experiment],
    cells: Mapping[str, Sequence[Cell]],
    found: Mapping[str, Stored],
    folder: Path,
) -> None:
    """What was measured is never lost, and never mixed with what is measured anew."""
    for name, own in cells.items():
        if any(_key(experiments[name], name, cell) in found for cell in own):
            raise TakenError(f"{folder} holds measurements of {name}: go on with --resume, or give another folder")


def _measure(
    experiments: Mapping[str, Experiment],
    cells: Mapping[str, Sequence[Cell]],
    found: Mapping[str, Stored],
    request: Request,
    on_progress: Callable[[Progress], None],
) -> Outcome:
    """Run the grid of all cells that are missing."""
    missing = {
        name: [cell for cell in own if _key(experiments[name], name, cell) not in found] for name, own in cells.items()
    }
    tasks = _tasks(
        experiments, missing, {name: _rate(experiments[name], name, own, request) for name, own in cells.items()}
    )
    on_gpu = torch.cuda.is_available() and request.engine == "local"
    training = [task for task in tasks if on_gpu and _trains(task)]
    first = run_on_gpu(training, request.out, request.workers, on_progress) if training else None
    rest = run_grid(
        [task for task in tasks if task not in training],
        WORK,
        request.out,
        engine=request.engine,
        workers=request.workers or (ON_GPU if on_gpu else None),
        on_progress=on_progress,  # no resume: what has a result that can be used is not among the tasks
    )
    return rest if first is None else replace(rest, failures=(*first.failures, *rest.failures))


def _trains(task: Task) -> bool:
    """In the way that all cells train which have no measure of their own."""
    return not task.payload["experiment"] and all(cell.get("trains", True) for cell in task.payload["cells"])


def _cells(
    experiments: Mapping[str, Experiment], request: Request, lacking: Collection[str]
) -> tuple[dict[str, list[Cell]], list[Failure]]:
    """The cells of every experiment whose data are there."""
    cells: dict[str, list[Cell]] = {}
    failures: list[Failure] = []
    for name, experiment in experiments.items():
        own = experiment.cells(request.scale, request.seeds)
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


def _tasks(
    experiments: Mapping[str, Experiment], cells: Mapping[str, Sequence[Cell]], rates: Mapping[str, float] = NO_RATES
) -> list[Task]:
    """Cells as tasks; one that several experiments ask for is there once.

    On a GPU the cells of a point and a seed train together, elsewhere alone: all tasks of a sweep have the same shape, and
    code is compiled once.
    """
    together = torch.cuda.is_available()
    groups: dict[tuple[Any, ...], list[tuple[str, Cell]]] = {}
    known: set[str] = set()
    for name, own in cells.items():
        for cell in own:
            key = _key(experiments[name], name, cell)
            if key not in known:
                known.add(key)
                alike = (cell.config.federation,) if together else (cell.contender,)
                groups.setdefault((name, cell.point, cell.seed, *alike), []).append((name, cell))
    return [_task(experiments, members, rates) for members in groups.values()]


def _task(
    experiments: Mapping[str, Experiment], members: Sequence[tuple[str, Cell]], rates: Mapping[str, float]
) -> Task:
    name, first = members[0]
    payload = {
        "experiment": _measured_by(experiments[name], name),
        "cells": [cell.to_plain(placed=experiments[name].measure is not None) for name, cell in members],
    }
    who = first.contender
    if len(members) > 1:
        # After a resume fewer may be missing: they must not take the place of the file that has the others.
        who = f"{len(members)} contenders {hashlib.sha256(''.join(_keys(payload)).encode()).hexdigest()[:8]}"
    cost = sum(rates.get(name, USUAL_RATE) * _effort(experiments[name], cell) for name, cell in members)
    return Task(f"{name}/{first.point}/{who}/seed {first.seed}", payload, cost)


def _measured_by(experiment: Experiment, name: str) -> str:
    """The experiment whose own measure a cell needs, if it has one."""
    return "" if experiment.measure is None else name


def _key(experiment: Experiment, name: str, cell: Cell) -> str:
    plain = cell.to_plain(placed=experiment.measure is not None)  # only a measure of its own may ask where it belongs
    return json.dumps([_measured_by(experiment, name), plain], sort_keys=True)


def _rate(experiment: Experiment, name: str, cells: Sequence[Cell], request: Request) -> float:
    """Seconds that an effort of 1 takes: by what the whole experiment took us at this scale, if we measured it."""
    known = claims_of(name).cost.get(request.scale)
    usual = (
        cells if request.seeds is None else experiment.cells(request.scale)
    )  # with the seeds that it was measured with
    effort = sum(_effort(experiment, cell) for cell in usual)
    return USUAL_RATE if known is None or not effort else known / effort


def _effort(experiment: Experiment, cell: Cell) -> float:
    """Datapoints that a cell handles: by it cells of one experiment differ."""
    settings, devices = cell.config.federation, cell.config.network.devices
    held = cell.config.data.samples or cell.config.network.samples_per_device
    if not (experiment.trains and cell.trains):
        return float(held * devices)
    heavy = 20.0 if settings.model.startswith("alexnet") else 5.0 if settings.model in ("cnn", "encoder-conv") else 1.0
    a_round = held if settings.scheme == "fedsgd" else settings.interval * settings.batch
    return devices * (held + heavy * settings.rounds * a_round)


def _shown(
    experiment: Experiment, name: str, request: Request, cells: Sequence[Cell], values: Mapping[Cell, Mapping[str, Any]]
) -> Findings:
    seeds = len({cell.seed for cell in cells})
    results = Results.of(experiment, request.scale, seeds, values)
    with warnings.catch_warnings():
        # Where cells are missing there are means over nothing; they show as such.
        warnings.simplefilter("ignore", RuntimeWarning)
        shown = experiment.show(results)
    claims = claims_of(name)
    folder = request.out / experiment.name
    make_folder(folder)
    if experiment.drawn is not None:
        experiment.drawn(results, folder)
    found = Findings(
        name=experiment.name,
        title=claims.title,
        setting=experiment.setting or _sentence(experiment, cells),
        figure=claims.figure,
        claim=claims.claim,
        scale=request.scale,
        config=cells[0].config.to_toml(),
        verdicts=verdicts(claims, shown) if claims.quantities else (),
        tables=shown.tables,
        charts=shown.charts,
        bars=shown.bars,
        maps=shown.maps,
        pictures=shown.pictures,
        notes=shown.notes,
    )
    missing = len(cells) - len(values)
    notes = [f"{missing} of {len(cells)} cells were not measured"] if missing else []
    if request.scale == "tiny" and not experiment.setting:
        notes.append(
            "This scale shows that everything runs; its data stand in for the paper's, whose name they bear here."
        )
    found = replace(found, notes=(*found.notes, *notes))
    found.save(folder)
    return found


def _sentence(experiment: Experiment, cells: Sequence[Cell]) -> str:
    """Data, devices and lengths over all cells, and the number of seeds."""
    trained = [cell for cell in cells if experiment.trains and cell.trains]
    sets = ", ".join(dict.fromkeys(_data_name(cell.config) for cell in cells))
    parts = [
        f"{span(cell.config.network.devices for cell in cells)} devices",
        f"{span(cell.config.data.samples for cell in cells)} datapoints each",
    ]
    if trained:
        models = " and ".join(dict.fromkeys(cell.config.federation.model for cell in trained))
        rounds = span(cell.config.federation.rounds for cell in trained)
        full = all(cell.config.federation.scheme == "fedsgd" for cell in trained)
        steps = "one full gradient" if full else f"{span(_steps(cell.config) for cell in trained)} minibatches"
        parts += [models, f"{rounds} rounds of {steps}"]
    return f"{sets}; {', '.join(parts)}; {_seeds(cells, trained)}"


def _seeds(cells: Sequence[Cell], trained: Sequence[Cell]) -> str:
    """How many, where cells that end before training may have others."""
    most, learned = (len({cell.seed for cell in some}) for some in (cells, trained))
    others = len({cell.seed for cell in cells if not cell.trains})
    if not learned or not others or most == learned == others:
        return counted(most, "seed")
    return f"{counted(learned, 'seed')}, {others} where nobody trains"


def _data_name(config: Config) -> str:
    return "radio (generated data)" if config.data.dataset == "radio" else config.data.dataset


def _steps(config: Config) -> int:
    return scheme_named(config.federation.scheme).round_steps(config.federation)


def _book(folder: RunFolder, seconds: Mapping[str, float]) -> None:
    """When, where and how fast: all that a rerun may change."""
    before = read_mark(folder.path).get("core_seconds")
    known = {name: value for name, value in before.items() if name not in seconds} if isinstance(before, dict) else {}
    place = torch.cuda.get_device_name() if torch.cuda.is_available() else platform.processor() or platform.machine()
    folder.note(
        hardware=f"{place}, {os.cpu_count()} cores",
        core_seconds=known | {name: round(value, 1) for name, value in seconds.items()},
    )
