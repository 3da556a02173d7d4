"""What crosses a radio that loses: what devices say, numbered, and notices between the layers that carry it (lossy.py)."""

from dataclasses import dataclass

from d2dfl.discovery.protocol.messages import (
    Ask,
    Content,
    Done,
    End,
    Grant,
    Now,
    Offer,
    Outside,
    Reply,
    Request,
    Taken,
    Total,
)

FIRST_REPEAT = 6.0  # message times after which a question is repeated; doubled from one repeat to the next,
LAST_REPEAT = 48.0  # up to this
REQUEST_REPEAT = 24.0  # the same for a request, which waits in line, and for others to be told
NONE = -1

ANSWERED_BY: dict[type[Content], type[Content]] = {
    Ask: Offer,
    Request: Grant,
    Now: Reply,
    Outside: Total,
    Done: Taken,
    End: Taken,
}


@dataclass(frozen=True)
class Missing:
    """Your introduction has not come."""


@dataclass(frozen=True)
class Still:
    """Are you there, and do you count on me?"""


@dataclass(frozen=True)
class Here:
    """A sign of life, and whether the end was told: who was away may wait for others that tell somebody else."""

    ended: bool = False


@dataclass(frozen=True)
class Gone:
    """One of us has left: nothing of ours holds."""


Notice = Missing | Still | Here | Gone


@dataclass(frozen=True)
class Envelope:
    sender: int
    receiver: int
    content: Content | Notice
    number: int = NONE  # of what this sender says to this receiver; notices have none
    answers: int = NONE  # number of the question
    seen: int = 0  # all that the receiver has said with lower numbers has arrived
    gone: frozenset[int] = frozenset()  # who has left, as the sender knows


@dataclass
class Waiting:
    """Something that is repeated until it is answered."""

    envelope: Envelope
    due: float
    repeats: int = 0
    quiet: int = 0  # repeats since the last sign of life
    final: bool = False  # asked whether or not anybody waits for it

    def repeated(self, now: float) -> None:
        self.repeats += 1
        self.quiet += 1
        self.due = now + min(patience(self.envelope.content) * 2.0 ** min(self.repeats, 8), LAST_REPEAT)


def patience(content: Content | Notice) -> float:
    """How long to wait before the first repeat."""
    return REQUEST_REPEAT if isinstance(content, Request) else FIRST_REPEAT
