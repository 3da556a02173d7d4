"""Learning paradigms: what is known about the data, how it is partitioned, what the models learn.

All four take the same road, discover, exchange, train; a paradigm is a record here. The partition decides what messages,
trust and thresholds speak about: labels, pseudo-labels, ranges of a target, or data clusters of each device's own.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from d2dfl.config import Config
from d2dfl.data import Dataset
from d2dfl.data.own import TargetKind
from d2dfl.errors import UserError
from d2dfl.partition.features import features_of
from d2dfl.partition.kmeans import DataClusters, own_clusters, shared_clusters
from d2dfl.partition.pca import EVERYBODY, SERVER, Message, Subspace, common_subspace
from d2dfl.partition.privacy import clip_norm, component_noise, noised_clusters
from d2dfl.partition.propagation import choose_labelled, pseudo_labels
from d2dfl.partition.regression import ranges_of

Indices = NDArray[np.int64]


@dataclass(frozen=True)
class Partitioning:
    """The devices' data in partitions."""

    partition_of: Indices  # [datapoint]; what moves, trust and thresholds speak about
    partitions: int
    labels: Indices | None = None  # [datapoint] training targets that are not the set's own
    names: tuple[str, ...] = ()  # of the partitions, where they are classes
    clusters: DataClusters | None = None  # where partitions are data clusters of each device's own
    reported: DataClusters | None = None  # the same as devices tell of them, noised where privacy is asked for
    messages: tuple[Message, ...] = ()  # what was told to find them
    measures: Mapping[str, float] = field(default_factory=dict)
    by_device: Mapping[str, tuple[float, ...]] = field(default_factory=dict)  # the same, one value a device

    def bits(self, devices: int, real_bits: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """[device] bits that it sent up to the server, and [device] that came down to it."""
        up, down = np.zeros(devices), np.zeros(devices)
        for message in self.messages:
            if message.receiver == SERVER:
                up[message.sender] += message.values * real_bits
            else:
                down[slice(None) if message.receiver == EVERYBODY else message.receiver] += message.values * real_bits
        return up, down


@dataclass(frozen=True)
class Paradigm:
    """One way to learn."""

    name: str
    title: str
    skew: Callable[[Config, Dataset], Indices]  # the classes by which the data is dealt out to the devices
    part: Callable[[Config, Dataset, Sequence[Indices], int], Partitioning]
    loss: str | None = None  # None: what suits the dataset
    encodes: bool = False  # models are encoders
    targets: TargetKind = "classes"  # what it learns; any: nothing, and classes only score it
    by_class: bool = False  # partitions are classes of the set, which trust can name

    @property
    def classes(self) -> bool:
        """Whether it needs a set with classes."""
        return self.targets != "numbers"

    def check(self, dataset: Dataset) -> None:
        """Refuse a dataset that does not suit."""
        if self.classes and not dataset.classes:
            raise UserError(
                f"{dataset.name} has no classes, which {self.name} learning needs: take --paradigm regression"
            )
        if not self.classes and dataset.classes:
            raise UserError(f"{dataset.name} has classes and no numbers to predict: give a set such as california")


def _classes(_: Config, dataset: Dataset) -> Indices:
    return dataset.train_targets.astype(np.int64)


def _supervised(config: Config, dataset: Dataset, holdings: Sequence[Indices], seed: int) -> Partitioning:
    """Partitions are the labels."""
    del holdings, seed
    return Partitioning(_classes(config, dataset), dataset.classes, names=dataset.class_names)


def _parts(config: Config, dataset: Dataset, holdings: Sequence[Indices]) -> list[NDArray[np.float32]]:
    """[device] what projections are made of, one row a datapoint."""
    settings = config.partition
    empty = next((device for device, held in enumerate(holdings) if not len(held)), None)
    if empty is not None:
        raise UserError(
            f"device {empty} holds no datapoints, and {settings.paradigm} learning asks each for some: leave it out"
        )
    return [features_of(settings.features, dataset.train_inputs[held]) for held in holdings]


def _subspace(config: Config, dataset: Dataset, parts: Sequence[NDArray[np.float32]], seed: int) -> Subspace:
    """The common subspace of every device's features, noised where privacy is asked for (R34)."""
    settings, noise = config.partition, None
    if config.privacy.epsilon > 0:
        if settings.features != "raw":
            raise UserError("noise is made for inputs of mean 0, which features are not: take partition.features=raw")
        bound = math.sqrt(float(np.prod(dataset.shape)))  # the usual length of a standardised input
        parts = [clip_norm(part, bound) for part in parts]
        noise = component_noise(config.privacy, seed, bound)
    return common_subspace(parts, settings.components, settings.pca, noise=noise)


def projections_of(
    config: Config, dataset: Dataset, holdings: Sequence[Indices], seed: int
) -> tuple[list[NDArray[np.float64]], Subspace]:
    """Every device's datapoints on the common subspace."""
    parts = _parts(config, dataset, holdings)
    subspace = _subspace(config, dataset, parts, seed)
    return [subspace.project(part) for part in parts], subspace


def _semi(config: Config, dataset: Dataset, holdings: Sequence[Indices], seed: int) -> Partitioning:
    """Partitions are pseudo-labels, and so are training targets (R22, R35)."""
    settings = config.partition
    targets = _classes(config, dataset)
    projections, subspace = projections_of(config, dataset, holdings, seed)
    found = pseudo_labels(
        projections,
        targets,
        holdings,
        dataset.classes,
        labelled=choose_labelled(targets, holdings, settings.labelled, seed),
        labeller=settings.labeller,
        neighbours=settings.neighbours,
        seed=seed,
    )
    # Where every datapoint of a device is labelled there is nothing to get wrong.
    scores = {"label accuracy": found.accuracy, "balanced label accuracy": found.balanced}
    by_device = {name: tuple(np.where(np.isfinite(values), values, 1.0).tolist()) for name, values in scores.items()}
    known = {name: values[np.isfinite(values)] for name, values in scores.items()}
    measures = {name: float(values.mean()) if len(values) else 1.0 for name, values in known.items()}
    return Partitioning(
        found.labels,
        dataset.classes,
        found.labels,
        dataset.class_names,
        messages=subspace.messages,
        measures=measures,
        by_device=by_device,
    )


def _unsupervised(config: Config, dataset: Dataset, holdings: Sequence[Indices], seed: int) -> Partitioning:
    """Partitions are K-means clusters of the projections, own or common to all."""
    settings = config.partition
    projections, subspace = projections_of(config, dataset, holdings, seed)
    number, datapoints = settings.clusters, len(dataset.train_inputs)

    def disguise(found: DataClusters) -> DataClusters:
        bound = math.sqrt(float(np.prod(dataset.shape)))
        return noised_clusters(found, config.privacy, seed, bound) if config.privacy.epsilon > 0 else found

    if settings.clustering == "shared":
        found = shared_clusters(projections, holdings, datapoints, number, seed, disguise)
        return Partitioning(found.assignment, number, messages=(*subspace.messages, *found.messages))
    found = own_clusters(projections, holdings, datapoints, number, seed)
    return Partitioning(found.assignment, number, clusters=found, reported=disguise(found), messages=subspace.messages)


def _target_ranges(config: Config, dataset: Dataset) -> Indices:
    """Ranges of the target over the whole set, by which devices are skewed."""
    cuts = config.partition.cuts
    everything = [np.arange(len(dataset.train_targets))]
    return ranges_of(dataset.train_targets, everything, config.partition.ranges, "global" if cuts == "local" else cuts)


def _regression(config: Config, dataset: Dataset, holdings: Sequence[Indices], seed: int) -> Partitioning:
    """Partitions are ranges of the target (R36)."""
    del seed
    settings = config.partition
    return Partitioning(ranges_of(dataset.train_targets, holdings, settings.ranges, settings.cuts), settings.ranges)


PARADIGMS: Mapping[str, Paradigm] = MappingProxyType(
    {
        paradigm.name: paradigm
        for paradigm in (
            Paradigm("supervised", "Supervised", _classes, _supervised, by_class=True),
            Paradigm("semi", "Semi-supervised", _classes, _semi, by_class=True),
            Paradigm("unsupervised", "Unsupervised", _classes, _unsupervised, "triplet", encodes=True, targets="any"),
            Paradigm("regression", "Regression", _target_ranges, _regression, targets="numbers"),
        )
    }
)
OF_NUMBERS = next(item.name for item in PARADIGMS.values() if not item.classes)
