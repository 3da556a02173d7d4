"""Which numbers are seeds, and how many of them one call takes."""

from collections.abc import Iterable
from numbers import Integral
from typing import Any

from d2dfl.errors import UserError

LARGEST_SEED = 2**63 - 1
MOST_SEEDS = 10_000


def is_seed(value: Any) -> bool:
    """Whether random streams can take it."""
    return isinstance(value, Integral) and not isinstance(value, bool) and 0 <= int(value) <= LARGEST_SEED


def are_seeds(values: Any) -> bool:
    """Whether it is a list of seeds that one call can take."""
    return isinstance(values, list) and 1 <= len(values) <= MOST_SEEDS and all(map(is_seed, values))


def checked_seed(seed: Any) -> int:
    """A seed, or a sentence what would be one."""
    if not is_seed(seed):
        raise UserError(f"seed cannot be {seed!r:.40}: give a whole number from 0 on")
    return int(seed)


def checked_seeds(seeds: int | Iterable[int], first: int = 0) -> list[int]:
    """Seeds by how many, from the first one on, or by which."""
    if isinstance(seeds, Integral):
        chosen = [first + number for number in range(int(seeds))]
    else:
        chosen = list(map(checked_seed, seeds)) if isinstance(seeds, Iterable) else []
    if not are_seeds(chosen) or len(set(chosen)) < len(chosen):
        raise UserError(f"seeds cannot be {seeds!r:.40}: give how many, 1 to {MOST_SEEDS:,}, or which, each once")
    return chosen
