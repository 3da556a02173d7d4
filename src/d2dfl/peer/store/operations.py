"""What may happen to a store, as data: the hand-over says these, the store does all of one event in one transaction."""

from collections.abc import Sequence
from dataclasses import dataclass

from d2dfl.peer.store.records import Keeping


@dataclass(frozen=True)
class Operation:
    """The base of all."""


@dataclass(frozen=True)
class Seen(Operation):
    """The last frame that was taken from a sender."""

    sender: bytes
    run: int
    counter: int


@dataclass(frozen=True)
class Note(Operation):
    """A line of the audit."""

    kind: str
    peer: bytes = b""
    transfer: bytes = b""
    points: int = 0
    digest: bytes = b""
    text: str = ""


@dataclass(frozen=True)
class TakeIn(Operation):
    """A shard of one's own data: label, form and content of each datapoint."""

    name: str
    digest: bytes
    rows: Sequence[tuple[str, str, bytes]]


@dataclass(frozen=True)
class Plan(Operation):
    """A transfer: its datapoints are marked as leaving, and count as shown."""

    id: bytes
    receiver: bytes
    keep: Keeping
    round: bytes
    pieces: tuple[tuple[int, ...], ...]  # numbers of the datapoints of each
    size: int
    salt: bytes
    digest: bytes
    labels: tuple[tuple[str, int], ...]
    day: int  # whose limit it counts for


@dataclass(frozen=True)
class Expose(Operation):
    """From now on its receiver may have seen something of a transfer."""

    id: bytes


@dataclass(frozen=True)
class Spend(Operation):
    """An amount of a day's limit."""

    day: int
    what: str
    amount: int


@dataclass(frozen=True)
class Stop(Operation):
    """A transfer is to be cancelled."""

    id: bytes


@dataclass(frozen=True)
class Release(Operation):
    """The receiver has it for certain: let go, or unmark the copies."""

    id: bytes


@dataclass(frozen=True)
class TakeBack(Operation):
    """The receiver will never have it: unmark."""

    id: bytes


@dataclass(frozen=True)
class Open(Operation):
    """A transfer that will come."""

    id: bytes
    sender: bytes
    pieces: int
    size: int
    salt: bytes
    digest: bytes
    labels: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Keep(Operation):
    """A piece of it, put aside."""

    id: bytes
    number: int
    content: bytes


@dataclass(frozen=True)
class Adopt(Operation):
    """All pieces become datapoints of this peer."""

    id: bytes
    sender: bytes


@dataclass(frozen=True)
class Refuse(Operation):
    """It will never be taken; its pieces go."""

    id: bytes
    sender: bytes


@dataclass(frozen=True)
class Heard(Operation):
    """What another says of its own audit."""

    peer: bytes
    lines: int
    hash: bytes


@dataclass(frozen=True)
class Order(Operation):
    """Datapoints of one's own are to be forgotten by all who were given them."""

    id: bytes
    numbers: tuple[int, ...]
    receivers: tuple[bytes, ...]


@dataclass(frozen=True)
class Erase(Operation):
    """Datapoints go, and are never taken again."""

    origin: bytes
    numbers: tuple[int, ...]


@dataclass(frozen=True)
class Answered(Operation):
    """A receiver has forgotten."""

    id: bytes
    receiver: bytes
    used_in: tuple[str, ...]


@dataclass(frozen=True)
class Fact(Operation):
    """A value by its name."""

    name: str
    value: int | bytes | str
