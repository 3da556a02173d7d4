"""What peers say to each other while they look for their graph, typed and bounded like all messages (wire/messages.py).

The learner's messages are those of d2dfl.discovery.protocol with the same names and fields; PAPER.md says which message of the
paper is which. Names of devices are places among those who take part.
"""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from d2dfl.discovery.protocol import messages as learner
from d2dfl.peer.identity.roster import MOST_MEMBERS
from d2dfl.peer.wire.messages import Count, Hash, WireError

MOST_TOLD = 1000  # labels in a discovery: more do not fit into a message
MOST_LINKS = 50
MOST_CYCLES = 1_000_000
MOST_CLAIMS = 20_000  # pairs of labels on a list

ATTEMPT_BYTES = 32
AttemptId = Annotated[bytes, Meta(min_length=ATTEMPT_BYTES, max_length=ATTEMPT_BYTES)]
Place = Annotated[int, Meta(ge=0, lt=MOST_MEMBERS)]
Worth = Annotated[float, Meta(ge=-1e12, le=1e12)]
Amounts = Annotated[tuple[Annotated[float, Meta(ge=0.0, le=1e12)], ...], Meta(max_length=MOST_TOLD)]
Worths = Annotated[tuple[Worth, ...], Meta(max_length=MOST_TOLD)]
Whole = Annotated[tuple[Annotated[int, Meta(ge=0, le=1 << 40)], ...], Meta(max_length=MOST_TOLD)]
Use = Annotated[tuple[Worth, ...], Meta(max_length=MOST_MEMBERS)]
Places = Annotated[frozenset[Place], Meta(max_length=MOST_MEMBERS)]


class Said(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True, tag_field="kind"):
    """The base of all."""


class Key(Said, frozen=True, tag=0):
    """A public key for this discovery alone, of which masks are made."""

    public: Hash


class Summed(Said, frozen=True, tag=1):
    """A step of a masked sum (partition/masked)."""

    step: Annotated[int, Meta(ge=1, le=7)]
    number: Annotated[int, Meta(ge=1, le=2)]
    words: Annotated[bytes, Meta(max_length=8 * MOST_TOLD)]


class Claims(Said, frozen=True, tag=2):
    """The list of claimed pairs of labels: lower label, higher label, how often."""

    pairs: Annotated[
        list[tuple[Annotated[int, Meta(ge=0, lt=MOST_TOLD)], Annotated[int, Meta(ge=0, lt=MOST_TOLD)], Count]],
        Meta(max_length=MOST_CLAIMS),
    ]


class Available(Said, frozen=True, tag=3):
    """V: so much you may have over this link, now that it is final."""

    amounts: Whole


class Wanted(Said, frozen=True, tag=4):
    """Q: so much I ask for."""

    amounts: Amounts


class Allocated(Said, frozen=True, tag=5):
    """U: so many datapoints will come."""

    amounts: Whole


class Listed(Said, frozen=True, tag=6):
    """The list has come."""


class Introduction(Said, frozen=True, tag=16):
    spare: Amounts
    giving: Worths
    cluster: Place


class Ask(Said, frozen=True, tag=17):
    asked: Amounts


class Offer(Said, frozen=True, tag=18):
    demand: Amounts
    giving: Worths
    taking: Worths


class Request(Said, frozen=True, tag=19):
    asked: Amounts
    prices: Worths
    allowed: Annotated[int, Meta(ge=-(1 << 50), le=1 << 50)]


class Grant(Said, frozen=True, tag=20):
    granted: Amounts
    offer: Offer
    change: Worth
    outside: Annotated[tuple[tuple[Place, Worth], ...], Meta(max_length=MOST_MEMBERS)]
    told: Place
    refused: bool


class Now(Said, frozen=True, tag=21):
    granted: Amounts
    offer: Offer


class Reply(Said, frozen=True, tag=22):
    change: Worth
    cluster: Place
    outside: Worth
    prices: Worths


class Token(Said, frozen=True, tag=23):
    use: Use
    quiet: Count
    stopped: Places
    cycle: Annotated[int, Meta(ge=0, le=MOST_CYCLES)]
    gained: Worth
    best: tuple[Worth, Use] | None


class Taken(Said, frozen=True, tag=24): ...


class End(Said, frozen=True, tag=25):
    back: bool


class Outside(Said, frozen=True, tag=26):
    takes: Worth


class Total(Said, frozen=True, tag=27):
    use: Worth


class Done(Said, frozen=True, tag=28): ...


class NextCycle(Said, frozen=True, tag=29):
    back: bool


class Ready(Said, frozen=True, tag=30):
    goes_on: bool


Cycling = Token | Taken | NextCycle | Ready | End
Learned = Introduction | Ask | Offer | Request | Grant | Now | Reply | Cycling | Outside | Total | Done
Content = Key | Summed | Claims | Listed | Available | Wanted | Allocated | Learned


class Agreed(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """What all who take part go by."""

    seed: Count
    at_once: bool  # else a token goes round
    whole: bool  # all of the roster take part: only then are counts summed up
    links: Annotated[int, Meta(ge=1, le=MOST_LINKS)]
    messages: Annotated[int, Meta(ge=1, le=1_000_000)]  # a device and link
    message_s: Annotated[float, Meta(ge=1e-4, le=10.0)]  # what a message takes, by which pauses are measured
    cluster: Annotated[list[Place], Meta(min_length=1, max_length=MOST_MEMBERS)]
    budget: Annotated[
        list[Annotated[float, Meta(ge=0.0, le=1e15)]], Meta(min_length=1, max_length=MOST_MEMBERS)
    ]  # [cluster]


class Invite(Said, frozen=True, tag=64):
    """Shall we look for a graph? For the so-manieth time, and set up like this."""

    attempt: AttemptId
    number: Count
    settings: Hash


class Answer(Said, frozen=True, tag=65):
    """Yes, or no; and the highest number of an attempt that is known here."""

    attempt: AttemptId
    yes: bool
    number: Count


class Begin(Said, frozen=True, tag=66):
    """These take part: places in the roster, in order."""

    attempt: AttemptId
    members: Annotated[list[Place], Meta(min_length=1, max_length=MOST_MEMBERS)]
    agreed: Agreed


class Packet(Said, frozen=True, tag=67):
    """A numbered message of an attempt, and how many of the other's have come; without content it says that alone."""

    attempt: AttemptId
    number: Count
    seen: Count
    content: Content | None


class Broken(Said, frozen=True, tag=68):
    """To whoever called: this attempt cannot go on."""

    attempt: AttemptId


Talk = Invite | Answer | Begin | Packet | Broken

_encoder = msgspec.msgpack.Encoder(order="deterministic")
_decoder: "msgspec.msgpack.Decoder[Talk]" = msgspec.msgpack.Decoder(Talk)
REALS = ("change", "outside", "takes", "use", "gained")
_LEARNED: dict[str, Any] = {kind.__name__: kind for kind in Learned.__args__}


def encode_talk(talk: Talk) -> bytes:
    return _encoder.encode(talk)


def size_of(content: Said) -> int:
    """Bytes of a message's content as it was sent."""
    return len(_encoder.encode(content))


def decode_talk(data: bytes) -> Talk:
    """A message, if it is one and written in the one way."""
    try:
        talk = _decoder.decode(data)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        raise WireError("no message of a discovery") from None
    if _encoder.encode(talk) != data:
        raise WireError("not canonical")
    return talk


def to_wire(content: learner.Content) -> Learned:
    """A learner's message as it is sent."""
    values = [_plain(name, getattr(content, name)) for name in content.__dataclass_fields__]
    found: Learned = _LEARNED[type(content).__name__](*values)
    return found


def _plain(name: str, value: Any) -> Any:
    if isinstance(value, learner.Offer):
        return to_wire(value)
    if name == "best":
        return None if value is None else (float(value[0]), tuple(map(float, value[1])))
    if isinstance(value, tuple) and name != "outside":
        return tuple(map(float, value))
    # An empty sum is a whole number, which is written in another way.
    return float(value) if name in REALS and not isinstance(value, tuple) else value


def from_wire(said: Learned) -> learner.Content:
    """Likewise, as the learner knows it."""
    values = [
        from_wire(value) if isinstance(value, Offer) else value
        for value in (getattr(said, name) for name in said.__struct_fields__)
    ]
    found: learner.Content = getattr(learner, type(said).__name__)(*values)
    return found
