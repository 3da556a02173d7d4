"""Linear evaluation: against scikit-learn, on hopeless embeddings, and inside a training."""

import dataclasses
from typing import Any

import numpy as np
import pytest
import torch
from federations import FAST, federation, finished, tiny
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from torch import Tensor, nn

from d2dfl import UserError
from d2dfl.federation import Federated, FederationConfig, embeddings, probe, start, train
from d2dfl.federation.evaluation import PROBED, ModelEvaluation
from d2dfl.federation.probe import linear_accuracy, logistic_regression
from d2dfl.rng import stream


def clouds(number: int, size: int, classes: int, apart: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    draws = np.random.default_rng(seed)
    centres = np.random.default_rng(99).normal(size=(classes, size)) * apart
    labels = draws.integers(classes, size=number)
    return (centres[labels] + draws.normal(size=(number, size))).astype(np.float32), labels


def accuracy(train: Any, labels: Any, test: Any, test_labels: Any) -> float:
    arrays = (np.asarray(train), np.asarray(labels), np.asarray(test), np.asarray(test_labels))
    return linear_accuracy(*(torch.from_numpy(array) for array in arrays))


@pytest.mark.parametrize(("classes", "apart"), [(2, 0.5), (3, 1.0), (10, 0.7), (5, 30.0)])
def test_the_weights_equal_scikit_learns(classes: int, apart: float) -> None:
    features, labels = clouds(400, 6, classes, apart)
    scaled = StandardScaler().fit_transform(features.astype(np.float64))
    weights = logistic_regression(torch.from_numpy(scaled), torch.from_numpy(labels)).numpy()
    if classes > 2:
        reference = LogisticRegression(solver="newton-cholesky", tol=1e-10, max_iter=1000).fit(scaled, labels)
        slopes, biases = reference.coef_, reference.intercept_
        assert np.allclose(weights[:, :-1], slopes, atol=1e-5)
        assert np.allclose(weights[:, -1] - weights[:, -1].mean(), biases - biases.mean(), atol=1e-5)
    else:  # there the two classes share one vector w = w1 - w0, and |w0|^2 + |w1|^2 = |w|^2 / 2
        reference = LogisticRegression(C=2.0, tol=1e-10, max_iter=1000).fit(scaled, labels)
        assert np.allclose(weights[1] - weights[0], [*reference.coef_[0], reference.intercept_[0]], atol=1e-4)


def test_a_coarse_start_saves_steps_and_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    features, labels = clouds(4000, 8, 5, 0.4)
    inputs, wanted = torch.from_numpy(features).double(), torch.from_numpy(labels)
    sizes: list[int] = []
    plain = probe._hessian

    def watched(inputs: Tensor, *others: Tensor) -> Tensor:
        sizes.append(len(inputs))
        return plain(inputs, *others)

    monkeypatch.setattr(probe, "_hessian", watched)
    quick = logistic_regression(inputs, wanted)
    whole = sizes.count(4000)
    monkeypatch.setattr(probe, "COARSE", 10**9)  # nothing is left of the coarse part
    slow = logistic_regression(inputs, wanted)
    assert torch.allclose(quick, slow, atol=1e-6)
    assert whole < sizes.count(4000) - whole


def test_the_accuracy_equals_scikit_learns_with_any_labels() -> None:
    features, labels = clouds(500, 8, 4, 0.8)
    test, test_labels = clouds(300, 8, 4, 0.8, seed=1)
    scaler = StandardScaler().fit(features)
    reference = LogisticRegression(tol=1e-8, max_iter=1000).fit(scaler.transform(features), labels)
    expected = reference.score(scaler.transform(test), test_labels)
    assert accuracy(features, labels, test, test_labels) == pytest.approx(expected)
    names = np.array([17, 3, 40, 4])
    assert accuracy(features, names[labels], test, names[test_labels]) == pytest.approx(expected)


@settings(deadline=None, max_examples=25)  # no timed assertions
@given(st.floats(-6, 6), st.floats(-3, 3))
def test_scale_and_place_mean_nothing(exponent: float, place: float) -> None:
    features, labels = clouds(200, 3, 3, 1.0)
    test, test_labels = clouds(100, 3, 3, 1.0, seed=1)
    scale = 10.0**exponent
    moved = [(part.astype(np.float64) * scale + place * scale).astype(np.float32) for part in (features, test)]
    expected = accuracy(features, labels, test, test_labels)
    assert accuracy(moved[0], labels, moved[1], test_labels) == pytest.approx(expected, abs=0.011)


def test_hopeless_embeddings_are_scored_and_not_refused() -> None:
    features, labels = clouds(300, 4, 3, 1.0)
    test, test_labels = clouds(200, 4, 3, 1.0, seed=1)
    common = np.mean(test_labels == np.bincount(labels).argmax())
    flat, flat_test = np.full_like(features, 7.1), np.full_like(test, 7.1)
    assert accuracy(flat, labels, flat_test, test_labels) == pytest.approx(common), "collapsed: the largest class"
    noise = np.random.default_rng(0).choice([-1, 0, 1], size=features.shape) * np.spacing(np.float32(7.1))
    assert accuracy(flat + noise.astype(np.float32), labels, flat_test, test_labels) == pytest.approx(common)
    assert accuracy(0 * features, labels, 0 * test, test_labels) == pytest.approx(common)
    whole = accuracy(features, labels, test, test_labels)
    copies = accuracy(np.tile(features, 3), labels, np.tile(test, 3), test_labels)
    assert copies == pytest.approx(whole, abs=0.011), "copies of a feature"
    dead = [np.concatenate([part, np.zeros_like(part)], axis=1) for part in (features, test)]
    assert accuracy(dead[0], labels, dead[1], test_labels) == whole
    assert accuracy(features * 1e20, labels, test * 1e20, test_labels) == pytest.approx(whole, abs=0.011)
    separable = labels[:, None] * np.ones((1, 4), dtype=np.float32)
    assert accuracy(separable, labels, separable, labels) == 1
    assert accuracy(features, 0 * labels, test, 0 * test_labels) == 1, "one class"
    assert accuracy(features[:1], labels[:1], test, test_labels) == np.mean(test_labels == labels[0])
    assert accuracy(features[labels > 0], labels[labels > 0], test, test_labels) < 1, "a class that was never seen"
    for bad in (np.nan, np.inf):
        assert np.isnan(accuracy(np.where(features > 2, np.float32(bad), features), labels, test, test_labels))


def unlabelled(**changes: Any) -> Federated:
    return dataclasses.replace(federation(**changes), loss="triplet", outputs=4)


def test_a_training_reports_the_probe_of_its_encoder() -> None:
    data = unlabelled(sizes=(30, 30, 20))
    state = finished(tiny, data, probe=50, seed=2)
    chosen = np.sort(stream(2, "probe").permutation(80)[:50])
    outputs, test = (embeddings(tiny, data, state, part) for part in (data.inputs, data.test_inputs))
    expected = accuracy(outputs[chosen], data.targets[chosen], test, data.test_targets)
    assert state.curves.last_score == pytest.approx(expected)
    assert state.curves.device_scores[-1] == [state.curves.last_score]
    assert finished(tiny, data, probe=10_000).curves.scores, "more than there is: all of it"


def test_the_probe_learns_from_the_same_datapoints_whoever_holds_them() -> None:
    data = unlabelled()
    other = dataclasses.replace(data, members=[held[1:] for held in data.members])
    settings = FederationConfig(**FAST, probe=20)
    one, two = (ModelEvaluation.of(held, settings, 3, True, 0, torch.device("cpu")) for held in (data, other))
    third = ModelEvaluation.of(data, settings, 4, True, 100, torch.device("cpu"))
    assert one.learned is not None
    assert two.learned is not None
    assert third.learned is not None
    assert torch.equal(one.learned, two.learned)
    assert len(set(one.learned.tolist())) == 20
    assert not torch.equal(one.learned, third.learned - 100)
    assert ModelEvaluation.of(federation(), settings, 3, True, 0, torch.device("cpu")).learned is None


def test_devices_with_models_of_their_own_are_probed_one_by_one_up_to_a_limit() -> None:
    few = finished(tiny, unlabelled(), scheme="decentralised").curves
    assert [len(scores) for scores in few.device_scores] == [5, 5]
    assert few.last_score == pytest.approx(np.mean(few.device_scores[-1]))
    assert few.spreads[-1] == pytest.approx(np.std(few.device_scores[-1]))
    data = unlabelled(sizes=(4,) * (PROBED + 5))
    state = finished(tiny, data, scheme="decentralised")
    devices = np.sort(stream(0, "probed-devices").choice(PROBED + 5, PROBED, replace=False))
    outputs, test = (embeddings(tiny, data, state, part, int(devices[3])) for part in (data.inputs, data.test_inputs))
    assert len(state.curves.device_scores[-1]) == PROBED
    assert state.curves.device_scores[-1][3] == pytest.approx(
        accuracy(outputs, data.targets, test, data.test_targets), abs=0.1
    )


@pytest.mark.parametrize("executor", ["loop", "stack"])
def test_embeddings_that_are_no_numbers_are_the_sentence_about_the_learning_rate(executor: Any) -> None:
    with pytest.raises(UserError, match=r"no longer a number in round 1: give a learning rate below 1e\+20"):
        finished(
            lambda s, o: nn.Sequential(nn.Flatten(), nn.Linear(6, o)),
            unlabelled(),
            learning_rate=1e20,
            executor=executor,
        )
    data = unlabelled()
    data.inputs[:3] = np.nan  # nobody trains on them, and they are not in the test set
    members = [np.arange(3, 20), np.arange(20, 47)]
    data = dataclasses.replace(data, members=members, test_inputs=data.inputs[5:15], test_targets=data.targets[5:15])
    with pytest.raises(UserError, match="the test loss of the shared model is no longer a number in round 1"):
        finished(tiny, data, executor=executor)


def test_supervised_losses_know_no_probe() -> None:
    data = federation()
    settings = FederationConfig(**FAST)
    state = start(tiny, data, settings)
    curves = train(tiny, data, dataclasses.replace(settings, probe=1), state=None)
    assert curves == train(tiny, data, settings, state=state)
