"""Distributed PCA (Section V-B1, R34): disPCA as devices and server do it, and the exact scatter that it stands for."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def shared_mean(parts: list[Array]) -> Array:
    """R34: every device sends the sum and the number of its datapoints; all centre with the global mean."""
    total = sum((part.sum(axis=0) for part in parts), np.zeros(parts[0].shape[1]))
    return total / sum(len(part) for part in parts)


def exact_scatter(parts: list[Array], components: int) -> Array:
    """The leading eigenvectors of the scatter matrix of all data, as rows."""
    mean = shared_mean(parts)
    scatter = np.zeros((len(mean), len(mean)))
    for part in parts:
        for row in part:
            scatter += np.outer(row - mean, row - mean)
    _, vectors = np.linalg.eigh(scatter)
    return vectors[:, ::-1][:, :components].T


def dispca(parts: list[Array], components: int) -> Array:
    """disPCA: the server takes the SVD of all devices' top components, each scaled by its singular value."""
    mean = shared_mean(parts)
    stack = []
    for part in parts:
        # Singular values and right vectors of the centred part, by its own scatter: s^2 and v are an eigenpair.
        values, vectors = np.linalg.eigh((part - mean).T @ (part - mean))
        for value, vector in list(zip(values, vectors.T, strict=True))[::-1][:components]:
            stack.append(np.sqrt(max(value, 0.0)) * vector)
    rows = np.array(stack)
    _, vectors = np.linalg.eigh(rows.T @ rows)
    return vectors[:, ::-1][:, :components].T


def projector(basis: Array) -> Array:
    """The same for every basis of a subspace."""
    return basis.T @ basis


def captured(parts: list[Array], basis: Array) -> float:
    """Share of the variance of all data that lies in the subspace; of no variance, all of it."""
    rows = np.concatenate(parts) - shared_mean(parts)
    whole = float((rows**2).sum())
    return float(((rows @ basis.T) ** 2).sum()) / whole if whole > 1e-12 else 1.0
