"""Complete linkage of our own gives SciPy's clusters, ties included."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

from d2dfl.network.clusters import complete_linkage


def table(number: int, levels: int, seed: int) -> np.ndarray:
    """Symmetric distances of so many different values, some pairs out of reach; 0 levels: all different."""
    rng = np.random.default_rng(seed)
    values = rng.random((number, number)) if levels == 0 else rng.integers(0, levels, (number, number)) / levels
    values[rng.random((number, number)) < 0.2] = 2.0
    values = np.maximum(values, values.T)
    np.fill_diagonal(values, 0.0)
    return values


def same(distance: np.ndarray, threshold: float) -> None:
    ours = complete_linkage(distance, threshold)
    theirs = fcluster(linkage(squareform(distance, checks=False), "complete"), threshold, "distance")
    assert len(set(zip(ours, theirs, strict=True))) == len(set(ours)) == len(set(theirs))


@given(st.integers(2, 30), st.integers(0, 8), st.integers(0, 2**32 - 1), st.floats(0, 1))
def test_clusters_are_those_of_scipy(number: int, levels: int, seed: int, threshold: float) -> None:
    same(table(number, levels, seed), threshold)


@pytest.mark.parametrize("levels", [0, 5])
def test_many_devices(levels: int) -> None:
    same(table(400, levels, 1), 0.4)
