"""The exchange in whole datapoints (R19): floor plus largest remainder, never past the surplus."""

import math
from fractions import Fraction


def whole_datapoints(shares: list[Fraction], surplus: Fraction) -> tuple[list[int], list[int]]:
    """What one transmitter sends of one partition to its requesters, who are due `shares` of it in real numbers.

    Everybody gets the whole part. As many datapoints more as the shares add up to, in whole datapoints and never past
    the surplus, go one each to the largest remainders. Between equal remainders anybody may win, so two lists come
    back: the fewest and the most that each requester may get.
    """
    floors = [math.floor(share) for share in shares]
    rest = [share - floor for share, floor in zip(shares, floors, strict=True)]
    left = min(math.floor(sum(shares)), math.floor(surplus)) - sum(floors)
    fewest, most = list(floors), list(floors)
    for k, remainder in enumerate(rest):
        above = sum(other > remainder for other in rest)
        level = sum(other == remainder for other in rest)
        fewest[k] += above + level <= left
        most[k] += above < left
    return fewest, most
