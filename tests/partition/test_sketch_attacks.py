"""What a sketch gives away: a datapoint to a parent in a plain tree, as it was; nothing of one device now."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from d2dfl.config import PrivacyConfig
from d2dfl.partition.masked.driver import masked_devices, run_sum
from d2dfl.partition.masked.messages import Kind
from d2dfl.partition.masked.pads import KeyedPads, simulated_pair_key
from d2dfl.partition.masked.plan import SumPlan, balanced_tree, mask_graph
from d2dfl.partition.privacy import noise_scale, sketch_noise
from d2dfl.partition.sketches import (
    VALUES,
    SketchPlan,
    directions,
    distances_between,
    own_sketch,
    plan_sketches,
    sketched_distances,
    told_words,
)

DEVICES, WIDTH, LABELS = 12, 32, 4
Inputs = NDArray[np.float32]


def population() -> tuple[Inputs, NDArray[np.int64], list[NDArray[np.int64]]]:
    """12 devices with one datapoint each, three of every label."""
    inputs = np.random.default_rng(5).normal(size=(DEVICES, WIDTH)).astype(np.float32)
    return inputs, np.arange(DEVICES) % LABELS, [np.array([device]) for device in range(DEVICES)]


def plan_of(consent: NDArray[np.bool_] | None = None, noise: float = 0.0) -> SketchPlan:
    _, labels, _ = population()
    held = np.eye(LABELS, dtype=np.int64)[labels]
    consent = np.ones((DEVICES, LABELS), dtype=bool) if consent is None else consent
    return plan_sketches(held, WIDTH, 0, consent=consent, least=3, noise=noise)


def recovered(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """The attack: the projection is common knowledge, so least squares turn a sketch back into an input."""
    return np.asarray(np.linalg.lstsq(directions(WIDTH, 0).T, sums, rcond=None)[0])


def error(found: NDArray[np.float64], truth: Inputs) -> float:
    return float(np.linalg.norm(found - truth) / np.linalg.norm(truth))


def test_least_squares_recover_a_datapoint_from_a_device_s_own_sketch() -> None:
    """What a leaf sent to its parent before."""
    inputs, _, _ = population()
    for device in range(DEVICES):
        sketch = own_sketch(inputs[device : device + 1], directions(WIDTH, 0), 1e9)
        assert error(recovered(sketch[:VALUES]), inputs[device]) < 1e-6


def test_least_squares_recover_nothing_from_what_is_sent_now() -> None:
    inputs, labels, _ = population()
    plan = plan_of()
    words = [told_words(plan, device, inputs[[device]], labels[[device]], 0).reshape(-1) for device in range(DEVICES)]
    tree = SumPlan(balanced_tree(DEVICES), mask_graph(DEVICES, 0), 64)
    sent = run_sum(masked_devices(tree, KeyedPads(simulated_pair_key(0), b"sketch", 64)), 0, words)
    leaf, label = DEVICES - 1, int(labels[-1])
    mine = {message.kind: message.words for message in sent.messages if message.sender == leaf}
    for seen in (mine[Kind.MASKED], mine[Kind.OPENING], mine[Kind.MASKED] - mine[Kind.OPENING]):
        numbers = plan.numbers.numbers(seen.reshape(LABELS, -1))
        assert error(recovered(numbers[label, :VALUES]), inputs[leaf]) > 100
    # Masks cancel: the total is bit by bit what the simulation adds up.
    assert sent.total is not None
    assert (sent.total == sum(words)).all()
    total = sent.total.reshape(LABELS, VALUES + 1)
    assert distances_between(total, plan) is not None
    mean = recovered(plan.numbers.numbers(total)[label, :VALUES] / 3)
    assert error(mean, inputs[labels == label].mean(axis=0)) < 1e-4  # what everybody learns: the mean of three
    assert min(error(mean, row) for row in inputs[labels == label]) > 0.4


def change_of(replaced: Callable[[Inputs], Inputs], consent: NDArray[np.bool_]) -> bool:
    """Whether other inputs change anything that anybody learns."""
    inputs, labels, holdings = population()
    one, two = (
        sketched_distances(some, labels, holdings, 0, consent=consent, least=3) for some in (inputs, replaced(inputs))
    )
    assert one is not None
    assert two is not None
    return bool((one != two).any())


def test_a_datapoint_matters_only_with_consent_and_among_enough() -> None:
    def other(inputs: Inputs) -> Inputs:
        changed = inputs.copy()
        changed[3] *= -2.0  # of label 3, as those of devices 7 and 11
        return changed

    everybody = np.ones((DEVICES, LABELS), dtype=bool)
    assert change_of(other, everybody)
    for reserved in (3, 7):  # itself, or one of the two others, so that they are too few
        consent = everybody.copy()
        consent[reserved, 3] = False
        assert not change_of(other, consent)


def test_words_of_a_label_without_consent_are_zero() -> None:
    inputs, labels, _ = population()
    consent = np.ones((DEVICES, LABELS), dtype=bool)
    consent[3] = False
    for noise in (0.0, 5.0):
        plan = plan_of(consent, noise)
        assert not told_words(plan, 3, inputs[[3]], labels[[3]], 0).any()
        assert told_words(plan, 4, inputs[[4]], labels[[4]], 0).any()
        assert plan.contributors.tolist() == ([11] * 4 if noise else [3, 3, 3, 2])


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(0, 2), st.floats(0.1, 100.0))
def test_another_datapoint_changes_a_device_s_words_by_no_more_than_noise_is_made_for(
    seed: int, label: int, size: float
) -> None:
    rng = np.random.default_rng(seed)
    own, labels = rng.normal(size=(5, 8)).astype(np.float32) * 3, rng.integers(0, 3, 5)
    projection, bound = directions(8, 1), 2.0

    def told(rows: Inputs, numbers: NDArray[np.int64]) -> NDArray[np.float64]:
        found = np.stack([own_sketch(rows[numbers == part], projection, bound) for part in range(3)])
        return found / np.append(np.full(VALUES, bound), 1.0)

    others, changed = own.copy(), labels.copy()
    others[0], changed[0] = -own[0] * size, label
    assert np.linalg.norm(told(own, labels) - told(others, changed)) <= 2.0 + 1e-9


def test_two_thirds_of_the_contributors_bring_enough_noise() -> None:
    private = PrivacyConfig(epsilon=1.0)
    noise = sketch_noise(private)
    assert noise == pytest.approx(noise_scale(1.0, 1e-5, 2.0))
    assert sketch_noise(PrivacyConfig()) == 0.0
    plan = plan_of(noise=noise)
    nothing, none = np.zeros((0, WIDTH), dtype=np.float32), np.zeros(0, dtype=np.int64)
    draws = np.array(
        [
            sum(plan.numbers.numbers(told_words(plan, device, nothing, none, seed)) for device in range(8))  # 8 of 12
            for seed in range(200)
        ]
    )
    assert draws[..., :VALUES].std() == pytest.approx(noise * plan.bound, rel=0.02)
    assert draws[..., VALUES].std() == pytest.approx(noise, rel=0.06)
    assert plan.deviation == pytest.approx(noise * np.sqrt(12 / 8))


def test_noise_hides_the_mean_of_three_datapoints() -> None:
    inputs, labels, _ = population()
    plan = plan_of(noise=sketch_noise(PrivacyConfig(epsilon=1.0)))
    total = sum(told_words(plan, device, inputs[[device]], labels[[device]], 0) for device in range(DEVICES))
    assert isinstance(total, np.ndarray)
    sums = plan.numbers.numbers(total)[3, :VALUES]
    assert error(recovered(sums / 3), inputs[labels == 3].mean(axis=0)) > 3
    assert distances_between(total, plan) is None  # and of three datapoints nothing but noise is left
