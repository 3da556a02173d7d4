"""Experiments as one grid of cells, and what they found.

1. cells      every contender at every point with every seed; the same cell of two experiments is measured once
2. grid       all of them in parallel, each kept as a file
3. findings   tables, charts and verdicts of each experiment, made from the cells alone
"""

import importlib.util
import json
import os
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from d2dfl.config import Config
from d2dfl.data import datasets
from d2dfl.errors import UserError
from d2dfl.findings import Findings
from d2dfl.grid import Failure, Progress, Task, run_grid, silent
from d2dfl.network.files import write_whole
from d2dfl.record import versions
from d2dfl.reproduce.catalogue import load_experiment, scripts_folder
from d2dfl.reproduce.experiment import GCN, SCALES, Cell, Experiment
from d2dfl.reproduce.results import Results
from d2dfl.reproduce.verdicts import Expected, expected, verdicts

WORK = "d2dfl.reproduce.work:run_task"
ON_GPU = 2  # workers: one prepares while the other trains


@dataclass(frozen=True)
class Reproduced:
    """Everything that was found, and what could not be measured."""

    findings: tuple[Findings, ...]
    failures: tuple[Failure, ...]
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


def reproduce(request: Request, on_progress: Callable[[Progress], None] = silent) -> Reproduced:
    """Measure and show experiments. One that cannot be measured is reported; the others go on."""
    if request.scale not in SCALES:
        raise UserError(f"there is no scale {request.scale!r}: the scales are {', '.join(SCALES)}")
    experiments = {name: load_experiment(name) for name in request.names}
    cells, failures = _cells(experiments, request)
    keys, tasks = _tasks(experiments, cells)
    workers = request.workers or (ON_GPU if torch.cuda.is_available() and request.engine == "local" else None)
    outcome = run_grid(
        tasks,
        WORK,
        request.out,
        engine=request.engine,
        workers=workers,
        resume=request.resume,
        on_progress=on_progress,
    )
    failures += outcome.failures
    found, seconds = [], {}
    for name, own in cells.items():
        values = {
            cell: outcome.results[key]["values"][place]
            for cell, (key, place) in zip(own, keys[name], strict=True)
            if key in outcome.results
        }
        seconds[name] = sum(
            outcome.results[key]["seconds"] for key in {key for key, _ in keys[name]} if key in outcome.results
        )
        try:
            found.append(_shown(experiments[name], name, request, own, values))
        except (UserError, ValueError, KeyError, IndexError, StopIteration, TypeError) as error:
            failures.append(Failure(name, f"too few cells to show it: {type(error).__name__} {error}"))
    _book(request, seconds)
    return Reproduced(tuple(found), tuple(failures), seconds)


def _cells(experiments: Mapping[str, Experiment], request: Request) -> tuple[dict[str, list[Cell]], list[Failure]]:
    """The cells of every experiment whose data are there."""
    cells: dict[str, list[Cell]] = {}
    failures: list[Failure] = []
    lacking = importlib.util.find_spec("torch_geometric") is None
    if lacking:
        failures.append(Failure("gcn", "the GCN baseline is left out: pip install 'd2dfl[gcn]'"))
    for name, experiment in experiments.items():
        own = experiment.cells(request.scale, request.seeds)
        if experiment.seeds["small"] == 1:
            own = experiment.cells(request.scale)  # nothing in it is random
        try:
            for config in {cell.config.data.dataset: cell.config for cell in own}.values():
                _there(config)
        except UserError as error:
            failures.append(Failure(name, str(error)))
            continue
        cells[name] = [cell for cell in own if not (lacking and cell.method == GCN.method)]
    return cells, failures


def _there(config: Config) -> None:
    """Fetch a dataset here and now, not in every worker."""
    if config.data.dataset in datasets.names() and not datasets.status(config.data.dataset).ready:
        datasets.load(config.data.dataset, verify=config.data.verify, download=config.data.download)


def _tasks(
    experiments: Mapping[str, Experiment], cells: Mapping[str, Sequence[Cell]]
) -> tuple[dict[str, list[tuple[str, int]]], list[Task]]:
    """(task, place in it) of every cell, and the tasks. On a GPU the cells of a point train together, elsewhere alone."""
    together = torch.cuda.is_available()
    keys: dict[str, list[tuple[str, int]]] = {}
    tasks: dict[str, Task] = {}
    known: dict[str, str] = {}
    for name, own in cells.items():
        groups: dict[str, list[Cell]] = {}
        for cell in own:
            label = f"{name}/{cell.point}"
            groups.setdefault(label if together else f"{label}/{cell.contender}/seed {cell.seed}", []).append(cell)
        keys[name] = []
        places: dict[Cell, tuple[str, int]] = {}
        for label, members in groups.items():
            payload = _payload(experiments[name], name, members)
            key = known.setdefault(json.dumps(payload, sort_keys=True), label)
            tasks.setdefault(key, Task(key, payload, sum(map(_cost, members))))
            places |= {cell: (key, place) for place, cell in enumerate(members)}
        keys[name] = [places[cell] for cell in own]
    return keys, list(tasks.values())


def _payload(experiment: Experiment, name: str, members: Sequence[Cell]) -> dict[str, Any]:
    """What a worker needs. Only a measure of an experiment's own may ask where a cell belongs."""
    special = experiment.measure is not None
    return {
        "experiment": name if special else "",
        "cells": [
            {
                **({"point": cell.point, "contender": cell.contender} if special else {}),
                "method": cell.method,
                "seed": cell.seed,
                "config": cell.config.to_dict(),
            }
            for cell in members
        ],
    }


def _cost(cell: Cell) -> float:
    """Datapoints that its training sees: the longest start first, and the estimate of the time left weighs by it."""
    settings = cell.config.federation
    heavy = 20.0 if settings.model.startswith("alexnet") else 5.0 if settings.model in ("cnn", "encoder-conv") else 1.0
    return heavy * settings.rounds * settings.interval * settings.batch * cell.config.network.devices


def _shown(
    experiment: Experiment, name: str, request: Request, cells: Sequence[Cell], values: Mapping[Cell, Mapping[str, Any]]
) -> Findings:
    seeds = len({cell.seed for cell in cells})
    results = Results.of(experiment, request.scale, seeds, values)
    shown, claims = experiment.show(results), claims_of(name)
    folder = request.out / experiment.name
    folder.mkdir(parents=True, exist_ok=True)
    if experiment.drawn is not None:
        experiment.drawn(results, folder)
    found = Findings(
        name=experiment.name,
        title=claims.title,
        setting=_sentence(cells, seeds),
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
    if missing:
        found = replace(found, notes=(*found.notes, f"{missing} of {len(cells)} cells could not be measured"))
    found.save(folder)
    return found


def claims_of(name: str) -> Expected:
    """What the paper says about an experiment; nothing about one of the user's own."""
    return expected(scripts_folder()).get(name, Expected("", Path(name).stem, "", {}, {}, {}))


def _sentence(cells: Sequence[Cell], seeds: int) -> str:
    """Data, devices and lengths of the first cell, and the number of seeds."""
    config = cells[0].config
    sets = ", ".join(dict.fromkeys(cell.config.data.dataset for cell in cells))
    made = " (generated data)" if "radio" in sets.split(", ") else ""
    settings = config.federation
    return (
        f"{sets}{made}; {config.network.devices} devices with {config.data.samples} datapoints, {settings.model}, "
        f"{settings.rounds} rounds of {settings.interval} minibatches of {settings.batch}; {seeds} seeds"
    )


def _book(request: Request, seconds: Mapping[str, float]) -> None:
    """When, where and how fast: all that a rerun may change."""
    place = torch.cuda.get_device_name() if torch.cuda.is_available() else platform.processor() or platform.machine()
    content = {
        "format": 1,
        "scale": request.scale,
        "hardware": f"{place}, {os.cpu_count()} cores",
        "versions": versions(),
        "core_seconds": {name: round(value, 1) for name, value in seconds.items()},
    }
    write_whole(request.out / "run.json", json.dumps(content, indent=1).encode())
