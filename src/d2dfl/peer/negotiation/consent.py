"""What the policy lets a receiver know of a learner's message, and have of what it asks for: looked at with every message."""

from dataclasses import replace
from typing import Protocol

from d2dfl.discovery.protocol.messages import Ask, Content, Grant, Introduction, Now, Offer, Request, Vector
from d2dfl.peer.wire import negotiation as say

Room = list[int]  # [label] datapoints that a receiver may have, as things stand


class Rooms(Protocol):
    """What each of the others may have of this device now, by label: asked again for every message."""

    def __call__(self, other: int, now: float) -> Room: ...


def told(content: Content, room: Room) -> Content:
    """What may be told of a message: nothing of labels that the receiver may not have, and no more of them than it may have."""
    if isinstance(content, Introduction):
        return replace(content, spare=_most(content.spare, room), giving=_open(content.giving, room))
    if isinstance(content, Offer):
        return Offer(*(_open(part, room) for part in (content.demand, content.giving, content.taking)))
    if isinstance(content, Grant | Now):
        offer = told(content.offer, room)
        assert isinstance(offer, Offer)
        return replace(content, granted=_most(content.granted, room), offer=offer)
    return content


def still(content: say.Content, granted: Room) -> say.Content:
    """What may be told of a message that was told before and did not come: what has been revoked since goes out of it."""
    if isinstance(content, say.Available | say.Allocated):
        return type(content)(tuple(min(value, most) for value, most in zip(content.amounts, granted, strict=True)))
    if isinstance(content, say.Introduction | say.Offer | say.Grant | say.Now):
        return say.to_wire(told(say.from_wire(content), granted))
    return content


def heard(content: Content, room: Room) -> Content:
    """What counts of a message: nobody asks for more than it may have."""
    if isinstance(content, Ask | Request):
        return replace(content, asked=_most(content.asked, room))
    return content


def _most(values: Vector, room: Room) -> Vector:
    return tuple(min(value, float(most)) for value, most in zip(values, room, strict=True)) if values else ()


def _open(values: Vector, room: Room) -> Vector:
    return tuple(value if most > 0 else 0.0 for value, most in zip(values, room, strict=True)) if values else ()
