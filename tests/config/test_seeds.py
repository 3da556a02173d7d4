"""One rule for seeds: which numbers, and how many."""

import numpy as np
import pytest

from d2dfl.config.seeds import LARGEST_SEED, MOST_SEEDS, are_seeds, checked_seed, checked_seeds
from d2dfl.errors import UserError


@pytest.mark.parametrize("seed", [0, LARGEST_SEED, np.int64(7)])
def test_whole_numbers_from_0_on(seed: int) -> None:
    assert checked_seed(seed) == seed
    assert type(checked_seed(seed)) is int


@pytest.mark.parametrize("seed", [-1, LARGEST_SEED + 1, True, 1.0, "1", None])
def test_nothing_else(seed: object) -> None:
    with pytest.raises(UserError, match="seed cannot be .*: give a whole number from 0 on"):
        checked_seed(seed)
    assert not are_seeds([0, seed])


def test_how_many_or_which() -> None:
    assert checked_seeds(3) == [0, 1, 2]
    assert checked_seeds(2, first=7) == [7, 8]
    assert checked_seeds([4, 1]) == [4, 1]
    for wrong in (0, [], MOST_SEEDS + 1):
        with pytest.raises(UserError, match="give how many, 1 to 10,000, or which"):
            checked_seeds(wrong)
