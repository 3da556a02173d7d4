"""Distributed PCA: against pooled PCA, and what crosses the wire."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.decomposition import PCA

from d2dfl import UserError
from d2dfl.partition.pca import (
    EVERYBODY,
    SERVER,
    SUMMARIES,
    Subspace,
    Summary,
    common_subspace,
)
from subspaces import captured, mean_squared_sine, subspace_error

Parts = list[np.ndarray]


def skewed(seed: int, sizes: tuple[int, ...] = (30, 5, 80, 41), features: int = 12) -> Parts:
    """Devices of different sizes that vary in directions of their own around means of their own."""
    rng = np.random.default_rng(seed)
    shared = rng.standard_normal((features, features)) * 0.7 ** np.arange(features)[:, None]
    return [
        (
            rng.standard_normal((size, features)) @ (shared + 0.3 * rng.standard_normal(shared.shape)) + 3 * device
        ).astype(np.float32)
        for device, size in enumerate(sizes)
    ]


def pooled(parts: Parts, components: int) -> PCA:
    rows = np.concatenate([part.reshape(len(part), -1) for part in parts]).astype(np.float64)
    return PCA(components, svd_solver="full").fit(rows)


def check_orthonormal(subspace: Subspace) -> None:
    components = subspace.components
    np.testing.assert_allclose(components @ components.T, np.eye(len(components)), atol=1e-12)
    largest = np.abs(components).argmax(axis=1)
    assert (components[np.arange(len(components)), largest] > 0).all()


@pytest.mark.parametrize("features", [12, 400])  # more and fewer features than datapoints at a device
@pytest.mark.parametrize("components", [1, 3, 7])
def test_scatter_is_pooled_pca(components: int, features: int) -> None:
    parts = skewed(0, features=features)
    exact = pooled(parts, components)
    found = common_subspace(parts, components, "scatter")
    np.testing.assert_allclose(found.mean, exact.mean_, rtol=1e-12)
    signs = np.sign(np.sum(found.components * exact.components_, axis=1))
    np.testing.assert_allclose(found.components, signs[:, None] * exact.components_, atol=1e-8)
    rows = np.concatenate(parts)
    np.testing.assert_allclose(found.project(rows), signs * exact.transform(rows.astype(np.float64)), atol=1e-6)


def slow(parts: Parts, components: int, method: str) -> np.ndarray:
    """The matrix whose top eigenvectors the server wants, from full SVDs of the devices one by one."""
    mean = np.concatenate(parts).astype(np.float64).mean(axis=0)
    total = np.zeros((len(mean), len(mean)))
    for part in parts:
        if len(part) == 0:
            continue
        _, spread, directions = np.linalg.svd(part - mean, full_matrices=False)
        for value, row in list(zip(spread, directions, strict=True))[:components]:
            total += np.outer(row, row) * (value**2 if method == "dispca" else len(part))
    return total


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    sizes=st.lists(st.integers(0, 40), min_size=2, max_size=5).filter(lambda sizes: sum(sizes) >= 12),
    components=st.integers(1, 6),
    features=st.sampled_from([8, 30]),
    method=st.sampled_from(["dispca", "projectors"]),
)
def test_the_fast_way_is_the_slow_way(
    seed: int, sizes: list[int], components: int, features: int, method: Summary
) -> None:
    parts = skewed(seed, tuple(sizes), features)
    found = common_subspace(parts, components, method)
    check_orthonormal(found)
    # Eigenvalues may repeat (projectors), so vectors are not determined, but the sum that the best of them reach is.
    total = slow(parts, components, method)
    reached = np.trace(found.components @ total @ found.components.T)
    assert reached == pytest.approx(np.linalg.eigvalsh(total)[-components:].sum(), rel=1e-9)


def test_all_components_make_dispca_exact() -> None:
    parts = skewed(3, (40, 50, 60), 6)
    for components in (2, 4):
        # Devices that send everything they have leave nothing out; that takes as many components as features.
        full = common_subspace(parts, 6)
        assert subspace_error(pooled(parts, components).components_, full.components[:components]) < 1e-7


def test_the_mean_is_everybodys() -> None:
    # Around its own mean neither device varies at all; around the common one both vary along the first axis.
    parts = [np.full((4, 3), [5.0, 1.0, 1.0], np.float32), np.full((8, 3), [-1.0, 1.0, 1.0], np.float32)]
    for method in SUMMARIES:
        found = common_subspace(parts, 1, method)
        np.testing.assert_allclose(found.mean, [1.0, 1.0, 1.0])
        np.testing.assert_allclose(found.components, [[1.0, 0.0, 0.0]], atol=1e-12)
        np.testing.assert_allclose(found.project(parts[0]), np.full((4, 1), 4.0))


def test_dispca_weighs_by_variance_and_projectors_by_datapoints() -> None:
    # Two datapoints far out along y, eight a little apart along x; both devices are centred at 0.
    loud = np.array([[0, 10], [0, -10]], np.float32)
    many = np.array([[1, 0], [-1, 0]] * 4, np.float32)
    np.testing.assert_allclose(common_subspace([loud, many], 1, "dispca").components, [[0, 1]], atol=1e-12)
    np.testing.assert_allclose(common_subspace([loud, many], 1, "projectors").components, [[1, 0]], atol=1e-12)


@pytest.mark.parametrize("method", SUMMARIES)
def test_permuting_devices_changes_nothing(method: Summary) -> None:
    parts = skewed(5)
    one = common_subspace(parts, 4, method)
    other = common_subspace([parts[i] for i in (2, 0, 3, 1)], 4, method)
    np.testing.assert_allclose(one.components, other.components, atol=1e-9)
    again = common_subspace(parts, 4, method)
    assert (one.components == again.components).all()


@pytest.mark.parametrize("method", SUMMARIES)
def test_what_crosses_the_wire(method: Summary) -> None:
    parts = [part.reshape(-1, 3, 4) for part in (*skewed(1), np.empty((0, 12), np.float32))]
    components, features = 6, 12
    found = common_subspace(parts, components, method)
    told = [(m.sender, m.receiver, m.values) for m in found.messages]
    summary = {"scatter": lambda n: features * (features + 1) // 2}.get(method, lambda n: min(n, components) * features)
    devices = [0, 1, 2, 3]  # the fifth has nothing to say
    assert told == [
        *((device, SERVER, features + 1) for device in devices),
        (SERVER, EVERYBODY, features),
        *((device, SERVER, summary(len(parts[device]))) for device in devices),
        (SERVER, EVERYBODY, components * features),
    ]
    assert found.values == sum(values for _, _, values in told)
    for item in found.messages:
        assert item.values == sum(array.size for array in item.arrays)
    # No row of raw data, as it is or centred, is in any message.
    raw = np.concatenate([part.reshape(len(part), features) for part in parts]).astype(np.float64)
    for rows in (raw, raw - found.mean):
        for item in found.messages:
            for array in item.arrays:
                if array.shape[-1] == features:
                    apart = np.abs(array.reshape(-1, 1, features)) - np.abs(rows)
                    assert np.abs(apart).max(axis=2).min() > 1e-3


def test_the_message_is_the_scaled_components() -> None:
    parts = skewed(2)
    found = common_subspace(parts, 3)
    sent = {m.sender: m.arrays[0] for m in found.messages if m.what == "scaled components"}
    for device, part in enumerate(parts):
        spread = np.linalg.svd(part - found.mean, compute_uv=False)[:3]
        np.testing.assert_allclose(np.linalg.norm(sent[device], axis=1), spread, rtol=1e-9)


@pytest.mark.parametrize("method", SUMMARIES)
def test_noise_is_put_on_what_leaves_the_device(method: Summary) -> None:
    parts = skewed(4)
    shapes: list[tuple[int, tuple[int, ...]]] = []

    def shift(array: np.ndarray, device: int) -> np.ndarray:
        shapes.append((device, array.shape))
        if array.ndim == 1:
            return array + 7.0
        spike = np.zeros_like(array)
        spike[0, 3] = spike[3, 3] = 1e6 * (device + 1)  # not symmetric, as independent draws would be
        return array + spike

    found = common_subspace(parts, 2, method, noise=shift)
    assert shapes == [*((d, (12,)) for d in range(4)), *((d, (12, 12)) for d in range(4))]
    total = sum(len(part) for part in parts)
    np.testing.assert_allclose(found.mean, np.concatenate(parts).astype(float).mean(axis=0) + 7.0 * 4 / total)
    spike = np.zeros((12, 12))
    spike[3, 3], spike[0, 3], spike[3, 0] = 1.0, 0.5, 0.5
    direction = np.linalg.eigh(spike)[1][:, -1]
    assert abs(direction @ found.components[0]) > 0.999


def test_no_noise_from_scatter_matrices_changes_nothing() -> None:
    parts = skewed(6)
    plain, through = common_subspace(parts, 3), common_subspace(parts, 3, noise=lambda array, device: array)
    np.testing.assert_allclose(plain.components, through.components, atol=1e-8)


@pytest.mark.parametrize("method", SUMMARIES)
def test_data_with_too_few_directions(method: Summary) -> None:
    equal = [np.full((5, 4), 0.1, np.float32), np.full((3, 4), 0.1, np.float32)]
    found = common_subspace(equal, 3, method)
    check_orthonormal(found)
    np.testing.assert_allclose(found.components, np.eye(4)[:3])
    assert np.abs(found.project(equal[0])).max() < 1e-8
    assert captured(found.components, equal[0], equal[0][0].astype(np.float64)) == 1.0
    line = [np.outer([1.0, 2, 4], [3, 0, 4]).astype(np.float32), np.outer([5.0, 9], [3, 0, 4]).astype(np.float32)]
    found = common_subspace(line, 2, method)
    np.testing.assert_allclose(found.components, [[0.6, 0, 0.8], [0, 1, 0]], atol=1e-9)
    check_orthonormal(found)


def test_a_feature_without_variance() -> None:
    parts = [np.insert(part, 5, 2.5, axis=1) for part in skewed(7)]
    for method in SUMMARIES:
        found = common_subspace(parts, 4, method)
        assert np.abs(found.components[:, 5]).max() < 1e-9


@pytest.mark.parametrize(
    ("components", "sizes", "says"),
    [
        (13, (30, 30), "partition.components cannot be 13: inputs of 12 features at 60 datapoints allow 1 to 12"),
        (6, (2, 3), "partition.components cannot be 6: inputs of 12 features at 5 datapoints allow 1 to 5"),
        (0, (2, 3), "partition.components cannot be 0"),
    ],
)
def test_too_many_components(components: int, sizes: tuple[int, ...], says: str) -> None:
    with pytest.raises(UserError, match=says):
        common_subspace(skewed(0, sizes), components)


def test_bad_input() -> None:
    parts = skewed(0)
    with pytest.raises(UserError, match="partition.pca cannot be 'magic': give one of dispca, projectors, scatter"):
        common_subspace(parts, 2, "magic")  # type: ignore[arg-type]  # wrong on purpose
    parts[2][3, 4] = np.nan
    with pytest.raises(UserError, match="device 2 holds an input that is not a finite number"):
        common_subspace(parts, 2)


def test_measures_by_hand() -> None:
    flat = np.array([[1.0, 0, 0], [0, 1, 0]])
    tilted = np.array([[1.0, 0, 0], [0, 0.8, 0.6]])
    assert subspace_error(flat, tilted) == pytest.approx(0.6)
    assert subspace_error(tilted, flat) == pytest.approx(0.6)
    assert mean_squared_sine(flat, tilted) == pytest.approx(0.18)
    assert subspace_error(flat, flat[::-1]) == 0.0
    # Variances 9, 4, 1: the best plane has 13, the plane of the last two axes 5.
    inputs = np.array([[3.0, 0, 0], [-3, 0, 0], [0, 2, 0], [0, -2, 0], [0, 0, 1], [0, 0, -1]])
    assert captured(np.eye(3)[1:], inputs, np.zeros(3)) == pytest.approx(5 / 13)
    assert captured(np.eye(3)[:2], inputs, np.zeros(3)) == pytest.approx(1.0)
