"""Shares of a whole, and whole numbers near them."""

import numpy as np
from numpy.typing import NDArray


def label_shares(labels: int) -> NDArray[np.float64]:
    """Shares of a device's labels: 70 % for the first, the rest halved from label to label (3 labels: 70/20/10)."""
    if labels == 1:
        return np.ones(1)
    tail = 0.5 ** np.arange(labels - 1)
    return np.concatenate([[0.7], 0.3 * tail / tail.sum()])


def whole_parts(total: int, shares: NDArray[np.float64]) -> NDArray[np.int64]:
    """Split `total` into whole numbers near total * shares: floor, then largest remainder."""
    exact = total * shares
    parts = np.floor(exact + 1e-9).astype(np.int64)
    for index in np.argsort(parts - exact, kind="stable")[: total - parts.sum()]:
        parts[index] += 1
    return parts
