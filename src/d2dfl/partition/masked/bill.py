"""What masked sums cost."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from d2dfl.errors import UserError
from d2dfl.partition.masked.plan import mask_degree

KEY_BITS = 256  # an X25519 public key


class SumCost(NamedTuple):
    """Messages between two devices, and the bits in all of them."""

    messages: float
    bits: float


def masked_sum_cost(
    devices: int,
    numbers: Sequence[int],
    *,
    word_bits: int = 32,
    degree: int | None = None,
    keys: bool = True,
    hops: float = 1.0,
    absent: int = 0,
    lost: int = 0,
) -> SumCost:
    """Cost of masked sums one after the other, sum i over numbers[i] numbers, keys agreed on once before the first.

    Keys: every device sends its public key to each of its `degree` neighbours in the mask graph (`mask_degree` if not
    given), over `hops` hops in the mean; keys=False where they were paid for before. A sum: masked values and openings up
    the tree, the list of absent devices and the total down, 4 messages for every device but the root; 2 * words + total
    and a list's length in each.

    absent: devices that vanish before each sum, with nobody below them. lost: those that vanish in its middle, whose
    neighbours stand in, which is one more list down and one more sum up. Exact without either; with them at most this, as
    lists are taken to be whole all the way up.
    """
    if devices < 1 or not 0 <= absent + lost <= devices - 1 or min(absent, lost, *numbers, 0) < 0:
        raise UserError(
            f"masked sums cannot be over {devices} devices of which {absent + lost} vanish: fewer must vanish"
        )
    each = (mask_degree(devices) if degree is None else degree) if keys else 0
    messages, bits = devices * each * hops, devices * each * hops * KEY_BITS
    name = max(1, math.ceil(math.log2(devices + 1)))  # bits that name a device, or say how many are named
    edges = devices - 1 - absent
    for count in numbers:
        words = count * word_bits
        messages += 4 * edges
        bits += edges * (3 * words + 4 * name + 2 * absent * name + lost * name)
        if lost:
            messages += 2 * edges
            bits += edges * (words + 2 * name + lost * name)
    return SumCost(messages, bits)
