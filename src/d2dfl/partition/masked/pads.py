"""Masks from keys that two devices share: one for each pair, sum number and use, by a keyed hash."""

import hashlib
from collections.abc import Callable
from typing import Protocol

import numpy as np

from d2dfl.errors import UserError
from d2dfl.partition.masked.words import Words, low_bits
from d2dfl.rng import stream

# The seam to a key agreement: the key that devices i and j share, the same for (i, j) and (j, i), 16 to 64 bytes that
# nobody else can guess. On real devices a hash of an X25519 secret; `simulated_pair_key` in one process.
PairKey = Callable[[int, int], bytes]


class Pads(Protocol):
    """What a device masks with."""

    def pair(self, one: int, other: int, number: int, count: int) -> Words:
        """The mask that two devices share in this sum, whoever asks."""

    def own(self, owner: int, helper: int, number: int, count: int) -> Words:
        """The part of the owner's own mask that this neighbour knows, too."""


def simulated_pair_key(seed: int) -> PairKey:
    """Keys from named random streams, for simulations: whoever knows the seed knows them all."""

    def pair_key(one: int, other: int) -> bytes:
        return stream(seed, "pair-key", min(one, other), max(one, other)).bytes(32)

    return pair_key


class KeyedPads:
    """Pads from pair keys. `session` tells apart uses of the same keys: no pad may ever be used for two sums."""

    def __init__(self, pair_key: PairKey, session: bytes, bits: int) -> None:
        self._pair_key, self._session, self._bits = pair_key, session, bits

    def pair(self, one: int, other: int, number: int, count: int) -> Words:
        low, high = min(one, other), max(one, other)
        return self._pad(low, high, b"pair", number, count)

    def own(self, owner: int, helper: int, number: int, count: int) -> Words:
        return self._pad(owner, helper, b"own", number, count)

    def _pad(self, one: int, other: int, use: bytes, number: int, count: int) -> Words:
        key = self._pair_key(one, other)
        if not 16 <= len(key) <= 64:
            raise UserError(f"the key of devices {one} and {other} has {len(key)} bytes: give 16 to 64")
        # Each part with its length, so that no two different askings hash the same bytes.
        parts = (self._session, use, b"%d" % one, b"%d" % other, b"%d" % number)
        told = b"".join(len(part).to_bytes(4, "big") + part for part in parts)
        seed = hashlib.blake2b(told, key=key, digest_size=32, person=b"d2dfl masked").digest()
        words = np.frombuffer(hashlib.shake_256(seed).digest(8 * count), dtype="<u8").astype(np.uint64)
        return low_bits(words, self._bits)
