"""The road that every run takes, `run`, `compare` and `reproduce` alike.

1. setting    data on devices, partitions, a network (setting.py)
2. prepare    discover the graph, move the datapoints over it
3. train      federated learning on what everybody holds now
4. values     what was measured, as plain values (values.py)
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from d2dfl.config import Config
from d2dfl.data import Dataset
from d2dfl.discovery.changing_channel import known_to, with_losses
from d2dfl.discovery.discover import Discovery, discover
from d2dfl.discovery.evaluation import evaluate, graph_of
from d2dfl.discovery.methods import IID, method_named
from d2dfl.discovery.trace import Trace
from d2dfl.errors import UserError
from d2dfl.experiment.setting import Setting, paradigm_of
from d2dfl.federation import Curves, Federated, Room, Starts, State, check_training, model_named, start, train_many
from d2dfl.federation.models import Factory, Shape, default_encoder, default_model
from d2dfl.progress import Share, silent
from d2dfl.rng import stream
from d2dfl.transfer import ExchangeResult, exchange


@dataclass(frozen=True)
class PreparedCell:
    """One method on one setting, ready to train."""

    method: str
    setting: Setting
    discovery: Discovery | None  # None for the i.i.d. yardstick
    exchanged: ExchangeResult | None
    holdings: tuple[NDArray[np.int64], ...]  # per device, after the exchange


@dataclass(frozen=True)
class TrainedCell:
    """What came of a training."""

    item: PreparedCell
    data: Federated
    curves: Curves
    parameters: int  # of one model


def prepare(
    config: Config, setting: Setting, method: str, progress: Share = silent, trace: Trace | None = None
) -> PreparedCell:
    """Discover a graph by what the devices tell, and move the datapoints; the share that is told counts both alike.

    `trace` hears how the graph is found.
    """
    if method == IID:
        return PreparedCell(IID, setting, None, None, _shuffled(setting))
    name = method_named(method).name
    told = setting.reported_network
    found = discover(
        told, config, seed=setting.seed, method=name, progress=lambda share: progress(share / 2), trace=trace
    )
    discovery = _settled(found, setting)
    moved = exchange(
        discovery.graph,
        setting.holdings,
        setting.partitioning.partition_of,
        discovery.network.threshold,
        seed=setting.seed,
        keep=config.exchange.keep,
        lossy=config.exchange.lossy,
        attempts=config.exchange.attempts,
        within=discovery.network if config.exchange.budget == "hard" else None,
        progress=lambda share: progress((1 + share) / 2),
    )
    empty = [device for device, held in enumerate(moved.holdings) if not len(held) and len(setting.holdings[device])]
    if empty:
        raise UserError(
            f"the exchange left device {empty[0]} without data: raise network.threshold, or set exchange.keep=acknowledged"
        )
    return PreparedCell(method, setting, discovery, moved, moved.holdings)


def train(
    config: Config,
    items: Sequence[PreparedCell],
    dataset: Dataset,
    *,
    model: Factory | None = None,
    saved: Starts | None = None,
    room: Room | None = None,
    progress: Share = silent,
    on_round: Callable[[Mapping[int, State]], None] = silent,
    on_end: Callable[[int, Federated, State], None] = silent,
) -> list[TrainedCell]:
    """Train what is prepared, together where that pays, and from saved states where there are any.

    `model` takes the place of the configuration's. `room` is where rows are kept; None: in memory. `on_round` hears the states, by number, of trainings that have
    finished a round together; `on_end` number, data and state of one that has ended: states are held only of what trains now.
    """
    factory = model or factory_of(config, dataset)
    datas = [federated(config, item, dataset) for item in items]
    runs = [(data, item.setting.seed) for data, item in zip(datas, items, strict=True)]
    room = room or check_training(factory, runs, config.federation)
    sizes = [0] * len(runs)

    def state_of(number: int) -> State:
        begun = saved is not None and saved.rounds[number] > 0
        return (
            saved.state(number)
            if saved and begun
            else start(factory, runs[number][0], config.federation, runs[number][1], room)
        )

    def end(number: int, state: State) -> None:
        sizes[number] = int(state.params.shape[1])
        on_end(number, datas[number], state)

    starts = Starts(saved.rounds if saved else [0] * len(runs), state_of)
    curves = train_many(factory, runs, config.federation, progress, states=starts, on_group=on_round, on_end=end)
    return [
        TrainedCell(item, data, curve, size)
        for item, data, curve, size in zip(items, datas, curves, sizes, strict=True)
    ]


def federated(config: Config, item: PreparedCell, dataset: Dataset) -> Federated:
    """What the devices train on."""
    targets = item.setting.partitioning.labels
    return Federated.of(dataset, item.holdings, targets=targets, loss=paradigm_of(config).loss)


def factory_of(config: Config, dataset: Dataset) -> Factory:
    """The model of the configuration; auto: one that suits the inputs."""
    return model_named(suited(config.federation.model, config, dataset.shape))


def suited(name: str, config: Config, shape: Shape) -> str:
    """The name of a model; instead of auto that of one which suits the paradigm and inputs of this shape."""
    suits = default_encoder if paradigm_of(config).encodes else default_model
    return suits(shape) if name == "auto" else name


def _shuffled(setting: Setting) -> tuple[NDArray[np.int64], ...]:
    """The same datapoints, dealt out anew without any skew."""
    pool = np.concatenate(setting.holdings)
    order = stream(setting.seed, "iid-shuffle").permutation(len(pool))
    sizes = np.cumsum([len(held) for held in setting.holdings])[:-1]
    return tuple(np.split(pool[order], sizes))


def _settled(found: Discovery, setting: Setting) -> Discovery:
    """Links chosen from noised messages, settled and measured with what the devices truly hold."""
    if setting.reported_network is setting.network:
        return found
    config, slots = found.config, found.graph.slots
    network = replace(setting.network, drop=found.network.drop, rss=found.network.rss)
    known = known_to(method_named(found.method), network, config.channel)
    graph = with_losses(graph_of(known, slots, config.reward.over_ask), network)
    return replace(found, network=network, graph=graph, evaluation=evaluate(network, graph, config.reward))
