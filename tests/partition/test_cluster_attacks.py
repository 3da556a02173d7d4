"""What devices out of range learn of a device's data clusters from the sums that it broadcasts (our learner on Algorithm 2)."""

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from d2dfl.discovery.equations.agreement import sums_of

Array = NDArray[np.float64]
D = 2  # components


def broadcast(means: Array, roots: Array) -> Array:
    """The sums of clusters with these means and with covariances root root'."""
    spreads = roots @ roots.transpose(0, 2, 1)
    sums = np.empty(2 * D * D + 2 * D + 2)
    sums_of(means, spreads, np.linalg.inv(spreads), sums)
    return sums


def unpacked(parameters: Array, clusters: int) -> tuple[Array, Array]:
    """Means and lower triangular roots of covariances from a row of numbers."""
    rows = parameters.reshape(clusters, 5)
    roots = np.zeros((clusters, D, D))
    roots[:, 0, 0], roots[:, 1, 1], roots[:, 1, 0] = np.exp(rows[:, 2]), np.exp(rows[:, 3]), rows[:, 4]
    return rows[:, :2], roots


def attack(told: Array, clusters: int, start: Array) -> Array | None:
    """Clusters that would have told the same, or None where none were found from here."""
    found = least_squares(lambda row: broadcast(*unpacked(row, clusters)) - told, start, xtol=1e-14, ftol=1e-14)
    return found.x if np.abs(found.fun).max() < 1e-8 else None


def distance(one: Array, other: Array, clusters: int) -> float:
    """How far centroids lie from the nearest true one, in the mean."""
    true, guessed = unpacked(one, clusters)[0], unpacked(other, clusters)[0]
    return float(np.linalg.norm(true[:, None] - guessed[None], axis=2).min(axis=1).mean())


def guesses(clusters: int, number: int) -> list[float]:
    generator = np.random.default_rng(clusters)
    truth = generator.normal(0.0, 0.5, 5 * clusters)
    told = broadcast(*unpacked(truth, clusters))
    starts = (generator.normal(0.0, 0.5, 5 * clusters) for _ in range(number))
    found = (attack(told, clusters, start) for start in starts)
    return [distance(truth, item, clusters) for item in found if item is not None]


def test_sums_of_one_or_two_clusters_tell_their_centroids() -> None:
    """12 numbers are told; one cluster has 5, two have 10."""
    assert min(guesses(1, 3)) < 1e-6
    assert min(guesses(2, 12)) < 1e-6


def test_sums_of_several_clusters_fit_others_as_well() -> None:
    """Seven have 35 numbers: whatever the attack finds tells the same sums and lies elsewhere."""
    found = guesses(7, 6)
    assert len(found) > 2
    assert min(found) > 0.05
