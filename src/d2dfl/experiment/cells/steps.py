"""The steps of a cell, prepared and trained, as plain values."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from d2dfl.config import Config
from d2dfl.experiment.cells.cell import Cell, Measure, Values

if TYPE_CHECKING:  # PyTorch and the compiler wait until something is measured: experiments are also listed
    from d2dfl.data import Dataset
    from d2dfl.experiment.pipeline import PreparedCell
    from d2dfl.experiment.setting import Setting


def each(one: Callable[[Cell], Values]) -> Measure:
    """A measure of single cells as one of many."""
    return lambda cells: [one(cell) for cell in cells]


def train(cells: Sequence[Cell]) -> list[Values]:
    """Discover, exchange, train, measure. Cells of one point train together where that pays, or end before."""
    if not cells[0].trains:
        return exchange_only(cells)
    return trained(cells, [prepared(cell) for cell in cells])


def trained(cells: Sequence[Cell], items: "Sequence[PreparedCell]") -> list[Values]:
    """Train and measure what is prepared."""
    from d2dfl.experiment.cells.values import training_values
    from d2dfl.experiment.pipeline import federations_of
    from d2dfl.federation import train_many

    config = cells[0].config
    ready = federations_of(config, items, dataset_of(config))
    curves = train_many(ready.factory, ready.runs, config.federation, states=ready.starts)
    return [training_values(done) for done in ready.trained(curves)]


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
