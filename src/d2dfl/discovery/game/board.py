"""The board of the graph-discovery game: a network laid out for compiled code."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from d2dfl.discovery.equations.diversity import distances_to
from d2dfl.discovery.equations.gaussian import Gauss, gauss_of
from d2dfl.discovery.equations.reward import Terms
from d2dfl.network import Network


class Board(NamedTuple):
    """What does not change while a game is played."""

    candidates: NDArray[np.int32]  # [receiver, slot]
    drop: NDArray[np.float64]  # [receiver, slot]
    trust: NDArray[np.bool_]  # [receiver, slot, partition]
    counts: NDArray[np.float64]  # [device, partition]
    threshold: NDArray[np.float64]  # [device, partition]
    surplus: NDArray[np.float64]  # [device, partition] max(0, counts - threshold)
    need: NDArray[np.float64]  # [device, partition] max(0, threshold - counts)
    cluster: NDArray[np.int32]  # [device]
    members: NDArray[np.float64]  # [cluster] devices in it
    budget: NDArray[np.float64]  # [cluster]
    spent: NDArray[np.float64]  # [cluster] budget used up by earlier stages
    population: NDArray[np.float64]  # [partition]
    before: NDArray[np.float64]  # [device] distance to the population before the exchange
    gauss: Gauss | None  # data clusters; None where partitions are labels


def board_of(
    network: Network,
    terms: Terms,
    spent: NDArray[np.float64] | None = None,
    population: NDArray[np.float64] | None = None,
    ridge: float = 0.1,
) -> Board:
    """Lay a network out for compiled code; a later stage keeps the first stage's population and what is spent."""
    clusters = len(network.budget)
    population = network.population if population is None else population
    return Board(
        candidates=network.candidates,
        drop=network.drop,
        trust=network.trust,
        counts=network.counts,
        threshold=network.threshold,
        surplus=network.surplus,
        need=network.need,
        cluster=network.cluster,
        members=np.bincount(network.cluster, minlength=clusters).astype(np.float64),
        budget=network.budget,
        spent=np.zeros(clusters) if spent is None else spent,
        population=population,
        before=distances_to(network.counts, population, terms.metric),
        gauss=gauss_of(network, ridge, terms.agreement_kind),
    )


def useful_links(board: Board) -> NDArray[np.bool_]:
    """[receiver, slot] links over which something could move; -1 pads are none."""
    useful = np.zeros(board.candidates.shape, dtype=bool)
    for label in range(board.counts.shape[1]):  # one at a time: a table of all labels would be large
        there = board.trust[:, :, label] & (board.need[:, label] > 0.0)[:, None]
        useful |= there & (board.surplus[:, label] > 0.0)[board.candidates]
    return useful & (board.candidates >= 0)


def free_choice(board: Board, no_link: bool) -> NDArray[np.bool_]:
    """[device] whether the device may end up without a link (R12).

    Where it must choose somebody, it still may choose a transmitter that has nothing for it: a link over which nothing
    moves is no link.
    """
    useless = (board.candidates >= 0) & ~useful_links(board)
    return np.asarray(no_link | useless.any(axis=1) | (board.candidates < 0).all(axis=1))
