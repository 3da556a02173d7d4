"""The actual exchange: a graph and who holds which datapoint in, new holdings out, every datapoint accounted for.

R19: discovery works with real numbers, here whole datapoints move: floor plus largest remainder, never past the
surplus. R20: each transmission is lost or not, independently, with the link's loss probability. R21: by default the sender
deletes what it sent, as in the paper, and what was lost is gone; the number is reported. R22: which points of a
partition are sent is drawn uniformly. R9: learners are paid for keeping to a cluster's budget, which they do but for
a little; here it is held.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from d2dfl.config.sections.learning import Keeping
from d2dfl.config.seeds import checked_seed
from d2dfl.data.shares import whole_parts
from d2dfl.errors import UserError
from d2dfl.network import Network
from d2dfl.network.graph import SHOWN, Graph
from d2dfl.notebook import line, table_html
from d2dfl.progress import Share, silent
from d2dfl.rng import stream
from d2dfl.words import counted

Indices = NDArray[np.int64]
TOLD = 1000  # links between two words about how far it is
KEEPING: tuple[Keeping, ...] = get_args(Keeping)


@dataclass(frozen=True)
class Transfer:
    """What moved over one link."""

    transmitter: int
    receiver: int
    sent: Indices  # datapoints put on the air
    arrived: Indices  # those of them that were received
    transmissions: int  # of datapoints, each attempt counted


@dataclass(frozen=True)
class ExchangeResult:
    """Holdings after an exchange."""

    holdings: tuple[Indices, ...]  # per device, datapoint numbers
    transfers: tuple[Transfer, ...]
    lost: Indices  # datapoints that nobody holds any more

    @property
    def moved(self) -> int:
        """Datapoints sent."""
        return sum(len(transfer.sent) for transfer in self.transfers)

    @property
    def dropped(self) -> int:
        """Datapoints that were sent and did not arrive."""
        return sum(len(transfer.sent) - len(transfer.arrived) for transfer in self.transfers)

    def __repr__(self) -> str:
        used = sum(len(transfer.sent) > 0 for transfer in self.transfers)
        links = f"{self.moved:,} datapoints sent over {counted(used, 'link')}"
        return line("ExchangeResult", counted(len(self.holdings), "device"), links, f"{self.dropped:,} did not arrive")

    def _repr_html_(self) -> str:
        rows = [
            (f"{one.transmitter} → {one.receiver}", f"{len(one.sent):,}", f"{len(one.arrived):,}")
            for one in self.transfers[:SHOWN]
        ]
        left = len(self.transfers) - len(rows)
        note = f"and {counted(left, 'more link')}" if left else ""
        return table_html(repr(self)[1:-1], ("link", "sent", "arrived"), rows, note)


def whole_datapoints(graph: Graph, spare: NDArray[np.int64]) -> NDArray[np.int64]:
    """allocated[receiver, edge, partition] in whole datapoints, no transmitter giving more than it can spare (R19)."""
    whole = np.floor(graph.allocated + 1e-9).astype(np.int64)
    rest = graph.allocated - whole
    receivers, edges = graph.links
    transmitters = graph.transmitter[receivers, edges]
    for transmitter, mine in _by_number(transmitters):
        for partition in range(graph.allocated.shape[2]):
            at = (receivers[mine], edges[mine], np.full(len(mine), partition))
            wanted = min(round(float(graph.allocated[at].sum())), int(spare[transmitter, partition]))
            order = np.argsort(-rest[at], kind="stable")
            missing = wanted - int(whole[at].sum())
            if missing > 0:  # the largest remainders are rounded up
                chosen = order[:missing]
                whole[at[0][chosen], at[1][chosen], partition] += 1
            for place in reversed(order.tolist()):  # thresholds that are not whole leave a little less to spare
                if missing >= 0:
                    break
                give_back = min(-missing, int(whole[at[0][place], at[1][place], partition]))
                whole[at[0][place], at[1][place], partition] -= give_back
                missing += give_back
    return whole


def _by_number(numbers: NDArray[np.integer]) -> Iterator[tuple[int, NDArray[np.intp]]]:
    """Each number once, in rising order, and its places: one sort for all, not a search for each."""
    order = np.argsort(numbers, kind="stable")
    known, starts = np.unique(numbers[order], return_index=True)
    yield from zip(known.tolist(), np.split(order, starts[1:]), strict=True) if len(known) else ()


def within_budgets(graph: Graph, amounts: NDArray[np.int64], network: Network) -> NDArray[np.int64]:
    """The same amounts, but no cluster takes more from outside than its budget (paper eq. budget, R9).

    What is too much is left out of all its links and partitions alike: floor plus largest remainder.
    """
    held = amounts.copy()
    receivers, edges = graph.links
    taker = network.cluster[receivers]
    crossing = taker != network.cluster[graph.transmitter[receivers, edges]]
    over = np.flatnonzero(crossing)
    for cluster, places in _by_number(taker[over]):
        mine = over[places]
        wanted = amounts[receivers[mine], edges[mine]]
        room, whole = int(np.floor(network.budget[cluster] + 1e-9)), int(wanted.sum())
        if whole > room:
            held[receivers[mine], edges[mine]] = whole_parts(room, wanted.ravel() / whole).reshape(wanted.shape)
    return held


def exchange(
    graph: Graph,
    holdings: Sequence[Indices],
    partition_of: Indices,
    threshold: NDArray[np.float64],
    *,
    seed: int,
    keep: Keeping = "delete",
    lossy: bool = True,
    attempts: int = 1,
    within: Network | None = None,
    progress: Share = silent,
) -> ExchangeResult:
    """Move datapoints over the links of a graph.

    holdings[device] are datapoint numbers, partition_of[datapoint] their partitions (labels, pseudo-labels or data
    clusters). `keep` says what a sender does with what it sent (R21): delete it all, delete what was acknowledged, or
    keep a copy of everything. A datapoint that is lost is sent again until `attempts` are used up. A device never falls
    below its threshold unless it was below before. With `within`, no cluster of that network takes more from outside
    than its budget.
    """
    if keep not in KEEPING:
        raise UserError(f"exchange.keep cannot be {keep!r}: give one of {', '.join(KEEPING)}")
    if attempts < 1:
        raise UserError(f"exchange.attempts cannot be {attempts}: give a whole number at least 1")
    if len(holdings) != graph.devices:
        raise UserError(
            f"the graph has {graph.devices} devices and the holdings {len(holdings)}: they must be the same"
        )
    seed, partition_of, threshold = checked_seed(seed), np.asarray(partition_of), np.asarray(threshold)
    if threshold.ndim != 2 or len(threshold) != graph.devices:
        raise UserError(f"threshold has the shape {threshold.shape}: give one for each device and partition")
    holdings = [_numbers(points, len(partition_of), device) for device, points in enumerate(holdings)]
    pools = [_shuffled_pools(points, partition_of, threshold.shape[1], seed, d) for d, points in enumerate(holdings)]
    counts = np.array([[len(pool) for pool in device] for device in pools], dtype=np.int64).reshape(threshold.shape)
    # What is above the threshold, in whole datapoints.
    spare = np.maximum(np.floor(counts - threshold + 1e-9), 0).astype(np.int64)
    amounts = whole_datapoints(graph, spare)
    if within is not None:
        amounts = within_budgets(graph, amounts, within)
    transfers = []
    links = list(zip(*(axis.tolist() for axis in graph.links), strict=True))
    for number, (receiver, edge) in enumerate(links):
        if number % TOLD == 0:
            progress(number / len(links))
        transmitter = int(graph.transmitter[receiver, edge])
        taken = []
        for partition, amount in enumerate(amounts[receiver, edge].tolist()):
            pool = pools[transmitter][partition]
            taken.append(pool[:amount])
            pools[transmitter][partition] = pool[amount:]
        sent = np.concatenate(taken)
        loss = graph.drop[receiver, edge] if lossy else 0.0
        draws = stream(seed, "exchange-loss", transmitter, receiver, edge)
        arrives, transmissions = _transmit(len(sent), float(loss), attempts, draws)
        transfers.append(Transfer(transmitter, receiver, sent, sent[arrives], transmissions))
    return _settle(holdings, transfers, keep)


def _numbers(points: ArrayLike, datapoints: int, device: int) -> Indices:
    """What a device holds, as numbers of datapoints that are there."""
    held = np.asarray(points)
    whole = held.ndim == 1 and (not held.size or held.dtype.kind in "iu")
    if not whole or (held.size and not 0 <= held.min() <= held.max() < datapoints):
        raise UserError(
            f"the holdings of device {device} are no numbers of datapoints: give whole numbers from 0 to {datapoints - 1}"
        )
    return held.astype(np.int64, copy=False)


def _transmit(number: int, loss: float, attempts: int, draws: np.random.Generator) -> tuple[NDArray[np.bool_], int]:
    """[datapoint] whether it arrives, and the transmissions that this took: what is lost is sent again."""
    arrives, transmissions = np.zeros(number, dtype=bool), 0
    for _ in range(attempts):
        missing = np.flatnonzero(~arrives)
        if not len(missing):
            break
        arrives[missing] = draws.random(len(missing)) >= loss
        transmissions += len(missing)
    return arrives, transmissions


def _shuffled_pools(points: Indices, partition_of: Indices, partitions: int, seed: int, device: int) -> list[Indices]:
    """A device's datapoints by partition, each in random order (R22)."""
    labels = partition_of[points]
    strange = labels[(labels < 0) | (labels >= partitions)]
    if len(strange):
        raise UserError(
            f"device {device} holds a datapoint of partition {strange[0]}: partitions are 0 to {partitions - 1}"
        )
    order = stream(seed, "exchange-order", device).permutation(len(points))
    return [points[order][labels[order] == partition] for partition in range(partitions)]


def _settle(holdings: Sequence[Indices], transfers: list[Transfer], keep: Keeping) -> ExchangeResult:
    """New holdings: what each device kept, in its old order, then what it received, in order of arrival."""
    gone: list[list[Indices]] = [[] for _ in holdings]
    came: list[list[Indices]] = [[] for _ in holdings]
    lost = []
    for transfer in transfers:
        came[transfer.receiver].append(transfer.arrived)
        if keep == "delete":
            gone[transfer.transmitter].append(transfer.sent)
            lost.append(np.setdiff1d(transfer.sent, transfer.arrived))
        elif keep == "acknowledged":
            gone[transfer.transmitter].append(transfer.arrived)
    after = []
    for device, points in enumerate(holdings):
        removed = np.concatenate(gone[device]) if gone[device] else np.empty(0, dtype=np.int64)
        after.append(np.concatenate([points[~np.isin(points, removed)], *came[device]]))
    return ExchangeResult(tuple(after), tuple(transfers), np.concatenate(lost) if lost else np.empty(0, dtype=np.int64))


def held_counts(holdings: Sequence[Indices], partition_of: Indices, partitions: int) -> NDArray[np.float64]:
    """counts[device, partition] of these holdings."""
    return np.array([np.bincount(partition_of[points], minlength=partitions) for points in holdings], dtype=np.float64)
