"""Real numbers as integers modulo 2^bits, of which sums over all devices never wrap."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from d2dfl.errors import UserError

Words = NDArray[np.uint64]  # integers modulo 2^bits, bits at most 64
WORD_BITS = 64  # of the masked sums of a discovery


def low_bits(words: Words, bits: int) -> Words:
    """Words modulo 2^bits."""
    return words if bits == 64 else words & np.uint64((1 << bits) - 1)


def checked_bits(bits: int) -> int:
    """Bits of a word, or a sentence about them."""
    if not 2 <= bits <= 64:
        raise UserError(f"a word of a masked sum cannot have {bits} bits: give 2 to 64")
    return bits


@dataclass(frozen=True)
class FixedPoint:
    """How devices write numbers of at most `limit` each: as whole multiples of 2^-fraction, negative ones from the top.

    The fraction has as many bits as leave room for the sum of all devices, so a sum is exact but for the rounding of each
    device's number: `precision` at most. Whole numbers are summed exactly.
    """

    devices: int
    limit: float  # largest absolute value that one device may add
    bits: int = 32

    def __post_init__(self) -> None:
        checked_bits(self.bits)
        if self.devices < 1 or not 0 < self.limit < math.inf:
            raise UserError(
                f"a masked sum cannot be over {self.devices} devices with numbers up to {self.limit}: give at least one "
                "device and a positive limit"
            )
        if self.fraction < 0:
            raise UserError(
                f"{self.devices:,} numbers of up to {self.limit:g} do not fit into {self.bits} bits: give more bits or a lower limit"
            )

    @property
    def fraction(self) -> int:
        """Bits behind the point: devices * (limit * 2^fraction + 1/2) stays below 2^(bits - 1)."""
        most = ((1 << (self.bits - 1)) - 1) // self.devices
        above, below = float(self.limit).as_integer_ratio()
        room: int = max((2 * most - 1) * below // (2 * above), 0)  # in whole numbers: real ones would round 2^63 - 1 up
        return min(room.bit_length() - 1, 52)

    @property
    def precision(self) -> float:
        """Largest error of a sum, by rounding."""
        return self.devices * 2.0 ** -(self.fraction + 1)

    def words(self, values: Any) -> Words:
        """One device's numbers as words; a number beyond the limit is refused, as its sum could wrap."""
        numbers = np.asarray(values, dtype=np.float64)
        if not (np.abs(numbers) <= self.limit).all():  # also false where a number is none
            raise UserError(f"a number of a masked sum is not within {self.limit:g}: clip it or raise the limit")
        whole = np.rint(numbers * 2.0**self.fraction).astype(np.int64)
        return low_bits(whole.view(np.uint64), self.bits)

    def numbers(self, words: Words) -> NDArray[np.float64]:
        """The numbers that words, or sums of words, stand for."""
        shift = np.uint64(64 - self.bits)
        signed = np.ascontiguousarray(words << shift).view(np.int64) >> np.int64(64 - self.bits)
        return np.asarray(signed / 2.0**self.fraction)
