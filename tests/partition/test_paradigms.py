"""All paradigms on one road: partitions, networks, exchange, training; noise on messages; bad input."""

import numpy as np
import pytest
import torch
from scipy.stats import norm

from d2dfl.config import Config
from d2dfl.config.presets import preset
from d2dfl.config.sections import learning
from d2dfl.data.datasets import load
from d2dfl.errors import UserError
from d2dfl.experiment.compare import compare
from d2dfl.experiment.inputs import data_set
from d2dfl.experiment.pipeline import federated, prepare
from d2dfl.experiment.setting import setting_of
from d2dfl.federation.schemes import SCHEMES
from d2dfl.partition.paradigms import OF_NUMBERS, PARADIGMS, _parts, _subspace
from d2dfl.partition.pca import SERVER
from d2dfl.partition.privacy import clip_norm, component_noise, noise_scale, noised_clusters, noised_counts
from d2dfl.transfer import held_counts

torch.set_num_threads(1)

SMALL = {
    "network.devices": 6,
    "data.samples": 40,
    "network.trust": "full",
    "discovery.edges": 2,
    "partition.components": 4,
    "partition.clusters": 5,
    "federation.rounds": 2,
    "federation.interval": 2,
    "marginal.messages": 100,
    "qlearning.steps": 50,
}


def small(paradigm: str, preset_name: str = "best", **changes: object) -> Config:
    changes = {"partition.ranges": 5, **changes} if paradigm == "regression" else changes
    return preset(preset_name, paradigm).with_(**{**SMALL, **changes})


@pytest.mark.parametrize("paradigm", PARADIGMS)
@pytest.mark.parametrize("name", ["best", "paper"])
def test_one_road_for_all(paradigm: str, name: str) -> None:
    config = small(paradigm, name)
    result = compare(config, ["marginal", "qlearning"], [0])
    rows = {row.method: row for row in result.rows}
    assert result.score_name == {"regression": "mse"}.get(paradigm, result.score_name)
    assert rows["marginal"].moved > 0
    assert rows["iid"].gap_closed in (None, 1.0)
    assert all(np.isfinite(row.score) for row in result.rows)
    for item in result.prepared:
        if item.exchanged is not None:  # every datapoint accounted for, in every paradigm
            held = sum(len(points) for points in item.exchanged.holdings)
            assert held + len(item.exchanged.lost) == 6 * 40
            before = item.setting.network
            after = held_counts(item.exchanged.holdings, item.setting.partitioning.partition_of, before.partitions)
            if before.centroids is None:
                assert (after >= np.minimum(before.counts, np.floor(before.threshold)) - 1e-9).all()


def test_semi_supervised_partitions_are_pseudo_labels() -> None:
    config = small("semi")
    dataset = data_set(config, 0)
    setting = setting_of(config, 0, dataset)
    assert setting.partitioning.labels is not None
    assert (setting.partitioning.partition_of == setting.partitioning.labels).all()
    held = np.concatenate(setting.holdings)
    right = (setting.partitioning.labels == dataset.train_targets)[held].mean()
    assert 0.5 < right < 1.0
    assert setting.partitioning.measures["label accuracy"] == pytest.approx(1 - (1 - right) / 0.85, abs=0.1)
    assert len(setting.partitioning.by_device["label accuracy"]) == 6
    assert np.mean(setting.partitioning.by_device["label accuracy"]) == pytest.approx(
        setting.partitioning.measures["label accuracy"]
    )
    data = federated(config, prepare(config, setting, "marginal"), dataset)
    assert (data.targets == setting.partitioning.labels).all()
    assert (data.test_targets == dataset.test_targets).all()


def test_own_clusters_make_another_network_than_shared_ones() -> None:
    own = setting_of(small("unsupervised", "paper"), 0, load("digits"))
    shared = setting_of(small("unsupervised"), 0, load("digits"))
    assert own.network.centroids is not None
    assert own.network.centroids.shape == (6, 5, 4)
    assert own.network.threshold == pytest.approx(0.5 * own.network.counts)
    assert own.network.request == pytest.approx(np.full(6, 4.0))
    assert shared.network.centroids is None
    (up, down), (own_up, own_down) = (setting.partitioning.bits(6, 32) for setting in (shared, own))
    assert (up > own_up).all(), "centroids and counts besides"
    assert (own_up > 0).all()
    assert down.tolist() == [32 * (64 + 4 * 64 + 5 * 4)] * 6, "mean, components, common centroids"
    assert own_down.tolist() == [32 * (64 + 4 * 64)] * 6


def test_nothing_but_sums_and_components_is_told() -> None:
    config = small("semi")
    dataset = load("digits")
    setting = setting_of(config, 0, dataset)
    told = setting.partitioning.messages
    assert {message.what for message in told} == {"sum and count", "mean", "scaled components", "components"}
    rows = {
        tuple(row) for held in setting.holdings for row in dataset.train_inputs[held].reshape(len(held), -1).round(4)
    }
    for message in told:
        for array in message.arrays:
            assert not any(tuple(row.round(4)) in rows for row in np.atleast_2d(array))


def test_a_dataset_that_does_not_suit_is_refused() -> None:
    with pytest.raises(UserError, match="has no classes"):
        setting_of(small("semi"), 0, load("diabetes"))
    with pytest.raises(UserError, match="has classes"):
        setting_of(small("regression"), 0, load("digits"))
    with pytest.raises(UserError, match="there is no paradigm"):
        preset("best", "magic")
    with pytest.raises(UserError, match=r"partition\.clusters"):
        setting_of(small("unsupervised", **{"partition.clusters": 60}), 0, load("digits"))
    with pytest.raises(UserError, match=r"partition\.components"):
        setting_of(small("semi", **{"partition.components": 65}), 0, load("digits"))


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-5), (1.0, 1e-5), (8.0, 1e-6)])
def test_noise_is_as_much_as_the_guarantee_needs(epsilon: float, delta: float) -> None:
    scale = noise_scale(epsilon, delta)
    # The worst event for a shift by 1: everything above the point where the likelihood ratio is exp(epsilon).
    cut = scale**2 * epsilon + 0.5
    lost = norm.sf(cut, 1.0, scale) - np.exp(epsilon) * norm.sf(cut, 0.0, scale)
    assert lost == pytest.approx(delta, rel=1e-4)
    assert noise_scale(epsilon, delta, 3.0) == pytest.approx(3 * scale)
    assert scale < np.sqrt(2 * np.log(1.25 / delta)) / epsilon  # the textbook bound is looser


def test_noised_counts_differ_by_device_and_seed() -> None:
    settings = small("supervised", **{"privacy.epsilon": 1.0}).privacy
    counts = np.full((400, 10), 1000.0)
    one = noised_counts(counts, settings, 0)
    assert one.std() == pytest.approx(noise_scale(1.0, 1e-5, np.sqrt(2)), rel=0.05)
    assert (one == noised_counts(counts, settings, 0)).all()
    assert (noised_counts(counts, settings, 1) != one).any()
    assert (noised_counts(np.zeros((50, 10)), settings, 0) >= 0).all()


def test_registries_hold_the_words_that_the_settings_list() -> None:
    assert tuple(PARADIGMS) == learning.PARADIGMS
    assert tuple(SCHEMES)[: len(learning.SCHEMES)] == learning.SCHEMES
    assert learning.PartitionConfig().paradigm == learning.SUPERVISED
    assert [name for name, item in PARADIGMS.items() if not item.classes] == [OF_NUMBERS]


@pytest.mark.parametrize("paradigm", PARADIGMS)
def test_noise_changes_what_is_told_and_not_what_is_held(paradigm: str) -> None:
    config = small(paradigm, **{"privacy.epsilon": 0.5})
    if paradigm == "unsupervised":
        config = config.with_(partition__clustering="own")
    setting = setting_of(config, 0, data_set(config, 0))
    truth = held_counts(setting.holdings, setting.partitioning.partition_of, setting.network.partitions)
    assert (setting.network.counts == truth).all()
    assert (setting.reported_network.counts != truth).any()
    if setting.network.centroids is not None:
        own = [setting.partitioning.partition_of[held] for held in setting.holdings]
        sizes = [np.bincount(numbers, minlength=5) for numbers in own]
        assert (setting.network.counts == sizes).all()
        assert setting.reported_network.centroids is not None
        assert (setting.reported_network.centroids != setting.network.centroids).all()
        assert setting.partitioning.clusters is not None
        assert (setting.network.centroids == setting.partitioning.clusters.centroids).all()
    item = prepare(config, setting, "marginal")
    assert item.discovery is not None
    assert (item.discovery.network.counts == truth).all()
    assert (item.discovery.graph.given() <= setting.network.surplus + 1e-6).all()


def test_no_sum_of_inputs_is_told_under_noise() -> None:
    config = small("semi", **{"privacy.epsilon": 2.0})
    dataset = load("digits")
    setting = setting_of(config, 0, dataset)
    found = _subspace(config, dataset, _parts(config, dataset, setting.holdings), 0)
    assert (found.mean == 0).all()
    for message in found.messages:
        if message.what == "sum and count" and message.receiver == SERVER:
            assert (message.arrays[0] == 0).all()
    noise = component_noise(config.privacy, 0, 2.0)
    assert noise(np.eye(3), 0) == pytest.approx(noise(np.eye(3), 0).T)
    assert np.linalg.norm(clip_norm(np.full((2, 1, 3, 3), 5.0, dtype=np.float32), 2.0), axis=1) == pytest.approx(2.0)


def test_noised_clusters_are_clusters() -> None:
    from d2dfl.partition.kmeans import own_clusters

    points = [np.random.default_rng(device).normal(size=(60, 3)) for device in range(3)]
    held = [np.arange(60) + 60 * device for device in range(3)]
    settings = small("unsupervised", **{"privacy.epsilon": 1.0}).privacy
    found = own_clusters(points, held, 180, 4, 0)
    noised = noised_clusters(found, settings, 0, 3.0)
    assert (noised.counts >= 1).all()
    assert np.linalg.eigvalsh(noised.covariances).min() > -1e-9
    assert (noised.centroids != found.centroids).all()
    assert (noised.assignment == found.assignment).all()
    nearly = noised_clusters(found, small("semi", **{"privacy.epsilon": 1e6, "privacy.delta": 0.4}).privacy, 0, 3.0)
    assert nearly.centroids == pytest.approx(found.centroids, abs=0.05)
