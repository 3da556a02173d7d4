"""Rewards by hand."""

import itertools

import numpy as np
import pytest
from scipy.spatial.distance import jensenshannon
from scipy.stats import wasserstein_distance

from d2dfl import Config, Network, preset
from d2dfl.config import RewardConfig
from d2dfl.discovery.equations.diversity import BUILT_IN, distance, distances_to, metric_code
from d2dfl.discovery.equations.reward import Terms, budget_term, objective, overall_rewards
from d2dfl.discovery.evaluation import evaluate, graph_of, share_of
from d2dfl.discovery.plain.reference import plain_distance

VECTORS = np.random.default_rng(0).integers(0, 9, (12, 5)).astype(float) + np.eye(12, 5)


@pytest.mark.parametrize("metric", BUILT_IN)
def test_distances_against_scipy_and_the_plain_version(metric: str) -> None:
    labels = np.arange(5)
    for one, other in itertools.pairwise(VECTORS):
        p, q = one / one.sum(), other / other.sum()
        expected = {
            "total-variation": np.abs(p - q).sum() / 2,
            "wasserstein": wasserstein_distance(labels, labels, p, q),
            "jensen-shannon": jensenshannon(p, q, 2),
        }[metric]
        measured = distance(metric_code(metric), one, other)
        assert np.isclose(measured, expected)
        assert np.isclose(measured, plain_distance(metric, one.tolist(), other.tolist()))


def test_a_device_without_data_is_as_far_as_can_be() -> None:
    empty, full = np.zeros(4), np.ones(4)
    assert distances_to(np.array([empty]), full, "wasserstein")[0] == 3
    assert distances_to(np.array([empty]), full, "total-variation")[0] == 1
    assert distances_to(np.array([empty]), empty, "jensen-shannon")[0] == 0


def two_devices(**changes: object) -> tuple[Network, Config]:
    """Device 0 holds label 0 only, device 1 label 1 only; device 1 sends 10 to device 0 over a link that loses 20 %."""
    config = preset("best").with_(
        **{"reward.threshold_rule": "before-loss", "reward.reliability_weight": 1.0, **changes}
    )
    network = Network.from_arrays(
        counts=[[40, 0], [0, 60]],
        threshold=[[10, 10], [10, 10]],
        trust=np.ones((2, 2, 2)),
        drop=[[0, 0.2], [0.2, 0]],
        cluster=[0, 1],
        budget=[5, 5],
    )
    return network, config


def test_gain_change_budget_and_objective_by_hand() -> None:
    network, config = two_devices()
    graph = graph_of(network, np.array([[0], [-1]], dtype=np.int32), over_ask=False)
    worth = evaluate(network, graph, config.reward)
    # population 0.4 / 0.6; device 0: (40, 8) -> 5/6, device 1: (0, 50) -> 0
    gain = (0.6 - (5 / 6 - 0.4)) - 0.2
    assert np.allclose(worth.local_rewards, [gain, 0.0])
    # cluster 0 asked 10 of its 5: hinge -(10-5)/5 = -1, half of the devices
    assert np.isclose(worth.objective, 1.5 * gain / 2 + 0.5 * (-1.0) * 0.5)
    assert worth.no_exchange == 0.0
    assert worth.labels_satisfied.tolist() == [2, 1]
    assert worth.datapoints_moved == 10
    assert np.isclose(worth.datapoints_lost, 2)
    assert np.isclose(worth.success_probability, 0.8)
    assert worth.inter_cluster_share == 1.0
    network, config = two_devices(
        **{"reward.kind": "change", "reward.budget_rule": "ratio", "reward.metric": "wasserstein"}
    )
    worth = evaluate(network, graph, config.reward)
    assert np.allclose(worth.local_rewards, [1 / 6 - 0.2, 0.0])
    assert np.isclose(worth.objective, 1.5 * (1 / 6 - 0.2) / 2 + 0.5 * (0.5 * -1.0 + 0.5 * 1.0))
    assert np.isclose(worth.no_exchange, 0.5)


@pytest.mark.parametrize(("rule", "paid"), [("strict", False), ("tolerance", True), ("before-loss", True)])
def test_r1_the_gate_under_loss(rule: str, paid: bool) -> None:
    network, config = two_devices(**{"reward.gate": 2, "reward.threshold_rule": rule, "reward.kind": "change"})
    worth = evaluate(network, graph_of(network, np.array([[0], [-1]], dtype=np.int32), over_ask=False), config.reward)
    assert bool(worth.local_rewards[0] > -0.2 + 1e-12) is paid


def test_share_is_zero_without_exchange_and_one_at_the_best() -> None:
    assert share_of(0.5, 0.9, 0.5) == 0.0
    assert share_of(0.9, 0.9, 0.5) == 1.0
    assert share_of(0.5, 0.5, 0.5) == 1.0


@pytest.mark.parametrize("clustered", [False, True])
@pytest.mark.parametrize("rule", ["hinge", "ratio", "literal"])
def test_the_objective_is_the_mean_of_overall_rewards(clustered: bool, rule: str) -> None:
    rng = np.random.default_rng(3)
    config = RewardConfig(budget_rule=rule, budget_weight=0.7, global_weight=0.3, agreement_weight=1.5)  # type: ignore[arg-type]  # a word from the parameters
    terms = Terms.of(config, clustered)
    local, budget, used = rng.normal(size=12), rng.uniform(5, 50, 3), rng.uniform(0, 80, 3)
    members = np.array([5.0, 4.0, 3.0])
    agreement = 0.4 if clustered else 0.0
    read = objective(terms, local, agreement, members, budget, used)
    common = 1.5 * agreement if clustered else local.mean()  # J as the paper writes it, from r and the budget terms
    asked = np.array([budget_term(terms, own, out) for own, out in zip(budget, used, strict=True)])
    shared = 0.3 * (common + 0.7 * (members / 12 * asked).sum())
    assert read == pytest.approx(local.mean() + shared)
    rewards, cluster = np.empty(12), np.repeat(np.arange(3), members.astype(int))
    overall_rewards(terms, local, agreement, cluster, budget, used.copy(), rewards)
    assert rewards.mean() == pytest.approx(read)
