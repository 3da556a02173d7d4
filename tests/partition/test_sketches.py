"""Sketches of labels: distances nearly kept, the same for everybody, nothing where nothing is told."""

from dataclasses import replace

import numpy as np
import pytest

from d2dfl.config.presets import preset
from d2dfl.data.datasets import load
from d2dfl.experiment.pipeline import prepare
from d2dfl.experiment.setting import Setting, setting_of
from d2dfl.partition.sketches import sketched_distances


def setting(**changes: object) -> Setting:
    """Digits, one label a device."""
    given = {"data.dataset": "digits", "data.allocation": "labels:1", "discovery.edges": 1, **changes}
    return setting_of(preset("best").with_(**given), 0, load("digits"))


def test_distances_are_nearly_kept() -> None:
    found = setting()
    inputs, labels = load("digits").train_inputs, found.truth
    held = np.concatenate(found.holdings)
    means = np.stack([inputs[held[labels[held] == label]].reshape(-1, 64).mean(axis=0) for label in range(10)])
    true = np.linalg.norm(means[:, None] - means[None], axis=2)
    upper = np.triu_indices(10, 1)
    assert found.network.label_distance is not None
    ratio = found.network.label_distance[upper] / true[upper]
    assert np.abs(ratio - 1.0).mean() < 0.2  # 32 random values: a deviation of 0.125
    assert ratio.max() < 1.6


def test_it_does_not_matter_who_holds_what() -> None:
    generator = np.random.default_rng(1)
    inputs = generator.normal(size=(60, 2, 3)).astype(np.float32)
    labels = generator.integers(0, 3, 60)
    everything = np.arange(60)
    one = sketched_distances(inputs, labels, [everything], 3, 0)
    other = sketched_distances(inputs, labels, np.split(generator.permutation(60), 4), 3, 0)
    assert one == pytest.approx(other)
    assert (one == one.T).all()
    assert (np.diag(one) == 0).all()


def test_a_label_that_nobody_holds_is_no_distance_away() -> None:
    inputs = np.arange(8, dtype=np.float32).reshape(4, 2)
    apart = sketched_distances(inputs, np.array([0, 0, 2, 2]), [np.arange(4)], 3, 0)
    assert apart[0, 2] > 0
    assert not apart[1].any()


def test_who_tells_sketches() -> None:
    assert setting().network.label_distance is not None
    assert setting(**{"data.allocation": "labels:3"}).network.label_distance is None  # nobody claims
    private = setting(**{"privacy.epsilon": 1.0})  # they are not noised, so nobody tells any
    assert private.network.label_distance is None
    assert private.reported_network.label_distance is None


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
