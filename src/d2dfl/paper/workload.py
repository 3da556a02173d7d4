"""Cells as tasks of the grid: what a cell is known by, and what it will take."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import torch

from d2dfl.experiment.cells.cell import Cell
from d2dfl.experiment.cells.files import keys_of
from d2dfl.experiment.grid.grid import GridTask
from d2dfl.federation.schemes import scheme_named
from d2dfl.paper.catalogue import claims_of
from d2dfl.paper.experiment import Experiment

NO_RATES: Mapping[str, float] = MappingProxyType({})
HEAVY = {"alexnet": 20.0, "alexnet1d": 20.0, "cnn": 5.0, "encoder-conv": 5.0}  # effort of a step beside that of others
USUAL_RATE = 1e-4  # seconds for a datapoint that is handled, where nobody measured it


def tasks_of(
    experiments: Mapping[str, Experiment], cells: Mapping[str, Sequence[Cell]], rates: Mapping[str, float] = NO_RATES
) -> list[GridTask]:
    """Cells as tasks; one that several experiments ask for is there once.

    On a GPU the cells of a point and a seed train together, elsewhere alone: all tasks of a sweep have the same shape, and
    code is compiled once.
    """
    together = torch.cuda.is_available()
    groups: dict[tuple[Any, ...], list[tuple[str, Cell]]] = {}
    known: set[str] = set()
    for name, own in cells.items():
        for cell in own:
            key = key_of(experiments[name], name, cell)
            if key not in known:
                known.add(key)
                alike = (cell.config.federation,) if together else (cell.contender,)
                groups.setdefault((name, cell.point, cell.seed, *alike), []).append((name, cell))
    return [_task(experiments, members, rates) for members in groups.values()]


def _task(
    experiments: Mapping[str, Experiment], members: Sequence[tuple[str, Cell]], rates: Mapping[str, float]
) -> GridTask:
    name, first = members[0]
    payload = {
        "experiment": _measured_by(experiments[name], name),
        "cells": [cell.to_plain(placed=experiments[name].measure is not None) for name, cell in members],
    }
    who = first.contender
    if len(members) > 1:
        # After a resume fewer may be missing: they must not take the place of the file that has the others.
        who = f"{len(members)} contenders {hashlib.sha256(''.join(keys_of(payload)).encode()).hexdigest()[:8]}"
    cost = sum(rates.get(name, USUAL_RATE) * _effort(experiments[name], cell) for name, cell in members)
    return GridTask(f"{name}/{first.point}/{who}/seed {first.seed}", payload, cost, f"{name}/{first.contender}")


def _measured_by(experiment: Experiment, name: str) -> str:
    """The experiment whose own measure a cell needs, if it has one."""
    return "" if experiment.measure is None else name


def key_of(experiment: Experiment, name: str, cell: Cell) -> str:
    plain = cell.to_plain(placed=experiment.measure is not None)  # only a measure of its own may ask where it belongs
    return json.dumps([_measured_by(experiment, name), plain], sort_keys=True)


def rate_of(experiment: Experiment, name: str, cells: Sequence[Cell], scale: str) -> float:
    """Seconds that an effort of 1 takes: by what the whole experiment took us at this scale, if we measured it."""
    known = claims_of(name).cost.get(scale)
    usual = cells if len(cells) == experiment.count(scale) else experiment.cells(scale)  # with the seeds measured then
    effort = sum(_effort(experiment, cell) for cell in usual)
    return USUAL_RATE if known is None or not effort else known / effort


def _effort(experiment: Experiment, cell: Cell) -> float:
    """Datapoints that a cell handles: by it cells of one experiment differ."""
    settings, devices = cell.config.federation, cell.config.network.devices
    held = cell.config.data.samples or cell.config.network.samples_per_device
    if not (experiment.trains and cell.trains):
        return float(held * devices)
    heavy = HEAVY.get(settings.model, 1.0)
    a_round = held if scheme_named(settings.scheme).full_gradient else settings.interval * settings.batch
    return devices * (held + heavy * settings.rounds * a_round)
