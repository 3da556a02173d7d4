"""What a worker does for a task of the grid: measure cells. Plain values in, plain values out."""

import time
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from d2dfl.config import Config
from d2dfl.data import Dataset
from d2dfl.discovery.equations.diversity import BUILT_IN, distances_to
from d2dfl.energy.ledger import RADIOS
from d2dfl.errors import UserError
from d2dfl.experiment.compare import factory_of
from d2dfl.experiment.setting import Prepared, Setting, data_set, energy, prepare, setting_of
from d2dfl.federation import Curves, train_many
from d2dfl.federation.layout import Layout
from d2dfl.federation.models import build
from d2dfl.paper.experiment import Cell, Measure
from d2dfl.transfer import held_counts

Values = dict[str, Any]


def run_task(payload: Mapping[str, Any]) -> dict[str, Any]:
    """The cells of one task, by the measure of their experiment, and the seconds it took."""
    from d2dfl.paper.catalogue import load_experiment

    own = load_experiment(payload["experiment"]).measure if payload["experiment"] else None
    began = time.perf_counter()
    values = (own or train)([cell_of(values) for values in payload["cells"]])
    return {"values": values, "seconds": time.perf_counter() - began}


def cell_of(values: Mapping[str, Any]) -> Cell:
    """A cell from the plain values that travel to a worker."""
    changes = {
        f"{section}.{name}": value for section, fields in values["config"].items() for name, value in fields.items()
    }
    names = (values.get("point", ""), values.get("contender", ""), values["method"], values["seed"])
    return Cell(*names, Config().with_(**changes))


def each(one: Callable[[Cell], Values]) -> Measure:
    """A measure of single cells as one of many."""
    return lambda cells: [one(cell) for cell in cells]


def train(cells: Sequence[Cell]) -> list[Values]:
    """Discover, exchange, train, measure. Cells of one point train together where that pays."""
    return trained(cells, [prepared(cell) for cell in cells])


def trained(cells: Sequence[Cell], items: Sequence[Prepared]) -> list[Values]:
    """Train and measure what is prepared."""
    factory = factory_of(cells[0].config, items[0].setting.dataset)
    runs = [(item.data, item.setting.seed) for item in items]
    settings = cells[0].config.federation
    curves = train_many(factory, runs, settings)
    data, seed = runs[0]
    parameters = Layout.of(build(factory, data.shape, data.outputs, seed)).parameters
    return [
        {**exchange_values(item), **_curve_values(item, curve, parameters)}
        for item, curve in zip(items, curves, strict=True)
    ]


def exchange_only(cells: Sequence[Cell]) -> list[Values]:
    """Discover, exchange, measure; nobody trains."""
    return [exchange_values(prepared(cell)) for cell in cells]


def prepared(cell: Cell) -> Prepared:
    """A cell up to the exchange."""
    return prepare(cell.config, _setting(cell.config, cell.seed), cell.method)


def dataset_of(config: Config) -> Dataset:
    """The data of a cell, which the next cells most likely need too."""
    return _dataset(Config(data=config.data, radio=config.radio))


@lru_cache(maxsize=2)
def _dataset(config: Config) -> Dataset:
    return data_set(config, seed=0)


@lru_cache(maxsize=8)
def _setting(config: Config, seed: int) -> Setting:
    # Methods of one seed share their setting: partitions can take longer than a discovery.
    return setting_of(config, seed, dataset_of(config))


def exchange_values(item: Prepared) -> Values:
    """What is known before training starts."""
    truth = item.setting.truth
    before, after = (
        held_counts(held, truth, int(truth.max()) + 1) for held in (item.setting.holdings, item.data.members)
    )
    population = before.sum(axis=0)
    enough = 0.05 * before.sum(axis=1, keepdims=True)  # R29, for everyone alike whatever threshold it asks by
    values: Values = {
        "labels": (after >= np.maximum(enough, 1)).sum(axis=1).tolist(),
        "before": {metric: float(distances_to(before, population, metric).mean()) for metric in BUILT_IN},
        "after": {metric: float(distances_to(after, population, metric).mean()) for metric in BUILT_IN},
        "moved": item.exchanged.moved if item.exchanged else 0,
        "lost": item.exchanged.dropped if item.exchanged else 0,
        "measures": dict(item.setting.partitioning.measures),
    }
    if item.discovery is not None:
        worth = item.discovery.evaluation
        values |= {
            "success": worth.success_probability,
            "inter": worth.inter_cluster_share,
            "messages": item.discovery.messages / item.discovery.network.devices,
        }
    return values


def _curve_values(item: Prepared, curves: Curves, parameters: int) -> Values:
    ledgers = {radio: energy(item, curves, parameters, radio) for radio in RADIOS}
    return {
        "score_name": curves.score_name,
        "higher_is_better": curves.higher_is_better,
        "rounds": list(curves.rounds),
        "scores": [float(score) for score in curves.scores],
        "spreads": [float(spread) for spread in curves.spreads],
        "joules": {radio: [float(book.until(done)) for done in curves.rounds] for radio, book in ledgers.items()},
        "purposes": {radio: book.by_purpose() for radio, book in ledgers.items()},
    }


def final(values: Mapping[str, Any]) -> float:
    """Mean score of the last fifth of a curve: one evaluation alone moves by a hundredth from round to round."""
    if "scores" not in values:
        raise UserError("this experiment does not train: it has no final score")
    scores = values["scores"]
    return float(np.mean(scores[-max(1, len(scores) // 5) :]))
