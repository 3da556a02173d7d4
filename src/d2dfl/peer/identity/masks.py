"""Keys for masked sums: a new pair for every discovery, so that no mask is used twice and an old key opens nothing."""

import hashlib

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey


class MaskKey:
    """The key of one device for one discovery, made of 32 bytes that nobody else can guess."""

    def __init__(self, seed: bytes) -> None:
        self._private = X25519PrivateKey.from_private_bytes(seed)

    @property
    def public(self) -> bytes:
        return self._private.public_key().public_bytes_raw()

    def shared(self, other: bytes) -> bytes:
        """What the holders of both keys know; raises a ValueError for a key that is none."""
        secret = self._private.exchange(X25519PublicKey.from_public_bytes(other))
        return hashlib.sha256(b"d2dfl/mask/1" + secret).digest()
