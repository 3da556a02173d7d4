"""Keys that two devices agree on over an open radio: X25519, then HKDF. Needs the package `cryptography` (extra `peer`).

Every device makes a key pair, which serves one session, and sends the public half to each of its neighbours in the mask graph: 256 bits a
message, as the bill says (bill.py). The private half never leaves it, so a device can make pads with its own neighbours and no
others. Who only listens learns nothing; who could change messages on their way must be held off by what carries them, where
members sign (peer/).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from d2dfl.errors import UserError
from d2dfl.partition.masked.bill import KEY_BITS
from d2dfl.partition.masked.device import MaskedDevice
from d2dfl.partition.masked.pads import KeyedPads
from d2dfl.partition.masked.plan import SumPlan

ABOUT = b"d2dfl/masked-sum/1"


@dataclass(frozen=True)
class PublicKey:
    """A message: whom to agree with."""

    sender: int
    receiver: int
    public: bytes

    @property
    def bits(self) -> int:
        return 8 * len(self.public)


class KeyAgreement:
    """One device's side: its key pair, and what it agrees on with those whose public keys it has heard. A `PairKey`."""

    def __init__(self, device: int, session: bytes) -> None:
        try:
            from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
        except ModuleNotFoundError as missing:
            raise UserError("keys are agreed on with the package cryptography: install d2dfl[peer]") from missing
        self.device, self._session = device, session
        self._private = X25519PrivateKey.generate()
        self._agreed: dict[int, bytes] = {}

    @property
    def public(self) -> bytes:
        return self._private.public_key().public_bytes_raw()

    def announcements(self, neighbours: Sequence[int]) -> list[PublicKey]:
        return [PublicKey(self.device, name, self.public) for name in neighbours]

    def hear(self, message: PublicKey) -> None:
        """A neighbour's public key. The first one stands: keys are not changed within a session."""
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey
        from cryptography.hazmat.primitives.kdf.hkdf import HKDF

        if message.receiver != self.device or message.sender in self._agreed:
            return
        try:
            secret = self._private.exchange(X25519PublicKey.from_public_bytes(message.public))
        except ValueError as wrong:  # not 32 bytes, or a point of low order, which would make the secret known to all
            raise UserError(f"the key that device {message.sender} sent is none: it cannot take part") from wrong
        keys = b"".join(sorted([self.public, message.public]))
        self._agreed[message.sender] = HKDF(hashes.SHA256(), 32, self._session, ABOUT + keys).derive(secret)

    def __call__(self, one: int, other: int) -> bytes:
        """The key that two devices share, of whom this must be one."""
        name = other if one == self.device else one
        if self.device not in (one, other) or name not in self._agreed:
            raise UserError(f"device {self.device} has no key of the devices {one} and {other}")
        return self._agreed[name]


def agreed_devices(plan: SumPlan, session: bytes) -> tuple[list[MaskedDevice], list[PublicKey]]:
    """The devices of a plan in one process, each with keys of its own, and the messages by which they agreed on them."""
    sides = [KeyAgreement(device, session) for device in range(plan.devices)]
    sent = [message for side in sides for message in side.announcements(plan.neighbours[side.device])]
    for message in sent:
        assert message.bits == KEY_BITS
        sides[message.receiver].hear(message)
    return [MaskedDevice(side.device, plan, KeyedPads(side, session, plan.bits)) for side in sides], sent
