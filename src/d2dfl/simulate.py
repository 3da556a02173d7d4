"""All devices in one process: discover a graph, move the datapoints, train.

1. data       load the set, allocate it to the devices
2. network    links, trust, thresholds around what the devices hold
3. discovery  find the graph
4. exchange   move whole datapoints over lossy links
5. training   federated learning on what everybody holds now
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from d2dfl.config import Config
from d2dfl.data import Dataset
from d2dfl.data.allocate import allocate, largest
from d2dfl.data.datasets import load
from d2dfl.errors import UserError
from d2dfl.exchange import Exchanged, exchange, held_counts
from d2dfl.federation import Curves, Federated
from d2dfl.methods import METHODS, Discovery, discover, method_named
from d2dfl.network import Network
from d2dfl.network.energy import Ledger, ledger, link_distances_m
from d2dfl.rng import stream

IID = "iid"  # not a method: the same data shuffled over the devices, the yardstick of every method


@dataclass(frozen=True)
class Setting:
    """What all methods of one seed share."""

    seed: int
    dataset: Dataset
    holdings: tuple[NDArray[np.int64], ...]  # per device, datapoint numbers
    partition_of: NDArray[np.int64]  # [datapoint]
    network: Network


@dataclass(frozen=True)
class Prepared:
    """One method on one setting, ready to train."""

    method: str
    setting: Setting
    discovery: Discovery | None  # None for the i.i.d. yardstick
    exchanged: Exchanged | None
    data: Federated


def setting_of(config: Config, seed: int, dataset: Dataset) -> Setting:
    """Steps 1 and 2."""
    if not dataset.classes:
        raise UserError(f"{dataset.name} has no classes: give a classification set, such as digits")
    partition_of = dataset.train_targets.astype(np.int64)
    rule, devices = config.data.allocation, config.network.devices
    samples = config.data.samples or min(largest(partition_of, devices, rule), config.network.samples_per_device)
    holdings = tuple(allocate(partition_of, devices, rule, samples=samples, seed=seed))
    counts = held_counts(holdings, partition_of, dataset.classes)
    return Setting(seed, dataset, holdings, partition_of, Network.around(counts, config, seed))


def prepare(config: Config, setting: Setting, method: str) -> Prepared:
    """Steps 3 and 4."""
    if method == IID:
        pool = np.concatenate(setting.holdings)
        order = stream(setting.seed, "iid-shuffle").permutation(len(pool))
        sizes = np.cumsum([len(held) for held in setting.holdings])[:-1]
        shuffled = tuple(np.split(pool[order], sizes))
        return Prepared(IID, setting, None, None, Federated.of(setting.dataset, shuffled))
    found = discover(setting.network, config, seed=setting.seed, method=method_named(method).name)
    moved = exchange(
        found.graph,
        setting.holdings,
        setting.partition_of,
        found.network.threshold,
        seed=setting.seed,
        keep=config.exchange.keep,
        lossy=config.exchange.lossy,
    )
    empty = [device for device, held in enumerate(moved.holdings) if not len(held) and len(setting.holdings[device])]
    if empty:
        raise UserError(
            f"the exchange left device {empty[0]} without data: raise network.threshold, or set exchange.keep=acknowledged"
        )
    return Prepared(method, setting, found, moved, Federated.of(setting.dataset, moved.holdings))


def data_set(config: Config, seed: int) -> Dataset:
    """The dataset of the configuration."""
    data = config.data
    return load(
        data.dataset, seed=seed, split=data.split, verify=data.verify, download=data.download, radio=config.radio
    )


def energy(prepared: Prepared, curves: Curves, parameters: int) -> Ledger:
    """Joules spent until the end of the training (R28): 8 bits an input value, 32 a model parameter."""
    network = prepared.setting.network
    distances = link_distances_m(network)
    sent: list[tuple[float, float]] = []
    if prepared.exchanged is not None:
        for transfer in prepared.exchanged.transfers:
            slot = int(np.nonzero(network.candidates[transfer.receiver] == transfer.transmitter)[0][0])
            sent.append((float(len(transfer.sent)), float(distances[transfer.receiver, slot])))
    values = int(np.prod(prepared.setting.dataset.train_inputs.shape[1:])) + 1
    return ledger(
        network,
        prepared.discovery.message_bits if prepared.discovery else 0.0,
        sent,
        8.0 * values,
        sum(curves.to_server),
        sum(curves.from_server),
        sum(curves.between),
        32.0 * parameters,
    )


def methods_named(text: str) -> list[str]:
    """Method names from "all" or a comma-separated list; the optimum and the GCN only when asked for by name."""
    if text == "all":
        return [name for name in METHODS if name not in ("optimum", "gcn", "bandit", "greedy")]
    return [method_named(name.strip()).name for name in text.split(",")]
