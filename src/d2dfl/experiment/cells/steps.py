"""The steps of a cell, prepared and trained, as plain values."""

import time
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from d2dfl.config import Config
from d2dfl.experiment.cells.cell import Cell, Measure, Values

if TYPE_CHECKING:  # PyTorch and the compiler wait until something is measured: experiments are also listed
    from d2dfl.data import Dataset
    from d2dfl.experiment.folder.checkpoints import Checkpoints
    from d2dfl.experiment.pipeline import PreparedCell
    from d2dfl.experiment.setting import Setting
    from d2dfl.federation import State

PAUSE_S = 30.0  # between two savings of a task: most tasks end before, and write nothing


def each(one: Callable[[Cell], Values]) -> Measure:
    """A measure of single cells as one of many."""
    return lambda cells: [one(cell) for cell in cells]


def run_cells(cells: Sequence[Cell], place: Path | None = None) -> list[Values]:
    """Discover, exchange, train, measure. Cells of one point train together where that pays, or end before.

    With a `place`, states are saved there now and then, and a training that was cut goes on from them.
    """
    if not cells[0].trains:
        return exchange_only(cells)
    return train_prepared(cells, [prepared(cell) for cell in cells], place)


def train_prepared(cells: Sequence[Cell], items: "Sequence[PreparedCell]", place: Path | None = None) -> list[Values]:
    """Train and measure what is prepared."""
    from d2dfl.experiment.cells.values import training_values
    from d2dfl.experiment.folder.checkpoints import of_task
    from d2dfl.experiment.pipeline import federations_of
    from d2dfl.federation import Starts, train_many

    config, devices = cells[0].config, [len(item.holdings) for item in items]
    kept, rounds = of_task(place, devices) if place else (None, [0] * len(items))
    saved = Starts(rounds, lambda number: kept.state(number, devices[number])) if kept else None
    ready = federations_of(config, items, dataset_of(config), saved=saved)
    on_group = _saver(kept, len(items), config.federation.rounds)
    curves = train_many(ready.factory, ready.runs, config.federation, states=ready.starts, on_group=on_group)
    return [training_values(done) for done in ready.trained(curves)]


def _saver(kept: "Checkpoints | None", trainings: int, rounds: int) -> "Callable[[Mapping[int, State]], None]":
    """Saves states, when the last time is long enough ago."""
    last = time.monotonic()

    def save(states: "Mapping[int, State]") -> None:
        nonlocal last
        if kept is not None and time.monotonic() - last >= PAUSE_S:
            kept.save(states, trainings, rounds)
            last = time.monotonic()

    return save


def exchange_only(cells: Sequence[Cell]) -> list[Values]:
    """Discover, exchange, measure; nobody trains."""
    return [exchange_values(prepared(cell)) for cell in cells]


def exchange_values(item: "PreparedCell") -> Values:
    """What is known before training starts."""
    from d2dfl.experiment.cells import values

    return values.exchange_values(item)


def prepared(cell: Cell) -> "PreparedCell":
    """A cell up to the exchange."""
    from d2dfl.experiment.pipeline import prepare

    return prepare(cell.config, _setting(cell.config, cell.seed), cell.method)


def dataset_of(config: Config) -> "Dataset":
    """The data of a cell, which the next cells most likely need too."""
    return _dataset(Config(data=config.data, radio=config.radio))


@lru_cache(maxsize=2)
def _dataset(config: Config) -> "Dataset":
    from d2dfl.experiment.inputs import data_set

    return data_set(config, seed=0)


@lru_cache(maxsize=8)
def _setting(config: Config, seed: int) -> "Setting":
    from d2dfl.experiment.setting import setting_of

    # Methods of one seed share their setting: partitions can take longer than a discovery.
    return setting_of(config, seed, dataset_of(config))
