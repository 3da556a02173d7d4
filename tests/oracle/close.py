"""How a comparison fails: with the name of the quantity, and both values."""

from typing import Any

import numpy as np


def same(what: str, package: Any, oracle: Any, tolerance: float = 1e-9) -> None:
    """Equal up to rounding; whole numbers and truths exactly. An AssertionError that says what is not."""
    one, two = np.asarray(package, dtype=float), np.asarray(oracle, dtype=float)
    assert one.shape == two.shape, f"{what}: the package has the shape {one.shape}, the oracle {two.shape}"
    bad = ~np.isclose(one, two, rtol=tolerance, atol=tolerance)
    if bad.any():
        at = tuple(np.argwhere(bad)[0].tolist())
        raise AssertionError(
            f"{what}{list(at) if at else ''}: the package has {one[at]:.12g}, the oracle {two[at]:.12g}"
        )
