"""What a device has in mind while it revises a link, and the rules that all go by."""

from dataclasses import dataclass, field
from typing import NamedTuple

from d2dfl.discovery.protocol.holdings import Link, List, Told

UNLIMITED = 1 << 40
NO_LINK = -1


class Rules(NamedTuple):
    """What all devices agree on."""

    hot: float  # temperature at the beginning
    cold: float  # share of the account from which on it is 0
    restless: float  # of `hot`: how noisy proposals stay
    patience: int  # rounds of turns without a change after which a cycle ends
    devices: int
    cycles: int = 1  # coolings, of which all but the first begin half as hot


@dataclass
class Move:
    """A link that is being put in force."""

    edge: int
    slot: int
    before: Link | None
    after: Link | None
    concerned: list[int]  # transmitters, in turn
    pool: int  # messages left for telling others, there and back
    undoing: bool
    refused: bool = False
    served: int = 0
    change: float = 0.0
    outside: dict[int, float] = field(default_factory=dict)
    earlier: dict[int, List] = field(default_factory=dict)  # by transmitter: what was asked for before


@dataclass
class Revision:
    """What a device thinks about while it has the token."""

    edge: int
    temperature: float
    noise: float
    extra: dict[int, float]  # noise and claims by slot; NO_LINK where it may have none
    answers: dict[int, Told] = field(default_factory=dict)
    asking: int = -1  # who was asked last
    expected: float = 0.0
    move: Move | None = None
