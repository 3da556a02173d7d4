"""What stays of a peer in the simulator when it crashes, and quicker stand-ins for its keys."""

import hashlib
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from d2dfl.peer.identity.boxes import Box
from d2dfl.peer.identity.keys import Signer, fingerprint
from d2dfl.peer.peer import Peer
from d2dfl.peer.policy import sign_policy
from d2dfl.peer.store.store import Store


def content_of(device: int, number: int) -> bytes:
    """What a datapoint holds."""
    return b"%d/%03d" % (device, number)


@dataclass(frozen=True)
class QuickKey:
    """Signatures that only the simulator believes: a keyed hash is enough where nobody forges on purpose."""

    public: bytes

    def sign(self, message: bytes) -> bytes:
        return hashlib.blake2b(message, key=self.public).digest()


def quick_verify(public: bytes, message: bytes, signature: bytes) -> bool:
    return hashlib.blake2b(message, key=public).digest() == signature


@dataclass(frozen=True)
class OpenBox:
    """Closes nothing."""

    public: bytes

    def close(self, data: bytes, about: bytes, sender: bytes, receiver: bytes, other: bytes) -> bytes:
        return data

    open = close


@dataclass
class Device:
    """What stays of a peer when it crashes, and the peer while it runs."""

    number: int
    signer: Signer
    box: Box
    store: Store
    policies: list[bytes]
    peer: Peer | None = None
    full_until_s: float = 0.0
    slow_s: float = 0.0  # what its disk takes for a transaction, at most
    busy_until_s: float = 0.0
    waiting: deque[Callable[[Peer], object]] = field(default_factory=deque)  # until the disk is done
    sent: list[tuple[bytes, bytes]] = field(default_factory=list)  # frames of the past, for replays

    @property
    def own(self) -> bytes:
        return fingerprint(self.signer.public)


def signed_policy(owner: Signer, number: int, grants: dict[bytes, dict[str, int]]) -> bytes:
    """A policy that grants this, for a long time."""
    rules = [
        {"to": to.hex(), "labels": [label], "number": most, "until": "2099-01-01"}
        for to, labels in grants.items()
        for label, most in labels.items()
    ]
    return sign_policy({"grant": rules, "forbid": []}, number, owner)
