"""How near a subspace is to another one, or to the best: for tests and benchmarks of distributed PCA."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def subspace_error(one: Array, other: Array) -> float:
    """Sine of the largest principal angle between two subspaces, each given by orthonormal rows; 0: the same.

    The strictest measure: one wrong direction of many gives 1. Where the last component kept and the first one left
    out have nearly equal variance it is large although little variance is missed; `mean_squared_sine` is milder.
    """
    return min(1.0, float(np.linalg.norm(_outside(one, other), 2)))


def mean_squared_sine(one: Array, other: Array) -> float:
    """Mean over the principal angles of the squared sine: the share of one subspace that lies outside the other."""
    return float(np.sum(_outside(one, other) ** 2) / len(other))


def captured(components: Array, inputs: NDArray[Any], mean: Array) -> float:
    """Variance of the inputs around the mean inside a subspace, as a share of what PCA of all inputs would capture.

    1 is the best that as many components can do. Inputs without variance: 1.
    """
    rows = inputs.reshape(len(inputs), -1).astype(np.float64) - mean
    scatter = rows.T @ rows
    best = np.linalg.eigvalsh(scatter)[-len(components) :].sum()
    return float(np.sum((components @ scatter) * components) / best) if best > 0 else 1.0


def _outside(one: Array, other: Array) -> Array:
    """What of the other's rows lies outside the first subspace."""
    return other - (other @ one.T) @ one
