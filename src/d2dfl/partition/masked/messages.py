"""What devices say to each other in a masked sum."""

from dataclasses import dataclass, field
from enum import Enum

import numpy as np

from d2dfl.partition.masked.words import Words


class Kind(Enum):
    """Steps of a sum, in the order in which they happen."""

    MASKED = 1  # up
    PRESENT = 2  # down
    OPENING = 3  # up
    LOST = 4  # down, only where openings are lost
    STANDING = 5  # up, likewise
    TOTAL = 6  # down
    FAILED = 7  # either way: nobody will learn this sum


def no_words() -> Words:
    return np.zeros(0, dtype=np.uint64)


@dataclass(frozen=True, eq=False)
class Message:
    """One message over one edge of the tree."""

    kind: Kind
    sender: int
    receiver: int
    number: int  # of the sum
    words: Words = field(default_factory=no_words)
    absent: frozenset[int] = frozenset()  # up: who of the branch is not in it; down: who of all

    def bits(self, word_bits: int, id_bits: int) -> int:
        """Words, and a list of devices with its length; headers are the transport's."""
        return len(self.words) * word_bits + id_bits * (1 + len(self.absent))
