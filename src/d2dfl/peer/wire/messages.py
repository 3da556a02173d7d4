"""The messages, typed and bounded: what does not fit into these types is refused while it is decoded.

Names of the paper's messages and where they are: PAPER.md. Of the hand-over only `Piece` carries datapoints.
"""

import math
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

ID_BYTES = 40  # of a transfer: its sender's fingerprint, then a number that the sender's store counts
LARGEST_POINT = 1 << 20  # bytes of one datapoint's input
LARGEST_PIECE = LARGEST_POINT + 4096
MOST_PIECES = 1 << 20
MOST_POINTS = 100_000  # of one transfer
MOST_LABELS = 10_000  # of a device
MOST_FORGOTTEN = 10_000  # datapoints of one order to forget
MOST_USES = 1000  # trainings that are named when something is forgotten

Print = Annotated[bytes, Meta(min_length=32, max_length=32)]
Hash = Annotated[bytes, Meta(min_length=32, max_length=32)]
TransferId = Annotated[bytes, Meta(min_length=ID_BYTES, max_length=ID_BYTES)]
Count = Annotated[int, Meta(ge=0, le=1 << 62)]
Label = Annotated[str, Meta(min_length=1, max_length=100)]
Moment = Annotated[float, Meta(ge=-1e12, le=1e12)]  # seconds since 1970


Phase = Literal["unknown", "receiving", "committed", "refused"]  # of a transfer, as its receiver says

# dtype and shape: numbers that NumPy has, in one byte order, each written in one way (`$` would let a line break follow)
FORM = r"\A(\|[iub]1|<[fiu][248])(:(0|[1-9][0-9]{0,8})){0,8}\Z"


class Message(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True, tag_field="kind"):
    """The base of all."""


class Head(Message, frozen=True, tag=0):
    """The last line of a peer's audit: how many lines, and the hash that stands for all of them."""

    lines: Count
    hash: Hash


class Hello(Message, frozen=True, tag=1):
    """I am here; what I know, and whether I still have something for you in this round."""

    roster: Count
    head: Head
    round: Annotated[bytes, Meta(max_length=32)]
    finished: bool


class RosterNews(Message, frozen=True, tag=2):
    """A newer roster, as its owner signed it."""

    document: Annotated[bytes, Meta(max_length=900_000)]


class Offer(Message, frozen=True, tag=3):
    """A transfer that the receiver may have: how many of which label, and what the content will hash to."""

    transfer: TransferId
    labels: Annotated[list[tuple[Label, Annotated[int, Meta(ge=1, le=MOST_POINTS)]]], Meta(max_length=MOST_LABELS)]
    pieces: Annotated[int, Meta(ge=1, le=MOST_PIECES)]
    size: Count
    salt: Hash
    digest: Hash
    head: Head


class Piece(Message, frozen=True, tag=4):
    """Datapoints, in the order of the offer."""

    transfer: TransferId
    number: Annotated[int, Meta(ge=0, le=MOST_PIECES)]
    content: Annotated[bytes, Meta(max_length=LARGEST_PIECE)]


class Commit(Message, frozen=True, tag=5):
    """All pieces were sent, and the sender's owner still agrees: make them yours."""

    transfer: TransferId
    head: Head


class Ask(Message, frozen=True, tag=6):
    """What became of this transfer?"""

    transfer: TransferId


class Cancel(Message, frozen=True, tag=7):
    """Do not take this transfer, unless you have it already."""

    transfer: TransferId


class Status(Message, frozen=True, tag=8):
    """All that a receiver ever says about a transfer: unknown, receiving, committed or refused; and the next piece."""

    transfer: TransferId
    state: Phase
    next: Annotated[int, Meta(ge=0, le=MOST_PIECES)]
    head: Head


class Forget(Message, frozen=True, tag=9):
    """The origin of these datapoints wants them deleted."""

    order: TransferId
    points: Annotated[list[Count], Meta(min_length=1, max_length=MOST_FORGOTTEN)]


class Forgotten(Message, frozen=True, tag=10):
    """They are deleted here and will not be taken again; these trainings had used them."""

    order: TransferId
    used_in: Annotated[list[Label], Meta(max_length=MOST_USES)]
    head: Head


class Probe(Message, frozen=True, tag=11):
    """One of a numbered series: what is missing of it was lost on the way."""

    number: Count
    first: Count  # of the series
    sent_s: Moment


class Echo(Message, frozen=True, tag=12):
    """A probe came."""

    number: Count
    sent_s: Moment


class Discovery(Message, frozen=True, tag=13):
    """A message of the discovery, whose learner knows what it means."""

    content: Annotated[bytes, Meta(max_length=262_144)]


Body = (
    Hello | RosterNews | Offer | Piece | Commit | Ask | Cancel | Status | Forget | Forgotten | Probe | Echo | Discovery
)


class Point(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """A datapoint: its number at its origin, which is whoever sends it, its label, and what it looks like."""

    number: Count
    label: Label
    form: Annotated[str, Meta(max_length=100, pattern=FORM)]
    content: Annotated[bytes, Meta(max_length=LARGEST_POINT)]

    @property
    def fits(self) -> bool:
        """Whether the content has the size that its form says."""
        size = int(self.form.partition(":")[0][2:])
        sides = [int(side) for side in self.form.split(":")[1:]]
        # NumPy makes no empty array either whose other sides are beyond all bounds.
        bounded = size * math.prod(side for side in sides if side) <= LARGEST_POINT
        return bounded and size * math.prod(sides) == len(self.content)


_encoder = msgspec.msgpack.Encoder()
_bodies: "msgspec.msgpack.Decoder[Body]" = msgspec.msgpack.Decoder(Body)
_points: "msgspec.msgpack.Decoder[list[Point]]" = msgspec.msgpack.Decoder(
    Annotated[list[Point], Meta(min_length=1, max_length=MOST_POINTS)]
)


class WireError(ValueError):
    """Bytes that are no message; says why, in a word or two."""


def encode_body(body: Body) -> bytes:
    return _encoder.encode(body)


def decode_body(data: bytes) -> Body:
    try:
        return _bodies.decode(data)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        raise WireError("no message") from None


def encode_points(points: list[Point]) -> bytes:
    return _encoder.encode(points)


def decode_points(data: bytes) -> list[Point]:
    try:
        return _points.decode(data)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        raise WireError("no datapoints") from None
