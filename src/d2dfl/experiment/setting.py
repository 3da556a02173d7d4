"""What all methods of one seed share: the data on the devices, its partitions, the network around them."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from d2dfl.config import Config
from d2dfl.data import Dataset
from d2dfl.data.allocate import allocate, largest, what_would_fit
from d2dfl.discovery.game.pair_claims import single_label
from d2dfl.energy.radios import radio_of
from d2dfl.errors import UserError
from d2dfl.experiment.inputs import configured_links
from d2dfl.network import Network
from d2dfl.network.links import Links
from d2dfl.partition.kmeans import DataClusters
from d2dfl.partition.paradigms import PARADIGMS, Paradigm, Partitioning
from d2dfl.partition.privacy import noised_counts, sketch_noise
from d2dfl.partition.sketches import consenting, sketched_distances
from d2dfl.transfer import held_counts


@dataclass(frozen=True)
class Setting:
    """Everything but the datapoints themselves, which would travel with every one of these to a worker."""

    config: Config  # by which it was made
    seed: int
    holdings: tuple[NDArray[np.int64], ...]  # per device, datapoint numbers
    partitioning: Partitioning
    network: Network
    reported_network: Network  # as its devices tell of it; another one only where messages are noised
    truth: NDArray[np.int64]  # [datapoint] class or range of the target, for measurements only
    values: int  # numbers in a datapoint, its label included


def paradigm_of(config: Config) -> Paradigm:
    """The paradigm of the configuration."""
    return PARADIGMS[config.partition.paradigm]


def setting_of(config: Config, seed: int, dataset: Dataset, links: Links | None = None) -> Setting:
    """Deal the data out to the devices, partition it as the paradigm does, and lay a network around it.

    Data that has owners stays with them. Without links of one's own, those that the configuration names or describes.
    """
    paradigm = paradigm_of(config)
    paradigm.check(dataset)
    radio_of(config.energy)  # energy is counted at the end: a wrong name is found now
    truth = paradigm.skew(config, dataset)
    holdings = holdings_at_start(config, dataset, truth, seed)
    partitioning = paradigm.part(config, dataset, holdings, seed)
    names = dataset.owners.names if dataset.owners else ()

    def around(counts: NDArray[np.float64]) -> Network:
        found = (links or configured_links(config)).around(counts, config, seed)
        return replace(found, device_names=names, partition_names=partitioning.names)

    counts = held_counts(holdings, partitioning.partition_of, partitioning.partitions)
    network = _with_clusters(around(counts), partitioning.clusters, config)
    reported = network
    if config.privacy.epsilon == 0:
        network = reported = _with_sketches(network, dataset, partitioning, holdings, config, seed)
    else:
        told = partitioning.reported
        heard = noised_counts(counts, config.privacy, seed) if told is None else told.counts
        reported = _with_clusters(around(heard.astype(np.float64)), told, config)
        reported = _with_sketches(reported, dataset, partitioning, holdings, config, seed)
    values = int(np.prod(dataset.shape)) + 1
    return Setting(
        config=config,
        seed=seed,
        holdings=holdings,
        partitioning=partitioning,
        network=network,
        reported_network=reported,
        truth=truth,
        values=values,
    )


def holdings_at_start(
    config: Config, dataset: Dataset, truth: NDArray[np.int64], seed: int
) -> tuple[NDArray[np.int64], ...]:
    """Who holds what at the start: as the data says, or dealt out by the configuration's rule."""
    if dataset.owners:
        return dataset.owners.holdings
    rule, devices = config.data.allocation, config.network.devices
    samples = config.data.samples or min(largest(truth, devices, rule), config.network.samples_per_device)
    if not samples:
        raise UserError(
            f"{dataset.name} has {len(truth):,} datapoints to train on, too few for {rule} at each of {devices:,} devices: "
            f"give {what_would_fit(truth, devices, rule)}"
        )
    return tuple(allocate(truth, devices, rule, samples=samples, seed=seed, repeat=config.data.repeat))


def _with_clusters(network: Network, clusters: DataClusters | None, config: Config) -> Network:
    """The network with the shapes of data clusters, what a device asks for and what it keeps (R24), where partitions are data clusters."""
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
    network: Network,
    dataset: Dataset,
    partitioning: Partitioning,
    holdings: tuple[NDArray[np.int64], ...],
    config: Config,
    seed: int,
) -> Network:
    """The network with how far apart labels lie, as those who consent find out, where devices tell that they hold a single label."""
    if partitioning.clusters is not None or (single_label(network.counts) < 0).all():
        return network
    distance = sketched_distances(
        dataset.train_inputs,
        partitioning.partition_of,
        holdings,
        seed,
        consent=consenting(network.candidates, network.trust),
        least=config.privacy.contributors,
        noise=sketch_noise(config.privacy),
    )
    return replace(network, label_distance=distance)
