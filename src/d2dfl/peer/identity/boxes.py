"""What only the receiver may read: X25519 between two members' keys, then AES-SIV.

The transport's encryption ends at each hop, and a member can subscribe to what is meant for another: so messages that tell
anything are closed for their receiver. AES-SIV needs no random number, and repeating one harms nothing.
"""

from typing import Protocol

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESSIV
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from d2dfl.peer.identity.keys import Key


class Box(Protocol):
    """Whoever can close and open messages. The simulator has one that is always open."""

    @property
    def public(self) -> bytes: ...
    def close(self, data: bytes, about: bytes, sender: bytes, receiver: bytes, other: bytes) -> bytes:
        """Closed for the holder of `other`, the public key at the other end."""

    def open(self, data: bytes, about: bytes, sender: bytes, receiver: bytes, other: bytes) -> bytes | None: ...


class KeyBox:
    """The box of a device; its key is derived from the device's own."""

    def __init__(self, key: Key) -> None:
        seed = HKDF(hashes.SHA256(), 32, None, b"d2dfl/box-key/1").derive(key.private.private_bytes_raw())
        self._private = X25519PrivateKey.from_private_bytes(seed)
        self._ciphers: dict[tuple[bytes, bytes, bytes], AESSIV] = {}

    @property
    def public(self) -> bytes:
        return self._private.public_key().public_bytes_raw()

    def close(self, data: bytes, about: bytes, sender: bytes, receiver: bytes, other: bytes) -> bytes:
        return self._cipher(sender, receiver, other).encrypt(data, [about])

    def open(self, data: bytes, about: bytes, sender: bytes, receiver: bytes, other: bytes) -> bytes | None:
        try:
            return self._cipher(sender, receiver, other).decrypt(data, [about])
        except (InvalidTag, ValueError):
            return None

    def _cipher(self, sender: bytes, receiver: bytes, other: bytes) -> AESSIV:
        """One for each direction between two devices."""
        place = (sender, receiver, other)
        if place not in self._ciphers:
            shared = self._private.exchange(X25519PublicKey.from_public_bytes(other))
            derived = HKDF(hashes.SHA512(), 64, None, b"d2dfl/box/1" + sender + receiver).derive(shared)
            self._ciphers[place] = AESSIV(derived)
        return self._ciphers[place]
