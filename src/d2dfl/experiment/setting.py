"""All devices in one process: discover a graph, move the datapoints, train.

1. data       load the set, allocate it to the devices, partition it as the paradigm does
2. network    links, trust, thresholds around what the devices hold
3. discovery  find the graph
4. exchange   move whole datapoints over lossy links
5. training   federated learning on what everybody holds now
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from d2dfl.config import Config
from d2dfl.data import Dataset
from d2dfl.data.allocate import allocate, largest
from d2dfl.discovery.discover import METHODS, Discovery, discover, method_named, methods_listed
from d2dfl.discovery.evaluation import evaluate, graph_of
from d2dfl.discovery.game.pair_claims import single_label
from d2dfl.energy.ledger import TRAINING, Ledger, Meter
from d2dfl.energy.radios import radio_of
from d2dfl.errors import UserError
from d2dfl.experiment.inputs import configured_links
from d2dfl.experiment.inputs import data_set as data_set
from d2dfl.federation import Curves, Federated
from d2dfl.network import Network
from d2dfl.network.links import Links
from d2dfl.partition.kmeans import Clusters
from d2dfl.partition.paradigms import PARADIGMS, Paradigm, Partitioning
from d2dfl.partition.privacy import noised_counts
from d2dfl.partition.sketches import sketched_distances
from d2dfl.rng import stream
from d2dfl.transfer import ExchangeResult, exchange, held_counts

IID = "iid"  # not a method: the same data shuffled over the devices, the yardstick of every method


@dataclass(frozen=True)
class Setting:
    """What all methods of one seed share."""

    config: Config  # by which it was made
    seed: int
    dataset: Dataset
    holdings: tuple[NDArray[np.int64], ...]  # per device, datapoint numbers
    partitioning: Partitioning
    network: Network
    reported_network: Network  # the network as its devices tell of it; another one only where messages are noised
    truth: NDArray[np.int64]  # [datapoint] class or range of the target, for measurements only


@dataclass(frozen=True)
class Prepared:
    """One method on one setting, ready to train."""

    method: str
    setting: Setting
    discovery: Discovery | None  # None for the i.i.d. yardstick
    exchanged: ExchangeResult | None
    data: Federated


def paradigm_of(config: Config) -> Paradigm:
    """The paradigm of the configuration."""
    return PARADIGMS[config.partition.paradigm]


def setting_of(config: Config, seed: int, dataset: Dataset, links: Links | None = None) -> Setting:
    """Steps 1 and 2. Without links of one's own, those that the configuration names or describes."""
    paradigm = paradigm_of(config)
    paradigm.check(dataset)
    radio_of(config.energy)  # energy is counted at the end: a wrong name is found now
    truth = paradigm.skew(config, dataset)
    holdings = dataset.owners.holdings if dataset.owners else dealt_out(config, truth, seed)
    around = (links or configured_links(config)).around
    partitioning = paradigm.part(config, dataset, holdings, seed)
    counts = held_counts(holdings, partitioning.partition_of, partitioning.partitions)
    network = _with_clusters(around(counts, config, seed), partitioning.clusters, config)
    reported = network
    if config.privacy.epsilon == 0:
        network = reported = _with_sketches(network, dataset, partitioning, holdings, seed)
    else:  # sketches are not noised, so nobody tells any
        heard = (
            noised_counts(counts, config.privacy, seed)
            if partitioning.reported is None
            else partitioning.reported.counts
        )
        reported = _with_clusters(around(heard.astype(np.float64), config, seed), partitioning.reported, config)
    return Setting(config, seed, dataset, holdings, partitioning, network, reported, truth)


def dealt_out(config: Config, truth: NDArray[np.int64], seed: int) -> tuple[NDArray[np.int64], ...]:
    """Who holds what at the start, by the configuration's rule."""
    rule, devices = config.data.allocation, config.network.devices
    samples = config.data.samples or min(largest(truth, devices, rule), config.network.samples_per_device)
    return tuple(allocate(truth, devices, rule, samples=samples, seed=seed))


def _with_clusters(network: Network, clusters: Clusters | None, config: Config) -> Network:
    """Where partitions are data clusters: their shapes, what a device asks for and what it keeps (R24)."""
    if clusters is None:
        return network
    settings = config.partition
    return replace(
        network,
        threshold=settings.keep * network.counts,
        centroids=clusters.centroids,
        covariances=clusters.covariances,
        request=settings.request * network.counts.sum(axis=1),
    )


def _with_sketches(
    network: Network, dataset: Dataset, partitioning: Partitioning, holdings: tuple[NDArray[np.int64], ...], seed: int
) -> Network:
    """Where devices hold a single label: how far apart labels lie, as the devices find out."""
    if partitioning.clusters is not None or (single_label(network.counts) < 0).all():
        return network
    distance = sketched_distances(
        dataset.train_inputs, partitioning.partition_of, holdings, partitioning.partitions, seed
    )
    return replace(network, label_distance=distance)


def prepare(config: Config, setting: Setting, method: str) -> Prepared:
    """Steps 3 and 4."""
    if method == IID:
        pool = np.concatenate(setting.holdings)
        order = stream(setting.seed, "iid-shuffle").permutation(len(pool))
        sizes = np.cumsum([len(held) for held in setting.holdings])[:-1]
        return Prepared(IID, setting, None, None, learning(config, setting, tuple(np.split(pool[order], sizes))))
    found, moved = exchanged(config, setting, method)
    return Prepared(method, setting, found, moved, learning(config, setting, moved.holdings))


def exchanged(config: Config, setting: Setting, method: str) -> tuple[Discovery, ExchangeResult]:
    """Discover the graph and move the datapoints."""
    found = _settled(
        discover(setting.reported_network, config, seed=setting.seed, method=method_named(method).name), setting
    )
    moved = exchange(
        found.graph,
        setting.holdings,
        setting.partitioning.partition_of,
        found.network.threshold,
        seed=setting.seed,
        keep=config.exchange.keep,
        lossy=config.exchange.lossy,
        attempts=config.exchange.attempts,
    )
    empty = [device for device, held in enumerate(moved.holdings) if not len(held) and len(setting.holdings[device])]
    if empty:
        raise UserError(
            f"the exchange left device {empty[0]} without data: raise network.threshold, or set exchange.keep=acknowledged"
        )
    return found, moved


def _settled(found: Discovery, setting: Setting) -> Discovery:
    """Links chosen from noised messages, settled and measured with what the devices truly hold."""
    if setting.reported_network is setting.network:
        return found
    config, slots = found.config, found.graph.slots
    network = replace(setting.network, drop=found.network.drop)
    graph = graph_of(network, slots, config.reward.threshold_rule == "over-ask")
    return replace(found, network=network, graph=graph, evaluation=evaluate(network, graph, config.reward))


def learning(config: Config, setting: Setting, holdings: tuple[NDArray[np.int64], ...]) -> Federated:
    """What the devices train on."""
    return Federated.of(setting.dataset, holdings, targets=setting.partitioning.labels, loss=paradigm_of(config).loss)


def energy(prepared: Prepared, curves: Curves, parameters: int, radio: str | None = None) -> Ledger:
    """Joules that the devices spent until the end of the training (R28); None: the configuration's radio.

    Messages that partition the data go through the server; messages of the discovery are sent until they arrive; a
    datapoint is charged for every attempt; a model, which training takes to arrive, once. The first weights come from
    a common seed and cost nothing.
    """
    setting = prepared.setting
    settings, devices = setting.config.energy, setting.network.devices
    meter = Meter.of(setting.network, settings, radio)
    up, down = setting.partitioning.bits(devices, setting.config.discovery.real_bits)
    talk = meter.talk_j(prepared.discovery.message_bits if prepared.discovery else 0.0)
    before = np.stack([meter.up_j(up) + meter.down_j(down), talk, _datapoints_j(prepared, meter)], axis=1)
    rounds = np.zeros((len(curves.links), devices, len(TRAINING)))
    model_bits = float(settings.parameter_bits * parameters)
    for number, links in enumerate(curves.links):
        senders, receivers, models = np.array(links, dtype=np.int64).reshape(-1, 3).T
        rounds[number, :, 0] = meter.up_j(model_bits * np.array(curves.uploads[number]))
        rounds[number, :, 1] = meter.down_j(model_bits * np.array(curves.downloads[number]))
        rounds[number, :, 2] = meter.between_j(senders, receivers, model_bits * models.astype(np.float64))
    return Ledger(before, rounds)


def _datapoints_j(prepared: Prepared, meter: Meter) -> NDArray[np.float64]:
    """[device] joules of the exchange. The yardstick's shuffle is no transmission."""
    transfers = prepared.exchanged.transfers if prepared.exchanged else ()
    values = int(np.prod(prepared.setting.dataset.shape)) + 1  # and the label
    bits = float(values * prepared.setting.config.energy.value_bits)
    return meter.between_j(
        np.array([transfer.transmitter for transfer in transfers], dtype=np.int64),
        np.array([transfer.receiver for transfer in transfers], dtype=np.int64),
        np.array([bits * transfer.transmissions for transfer in transfers], dtype=np.float64),
    )


def methods_named(text: str) -> list[str]:
    """Method names from "all" or a comma-separated list; the optimum and the GCN only when asked for by name."""
    if text == "all":
        return [name for name in METHODS if name not in ("optimum", "gcn", "bandit", "greedy")]
    return methods_listed(text)
