"""Sketches of labels: distances nearly kept, the same for everybody, nothing where nothing is told."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from d2dfl.config.presets import preset
from d2dfl.data.datasets import load
from d2dfl.experiment.pipeline import prepare
from d2dfl.experiment.setting import Setting, setting_of
from d2dfl.network import Network
from d2dfl.partition.sketches import consenting, sketched_distances


def setting(**changes: object) -> Setting:
    """Digits, one label a device."""
    given = {"data.dataset": "digits", "data.allocation": "labels:1", "discovery.edges": 1, **changes}
    return setting_of(preset("best").with_(**given), 0, load("digits"))


def test_distances_are_nearly_kept() -> None:
    found = setting(**{"privacy.contributors": 2})  # each label is at 2 or 3 devices
    inputs, labels = load("digits").train_inputs, found.truth
    held = np.concatenate(found.holdings)
    means = np.stack([inputs[held[labels[held] == label]].reshape(-1, 64).mean(axis=0) for label in range(10)])
    true = np.linalg.norm(means[:, None] - means[None], axis=2)
    upper = np.triu_indices(10, 1)
    assert found.network.label_distance is not None
    ratio = found.network.label_distance[upper] / true[upper]
    assert np.abs(ratio - 1.0).mean() < 0.2  # 32 random values: a deviation of 0.125
    assert ratio.max() < 1.6


def apart_of(
    inputs: NDArray[np.float32], labels: NDArray[np.int64], holdings: list[NDArray[np.int64]], **changes: Any
) -> NDArray[np.float64] | None:
    """Distances where all devices consent to three labels, and one contributor is enough."""
    given = {"consent": np.ones((len(holdings), 3), dtype=bool), "least": 1, **changes}
    return sketched_distances(inputs, labels, holdings, 0, **given)


def test_it_does_not_matter_who_holds_what() -> None:
    generator = np.random.default_rng(1)
    inputs = generator.normal(size=(60, 2, 3)).astype(np.float32)
    labels = generator.integers(0, 3, 60)
    one = apart_of(inputs, labels, [np.arange(60)])
    other = apart_of(inputs, labels, np.split(generator.permutation(60), 4))
    assert one is not None
    assert one == pytest.approx(other)
    assert (one == one.T).all()
    assert (np.diag(one) == 0).all()


def test_labels_without_a_sketch_are_neither_near_nor_far() -> None:
    generator = np.random.default_rng(1)
    inputs, labels = generator.normal(size=(60, 6)).astype(np.float32), np.repeat(np.arange(4), 15)
    holdings = [np.arange(start, 60, 3) for start in range(3)]
    consent = np.ones((3, 4), dtype=bool)
    consent[0, 3] = False
    apart = apart_of(inputs, labels, holdings, consent=consent, least=3)
    assert apart is not None
    assert apart[3, :3] == pytest.approx(apart[:3, :3][np.triu_indices(3, 1)].mean())
    consent[0, 2] = False
    assert apart_of(inputs, labels, holdings, consent=consent, least=3) is None  # two labels: nothing to put in order


def test_who_tells_sketches() -> None:
    assert setting().network.label_distance is not None
    assert setting(**{"data.allocation": "labels:3"}).network.label_distance is None  # nobody claims
    assert setting(**{"network.trust": "none"}).network.label_distance is None  # nobody consents
    assert setting(**{"privacy.contributors": 4}).network.label_distance is None  # each label is at 2 or 3 devices
    private = setting(**{"privacy.epsilon": 4.0})
    assert private.network.label_distance is None  # as it was noised, it belongs to what is told
    assert private.reported_network.label_distance is not None


def test_consent_is_trust_in_anybody() -> None:
    trust = np.zeros((3, 3, 2), dtype=bool)
    trust[1, 0, 1] = trust[2, 0, 1] = trust[0, 2, 0] = True
    counts = np.ones((3, 2))
    network = Network.from_arrays(counts=counts, threshold=0 * counts, trust=trust, drop=np.zeros((3, 3)))
    assert consenting(network.candidates, network.trust).tolist() == [[False, True], [False, False], [True, False]]


def test_a_run_finds_other_links_with_them() -> None:
    found = setting()
    blind = replace(
        found,
        network=replace(found.network, label_distance=None),
        reported_network=replace(found.reported_network, label_distance=None),
    )
    config = found.config
    with_, without = (prepare(config, item, "marginal").discovery for item in (found, blind))
    assert with_ is not None
    assert without is not None
    assert with_.graph.edges != without.graph.edges
