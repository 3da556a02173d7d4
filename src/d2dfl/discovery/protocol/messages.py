"""What devices say to each other while they look for their links. Vectors are by label; those of untrusted labels are 0.

Every message but an introduction is a question or its answer: a question that is not answered is asked again, and one that comes
twice gets the same answer (lossy.py).
"""

from dataclasses import dataclass

Vector = tuple[float, ...]


@dataclass(frozen=True)
class Introduction:
    """A transmitter to a receiver that hears it: what it can spare for it, what giving is worth, its cluster."""

    spare: Vector
    giving: Vector
    cluster: int


@dataclass(frozen=True)
class Ask:
    """What would you tell me if I asked for so much?"""

    asked: Vector


@dataclass(frozen=True)
class Offer:
    """What others ask for, worth of giving a datapoint, worth of a datapoint to the others."""

    demand: Vector
    giving: Vector
    taking: Vector


@dataclass(frozen=True)
class Request:
    """From now on I ask you for so much, all zeros for nothing. You may spend so many messages on it."""

    asked: Vector
    prices: Vector  # what a datapoint less would cost me
    allowed: int


@dataclass(frozen=True)
class Grant:
    """So much you get, or (refused) nothing has changed."""

    granted: Vector
    offer: Offer
    change: float  # of the transmitter's reward and of those whose share changed
    outside: tuple[tuple[int, float], ...]  # cluster, how much more it takes from outside
    told: int  # requesters whose share changed
    refused: bool = False


@dataclass(frozen=True)
class Now:
    """Your share has changed: so much you get."""

    granted: Vector
    offer: Offer


@dataclass(frozen=True)
class Reply:
    """By how much my reward changed, how much more my cluster takes from outside, and what a datapoint less would cost me."""

    change: float
    cluster: int
    outside: float
    prices: Vector


@dataclass(frozen=True)
class Token:
    """The right to revise: what each cluster takes from outside, turns since something changed, who has stopped."""

    use: Vector
    quiet: int
    stopped: frozenset[int]
    cycle: int = 0
    gained: float = 0.0  # what moves have brought so far
    best: tuple[float, Vector] | None = None  # what they had brought when it was most, and `use` then


@dataclass(frozen=True)
class Taken:
    """The token has arrived."""


@dataclass(frozen=True)
class NextCycle:
    """A cycle is over: remember how your links stand, or (back) go back to what you remember. Do you go on?"""

    back: bool


@dataclass(frozen=True)
class Ready:
    """Done; whether the account pays for turns in the next cycle."""

    goes_on: bool


@dataclass(frozen=True)
class End:
    """The turns are over: links stay as they are, or (back) as they are remembered."""

    back: bool = False


@dataclass(frozen=True)
class Outside:
    """To the device that keeps a cluster's account: I take so much from outside. How much do all of us take?"""

    takes: float


@dataclass(frozen=True)
class Total:
    """What the cluster takes from outside."""

    use: float


@dataclass(frozen=True)
class Done:
    """I have stopped revising, and so have all that told me so."""


@dataclass(frozen=True)
class Wake:
    """From a device to itself, which nobody pays: think about the next link after so many message times."""

    after: float


Question = Ask | Request | Now | Token | NextCycle | End | Outside | Done
Answer = Offer | Grant | Reply | Taken | Ready | Total
Content = Introduction | Question | Answer | Wake


@dataclass(frozen=True)
class Message:
    sender: int
    receiver: int
    content: Content
