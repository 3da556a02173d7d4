"""Frames: a message, who sends it to whom, in which run as which number, and the sender's signature over all of it.

Messages that tell anything are closed for their receiver; hellos, rosters and probes are open.

A run is a start of the sender's process, counted by its store. Who has seen number c of run r takes from this sender
nothing up to (r, c) any more: a frame that is replayed or comes too late counts as lost, which the hand-over mends.
"""

from typing import Annotated

import msgspec
from msgspec import Meta

from d2dfl.peer.identity.boxes import Box
from d2dfl.peer.identity.keys import Signer, Verify, fingerprint
from d2dfl.peer.identity.roster import Member
from d2dfl.peer.wire.messages import (
    LARGEST_PIECE,
    Body,
    Count,
    Echo,
    Hello,
    Print,
    Probe,
    RosterNews,
    WireError,
    decode_body,
    encode_body,
)

LARGEST_FRAME = LARGEST_PIECE + 1024
DOMAIN = b"d2dfl/frame/1\0"
PLAIN = (Hello, RosterNews, Probe, Echo)


class Frame(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """What is sent."""

    sender: Print
    receiver: Print
    run: Count
    counter: Count
    closed: bool  # for its receiver
    body: Annotated[bytes, Meta(max_length=LARGEST_FRAME)]
    signature: Annotated[bytes, Meta(min_length=64, max_length=64)]

    @property
    def place(self) -> tuple[int, int]:
        return self.run, self.counter


_encoder = msgspec.msgpack.Encoder()
_frames = msgspec.msgpack.Decoder(Frame)


def _about(sender: bytes, receiver: bytes, run: int, counter: int) -> bytes:
    return _encoder.encode((sender, receiver, run, counter))


def _signed(about: bytes, closed: bool, body: bytes) -> bytes:
    return DOMAIN + _encoder.encode((about, closed, body))


class Writer:
    """Signs what one run of a peer sends."""

    def __init__(self, signer: Signer, box: Box, run: int) -> None:
        self.signer, self.box, self.run, self.counter = signer, box, run, 0
        self.own = fingerprint(signer.public)

    def write(self, member: Member, body: Body) -> bytes:
        """The next frame."""
        return self.write_bytes(member, encode_body(body), not isinstance(body, PLAIN))

    def write_bytes(self, member: Member, content: bytes, closed: bool) -> bytes:
        """Likewise, of a message that is encoded already."""
        self.counter += 1
        receiver = member.fingerprint
        about = _about(self.own, receiver, self.run, self.counter)
        if closed:
            content = self.box.close(content, about, self.own, receiver, member.box)
        signature = self.signer.sign(_signed(about, closed, content))
        return _encoder.encode(Frame(self.own, receiver, self.run, self.counter, closed, content, signature))


def read_frame(data: bytes) -> Frame:
    """A frame whose signature nobody has looked at yet. One frame has one encoding: any other is refused."""
    if len(data) > LARGEST_FRAME:
        raise WireError("too large")
    try:
        frame = _frames.decode(data)
    except (msgspec.DecodeError, RecursionError):
        raise WireError("no frame") from None
    if _encoder.encode(frame) != data:
        raise WireError("not canonical")
    return frame


def open_frame(frame: Frame, member: Member, box: Box, verify: Verify) -> Body:
    """The message, if this member signed it as it stands and closed it for the holder of the box."""
    about = _about(frame.sender, frame.receiver, frame.run, frame.counter)
    if not verify(member.public, _signed(about, frame.closed, frame.body), frame.signature):
        raise WireError("bad signature")
    content = read_body(frame, member.box, box)
    body = decode_body(content)
    if encode_body(body) != content:
        raise WireError("not canonical")
    if isinstance(body, PLAIN) == frame.closed:
        raise WireError("open where it should be closed")
    return body


def read_body(frame: Frame, other: bytes, box: Box) -> bytes:
    """The message's bytes; `other` is the public key at the other end, which may be either."""
    if not frame.closed:
        return frame.body
    about = _about(frame.sender, frame.receiver, frame.run, frame.counter)
    content = box.open(frame.body, about, frame.sender, frame.receiver, other)
    if content is None:
        raise WireError("not closed for this peer")
    return content
