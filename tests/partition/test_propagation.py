"""Semi-supervised labels: who is labelled, and what each labeller makes of the rest."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.semi_supervised import LabelPropagation

from d2dfl import UserError
from d2dfl.partition.propagation import LABELLERS, choose_labelled, labeller_named, pseudo_labels

LABELLER_NAMES = list(LABELLERS)


def call(name: str, projections: np.ndarray, labels: np.ndarray, classes: int = 4, neighbours: int = 7) -> np.ndarray:
    return labeller_named(name)(
        np.asarray(projections, dtype=np.float64), np.asarray(labels), classes, neighbours, np.random.default_rng(0)
    )


def blobs(seed: int, per_class: int = 40, classes: int = 3, known: int = 4) -> tuple[np.ndarray, ...]:
    """Well separated groups in three dimensions: projections, true labels, labels with -1."""
    rng = np.random.default_rng(seed)
    truth = np.repeat(np.arange(classes), per_class)
    projections = 12.0 * np.eye(3)[truth % 3] + rng.standard_normal((len(truth), 3))
    labels = np.full(len(truth), -1)
    for label in range(classes):
        chosen = np.flatnonzero(truth == label)[:known]
        labels[chosen] = label
    return projections, truth, labels


# ---- who is labelled


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 1000),
    sizes=st.lists(st.integers(0, 60), min_size=1, max_size=4),
    share=st.floats(0, 1),
    classes=st.integers(1, 5),
)
def test_enough_are_labelled_and_one_of_each(seed: int, sizes: list[int], share: float, classes: int) -> None:
    rng = np.random.default_rng(seed)
    targets = rng.integers(0, classes, sum(sizes) + 10)
    order = rng.permutation(len(targets))
    holdings = [order[sum(sizes[:i]) : sum(sizes[: i + 1])] for i in range(len(sizes))]
    labelled = choose_labelled(targets, holdings, share, seed)
    assert not labelled[order[sum(sizes) :]].any()  # nobody holds these
    for points in holdings:
        held = set(targets[points].tolist())
        assert set(targets[points][labelled[points]].tolist()) == held
        assert labelled[points].sum() == max(math.ceil(share * len(points) - 1e-9), len(held))


def test_shares_that_are_not_exact_in_binary() -> None:
    points = np.arange(100)
    assert math.ceil(0.07 * 100) == 8  # why the rounding matters
    assert choose_labelled(np.zeros(100, int), [points], 0.07, 0).sum() == 7


def test_labelled_points_are_uniform_and_each_device_draws_alone() -> None:
    targets = np.array([0] * 9 + [1] + [0] * 10)
    holdings = [np.arange(10), np.arange(10, 20)]
    drawn = np.array([choose_labelled(targets, holdings, 0.3, seed) for seed in range(600)])
    assert drawn[:, 9].all()  # the only one with its label
    share = drawn[:, :9].mean(axis=0)
    assert np.abs(share - 2 / 9).max() < 0.07
    assert np.abs(drawn[:, 10:].mean(axis=0) - 0.3).max() < 0.07
    equal = choose_labelled(np.zeros(100, int), [np.arange(50), np.arange(50, 100)], 0.3, 0)
    assert (equal[:50] != equal[50:]).any()
    alone = choose_labelled(targets, [np.arange(10)], 0.3, 5)
    assert (alone[:10] == drawn[5, :10]).all()


@pytest.mark.parametrize("share", [-0.1, 1.5, math.nan])
def test_a_share_is_a_share(share: float) -> None:
    with pytest.raises(UserError, match="partition.labelled cannot be .*: give a share from 0 to 1"):
        choose_labelled(np.zeros(3, int), [np.arange(3)], share, 0)


# ---- what the labellers do


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    count=st.integers(1, 40),
    classes=st.integers(1, 4),
    neighbours=st.integers(1, 9),
    copies=st.booleans(),
    name=st.sampled_from(LABELLER_NAMES),
)
def test_known_labels_never_change_and_the_others_are_seen_ones(
    seed: int, count: int, classes: int, neighbours: int, copies: bool, name: str
) -> None:
    rng = np.random.default_rng(seed)
    projections = rng.integers(0, 2, (count, 2)).astype(float) if copies else rng.standard_normal((count, 3))
    labels = np.where(rng.random(count) < 0.4, rng.integers(0, classes, count), -1)
    labels[rng.integers(count)] = rng.integers(classes)
    before = labels.copy()
    result = call(name, projections, labels, classes, neighbours)
    assert (labels == before).all()
    known = labels >= 0
    assert (result[known] == labels[known]).all()
    assert np.isin(result, labels[known]).all()
    assert result.dtype == np.int64
    assert (result == call(name, projections, labels, classes, neighbours)).all()


@pytest.mark.parametrize("name", LABELLER_NAMES)
def test_separate_groups_are_labelled_right(name: str) -> None:
    projections, truth, labels = blobs(0)
    assert (call(name, projections, labels) == truth).all()


@pytest.mark.parametrize("name", LABELLER_NAMES)
def test_a_single_class_a_single_point_and_equal_points(name: str) -> None:
    assert call(name, np.zeros((1, 2)), np.array([3])).tolist() == [3]
    assert call(name, np.arange(6.0)[:, None], np.array([-1, 2, -1, -1, 2, -1])).tolist() == [2] * 6
    equal = call(name, np.zeros((20, 2)), np.array([1, 1, 1] + [-1] * 17))
    assert equal.tolist() == [1] * 20
    torn = call(name, np.zeros((20, 2)), np.array([0, 3] + [-1] * 18))
    assert torn[:2].tolist() == [0, 3]
    assert np.isin(torn, [0, 3]).all()
    assert call(name, np.array([[0.0], [1.0]]), np.array([1, -1])).tolist() == [1, 1]


def slow_propagation(
    projections: np.ndarray, labels: np.ndarray, classes: int, neighbours: int
) -> tuple[np.ndarray, np.ndarray]:
    """shares[n, class] at the fixed point, from the linear system, with dense matrices; and the nearest label [n]."""
    count = len(labels)
    apart = np.linalg.norm(projections[:, None] - projections[None], axis=2)
    np.fill_diagonal(apart, np.inf)
    weight = np.zeros((count, count))
    for row in range(count):
        for column in np.argsort(apart[row], kind="stable")[: min(neighbours, count - 1)]:
            weight[row, column] = weight[column, row] = 1.0
    reach = np.eye(count) + weight
    for _ in range(count):
        reach = ((np.eye(count) + weight) @ reach > 0).astype(float)
    known = labels >= 0
    close = labels[known][np.argmin(apart[:, known], axis=1)]
    shares = np.eye(classes)[np.where(known, labels, close)]
    inside = np.flatnonzero(~known & (reach[:, known].sum(axis=1) > 0))
    laplacian = np.diag(weight.sum(axis=1)) - weight
    right = weight[np.ix_(inside, np.flatnonzero(known))] @ shares[known]
    shares[inside] = np.linalg.solve(laplacian[np.ix_(inside, inside)], right)
    return shares, close


@settings(max_examples=80, deadline=None)
@given(seed=st.integers(0, 10_000), count=st.integers(2, 50), neighbours=st.integers(1, 8))
def test_propagation_is_the_solution_of_the_linear_system(seed: int, count: int, neighbours: int) -> None:
    rng = np.random.default_rng(seed)
    projections = rng.standard_normal((count, 2))
    labels = np.where(rng.random(count) < 0.25, rng.integers(0, 3, count), -1)
    labels[0] = 1
    result = call("propagation", projections, labels, 3, neighbours)
    shares, close = slow_propagation(projections, labels, 3, neighbours)
    for point, label in enumerate(result):
        behind = shares[point].max() - shares[point]
        assert behind[label] < 1e-5
        if labels[point] < 0 and behind[close[point]] < 1e-7:  # the nearest label decides a tie
            assert label == close[point]


def test_propagation_on_a_chain_by_hand() -> None:
    # Equal steps with labels at both ends: shares fall linearly, so the middle divides the chain. One neighbour more
    # would not change that; the nearest labelled point alone gives the same here.
    chain = np.arange(8.0)[:, None]
    labels = np.array([0, -1, -1, -1, -1, -1, -1, 2])
    assert call("propagation", chain, labels, 3, 2).tolist() == [0, 0, 0, 0, 2, 2, 2, 2]


def test_propagation_follows_the_data_where_the_nearest_label_does_not() -> None:
    # Two parallel lines, each labelled at one end, opposite ends.
    along = np.linspace(0, 10, 60)
    lines = np.concatenate([np.stack([along, np.zeros(60)], 1), np.stack([along, np.full(60, 2.0)], 1)])
    truth = np.repeat([0, 1], 60)
    labels = np.full(120, -1)
    labels[0], labels[119] = 0, 1
    assert (call("propagation", lines, labels) == truth).all()
    assert (call("nearest", lines, labels) != truth).sum() > 40


def test_a_component_without_a_label_takes_the_nearest_label() -> None:
    rng = np.random.default_rng(0)
    groups = [rng.standard_normal((20, 2)) * 0.1 + centre for centre in ([0, 0], [100, 0], [70, 0])]
    labels = np.full(60, -1)
    labels[[0, 20]] = 1, 3
    assert call("propagation", np.concatenate(groups), labels).tolist() == [1] * 20 + [3] * 40


def test_propagation_is_about_as_good_as_scikit_learns() -> None:
    rng = np.random.default_rng(1)
    truth = np.repeat([0, 1, 2], [210, 60, 30])
    projections = 2.2 * np.eye(3)[truth] + rng.standard_normal((300, 3)) * 0.8
    labels = np.where(rng.random(300) < 0.15, truth, -1)
    theirs = LabelPropagation(kernel="knn", n_neighbors=7, max_iter=5000).fit(projections, labels).transduction_
    ours = call("propagation", projections, labels)
    unknown = labels < 0
    assert np.mean(ours[unknown] == truth[unknown]) >= np.mean(theirs[unknown] == truth[unknown]) - 0.02
    assert np.mean(ours == theirs) > 0.9


def test_nearest_is_the_nearest() -> None:
    rng = np.random.default_rng(2)
    projections, labels = rng.standard_normal((50, 4)), np.full(50, -1)
    labels[:9] = rng.integers(0, 4, 9)
    result = call("nearest", projections, labels)
    for point in range(9, 50):
        assert result[point] == labels[:9][np.argmin([math.dist(projections[point], p) for p in projections[:9]])]


def test_names() -> None:
    with pytest.raises(UserError, match="there is no labeller 'guess': the labellers are propagation, nearest, mlp"):
        labeller_named("guess")


# ---- all devices together


def system(seed: int = 0) -> tuple[list[np.ndarray], np.ndarray, list[np.ndarray]]:
    """Three devices that hold parts of separate groups, with noise between them, and points that nobody holds."""
    rng = np.random.default_rng(seed)
    targets = rng.integers(0, 4, 200)
    points = 3.0 * np.eye(4)[targets] + rng.standard_normal((200, 4))
    order = rng.permutation(200)
    holdings = [order[:70], order[70:150], order[150:180]]
    return [points[own] for own in holdings], targets, holdings


@pytest.mark.parametrize("labeller", LABELLER_NAMES)
def test_pseudo_labels_of_a_system(labeller: str) -> None:
    projections, targets, holdings = system()
    labelled = choose_labelled(targets, holdings, 0.2, 3)
    result = pseudo_labels(projections, targets, holdings, 4, labelled=labelled, labeller=labeller, seed=3)
    keep = labelled.copy()
    keep[np.setdiff1d(np.arange(200), np.concatenate(holdings))] = True
    assert (result.labels[keep] == targets[keep]).all()
    assert (result.labelled == labelled).all()
    for device, points in enumerate(holdings):
        rest = points[~labelled[points]]
        right = sum(result.labels[p] == targets[p] for p in rest)
        assert result.accuracy[device] == pytest.approx(right / len(rest))
    assert 0.6 < result.accuracy.mean() < 1.0
    again = pseudo_labels(projections, targets, holdings, 4, labelled=labelled, labeller=labeller, seed=3)
    assert (again.labels == result.labels).all()


@pytest.mark.parametrize("labeller", LABELLER_NAMES)
def test_targets_that_are_not_labelled_are_not_looked_at(labeller: str) -> None:
    projections, targets, holdings = system(1)
    labelled = choose_labelled(targets, holdings, 0.2, 0)
    held = np.isin(np.arange(200), np.concatenate(holdings))
    other = np.where(labelled | ~held, targets, (targets + 1) % 4)
    one, two = (
        pseudo_labels(projections, t, holdings, 4, labelled=labelled, labeller=labeller) for t in (targets, other)
    )
    assert (one.labels == two.labels).all()
    assert (one.accuracy > two.accuracy).all()


@pytest.mark.parametrize("labeller", ["propagation", "nearest"])  # the network draws its start by device
def test_permuting_devices_permutes_results(labeller: str) -> None:
    projections, targets, holdings = system(2)
    labelled = choose_labelled(targets, holdings, 0.2, 0)
    order = [2, 0, 1]
    one = pseudo_labels(projections, targets, holdings, 4, labelled=labelled, labeller=labeller)
    two = pseudo_labels(
        [projections[i] for i in order], targets, [holdings[i] for i in order], 4, labelled=labelled, labeller=labeller
    )
    assert (one.labels == two.labels).all()
    assert (one.accuracy[order] == two.accuracy).all()


def test_devices_without_data_and_without_labels() -> None:
    projections, targets, holdings = system()
    labelled = choose_labelled(targets, holdings, 0.1, 0)
    labelled[holdings[1]] = True
    empty = np.empty(0, dtype=np.int64)
    result = pseudo_labels([*projections, np.empty((0, 4))], targets, [*holdings, empty], 4, labelled=labelled)
    assert np.isnan(result.accuracy).tolist() == [False, True, False, True]
    labelled[holdings[2]] = False
    with pytest.raises(UserError, match="device 2 holds 30 datapoints and none has a label: label at least one"):
        pseudo_labels(projections, targets, holdings, 4, labelled=labelled)
