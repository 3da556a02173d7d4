"""Links of a user's own, around whatever the devices turn out to hold."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from d2dfl.config import Config
from d2dfl.errors import UserError
from d2dfl.network import trust as trusts
from d2dfl.network.files import read_arrays
from d2dfl.network.network import Network, default_budget, thresholds
from d2dfl.network.values import MOST, floats, regular

Table = Mapping[str, Any]  # arrays by the names that Network.from_arrays takes
TAKEN = ("drop", "rss", "candidates", "trust", "positions", "cluster", "budget", "threshold", "counts")


@dataclass(frozen=True)
class Links:
    """What is known about the links; the rest is made as the configuration says.

    A file or a network may say more than links: trust and clusters are taken from it. Thresholds and budgets are, too,
    unless it holds counts that are not those of the data, because then they were meant for other data.
    """

    table: Table = field(default_factory=dict)  # drop or rss, and what else a network file may hold; {}: generated
    network: Network | None = None  # instead of a table
    trust: NDArray[np.bool_] | None = None  # [receiver, transmitter, partition], or [..., 1] for all partitions alike
    rule: bool = False  # the configuration's trust rule counts, whatever the table says
    source: str = "links"  # what errors name

    @property
    def devices(self) -> int | None:
        """How many there are; None where nothing says so."""
        if self.network is not None:
            return self.network.devices
        tables = [self.table[name] for name in ("drop", "rss", "candidates") if name in self.table]
        return len(tables[0]) if tables else None

    @property
    def trusted(self) -> bool:
        """Whether it says who trusts whom."""
        return self.trust is not None or self.network is not None or "trust" in self.table

    def around(self, counts: NDArray[np.float64], config: Config, seed: int) -> Network:
        """A network of devices that hold these counts[device, partition]."""
        if self.devices not in (None, len(counts)):
            raise UserError(
                f"{self.source} has {self.devices} devices and the data {len(counts)}: they must be the same"
            )
        network = self._linked(counts, config, seed)
        if self.trust is not None:
            return replace(network, trust=self._by_slot(self.trust, network))
        if self.rule or not self.trusted:
            return replace(
                network, trust=trusts.make(config.network.trust, network.candidates, network.partitions, seed)
            )
        return network

    def _linked(self, counts: NDArray[np.float64], config: Config, seed: int) -> Network:
        if self.network is not None:
            return _adapted(self.network, counts, config, self.source)
        if not self.table:
            return Network.around(counts, config, seed)
        known = {name: values for name, values in self.table.items() if name != "counts"}
        if "counts" in self.table and not _same(self.table["counts"], counts):
            known = {name: values for name, values in known.items() if name not in ("threshold", "budget")}
        slots = np.shape(known["candidates"]) if "candidates" in known else (len(counts), len(counts))
        nobody = np.zeros((*slots, counts.shape[1]), dtype=np.bool_)
        filled = {"threshold": thresholds(counts, config.network.threshold), "trust": nobody, **known}
        try:
            return Network.from_arrays(counts=counts, **filled, config=config.channel)
        except UserError as error:
            raise UserError(f"{self.source}: {error}") from None

    def _by_slot(self, trust: NDArray[np.bool_], network: Network) -> NDArray[np.bool_]:
        if len(trust) != network.devices:
            raise UserError(f"trust has {len(trust)} devices and the data {network.devices}: they must be the same")
        if trust.shape[2] not in (1, network.partitions):
            raise UserError(
                f"trust has {trust.shape[2]} partitions and the data {network.partitions}: "
                f"it must be [receiver, transmitter, partition] = {(*trust.shape[:2], network.partitions)}"
            )
        chosen = trusts.to_slots(trust, network.candidates)
        return np.ascontiguousarray(np.broadcast_to(chosen, (*network.candidates.shape, network.partitions)))


def _adapted(network: Network, counts: NDArray[np.float64], config: Config, source: str) -> Network:
    """The links of a network, around other counts."""
    if _same(network.counts, counts):
        return network
    if network.partitions != counts.shape[1]:
        raise UserError(
            f"{source} has {network.partitions} partitions and the data {counts.shape[1]}: they must be the same"
        )
    return replace(
        network,
        counts=counts,
        threshold=thresholds(counts, config.network.threshold),
        budget=default_budget(counts, network.cluster, config.channel.budget_share),
        centroids=None,
        covariances=None,
        request=None,
        label_distance=None,
    )


def _same(one: Any, other: NDArray[np.float64]) -> bool:
    return np.shape(one) == other.shape and bool((np.asarray(one) == other).all())


def links_file(path: Path) -> Links:
    """Links from an .npz or .json file: drop or rss, and whatever else a network file may hold."""
    arrays = read_arrays(path)
    try:
        arrays = {name: regular(name, values, truths=True) for name, values in arrays.items() if name in TAKEN}
    except UserError as error:
        raise UserError(f"{path}: {error}") from None
    if ("drop" in arrays) == ("rss" in arrays):
        raise UserError(
            f"{path} {'holds drop and rss: give one of them' if 'drop' in arrays else 'holds no links: give drop or rss'}"
        )
    side = np.shape(arrays["drop"] if "drop" in arrays else arrays["rss"])
    if len(side) != 2 or not side[0]:
        raise UserError(f"{path} has links of the shape {side}: give [receiver, transmitter]")
    return Links(arrays, source=str(path))


def checked_table(name: str, values: Any, high: float, advice: str) -> NDArray[np.float64]:
    """A square table[receiver, transmitter] of numbers from 0 to `high`; the diagonal is not looked at."""
    table = np.array(floats(name, values))
    if table.ndim != 2 or table.shape[0] != table.shape[1] or not table.size:
        raise UserError(f"{name} has the shape {table.shape}: give a square table [receiver, transmitter]")
    np.fill_diagonal(table, 0.0)
    wrong = table[~((table >= 0) & (table <= min(high, MOST)))]
    if wrong.size:
        raise UserError(f"{name} holds {wrong[0]:g}: {advice}")
    return table


def checked_trust(values: Any) -> NDArray[np.bool_]:
    """trust[receiver, transmitter, partition] of 0 and 1; without the last axis it is the same for all partitions."""
    array = regular("trust", values, truths=True)
    if array.ndim not in (2, 3) or array.shape[0] != array.shape[1]:
        raise UserError(
            f"trust has the shape {array.shape}: give [receiver, transmitter], or [receiver, transmitter, partition], "
            "with a row and a column for every device, or a rule as text"
        )
    if array.ndim == 2:
        array = array[:, :, None]
    if not ((array == 0) | (array == 1)).all():
        raise UserError(
            "trust holds values other than 0 and 1: give 1 where the transmitter trusts the receiver, else 0"
        )
    return array.astype(np.bool_)
