"""The road that every run takes, `run`, `compare` and `reproduce` alike.

1. setting      data on devices, partitions, a network (setting.py)
2. prepared     a graph is discovered, datapoints move over it: `compare` does so in plain sight, workers with `prepare`
3. federations  what everybody holds now, for `train_many` (federation/training.py)
4. values       what was measured, as plain values (cells/values.py)
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

from d2dfl.config import Config
from d2dfl.config.sections.learning import ExchangeConfig, Keeping
from d2dfl.data import Dataset
from d2dfl.discovery.changing_channel import known_to, with_losses
from d2dfl.discovery.discover import Discovery, discover
from d2dfl.discovery.evaluation import evaluate, graph_of
from d2dfl.discovery.methods import IID, method_named
from d2dfl.errors import UserError
from d2dfl.experiment.overheard import trace_to_tell
from d2dfl.experiment.setting import Setting, paradigm_of
from d2dfl.federation import (
    Curves,
    Federated,
    Room,
    Starts,
    State,
    check_training,
    model_named,
    parameters_of,
    start,
)
from d2dfl.federation.models import Factory, Shape, default_encoder, default_model, outputs_for, tried
from d2dfl.network import Network
from d2dfl.network.graph import Graph
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


def prepare(config: Config, setting: Setting, method: str) -> PreparedCell:
    """Discover a graph by what the devices tell, and move the datapoints: what `compare` does, where others watch if anybody."""
    if method == IID:
        return shuffled(setting)
    network = setting.reported_network
    found = discover(network, config, seed=setting.seed, method=method, trace=trace_to_tell(network, config, method))
    agreed = settled(found, setting)
    moved = exchange(**delivery(agreed, setting, config.exchange))
    return delivered(method, setting, agreed, moved)


def settled(found: Discovery, setting: Setting) -> Discovery:
    """Links chosen from noised messages, settled and measured with what the devices truly hold."""
    if setting.reported_network is setting.network:
        return found
    config, slots = found.config, found.graph.slots
    network = replace(setting.network, drop=found.network.drop, rss=found.network.rss)
    known = known_to(method_named(found.method), network, config.channel)
    graph = with_losses(graph_of(known, slots, config.reward.over_ask), network)
    return replace(found, network=network, graph=graph, evaluation=evaluate(network, graph, config.reward))


class Delivery(TypedDict):
    """What `exchange` is asked to do."""

    graph: Graph
    holdings: Sequence[NDArray[np.int64]]
    partition_of: NDArray[np.int64]
    threshold: NDArray[np.float64]
    seed: int
    keep: Keeping
    lossy: bool
    attempts: int
    within: Network | None


def delivery(agreed: Discovery, setting: Setting, settings: ExchangeConfig) -> Delivery:
    """The exchange over the links that were agreed on."""
    return {
        "graph": agreed.graph,
        "holdings": setting.holdings,
        "partition_of": setting.partitioning.partition_of,
        "threshold": agreed.network.threshold,
        "seed": setting.seed,
        "keep": settings.keep,
        "lossy": settings.lossy,
        "attempts": settings.attempts,
        "within": agreed.network if settings.budget == "hard" else None,
    }


def delivered(method: str, setting: Setting, agreed: Discovery, moved: ExchangeResult) -> PreparedCell:
    """What everybody holds after an exchange, or a sentence where somebody has nothing left to train on."""
    empty = [device for device, held in enumerate(moved.holdings) if not len(held) and len(setting.holdings[device])]
    if empty:
        raise UserError(
            f"the exchange left device {empty[0]} without data: raise network.threshold, or set exchange.keep=acknowledged"
        )
    return PreparedCell(method, setting, agreed, moved, moved.holdings)


def shuffled(setting: Setting) -> PreparedCell:
    """The yardstick: the same datapoints, dealt out anew without any skew."""
    pool = np.concatenate(setting.holdings)
    order = stream(setting.seed, "iid-shuffle").permutation(len(pool))
    sizes = np.cumsum([len(held) for held in setting.holdings])[:-1]
    return PreparedCell(IID, setting, None, None, tuple(np.split(pool[order], sizes)))


@dataclass(frozen=True)
class Federations:
    """What is prepared, as `train_many` takes it."""

    items: Sequence[PreparedCell]
    factory: Factory  # of the model
    runs: Sequence[tuple[Federated, int]]  # data and seed
    starts: Starts

    def trained(self, curves: Sequence[Curves]) -> list[TrainedCell]:
        """The cells with what came of their trainings."""
        shapes = {(data.shape, data.outputs) for data, _ in self.runs}
        parameters = {shape: parameters_of(self.factory, *shape) for shape in shapes}
        return [
            TrainedCell(item, data, curve, parameters[data.shape, data.outputs])
            for item, (data, _), curve in zip(self.items, self.runs, curves, strict=True)
        ]


def federations_of(
    config: Config,
    items: Sequence[PreparedCell],
    dataset: Dataset,
    *,
    model: Factory | None = None,
    saved: Starts | None = None,
    room: Room | None = None,
) -> Federations:
    """What is prepared, ready to be trained: together where that pays, and from saved states where there are any.

    `model` takes the place of the configuration's. `room` is where rows are kept; None: in memory.
    """
    factory = model or factory_of(config, dataset)
    runs = [(federated(config, item, dataset), item.setting.seed) for item in items]
    room = room or check_training(factory, runs, config.federation)

    def state_of(number: int) -> State:
        if saved is not None and saved.rounds[number] > 0:
            return saved.state(number)
        data, seed = runs[number]
        return start(factory, data, config.federation, seed, room)

    return Federations(items, factory, runs, Starts(saved.rounds if saved else [0] * len(runs), state_of))


def federated(config: Config, item: PreparedCell, dataset: Dataset) -> Federated:
    """What the devices train on."""
    targets = item.setting.partitioning.labels
    return Federated.of(dataset, item.holdings, targets=targets, loss=paradigm_of(config).loss)


def factory_of(config: Config, dataset: Dataset) -> Factory:
    """The model of the configuration; auto: one that suits the inputs."""
    outputs = outputs_for(dataset.classes, paradigm_of(config).encodes)
    return tried(model_named(suited(config.federation.model, config, dataset.shape)), dataset.shape, outputs)


def suited(name: str, config: Config, shape: Shape) -> str:
    """The name of a model; instead of auto that of one which suits the paradigm and inputs of this shape."""
    suits = default_encoder if paradigm_of(config).encodes else default_model
    return suits(shape) if name == "auto" else name
