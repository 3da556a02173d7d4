"""Who holds what: exact sizes, exact shares, no datapoint twice, and an error where it cannot be."""

import itertools
import re

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from d2dfl.data import labels
from d2dfl.data.allocate import RULES, Allocation, allocate, largest, what_would_fit
from d2dfl.data.shares import label_shares, whole_parts
from d2dfl.errors import UserError


def targets_of(available: list[int], seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).permutation(np.repeat(np.arange(len(available)), available))


def check(allocation: Allocation, targets: np.ndarray, sizes: list[int]) -> None:
    """What holds for every rule."""
    assert allocation.sizes.tolist() == sizes
    assert len(allocation) == len(sizes)
    assert len(np.unique(allocation.order)) == sum(sizes)
    assert set(allocation.order) <= set(range(len(targets)))
    for rows in allocation:
        assert np.all(np.diff(rows) > 0)
    classes = int(targets.max()) + 1
    counts = allocation.counts(targets, classes)
    for device, rows in enumerate(allocation):
        assert counts[device].tolist() == np.bincount(targets[rows], minlength=classes).tolist()


@st.composite
def requests(draw: st.DrawFn) -> tuple[np.ndarray, list[int], int]:
    available = draw(st.lists(st.integers(0, 60), min_size=1, max_size=6))
    sizes = draw(st.lists(st.integers(1, 30), min_size=1, max_size=8))
    assume(0 < sum(sizes) <= sum(available))
    return targets_of(available), sizes, draw(st.integers(0, 2**32))


@pytest.mark.parametrize("rule", ["iid", "dirichlet:0.001", "dirichlet:0.5", "dirichlet:1000", "shards:1", "shards:2"])
@settings(deadline=None, max_examples=40)
@given(request=requests())
def test_sizes_are_exact_and_nothing_is_held_twice(rule: str, request: tuple[np.ndarray, list[int], int]) -> None:
    targets, sizes, seed = request
    assume(rule != "shards:2" or min(sizes) > 1)
    allocation = allocate(targets, len(sizes), rule, samples=sizes, seed=seed)
    check(allocation, targets, sizes)
    again = allocate(targets, len(sizes), rule, samples=sizes, seed=seed)
    np.testing.assert_array_equal(allocation.order, again.order)


@settings(deadline=None, max_examples=150)
@given(request=requests(), count=st.integers(1, 4))
def test_labels_and_shares_are_exact_or_it_is_an_error(request: tuple[np.ndarray, list[int], int], count: int) -> None:
    targets, sizes, seed = request
    try:
        allocation = allocate(targets, len(sizes), f"labels:{count}", samples=sizes, seed=seed)
    except UserError:
        return
    check(allocation, targets, sizes)
    for rows, size in zip(allocation, sizes, strict=True):
        held = np.bincount(targets[rows])
        assert sorted(held[held > 0]) == sorted(whole_parts(size, label_shares(count)))
    again = allocate(targets, len(sizes), f"labels:{count}", samples=sizes, seed=seed)
    np.testing.assert_array_equal(allocation.order, again.order)


def possible(available: list[int], sizes: list[int], count: int) -> bool:
    """By trying everything: can every device have `count` different labels in exact parts?"""
    if not sizes:
        return True
    parts = whole_parts(sizes[0], label_shares(count))
    if parts.min() < 1:
        return False
    for chosen in itertools.permutations(range(len(available)), count):
        left = available.copy()
        for label, part in zip(chosen, parts, strict=True):
            left[label] -= int(part)
        if min(left) >= 0 and possible(left, sizes[1:], count):
            return True
    return False


@settings(deadline=None, max_examples=200)
@given(
    available=st.lists(st.integers(0, 14), min_size=2, max_size=4),
    sizes=st.lists(st.sampled_from([3, 4, 6, 7, 10]), min_size=1, max_size=4),
    count=st.integers(1, 3),
)
def test_whatever_is_possible_is_found(available: list[int], sizes: list[int], count: int) -> None:
    assume(sum(sizes) <= sum(available) and count <= sum(n > 0 for n in available))
    targets = targets_of(available)
    if possible(available, sizes, count):
        check(allocate(targets, len(sizes), f"labels:{count}", samples=sizes), targets, sizes)
    else:
        with pytest.raises(UserError):
            allocate(targets, len(sizes), f"labels:{count}", samples=sizes)


@settings(deadline=None, max_examples=100)
@given(data=st.data(), devices=st.integers(1, 12), ranks=st.integers(1, 4), classes=st.integers(1, 6))
def test_dealing_gives_different_labels_and_the_planned_uses(
    data: st.DataObject, devices: int, ranks: int, classes: int
) -> None:
    assume(ranks <= classes)
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    # Any sum of matchings can be dealt out; make one that a random search would rarely hit.
    uses = np.zeros((ranks, classes), dtype=np.int64)
    favourites = rng.permutation(classes)[: max(ranks, 2)]
    for _ in range(devices):
        chosen = rng.permutation(favourites if len(favourites) >= ranks else classes)[:ranks]
        uses[np.arange(ranks), chosen] += 1
    dealt = labels.deal(uses, rng)
    assert dealt.shape == (devices, ranks)
    for rank in range(ranks):
        np.testing.assert_array_equal(np.bincount(dealt[:, rank], minlength=classes), uses[rank])
    assert all(len(set(row)) == ranks for row in dealt.tolist())


def test_the_papers_setting_is_balanced() -> None:
    """25 devices, 1,200 datapoints, 70/20/10: every class is somebody's main label two or three times."""
    targets = targets_of([5000] * 10)
    allocation = allocate(targets, 25, "labels:3", samples=1200, seed=1)
    counts = allocation.counts(targets, 10)
    assert sorted(set(counts.ravel().tolist())) == [0, 120, 240, 840]
    for part in (840, 240, 120):
        assert set((counts == part).sum(axis=0)) == {2, 3}
    assert counts.sum(axis=0).max() <= 3 * 840 + 2 * 240 + 3 * 120
    # Labels are drawn at random: another seed pairs them otherwise.
    other = allocate(targets, 25, "labels:3", samples=1200, seed=2).counts(targets, 10)
    assert not np.array_equal(counts, other)


def test_scarce_classes_do_not_run_dry() -> None:
    available = [2000, 2000, 900, 900, 120, 120]
    targets = targets_of(available)
    counts = allocate(targets, 10, "labels:3", samples=500, seed=0).counts(targets, 6)
    assert np.all(counts.sum(axis=0) <= available)
    assert np.all((counts > 0).sum(axis=1) == 3)


def test_the_greedy_turn_is_mended_by_the_exact_search() -> None:
    """Only one plan fits: both large parts in class 0 and 1, the small ones crosswise."""
    demand = labels.Demand(np.array([2]), np.array([[7, 3]]), np.array([10, 10]))
    uses = labels.plan(demand, np.random.default_rng(0))
    assert uses is not None
    assert uses.tolist() == [[[1, 1], [1, 1]]]
    assert (
        labels.plan(labels.Demand(np.array([2]), np.array([[7, 3]]), np.array([13, 7])), np.random.default_rng(0))
        is None
    )
    tight = labels._solve(
        labels.Demand(np.array([25]), np.array([[40, 11, 6]]), np.array([143] * 10)), np.random.default_rng(0)
    )
    assert tight is not None
    assert tight.sum(axis=2).tolist() == [[25, 25, 25]]


def test_largest_is_possible_and_the_error_says_it() -> None:
    # The first part fits into class 0 only, and the others need 18 datapoints of classes that have 15.
    targets = targets_of([80, 5, 5, 5])
    most = largest(targets, 6, "labels:3")
    allocate(targets, 6, "labels:3", samples=most)
    with pytest.raises(
        UserError, match=rf"labels:3 with 10 datapoints at each of 6 devices .*: {most} a device would fit"
    ):
        allocate(targets, 6, "labels:3", samples=10)
    assert largest(targets, 6, "iid") == 15
    assert largest(targets, 6, "shards:20") == 0
    assert largest(targets_of([1, 1, 1]), 3, "labels:3") == 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rule": "labels:5"}, "labels:5 cannot be: the data has 4 classes"),
        ({"rule": "labels:4", "samples": 5}, "cannot be split into 4 labels"),
        ({"rule": "labels:0"}, "data.allocation cannot be 'labels:0'"),
        ({"rule": "labels:1.5"}, "data.allocation cannot be"),
        ({"rule": "labels"}, "data.allocation cannot be"),
        ({"rule": "dirichlet:-1"}, "data.allocation cannot be"),
        ({"rule": "dirichlet:nan"}, "data.allocation cannot be"),
        ({"rule": "iid:3"}, "data.allocation cannot be"),
        ({"rule": "magic:3"}, "data.allocation cannot be"),
        ({"rule": "shards:11"}, "10 datapoints cannot be cut into 11 shards"),
        ({"samples": 31}, "3 devices need 93 datapoints and there are 80: give at most 26 a device"),
        ({"samples": 0}, "give each at least 1"),
        ({"samples": [5, 5]}, "give each at least 1"),
        ({"samples": [5, 5, 2.5]}, "give each at least 1"),
        ({"devices": 0}, "give at least 1"),
        ({"targets": np.linspace(0, 1, 80)}, "for regression give it the partitions"),
        ({"targets": np.array([0, -1] * 40)}, "for regression give it the partitions"),
    ],
)
def test_impossible_requests_are_one_sentence(changes: dict[str, object], message: str) -> None:
    arguments = {"targets": targets_of([20, 20, 20, 20]), "devices": 3, "rule": "labels:3", "samples": 10, **changes}
    with pytest.raises(UserError, match=message) as caught:
        allocate(**arguments)
    assert "\n" not in str(caught.value)


def test_dirichlet_goes_from_one_class_to_all() -> None:
    targets = targets_of([3000, 1500, 1500])
    skewed = allocate(targets, 20, "dirichlet:0.01", samples=60).counts(targets, 3)
    even = allocate(targets, 20, "dirichlet:100000", samples=60).counts(targets, 3)
    assert np.median(skewed.max(axis=1)) == 60
    np.testing.assert_allclose(even, np.broadcast_to([30, 15, 15], (20, 3)), atol=2)


def test_dirichlet_gives_other_classes_where_one_has_run_out() -> None:
    targets = targets_of([50, 50])
    all_of_it = allocate(targets, 4, "dirichlet:0.01", samples=25, seed=0)
    assert all_of_it.counts(targets, 2).sum(axis=0).tolist() == [50, 50]
    plenty = targets_of([5000, 5000])
    for seed in range(10):  # of each class as much as it would have of plenty, and the rest of the other
        scarce = allocate(targets, 4, "dirichlet:0.01", samples=25, seed=seed).counts(targets, 2)
        wanted = allocate(plenty, 4, "dirichlet:0.01", samples=25, seed=seed).counts(plenty, 2)
        assert (scarce.sum(axis=1) == 25).all()
        for label in range(2):
            enough = wanted[:, label].sum() <= 50
            assert (scarce[:, label] >= wanted[:, label] if enough else scarce[:, label] <= wanted[:, label]).all()


def test_shards_are_pieces_of_the_sorted_data() -> None:
    targets = targets_of([100] * 10)
    counts = allocate(targets, 50, "shards:2", samples=20, seed=0).counts(targets, 10)
    assert np.all((counts > 0).sum(axis=1) <= 2)
    assert set(counts.ravel().tolist()) <= {0, 10, 20}


def test_every_rule_is_here() -> None:
    assert set(RULES) == {"labels", "dirichlet", "shards", "iid"}


@pytest.mark.parametrize(
    ("counts", "devices", "rule"),
    [([47, 57, 38], 25, "labels:3"), ([144] * 10, 500, "labels:3"), ([144] * 10, 900, "shards:2"), ([3], 5, "iid")],
)
def test_advice_where_nothing_fits_can_be_followed(counts: list[int], devices: int, rule: str) -> None:
    targets = targets_of(counts)
    assert largest(targets, devices, rule) == 0
    advice = what_would_fit(targets, devices, rule)
    few = int(re.search(r"--devices (\d+)", advice)[1])
    assert largest(targets, few, rule) > 0
    assert largest(targets, few + 1, rule) == 0
    other = re.search(r"--set data.allocation=(\S+)", advice)
    assert other is None or largest(targets, devices, other[1]) > 0
    assert (other is None) == (rule == "iid")


@pytest.mark.parametrize("rule", ["labels:3", "dirichlet:0.5", "shards:2", "iid"])
def test_datapoints_repeat_where_that_is_asked_for(rule: str) -> None:
    targets = np.repeat(np.arange(5), 30)
    with pytest.raises(UserError, match="let several hold the same with --set data.repeat=true"):
        allocate(targets, 40, rule, samples=20)
    dealt = allocate(targets, 40, rule, samples=20, repeat=True, seed=3)
    assert dealt.sizes.tolist() == [20] * 40
    for held in dealt:
        assert len(np.unique(held)) == 20, "no datapoint twice at a device"
        assert held.max() < len(targets)
        assert (np.diff(held) > 0).all()
    assert len(np.unique(dealt.order)) > 100
    again = allocate(targets, 40, rule, samples=20, repeat=True, seed=3)
    assert np.array_equal(dealt.order, again.order)
    few = allocate(targets, 5, rule, samples=20, seed=3)
    assert np.array_equal(few.order, allocate(targets, 5, rule, samples=20, seed=3, repeat=True).order)
