"""The exchange in whole datapoints (R19): floor plus largest remainder, never past the surplus."""

import math
from fractions import Fraction

HALF, NEAR = Fraction(1, 2), Fraction(1, 10**9)


def whole_datapoints(shares: list[Fraction], surplus: Fraction) -> list[tuple[int, int]]:
    """What one transmitter sends of one partition to its requesters, who are due `shares` of it in real numbers.

    Everybody gets the whole part. As many datapoints more as the shares add up to, in whole datapoints and never past
    the surplus, go one each to the largest remainders. R19 does not say which whole number stands for a sum between two:
    the nearest, a half either way. Between equal remainders anybody may win. So every requester has the fewest and the
    most that it may get; what all get together, as the last pair.
    """
    floors = [math.floor(share) for share in shares]
    rest = [share - floor for share, floor in zip(shares, floors, strict=True)]
    lowest, highest = (
        min(math.floor(sum(shares, Fraction(0)) + HALF + more), math.floor(surplus)) for more in (-NEAR, NEAR)
    )
    result = []
    for floor, remainder in zip(floors, rest, strict=True):
        above = sum(other > remainder for other in rest)
        level = sum(other == remainder for other in rest)
        surely, perhaps = above + level <= lowest - sum(floors), above < highest - sum(floors)
        result.append((floor + surely, floor + perhaps))
    return [*result, (lowest, highest)]
