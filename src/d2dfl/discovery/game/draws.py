"""Random draws in compiled loops: draw number n of a device depends on its key (rng.device_keys) and n alone."""

from typing import Any

import numpy as np

from d2dfl.compiled import kernel


@kernel
def uniform(key: Any, counter: Any) -> Any:
    """Draw number `counter` of the stream `key`, in [0, 1)."""
    z = np.uint64(key) + (np.uint64(counter) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return np.float64(z >> np.uint64(11)) * (1.0 / 9007199254740992.0)
