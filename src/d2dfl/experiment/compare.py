"""Methods side by side on the same data: scores, datapoints, joules, and the share of the i.i.d. gap that is closed.

The gap is the honest yardstick: train once with no exchange and once with the same data shuffled i.i.d. over the
devices. A method's share is (its score - none) / (iid - none).
"""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from d2dfl.config import Config, config_from
from d2dfl.config.seeds import checked_seeds
from d2dfl.data import Dataset
from d2dfl.discovery.discover import discover
from d2dfl.discovery.methods import IID, NO_EXCHANGE, methods_named
from d2dfl.discovery.trace import Trace
from d2dfl.experiment.cells.cell import Cell, Values
from d2dfl.experiment.cells.files import keep_cells
from d2dfl.experiment.cells.values import energy, training_values
from d2dfl.experiment.comparison import Comparison
from d2dfl.experiment.findings.device_scores import KEY, device_scores
from d2dfl.experiment.findings.maps import MANY
from d2dfl.experiment.folder.logs import Logs, check_logs, open_logs, run_name
from d2dfl.experiment.folder.mark import RunPlan
from d2dfl.experiment.folder.store import RunFolder, write_results
from d2dfl.experiment.folder.traces import save_traces, traced
from d2dfl.experiment.grid.cluster import check_engine, cluster_for
from d2dfl.experiment.inputs import Inputs, data_set
from d2dfl.experiment.observer import NOBODY, Observer
from d2dfl.experiment.pace import Pace
from d2dfl.experiment.pipeline import (
    PreparedCell,
    TrainedCell,
    delivered,
    delivery,
    factory_of,
    federations_of,
    settled,
    shuffled,
)
from d2dfl.experiment.setting import Setting, paradigm_of, setting_of
from d2dfl.experiment.trained_models import TrainedModels
from d2dfl.federation import Room, Starts, State, parameters_of, room_for, train_many
from d2dfl.federation.models import Factory, outputs_for
from d2dfl.progress import Step, silent
from d2dfl.transfer import exchange, held_counts

PAUSE_S = 10.0  # between two savings of the states of trainings under way


def with_yardsticks(methods: str | Sequence[str]) -> list[str]:
    """Methods, each once, and what they are held against: no exchange and the i.i.d. shuffle."""
    named = methods_named(methods if isinstance(methods, str) else [name for name in methods if name != IID])
    return list(dict.fromkeys([*named, NO_EXCHANGE, IID]))


def plan_of(config: Config, methods: Sequence[str], seeds: Sequence[int]) -> RunPlan:
    """What the run folder of a comparison is for."""
    return RunPlan("comparison", config.to_toml(), {"methods": with_yardsticks(methods), "seeds": list(seeds)})


def compare(
    config: Config | Mapping[str, Any] | None,
    methods: str | Sequence[str],
    seeds: int | Sequence[int],
    record: RunFolder | None = None,
    *,
    progress: Step = silent,
    logs: Sequence[str] = (),
    inputs: Inputs | None = None,
    notice: Callable[[str], None] = silent,
    engine: str = "local",
    observer: Observer = NOBODY,
) -> Comparison:
    """Discover, exchange and train every method on every seed; `none` and the i.i.d. yardstick are always there.

    `config`: all settings, or those that are changed by their names. `methods`: names, or "all". `seeds`: how many, or which.
    With a run folder the results are written there, and a run that was cut goes on from its checkpoint. `logs` names
    where scores are written in that folder while training goes on: tensorboard, csv. Data, links and model are those that
    the configuration names, unless others are given as `inputs`. `notice` hears a sentence that the user should see,
    `observer` what is found while it is found. With the `engine` ray devices train on an existing Ray cluster.
    """
    check_logs(logs)
    config, seeds = config_from(config, Config()), checked_seeds(seeds)
    priced = check_engine(engine, config.federation)
    cells = [Cell("", name, name, seed, config) for seed in seeds for name in with_yardsticks(methods)]
    inputs = inputs or Inputs(data_set(config, seed=0))
    ground = _ground(config, inputs, len(cells), record)
    for sentence in filter(None, (ground.room.sentence, priced)):
        notice(sentence)
    observer.begin(config, cells)
    items: list[PreparedCell] = []
    traces: list[Trace] = []
    with cluster_for(engine, config.federation) as cluster, _logs(logs, record) as log:
        settings, pace = _settings(config, seeds, inputs, progress, observer), Pace(config, cells, progress)
        for number, cell in enumerate(cells):
            setting, (finding, moving) = settings[cell.seed], pace.of(number)
            finding(0.0)
            if cell.method == IID:
                item = shuffled(setting)
            else:
                trace = _trace(observer, traces, cell.method, config.network.devices)
                told = setting.reported_network
                found = discover(told, config, seed=cell.seed, method=cell.method, progress=finding, trace=trace)
                agreed = settled(found, setting)
                moved = exchange(**delivery(agreed, setting, config.exchange), progress=moving)
                item = delivered(cell.method, setting, agreed, moved)
            items.append(item)
            observer.prepare(number, item)
        ready = federations_of(config, items, inputs.dataset, model=ground.model, saved=ground.saved, room=ground.room)
        models = TrainedModels.of(ready, config, inputs.dataset, cells, record)
        curves = train_many(
            ground.model,
            ready.runs,
            config.federation,
            progress=lambda share: progress("train", share),
            states=ready.starts,
            on_group=_keeper(record, cells, log, observer),
            on_end=models.keep,
            cluster=cluster,
        )
    progress("measure", 0.0)
    result = _measured(config, inputs.dataset, cells, ready.trained(curves), models)
    if record is not None:
        _write(result, traces, record)
    return result


class Ground(NamedTuple):
    """What a comparison stands on, found before its first discovery."""

    model: Factory
    room: Room  # where rows are kept
    saved: Starts | None  # where trainings go on; None: nothing is kept


def _ground(config: Config, inputs: Inputs, cells: int, record: RunFolder | None) -> Ground:
    """Minutes of discovery would be in vain for a model that is not there, rows that fit nowhere, or a damaged checkpoint."""
    devices, dataset = config.network.devices, inputs.dataset
    model = inputs.model or factory_of(config, dataset)
    parameters = parameters_of(model, dataset.shape, outputs_for(dataset.classes, paradigm_of(config).encodes))
    if record is None:
        return Ground(model, room_for(parameters, devices, config.federation), None)
    room = room_for(parameters, devices, config.federation, record.path, record.checkpoints.taken)
    rounds = record.checkpoints.open([devices] * cells, room)
    return Ground(model, room, Starts(rounds, lambda number: record.checkpoints.state(number, devices, room)))


def _settings(
    config: Config, seeds: Sequence[int], inputs: Inputs, progress: Step, observer: Observer
) -> dict[int, Setting]:
    """Data and network of every seed."""
    settings: dict[int, Setting] = {}
    for seed in seeds:
        progress(f"data and network, seed {seed}", len(settings) / len(seeds))
        settings[seed] = setting_of(config, seed, inputs.dataset, inputs.links)
        observer.place(settings[seed])
    return settings


def _trace(observer: Observer, traces: list[Trace], method: str, devices: int) -> Trace | None:
    """Who hears how this graph is found, where there is something to hear."""
    if method == NO_EXCHANGE or not traced(devices):
        return None
    trace = Trace(lambda: observer.negotiate(trace))
    traces.append(trace)
    return trace


def _logs(names: Sequence[str], record: RunFolder | None) -> Logs:
    if record is None:
        return Logs([])
    return open_logs(names, record.path, resume=record.checkpoints.there)


def _keeper(
    record: RunFolder | None, cells: Sequence[Cell], log: Logs, observer: Observer
) -> Callable[[Mapping[int, State]], None]:
    """Log every round, and save the states of those that trained together: the first, the last, and every few seconds."""
    rounds, saved = cells[0].config.federation.rounds, -math.inf

    def keep(states: Mapping[int, State]) -> None:
        nonlocal saved
        # First the log: a crash in between repeats rounds, which the log can take.
        for number, state in states.items():
            _log_round(log, run_name(cells[number].method, cells[number].seed), state)
        ended = all(state.round == rounds for state in states.values())  # its memory need not stay on the disk
        if record is not None and (ended or time.monotonic() - saved >= PAUSE_S):
            record.checkpoints.save(states, len(cells), rounds)
            saved = time.monotonic()
        observer.train(states)

    return keep


def _log_round(log: Logs, run: str, state: State) -> None:
    curves, done = state.curves, state.round
    values = {"training loss": curves.training_losses[-1]}
    if curves.rounds and curves.rounds[-1] == done:  # it is not tested after every round
        values |= {"score": curves.scores[-1], "loss": curves.losses[-1]}
    log.log(run, done, values)


def _measured(
    config: Config, dataset: Dataset, cells: Sequence[Cell], done: Sequence[TrainedCell], models: TrainedModels
) -> Comparison:
    return Comparison(
        config=config,
        dataset=dataset,
        cells=tuple(cells),
        values=tuple(training_values(one) | _by_device(one, models.label_scores[n]) for n, one in enumerate(done)),
        prepared=tuple(one.item for one in done),
        ledgers=tuple(energy(one.item, one.curves, one.parameters) for one in done),
        embeddings=tuple((cells[number].method, shown) for number, shown in sorted(models.embeddings.items())),
        weights=tuple(weights for _, weights in sorted(models.weights.items())),
    )


def _by_device(done: TrainedCell, scores: NDArray[np.float64] | None) -> Values:
    """The score of every device on its own labels, where that can be told and looked at."""
    setting = done.item.setting
    if scores is None or setting.network.devices > MANY:
        return {}
    held = held_counts(setting.holdings, setting.truth, max(int(setting.truth.max()) + 1, scores.shape[1]))
    return {KEY: device_scores(scores, held)}


def _write(result: Comparison, traces: Sequence[Trace], record: RunFolder) -> None:
    """Every cell as those of a reproduction, the measures over all of them, and how discoveries went."""
    keep_cells(record.path, dict(zip(result.cells, result.values, strict=True)))
    write_results(record.path, result.to_dict())
    save_traces(traces, result.config, record.path)
