"""What a store says about transfers."""

from dataclasses import dataclass
from typing import Final, Literal

from d2dfl.peer.wire.messages import Phase

Labels = tuple[tuple[str, int], ...]  # how many datapoints of which label
Keeping = Literal["move", "copy"]  # what a sender does with what arrived: it lets go, or keeps it too
ENDED: Final = ("done", "returned")  # outgoing phases after which nothing changes any more


@dataclass(frozen=True)
class Outgoing:
    """A transfer to somebody: open, cancelling, or one of ENDED."""

    id: bytes
    receiver: bytes
    phase: str
    keep: Keeping
    pieces: int
    points: int
    size: int
    exposed: bool
    salt: bytes
    digest: bytes
    labels: Labels


@dataclass(frozen=True)
class Incoming:
    """A transfer from somebody."""

    id: bytes
    sender: bytes
    phase: Phase
    pieces: int
    points: int
    left: int  # bytes that are still to come
    next: int
    salt: bytes
    digest: bytes
    labels: Labels
