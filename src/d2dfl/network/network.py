"""The Network record: everything a discovery knows, in the receiver x slot layout."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from d2dfl.config import ChannelConfig, Config, config_from
from d2dfl.config.needs import NetworkShape, check_network, slots_of
from d2dfl.config.sections.graph import threshold_share
from d2dfl.config.seeds import checked_seed
from d2dfl.data.shares import label_shares, whole_parts
from d2dfl.errors import UserError
from d2dfl.network import channel, clusters, trust
from d2dfl.notebook import facts_html, line
from d2dfl.rng import stream
from d2dfl.terminal import plain
from d2dfl.words import counted

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Network:
    """N devices, what they hold, whom they hear and who trusts them.

    Slot s of receiver i is the device candidates[i, s]; -1 pads. A full mesh of 25 and a radio-range graph of 100,000
    devices have the same layout, and a device can never be its own candidate.
    """

    candidates: NDArray[np.int32]  # [receiver, slot]
    drop: NDArray[np.float64]  # [receiver, slot] probability that a packet is lost
    trust: NDArray[np.bool_]  # [receiver, slot, partition] the slot's device lets the receiver have this partition
    counts: NDArray[np.float64]  # [device, partition] datapoints held
    threshold: NDArray[np.float64]  # [device, partition] datapoints a device wants to hold, and never gives away
    cluster: NDArray[np.int32]  # [device] reliable cluster
    budget: NDArray[np.float64]  # [cluster] datapoints the cluster may request from outside
    positions: NDArray[np.float64] | None = None  # [device, 2] in metres
    rss: NDArray[np.float64] | None = None  # [receiver, slot] mean received power
    # Where partitions are data clusters of each device's own (Algorithm 2), not labels:
    centroids: NDArray[np.float64] | None = None  # [device, cluster, component]
    covariances: NDArray[np.float64] | None = None  # [device, cluster, component, component]
    request: NDArray[np.float64] | None = None  # [device] datapoints asked for over a link (R24)
    # Where devices know it: how far apart partitions lie, in any unit; alike ones are easily confused.
    label_distance: NDArray[np.float64] | None = None  # [partition, partition]
    # Where the data tells them; () where devices and partitions are numbers.
    device_names: tuple[str, ...] = ()
    partition_names: tuple[str, ...] = ()

    def device_name(self, device: int) -> str:
        """What people call a device: its name, or its number."""
        return plain(self.device_names[device]) if self.device_names else str(device)

    def partition_name(self, partition: int) -> str:
        """The name of a class, a range or a data cluster, or its number."""
        return plain(self.partition_names[partition]) if self.partition_names else f"partition {partition}"

    @property
    def devices(self) -> int:
        return int(self.counts.shape[0])

    @property
    def partitions(self) -> int:
        return int(self.counts.shape[1])

    @property
    def slots(self) -> int:
        return int(self.candidates.shape[1])

    def _facts(self) -> dict[str, str]:
        heard = self.candidates >= 0
        links = self.drop[heard]
        return {
            "devices": f"{counted(self.devices, 'device')} with {self.counts.sum():,.0f} datapoints",
            "partitions": counted(self.partitions, "partition"),
            "links": f"{counted(int(heard.sum()), 'possible link')}, loss {links.mean() if links.size else 0:.3f} in the mean",
            "trust": f"trust {self.trust[heard].mean() if links.size else 0:.2f}",
            "clusters": counted(len(self.budget), "reliable cluster"),
        }

    def __repr__(self) -> str:
        return line("Network", *self._facts().values())

    def _repr_html_(self) -> str:
        return facts_html("Network", self._facts())

    def plot(self, path: str | Path | None = None) -> "Figure":
        """Devices where they stand, without links, as a figure; with a path (.png, .svg, .pdf, .html) it is drawn there, too."""
        from d2dfl.report.drawing.picture import network_figure

        return network_figure(self, path=None if path is None else Path(path))

    @property
    def shape(self) -> NetworkShape:
        """What memory and time depend on."""
        components = 0 if self.centroids is None else int(self.centroids.shape[2])
        return NetworkShape(self.devices, self.slots, self.partitions, components)

    @property
    def population(self) -> NDArray[np.float64]:
        """Label distribution of all data together: what i.i.d. devices would hold. Zeros if there is no data."""
        total = self.counts.sum(axis=0)
        return np.asarray(total / max(total.sum(), 1.0) if total.sum() > 0 else total)

    @property
    def surplus(self) -> NDArray[np.float64]:
        """[device, partition] what a device can give away."""
        return np.asarray(np.maximum(self.counts - self.threshold, 0.0))

    @property
    def need(self) -> NDArray[np.float64]:
        """[device, partition] what a device lacks; data clusters of others are all welcome, up to the request."""
        if self.request is not None:
            return np.asarray(np.broadcast_to(self.request[:, None], self.counts.shape)).copy()
        return np.asarray(np.maximum(self.threshold - self.counts, 0.0))

    def with_drop(self, rss: NDArray[np.float64], config: ChannelConfig) -> Self:
        """The same network at another moment of a changing channel."""
        loss = channel.drop_probability(rss, config.rate, channel.noise_power(config))
        return replace(self, rss=rss, drop=np.where(self.candidates >= 0, loss, 1.0))

    @classmethod
    def generate(cls, config: Config | Mapping[str, Any] | None = None, seed: int = 0) -> Self:
        """A random network by the configuration: all settings, or those that are changed by their names."""
        config, seed = config_from(config, Config()), checked_seed(seed)
        settings = config.network
        _check_size(settings.devices, settings.partitions, config)
        counts = label_skewed_counts(
            settings.devices, settings.partitions, settings.labels_per_device, settings.samples_per_device, seed
        )
        return cls.around(counts, config, seed)

    @classmethod
    def around(cls, counts: NDArray[np.float64], config: Config, seed: int = 0) -> Self:
        """A random network of devices that hold these counts[device, partition]: links, trust, thresholds, budgets."""
        devices, partitions = counts.shape
        _check_size(devices, partitions, config)
        positions = channel.place(devices, config.channel, seed)
        candidates = channel.hear(positions, config.channel.slots)
        rss = channel.received_power(positions, candidates, config.channel, seed)
        drop = channel.drop_probability(rss, config.channel.rate, channel.noise_power(config.channel))
        cluster = clusters.reliable_clusters(candidates, drop, config.channel.reliability)
        return cls(
            candidates=candidates,
            drop=drop,
            trust=trust.make(config.network.trust, candidates, partitions, seed),
            counts=counts,
            threshold=thresholds(counts, config.network.threshold),
            cluster=cluster,
            budget=default_budget(counts, cluster, config.channel.budget_share),
            positions=positions,
            rss=rss,
        )

    @classmethod
    def from_arrays(
        cls,
        *,
        counts: ArrayLike,
        threshold: ArrayLike,
        trust: ArrayLike,
        drop: ArrayLike | None = None,
        rss: ArrayLike | None = None,
        positions: ArrayLike | None = None,
        cluster: ArrayLike | None = None,
        budget: ArrayLike | None = None,
        candidates: ArrayLike | None = None,
        centroids: ArrayLike | None = None,
        covariances: ArrayLike | None = None,
        request: ArrayLike | None = None,
        label_distance: ArrayLike | None = None,
        config: ChannelConfig | None = None,
    ) -> Self:
        """A network of one's own.

        counts[N, L], threshold[N, L], trust[receiver, transmitter, L], and either drop[receiver, transmitter] or
        rss[receiver, transmitter]. Clusters and budgets are computed where they are not given. With `candidates`
        [N, slots], trust[receiver, slot, L] and drop or rss [receiver, slot] are in the slot layout instead.
        A device hears another unless every packet from it is lost. With centroids[N, L, d], covariances[N, L, d, d] and
        request[N] partitions are data clusters of each device's own (Algorithm 2). label_distance[L, L] says how far apart
        partitions lie.
        """
        from d2dfl.network.checks import checked_arrays, checked_clusters, checked_label_distance

        config = config or ChannelConfig()
        arrays = checked_arrays(
            counts=counts,
            threshold=threshold,
            trust=trust,
            drop=drop,
            rss=rss,
            positions=positions,
            cluster=cluster,
            budget=budget,
            candidates=candidates,
        )
        shape = arrays["counts"].shape
        shapes, spreads, asked = checked_clusters(shape, centroids, covariances, request)
        distance = checked_label_distance(shape[1], label_distance)
        links = _in_slots(arrays, config)
        more = _in_clusters(arrays, links, config)
        held = {name: arrays[name] for name in ("counts", "threshold", "positions")}
        return cls(
            **held, **links, **more, centroids=shapes, covariances=spreads, request=asked, label_distance=distance
        )


def _in_slots(arrays: Mapping[str, Any], config: ChannelConfig) -> dict[str, Any]:
    """Candidates, and drop, trust and rss by slot, of checked arrays."""
    power, loss, trusted, slots = arrays["rss"], arrays["drop"], arrays["trust"], arrays["candidates"]
    if loss is None:
        loss = channel.drop_probability(power, config.rate, channel.noise_power(config))
    if slots is None:
        slots, index = _compact(loss)
        receivers = np.arange(len(slots))[:, None]
        trusted, loss = trusted[receivers, index], loss[receivers, index]
        power = None if power is None else power[receivers, index]
    heard = slots >= 0
    return {"candidates": slots, "drop": np.where(heard, loss, 1.0), "trust": trusted & heard[:, :, None], "rss": power}


def _in_clusters(arrays: Mapping[str, Any], links: Mapping[str, Any], config: ChannelConfig) -> dict[str, Any]:
    """Reliable clusters and their budgets: as given, or by the rules of the paper."""
    group, allowance = arrays["cluster"], arrays["budget"]
    if group is None:
        group = clusters.reliable_clusters(links["candidates"], links["drop"], config.reliability)
    if allowance is None:
        allowance = default_budget(arrays["counts"], group, config.budget_share)
    return {"cluster": group, "budget": allowance}


def _check_size(devices: int, partitions: int, config: Config) -> None:
    """Refuse, before anything is made, what would not fit into memory."""
    check_network(devices, slots_of(devices, config), partitions, config.discovery.edges)


def _compact(loss: NDArray[np.float64]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Slots from a dense loss table: everyone else whose packets are not all lost. Also the index to gather with."""
    heard = loss < 1.0
    np.fill_diagonal(heard, False)
    width = max(1, int(heard.sum(axis=1).max(initial=0)))
    order = np.argsort(~heard, axis=1, kind="stable")[:, :width]
    present = np.take_along_axis(heard, order, axis=1)
    return np.where(present, order, -1).astype(np.int32), order


def default_budget(counts: NDArray[np.float64], cluster: NDArray[np.int32], share: float) -> NDArray[np.float64]:
    """R29: a share of the data that the cluster holds."""
    return np.asarray(share * np.bincount(cluster, weights=counts.sum(axis=1)))


def thresholds(counts: NDArray[np.float64], rule: str) -> NDArray[np.float64]:
    """threshold[device, partition]: the same share of the device's data for each partition."""
    share = threshold_share(rule, counts.shape[1])
    return np.repeat(counts.sum(axis=1, keepdims=True) * share, counts.shape[1], axis=1)


def label_skewed_counts(devices: int, partitions: int, labels: int, samples: int, seed: int) -> NDArray[np.float64]:
    """counts[device, partition]: every device holds exactly `labels` partitions, drawn at random (Appendix C)."""
    if labels > partitions:
        raise UserError(
            f"network.labels_per_device cannot be {labels}: there {'is' if partitions == 1 else 'are'} only "
            f"{counted(partitions, 'partition')}"
        )
    parts = whole_parts(samples, label_shares(labels))
    order = stream(seed, "labels").random((devices, partitions)).argsort(axis=1)[:, :labels]
    counts = np.zeros((devices, partitions))
    np.put_along_axis(counts, order, np.broadcast_to(parts, (devices, labels)).astype(np.float64), axis=1)
    return counts
