"""Data clusters: the compiled game against the plain measure, pairs against sums, and the learners on it."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from d2dfl.config import Config, RewardConfig
from d2dfl.discovery.discover import discover
from d2dfl.discovery.equations.agreement import divergence, sums_of
from d2dfl.discovery.equations.gaussian import (
    KINDS,
    cluster_requests,
    components_of,
    gauss_of,
    pair_divergences,
    standard_points,
    summed_divergences,
)
from d2dfl.discovery.equations.reward import Terms
from d2dfl.discovery.equations.worth import clusters_after
from d2dfl.discovery.evaluation import evaluate, graph_of
from d2dfl.discovery.game import state as game
from d2dfl.discovery.game.board import board_of
from d2dfl.discovery.game.rounds import play_round, round_of
from d2dfl.discovery.methods import METHODS
from d2dfl.network import Network
from networks import clustered


def random_slots(network: Network, edges: int, seed: int) -> NDArray[np.int32]:
    rng = np.random.default_rng(seed)
    slots = np.full((network.devices, edges), -1, dtype=np.int32)
    for device in range(network.devices):
        number = rng.integers(0, edges + 1)
        slots[device, :number] = rng.choice(network.slots, number, replace=False)
    return slots


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("edges", [1, 2])
def test_the_game_agrees_with_the_plain_measure(kind: str, edges: int) -> None:
    config = Config().with_(reward__agreement=kind, reward__reliability_weight=0.7, discovery__edges=edges)
    network = clustered()
    terms = Terms.of(config.reward, True)
    board = board_of(network, terms, ridge=config.reward.ridge)
    play = game.start(board, terms, edges)
    value = game.total(board, terms, play)
    for seed in range(12):  # from any graph to any other, one link at a time
        slots = random_slots(network, edges, seed)
        for receiver in range(network.devices):
            for edge in range(edges):
                value += game.change_link(board, terms, play, receiver, edge, slots[receiver, edge])[0]
        worth = evaluate(network, graph_of(network, slots, False), config.reward)
        assert game.total(board, terms, play) == pytest.approx(worth.objective * network.devices, rel=1e-7, abs=1e-8)
        assert value == pytest.approx(worth.objective * network.devices, rel=1e-7, abs=1e-8)
        assert play.local == pytest.approx(worth.local_rewards, abs=1e-8)
        assert play.shape.agreement[0] == pytest.approx(worth.agreement, rel=1e-7, abs=1e-8)


@pytest.mark.parametrize("kind", KINDS)
def test_a_round_agrees_with_the_plain_measure(kind: str) -> None:
    config = Config().with_(reward__agreement=kind)
    network = clustered(seed=3)
    terms = Terms.of(config.reward, True)
    board = board_of(network, terms, ridge=config.reward.ridge)
    work = round_of(board, terms)
    for seed in range(4):
        slots = random_slots(network, 1, seed)
        work.slot[:] = slots[:, 0]
        work.drop[:] = np.where(slots[:, 0] >= 0, np.take_along_axis(network.drop, slots, 1)[:, 0], 0.0)
        play_round(board, terms, work, board.gauss)
        worth = evaluate(network, graph_of(network, slots, False), config.reward)
        assert work.shape.agreement[0] == pytest.approx(worth.agreement, rel=1e-7, abs=1e-8)
        assert work.reward.mean() == pytest.approx(worth.objective, rel=1e-7, abs=1e-8)


def test_divergences_need_no_pairs() -> None:
    rng = np.random.default_rng(1)
    means = rng.normal(size=(7, 4, 3)) * 3
    root = rng.normal(size=(7, 4, 3, 3))
    spreads = root @ np.swapaxes(root, 2, 3) + 0.1 * np.eye(3)
    total = np.zeros(2 * 9 + 2 * 3 + 2)
    for device in range(7):
        mine = np.empty_like(total)
        sums_of(means[device], spreads[device], np.linalg.inv(spreads[device]), mine)
        total += mine
    assert divergence(total, 7, 4, 3) == pytest.approx(pair_divergences(means, spreads).sum(), rel=1e-10)


@pytest.mark.parametrize("away", [0.0, 1e4])
def test_the_sum_of_all_divergences_needs_no_pairs(away: float) -> None:
    rng = np.random.default_rng(3)
    means = rng.normal(size=(30, 3, 2)) * 3 + away
    root = rng.normal(size=(30, 3, 2, 2))
    spreads = root @ np.swapaxes(root, 2, 3) + 0.1 * np.eye(2)
    assert summed_divergences(means, spreads) == pytest.approx(pair_divergences(means, spreads).sum(), rel=1e-9)
    assert summed_divergences(means[:1, :1], spreads[:1, :1]) == pytest.approx(0.0, abs=1e-9)


def test_a_graph_is_worth_the_same_without_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond some devices nothing is made for all pairs of them."""
    network, config = clustered(), RewardConfig()
    by_pairs = discover(network, method="marginal")
    for module in ("discovery.equations.gaussian", "discovery.equations.worth"):
        monkeypatch.setattr(f"d2dfl.{module}.PAIRS", 0)
        monkeypatch.setattr(f"d2dfl.{module}.pair_divergences", None)
    again = discover(network, method="marginal")
    assert (again.graph.transmitter == by_pairs.graph.transmitter).all()
    assert evaluate(network, again.graph, config).agreement == pytest.approx(by_pairs.evaluation.agreement, rel=1e-9)


def test_divergence_of_two_known_gaussians() -> None:
    means = np.array([[[0.0]], [[2.0]]])
    spreads = np.array([[[[1.0]]], [[[4.0]]]])
    table = pair_divergences(means, spreads)
    # KL(N(0,1) | N(2,4)) = ln 2 + (1 + 4) / 8 - 1/2, and the other way round -ln 2 + (4 + 4) / 2 - 1/2
    assert table[0, 1, 0, 0] == pytest.approx(np.log(2) + 5 / 8 - 0.5)
    assert table[1, 0, 0, 0] == pytest.approx(-np.log(2) + 4 - 0.5)
    assert table[0, 0, 0, 0] == 0.0


def test_requests_prefer_what_is_far() -> None:
    network = clustered(devices=2, clusters=2, components=1, trust="full")
    network = replace(network, centroids=np.array([[[0.0], [1.0]], [[2.0], [5.0]]]), request=np.array([12.0, 0.0]))
    # Distances of the transmitter's clusters from the receiver's: 2 + 1 and 5 + 4 (eq. usp_mp).
    assert cluster_requests(network)[0, 0] == pytest.approx([3.0, 9.0])
    assert cluster_requests(network)[1, 0] == pytest.approx([0.0, 0.0])
    half = replace(network, trust=network.trust & np.array([True, False]))
    assert cluster_requests(half)[0, 0] == pytest.approx([12.0, 0.0])


def test_clusters_after_by_hand() -> None:
    network = clustered(devices=2, clusters=1, components=1, trust="full")
    network = replace(
        network,
        counts=np.array([[10.0], [10.0]]),
        threshold=np.array([[5.0], [5.0]]),
        centroids=np.array([[[0.0]], [[4.0]]]),
        covariances=np.array([[[[1.0]]], [[[2.0]]]]),
        request=np.array([5.0, 0.0]),
        drop=np.array([[0.2], [0.0]]),
    )
    graph = graph_of(network, np.array([[0], [-1]], dtype=np.int32), False)
    counts, means, spreads = clusters_after(network, graph)
    assert counts[:, 0] == pytest.approx([14.0, 5.0])
    assert means[:, 0, 0] == pytest.approx([16 / 14, 4.0])  # 10 at 0 and 4 of 5 at 4
    second = (10 * 1 + 4 * (2 + 16)) / 14
    assert spreads[:, 0, 0, 0] == pytest.approx([second - (16 / 14) ** 2, 2.0])


def test_points_stand_for_a_standard_normal() -> None:
    for components in (1, 2, 8, 16, 25, 32, 33, 64):  # the paper sweeps up to 32
        points = standard_points(components)
        assert points.mean(axis=0) == pytest.approx(np.zeros(components), abs=1e-12)
        assert points.T @ points / len(points) == pytest.approx(np.eye(components), abs=1e-6)
    assert [components_of(1 + d + d * (d + 1) // 2) for d in (1, 2, 5, 8, 32)] == [1, 2, 5, 8, 32]


def test_one_datapoint_received_is_one_datapoint() -> None:
    network = clustered()
    gauss = gauss_of(network, 1e-3, 0)
    assert gauss is not None
    assert gauss.pull[..., 0].sum(axis=3) == pytest.approx(np.ones(gauss.pull.shape[:3]))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("edges", "dynamic"), [(1, False), (2, False), (2, True)])
def test_every_method_works_on_data_clusters(method: str, edges: int, dynamic: bool) -> None:
    config = Config().with_(
        channel__dynamic=dynamic,
        discovery__edges=edges,
        qlearning__steps=50,
        bandit__steps=50,
        gcn__epochs=2,
        gcn__systems=2,
        optimum__starts=2,
        optimum__sweeps=20,
    )
    network = clustered(seed=2)
    found = discover(network, config, seed=0, method=method)
    assert found.evaluation.agreement is not None
    assert (found.graph.given() <= network.surplus + 1e-6).all()
    again = discover(network, config, seed=0, method=method)
    assert again.graph.edges == found.graph.edges


def test_our_learner_comes_close_to_the_optimum() -> None:
    shares = []
    for seed in range(3):
        network, config = clustered(seed=seed), Config().with_(discovery__edges=1)
        mine, best = (discover(network, config, seed=0, method=name).evaluation for name in ("marginal", "optimum"))
        shares.append((mine.objective - mine.no_exchange) / (best.objective - best.no_exchange))
    assert min(shares) > 0.9


@pytest.mark.parametrize("method", ["marginal", "qlearning", "greedy", "closest"])
@pytest.mark.parametrize("edges", [1, 2])
def test_a_partition_of_a_device_may_be_chosen(method: str, edges: int) -> None:
    config = Config().with_(discovery__action="partition", discovery__edges=edges, qlearning__steps=100)
    network = clustered(seed=4)
    found = discover(network, config, seed=0, method=method)
    receiver, edge = found.graph.links
    assert len(receiver) > 0
    assert (found.graph.slots < network.slots).all()
    assert (
        network.candidates[receiver, found.graph.slots[receiver, edge]] == found.graph.transmitter[receiver, edge]
    ).all()
    if method != "closest":  # a rule chooses devices
        assert ((found.graph.allocated[receiver, edge] > 0).sum(axis=1) == 1).all()
    assert (found.graph.given() <= network.surplus + 1e-6).all()


def test_nothing_is_asked_of_a_cluster_that_has_nothing_to_spare() -> None:
    """R24: after a stage that took a cluster's whole surplus, the request is split over the other ones."""
    network = clustered(trust="full")
    threshold = network.threshold.copy()
    threshold[0, 1] = network.counts[0, 1]
    wish = cluster_requests(replace(network, threshold=threshold))
    assert network.request is not None
    asked = wish[network.candidates == 0]
    assert (asked[:, 1] == 0).all()
    assert asked.sum(axis=1) == pytest.approx(network.request[1:])
