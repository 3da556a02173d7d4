"""Named random streams: the same seed gives the same bits, and a new draw in one place moves nothing elsewhere.

Two kinds:

- ``stream(seed, "trust")`` is a NumPy generator for set-up work.
- ``device_keys`` and ``draws.uniform`` are a counter-based generator (SplitMix64) for compiled loops: draw number n of a
  device depends on the device's key and n alone, so the order in which devices act changes nothing.
"""

import zlib

import numpy as np
from numpy.typing import NDArray

GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def _sequence(seed: int, names: tuple[str | int, ...]) -> np.random.SeedSequence:
    # A leading tag keeps the name "1" and the number 1 apart.
    key: list[int] = []
    for name in names:
        key += [1, zlib.crc32(name.encode())] if isinstance(name, str) else [2, int(name)]
    return np.random.SeedSequence(entropy=seed, spawn_key=tuple(key))


def stream(seed: int, *names: str | int) -> np.random.Generator:
    """An independent generator for this seed and this name."""
    return np.random.Generator(np.random.PCG64(_sequence(seed, names)))


def device_keys(seed: int, *names: str | int, devices: int) -> NDArray[np.uint64]:
    """One 64-bit key per device, for `uniform`."""
    base = _sequence(seed, names).generate_state(1, np.uint64)[0]
    with np.errstate(over="ignore"):
        return _mix_array(base + (np.arange(devices, dtype=np.uint64) + np.uint64(1)) * GOLDEN)


def _mix_array(state: NDArray[np.uint64]) -> NDArray[np.uint64]:
    z = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
