"""Methods side by side on the same data: accuracy, datapoints, joules, and the share of the i.i.d. gap that is closed.

The gap is the honest yardstick: train once with no exchange and once with the same data shuffled i.i.d. over the
devices. A method's share is (its accuracy - none) / (iid - none).
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from d2dfl.config import Config
from d2dfl.data import Dataset
from d2dfl.discovery.equations.diversity import distances_to
from d2dfl.energy.ledger import PURPOSES, Ledger
from d2dfl.experiment.inputs import Inputs
from d2dfl.experiment.logs import Logs, check_logs, open_logs, run_name
from d2dfl.experiment.setting import IID, Prepared, data_set, energy, paradigm_of, prepare, setting_of
from d2dfl.experiment.store import RESULTS, Plan, RunFolder
from d2dfl.experiment.training import Weights, models_of, weights_of
from d2dfl.federation import Curves, State, check_training, embeddings, model_named, start, train_many
from d2dfl.federation.models import Factory
from d2dfl.notebook import counted, line, table_html
from d2dfl.storage import write_whole
from d2dfl.transfer import held_counts

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure

Progress = Callable[[str, float], None]
Floats = Sequence[float] | NDArray[np.float64]
SHOWN = 600  # test inputs whose embeddings are kept for a picture


def silent(_what: str, _share: float) -> None:
    """Progress that nobody watches."""


@dataclass(frozen=True)
class Row:
    """One method, over all seeds."""

    method: str
    score: float  # mean over seeds, at the end
    spread: float  # standard deviation over seeds
    gap_closed: float | None  # None where i.i.d. data is not clearly better than none, so that there is no gap
    rounds_to_target: float | None  # mean over seeds; None where a seed never gets there
    moved: float
    lost: float
    joules: float
    distance: float  # total variation to i.i.d. after the exchange


@dataclass(frozen=True)
class Comparison:
    """Everything that was measured."""

    score_name: str
    target: float
    rows: tuple[Row, ...]
    cells: tuple[tuple[str, int, Curves], ...]  # (method, seed, curves)
    prepared: tuple[Prepared, ...]
    ledgers: tuple[Ledger, ...]  # of the cells
    embeddings: tuple[tuple[str, NDArray[np.float32]], ...] = ()  # of test inputs, where models are encoders
    weights: tuple[Weights, ...] = ()  # of the cells: the final model's state, or those of all devices

    def __repr__(self) -> str:
        scores = (f"{row.method} {row.score:.3f}" for row in self.rows)
        return line(
            f"Comparison by {self.score_name}", *scores, counted(len({seed for _, seed, _ in self.cells}), "seed")
        )

    def _repr_html_(self) -> str:
        from d2dfl.experiment.findings import COLUMNS, cells, note

        return table_html("Comparison", COLUMNS, map(cells, self.rows), note(self))

    def plot(self, path: "str | Path | None" = None) -> "Figure":
        """Score against rounds as a figure; with a path (.png, .svg, .pdf) it is drawn there, too."""
        from d2dfl.experiment.findings import curves_figure
        from d2dfl.report.drawing.lines import write_figure

        return write_figure(curves_figure(self), path)

    def to_dict(self) -> dict[str, Any]:
        return {
            "score": self.score_name,
            "target": self.target,
            "rows": [asdict(row) for row in self.rows],
            "purposes": PURPOSES,
            "cells": [
                {
                    "method": method,
                    "seed": seed,
                    "rounds": curve.rounds,
                    "scores": curve.scores,
                    "losses": curve.losses,
                    "joules": [book.until(done) for done in curve.rounds],
                    "device_joules": book.spent_j().tolist(),  # [device][purpose], of the whole run
                }
                for (method, seed, curve), book in zip(self.cells, self.ledgers, strict=True)
            ],
            "partitions": [
                {"seed": item.setting.seed, **item.setting.partitioning.by_device}
                for item in self.prepared
                if item.method == IID and item.setting.partitioning.by_device
            ],
        }


def share_of_gap(mine: Floats, none: Floats, iid: Floats, higher_is_better: bool) -> float | None:
    """Share of the way from no exchange to i.i.d. data, from scores by seed.

    None where i.i.d. data is not better by more than the standard error over seeds: there is no gap to close.
    """
    way = float(np.mean(iid) - np.mean(none))
    error = float(np.hypot(np.std(none), np.std(iid))) / len(iid) ** 0.5
    if (way if higher_is_better else -way) <= max(error, 1e-9):
        return None
    return float(np.mean(mine) - np.mean(none)) / way


def factory_of(config: Config, dataset: Dataset) -> Factory:
    """The model of the configuration; auto: one that suits the inputs."""
    name = config.federation.model
    return model_named(paradigm_of(config).model(dataset.shape) if name == "auto" else name)


def with_yardsticks(methods: Sequence[str]) -> list[str]:
    """Methods, each once, and what they are held against: no exchange and the i.i.d. shuffle."""
    return list(dict.fromkeys([*(name for name in methods if name != IID), "none", IID]))


def plan_of(config: Config, methods: Sequence[str], seeds: Sequence[int]) -> Plan:
    """What the run folder of a comparison is for."""
    return Plan("comparison", config.to_toml(), {"methods": with_yardsticks(methods), "seeds": list(seeds)})


def compare(
    config: Config,
    methods: Sequence[str],
    seeds: Sequence[int],
    record: RunFolder | None = None,
    progress: Progress = silent,
    logs: Sequence[str] = (),
    inputs: Inputs | None = None,
) -> Comparison:
    """Discover, exchange and train every method on every seed; `none` and the i.i.d. yardstick are always there.

    With a run folder the results are written there, and a run that was cut goes on from its checkpoint. `logs` names
    where scores are written in that folder while training goes on: tensorboard, csv. Data, links and model are those that
    the configuration names, unless others are given as `inputs`.
    """
    check_logs(logs)
    names = with_yardsticks(methods)
    # First of all: minutes of discovery would be in vain where the checkpoint turns out to be damaged.
    number = len(names) * len(seeds)
    saved = record.checkpoints.load([config.network.devices] * number) if record else [None] * number
    inputs = inputs or Inputs(data_set(config, seed=0))
    prepared: list[Prepared] = []
    for seed in seeds:
        setting = setting_of(config, seed, inputs.dataset, inputs.links)
        for name in names:
            progress(f"discover: {name}, seed {seed}", len(prepared) / (len(names) * len(seeds)))
            prepared.append(prepare(config, setting, name))
    factory = inputs.model or factory_of(config, inputs.dataset)
    runs = [(item.data, item.setting.seed) for item in prepared]
    check_training(factory, runs, config.federation)
    states = [
        state or start(factory, data, config.federation, seed) for state, (data, seed) in zip(saved, runs, strict=True)
    ]
    with _logs(logs, record) as log:
        save = _checkpoint(record, states, prepared, log)
        curves = train_many(factory, runs, config.federation, lambda share: progress("train", share), save, states)
    result = _measured(config, prepared, curves, states, names)
    if record is not None:
        write_whole(record.path / RESULTS, json.dumps(result.to_dict(), allow_nan=False).encode())
    weights = tuple(
        weights_of(models_of(factory, data, state, config)) for (data, _), state in zip(runs, states, strict=True)
    )
    return replace(result, embeddings=_embedded(config, factory, prepared, states), weights=weights)


def _logs(names: Sequence[str], record: RunFolder | None) -> Logs:
    if record is None:
        return Logs([])
    return open_logs(names, record.path, resume=record.checkpoints.there)


def _embedded(
    config: Config, factory: Factory, prepared: Sequence[Prepared], states: Sequence[State]
) -> tuple[tuple[str, NDArray[np.float32]], ...]:
    """Where models are encoders: what those of the first seed make of test inputs."""
    if paradigm_of(config).loss is None:
        return ()
    return tuple(
        (item.method, embeddings(factory, item.data, state, item.data.test_inputs[:SHOWN]))
        for item, state in zip(prepared, states, strict=True)
        if item.setting.seed == prepared[0].setting.seed
    )


def _checkpoint(
    record: RunFolder | None, states: Sequence[State], prepared: Sequence[Prepared], log: Logs
) -> Callable[[int, State], None]:
    """Log every round, and save all states once the last one of a group has finished its round."""

    def save(number: int, state: State) -> None:
        # First the log: a crash in between repeats a round, which the log can take.
        _log_round(log, run_name(prepared[number].method, prepared[number].setting.seed), state)
        last = number + 1 == len(states) or states[number + 1].round != states[number].round
        if record is not None and last:
            record.checkpoints.save(states)

    return save


def _log_round(log: Logs, run: str, state: State) -> None:
    curves, done = state.curves, state.round
    values = {"training loss": curves.training_losses[-1]}
    if curves.rounds and curves.rounds[-1] == done:  # it is not tested after every round
        values |= {"score": curves.scores[-1], "loss": curves.losses[-1]}
    log.log(run, done, values)


def _measured(
    config: Config,
    prepared: Sequence[Prepared],
    curves: Sequence[Curves],
    states: Sequence[State],
    names: Sequence[str],
) -> Comparison:
    final = {name: [c.score for item, c in zip(prepared, curves, strict=True) if item.method == name] for name in names}
    none, upwards = float(np.mean(final["none"])), curves[0].higher_is_better
    parameters = int(states[0].params.shape[1])
    books = tuple(energy(item, curve, parameters) for item, curve in zip(prepared, curves, strict=True))
    rows = []
    for name in names:
        mine = [(item, curve) for item, curve in zip(prepared, curves, strict=True) if item.method == name]
        reached = [curve.rounds_to(none) for _, curve in mine]
        rows.append(
            Row(
                method=name,
                score=float(np.mean(final[name])),
                spread=float(np.std(final[name])),
                gap_closed=share_of_gap(final[name], final["none"], final[IID], upwards),
                rounds_to_target=float(np.mean([r for r in reached if r is not None])) if None not in reached else None,
                moved=float(np.mean([item.exchanged.moved if item.exchanged else 0 for item, _ in mine])),
                lost=float(np.mean([item.exchanged.dropped if item.exchanged else 0 for item, _ in mine])),
                joules=float(
                    np.mean([book.total_j for book, item in zip(books, prepared, strict=True) if item.method == name])
                ),
                distance=float(np.mean([_distance(item) for item, _ in mine])),
            )
        )
    cells = tuple((item.method, item.setting.seed, curve) for item, curve in zip(prepared, curves, strict=True))
    return Comparison(curves[0].score_name, none, tuple(rows), cells, tuple(prepared), books)


def _distance(item: Prepared) -> float:
    """Mean total variation between the classes (or ranges of the target) that devices hold now and the population's."""
    truth = item.setting.truth
    counts, before = (
        held_counts(held, truth, int(truth.max()) + 1) for held in (item.data.members, item.setting.holdings)
    )
    return float(distances_to(counts, before.sum(axis=0), "total-variation").mean())
