"""K-means partitions: every datapoint in one cluster, moments by slow loops, common clusters and their messages."""

import itertools
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_info, threadpool_limits

from d2dfl import UserError
from d2dfl.partition.kmeans import DataClusters, moments, nearest_centroid, own_clusters, shared_clusters
from d2dfl.partition.pca import EVERYBODY, SERVER
from d2dfl.partition.threads import one_thread

WAYS = [own_clusters, shared_clusters]


def system(seed: int, sizes: tuple[int, ...], size: int = 3) -> tuple[list[np.ndarray], list[np.ndarray], int]:
    """Projections and holdings of devices, with five datapoints that nobody holds."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(sum(sizes) + 5)
    bounds = np.concatenate([[0], np.cumsum(sizes)])
    holdings = [order[a:b] for a, b in itertools.pairwise(bounds)]
    return [rng.standard_normal((count, size)) for count in sizes], holdings, len(order)


def groups(seed: int, centres: np.ndarray, which: list[list[int]]) -> list[np.ndarray]:
    """Devices that hold ten datapoints around each of the centres named."""
    rng = np.random.default_rng(seed)
    return [np.concatenate([centres[c] + 0.1 * rng.standard_normal((10, 2)) for c in own]) for own in which]


def numbered(projections: list[np.ndarray]) -> list[np.ndarray]:
    ends = np.cumsum([len(points) for points in projections])
    return [np.arange(end - len(points), end) for end, points in zip(ends, projections, strict=True)]


@pytest.mark.parametrize("way", WAYS)
@settings(max_examples=20, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    sizes=st.lists(st.integers(4, 40), min_size=1, max_size=4),
    clusters=st.integers(1, 4),
)
def test_every_datapoint_is_in_one_cluster(
    way: Callable[..., DataClusters], seed: int, sizes: list[int], clusters: int
) -> None:
    projections, holdings, datapoints = system(seed, tuple(sizes))
    found = way(projections, holdings, datapoints, clusters, seed)
    held = np.concatenate(holdings)
    assert (found.assignment[held] >= 0).all()
    assert (found.assignment[held] < clusters).all()
    assert (np.delete(found.assignment, held) == -1).all()
    assert found.counts.sum(axis=1).tolist() == sizes
    for device, points in enumerate(holdings):
        for cluster in range(clusters):
            members = projections[device][found.assignment[points] == cluster]
            assert found.counts[device, cluster] == len(members)
            if len(members):
                mean = sum(members) / len(members)
                spread = sum(np.outer(row - mean, row - mean) for row in members) / len(members)
                np.testing.assert_allclose(found.centroids[device, cluster], mean, atol=1e-12)
                np.testing.assert_allclose(found.covariances[device, cluster], spread, atol=1e-12)
            else:
                assert way is shared_clusters
                assert (found.centroids[device, cluster] == found.messages[-1].arrays[0][cluster]).all()
                assert (found.covariances[device, cluster] == 0).all()


def test_own_clusters_find_the_groups_that_a_device_has() -> None:
    centres = np.array([[0.0, 0], [10, 0], [0, 10], [10, 10], [5, 20]])
    which = [[0, 1, 2], [4, 3, 0]]
    projections = groups(0, centres, which)
    found = own_clusters(projections, numbered(projections), 60, 3, 0)
    assert found.messages == ()
    for device, own in enumerate(which):
        truth = np.repeat(own, 10)
        mine = found.assignment[30 * device : 30 * device + 30]
        assert len(set(zip(truth.tolist(), mine.tolist(), strict=True))) == 3
        apart = np.linalg.norm(found.centroids[device][:, None] - centres[own][None], axis=2)
        assert apart.min(axis=0).max() < 0.2


def test_permuting_devices_permutes_partitions() -> None:
    centres = np.array([[0.0, 0], [10, 0], [0, 10], [10, 10]])
    projections = groups(1, centres, [[0, 1], [2, 3], [0, 3]])
    order = [2, 0, 1]
    one = own_clusters(projections, numbered(projections), 60, 2, 0)
    turned = [projections[i] for i in order]
    two = own_clusters(turned, numbered(turned), 60, 2, 0)
    for new, old in enumerate(order):
        a, b = one.centroids[old], two.centroids[new]  # the same clusters, numbered in any order
        np.testing.assert_allclose(a[np.lexsort(a.T)], b[np.lexsort(b.T)])


def test_shared_clusters_mean_the_same_everywhere() -> None:
    centres = np.array([[0.0, 0], [10, 0], [0, 10], [10, 10]])
    which = [[0, 1, 2, 3], [3, 1, 0, 0], [2, 2, 2, 2]]
    projections = groups(2, centres, which)
    found = shared_clusters(projections, numbered(projections), 120, 4, 0)
    truth = np.concatenate([np.repeat(own, 10) for own in which])
    assert len(set(zip(truth.tolist(), found.assignment.tolist(), strict=True))) == 4
    assert sorted(found.counts[2].tolist()) == [0, 0, 0, 40]
    assert sorted(found.counts[1].tolist()) == [0, 10, 10, 20]


def test_centroids_are_weighted_by_their_counts() -> None:
    # One cluster: the common centroid is the mean of all datapoints, not of the devices' means.
    projections = [np.full((9, 1), 0.0), np.full((1, 1), 10.0)]
    found = shared_clusters(projections, numbered(projections), 10, 1, 0)
    np.testing.assert_allclose(found.messages[-1].arrays[0], [[1.0]])
    np.testing.assert_allclose(found.centroids[:, 0, 0], [0.0, 10.0])


def test_what_crosses_the_wire() -> None:
    projections, holdings, datapoints = system(3, (40, 25, 60), 4)
    own = own_clusters(projections, holdings, datapoints, 3, 7)
    found = shared_clusters(projections, holdings, datapoints, 3, 7)
    assert [(m.sender, m.receiver, m.values) for m in found.messages] == [
        (0, SERVER, 3 * 4 + 3),
        (1, SERVER, 3 * 4 + 3),
        (2, SERVER, 3 * 4 + 3),
        (SERVER, EVERYBODY, 3 * 4),
    ]
    for device, item in enumerate(found.messages[:3]):
        assert (item.arrays[0] == own.centroids[device]).all()
        assert (item.arrays[1] == own.counts[device]).all()
        assert (np.abs(item.arrays[0][:, None] - projections[device][None]).max(axis=2) > 1e-3).all()


@pytest.mark.parametrize("way", WAYS)
def test_the_same_seed_gives_the_same_bits_with_any_number_of_threads(way: Callable[..., DataClusters]) -> None:
    projections, holdings, datapoints = system(4, (700, 900), 5)
    found = []
    for threads in (1, 2):
        with threadpool_limits(limits=threads):
            found.append(way(projections, holdings, datapoints, 6, 1))
    for name in ("assignment", "counts", "centroids", "covariances"):
        assert (getattr(found[0], name) == getattr(found[1], name)).all()
    other = way(projections, holdings, datapoints, 6, 2)
    assert (other.assignment != found[0].assignment).any()


def test_each_device_draws_its_own_starts() -> None:
    points = np.random.default_rng(0).random((200, 2))
    found = own_clusters([points, points], [np.arange(200), np.arange(200, 400)], 400, 8, 0)
    assert (found.assignment[:200] != found.assignment[200:]).any()


def test_one_thread_is_one_thread() -> None:
    with threadpool_limits(limits=2), one_thread():
        assert {pool["num_threads"] for pool in threadpool_info()} == {1}


def test_a_cluster_of_one_has_no_covariance() -> None:
    points = np.array([[0.0, 0], [0.1, 0], [9, 9]])
    found = own_clusters([points], [np.arange(3)], 3, 2, 0)
    alone = found.assignment[2]
    assert found.counts[0, alone] == 1
    assert (found.covariances[0, alone] == 0).all()
    assert (found.centroids[0, alone] == points[2]).all()
    np.testing.assert_allclose(found.covariances[0, 1 - alone], [[0.0025, 0], [0, 0]])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("points", "says"),
    [
        (
            np.arange(6.0)[:, None],
            "device 1 has 6 different datapoints, too few for 7 clusters: set partition.clusters to 6 or",
        ),
        (
            np.zeros((50, 1)),
            "device 1 has 1 different datapoints, too few for 7 clusters: set partition.clusters to 1 or",
        ),
        (np.empty((0, 1)), "device 1 has 0 different datapoints"),
        (1.0 + 1e-16 * 2 ** np.arange(12)[:, None] % 3e-15, "device 1 has .* too few for 7 clusters"),
    ],
)
def test_too_few_different_datapoints(way: Callable[..., DataClusters], points: np.ndarray, says: str) -> None:
    projections = [np.arange(30.0)[:, None], points]
    with pytest.raises(UserError, match=says):
        way(projections, numbered(projections), 200, 7, 0)


def test_duplicates_are_fine_while_enough_are_different() -> None:
    points = np.repeat(np.arange(3.0), 20)[:, None]
    found = own_clusters([points], [np.arange(60)], 60, 3, 0)
    assert found.counts.tolist() == [[20, 20, 20]]
    assert (found.covariances == 0).all()


def test_nearest_centroid_and_moments_by_hand() -> None:
    points = np.array([[0.0, 0], [2, 0], [5, 5]])
    centroids = np.array([[9.0, 9], [1, 0], [4, 5]])
    assert nearest_centroid(points, centroids).tolist() == [1, 1, 2]
    assert nearest_centroid(np.array([[5.0, 0]]), np.array([[4.0, 0], [6, 0]])).tolist() == [0]
    counts, means, covariances = moments(points, np.array([1, 1, 2]), centroids)
    assert counts.tolist() == [0, 2, 1]
    assert means.tolist() == [[9, 9], [1, 0], [5, 5]]
    assert covariances.tolist() == [[[0, 0], [0, 0]], [[1, 0], [0, 0]], [[0, 0], [0, 0]]]
