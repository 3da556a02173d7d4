"""Frames: a message, who sends it to whom, in which run as which number, and the sender's signature over all of it.

A run is a start of the sender's process, counted by its store. Who has seen number c of run r takes from this sender
nothing up to (r, c) any more: a frame that is replayed or comes too late counts as lost, which the hand-over mends.
"""

from typing import Annotated

import msgspec
from msgspec import Meta

from d2dfl.peer.identity.keys import Signer, Verify, fingerprint
from d2dfl.peer.wire.messages import LARGEST_PIECE, Body, Count, Print, WireError, decode_body, encode_body

LARGEST_FRAME = LARGEST_PIECE + 1024
DOMAIN = b"d2dfl/frame/1\0"


class Frame(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """What is sent."""

    sender: Print
    receiver: Print
    run: Count
    counter: Count
    body: Annotated[bytes, Meta(max_length=LARGEST_FRAME)]
    signature: Annotated[bytes, Meta(min_length=64, max_length=64)]

    @property
    def place(self) -> tuple[int, int]:
        return self.run, self.counter


_encoder = msgspec.msgpack.Encoder()
_frames = msgspec.msgpack.Decoder(Frame)


def _signed(sender: bytes, receiver: bytes, run: int, counter: int, body: bytes) -> bytes:
    return DOMAIN + _encoder.encode((sender, receiver, run, counter, body))


class Writer:
    """Signs what one run of a peer sends."""

    def __init__(self, signer: Signer, run: int) -> None:
        self.signer, self.run, self.counter = signer, run, 0
        self.own = fingerprint(signer.public)

    def write(self, receiver: bytes, body: Body) -> bytes:
        """The next frame."""
        self.counter += 1
        content = encode_body(body)
        signature = self.signer.sign(_signed(self.own, receiver, self.run, self.counter, content))
        return _encoder.encode(Frame(self.own, receiver, self.run, self.counter, content, signature))


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


def open_frame(frame: Frame, public: bytes, verify: Verify) -> Body:
    """The message, if the holder of this key signed it as it stands."""
    message = _signed(frame.sender, frame.receiver, frame.run, frame.counter, frame.body)
    if not verify(public, message, frame.signature):
        raise WireError("bad signature")
    body = decode_body(frame.body)
    if encode_body(body) != frame.body:
        raise WireError("not canonical")
    return body
