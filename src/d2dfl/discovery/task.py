"""What a method gets and what it gives back."""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from d2dfl.config import Config
from d2dfl.discovery.equations.reward import Terms
from d2dfl.discovery.game.board import Board, board_of
from d2dfl.discovery.methods.agreed import NEGOTIATION as NEGOTIATION
from d2dfl.discovery.trace import Hear
from d2dfl.network import Network
from d2dfl.progress import Share, silent


@dataclass(frozen=True)
class Task:
    """One discovery, or one stage of the paper's greedy sequence (R16)."""

    network: Network
    config: Config
    seed: int
    edges: int = 1  # links to find per device
    stage: int = 0
    spent: NDArray[np.float64] | None = None  # [cluster] budget used by earlier stages
    population: NDArray[np.float64] | None = None  # [partition] of the first stage
    progress: Share = field(default=silent, compare=False)
    hear: Hear = field(default=silent, compare=False)  # told the links in force while they are looked for

    @property
    def heard(self) -> bool:
        """Whether anybody wants to know the links before they are final."""
        return self.hear is not silent

    @property
    def terms(self) -> Terms:
        return Terms.of(self.config.reward, self.network.centroids is not None)

    @property
    def over_ask(self) -> bool:
        return self.config.reward.over_ask

    def board(self) -> Board:
        """The network laid out for compiled code."""
        return board_of(self.network, self.terms, self.spent, self.population, self.config.reward.ridge)


class LinkChoice(NamedTuple):
    """What a method found, and what it spent to find it."""

    slots: NDArray[np.int32]  # [receiver, edge] candidate slot, -1 for no link
    messages: float = 0.0
    message_bits: float = 0.0
    steps: int = 0
    upper_bound: float | None = None  # of the objective, where the method proves one
    proven: bool = False  # whether this is the optimum
