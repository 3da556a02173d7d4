"""Every method in the registry keeps the contract; the optimum is one; graphs export."""

import itertools
import json
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest

from conftest import config_of, random_slots
from d2dfl import METHODS, Config, Graph, Network, UserError, discover
from d2dfl.discovery.equations.reward import Terms
from d2dfl.discovery.evaluation import evaluate, graph_of, outside_requests
from d2dfl.discovery.game import state as game
from d2dfl.discovery.game.board import board_of
from d2dfl.discovery.methods import optimum
from d2dfl.discovery.task import LinkChoice, Task
from d2dfl.experiment.findings.summary import NOTHING_HELD, why_unlinked

FAST = {
    "qlearning.steps": 200,
    "bandit.steps": 200,
    "optimum.starts": 2,
    "optimum.sweeps": 50,
    "optimum.messages": 300,
    "optimum.nodes": 10_000,
    "gcn.epochs": 2,
    "gcn.systems": 1,
}
LEARNED = [name for name in METHODS if name != "gcn"]  # the GCN has a test file of its own


@pytest.mark.parametrize("method", LEARNED)
@pytest.mark.parametrize("edges", [1, 2])
@pytest.mark.parametrize("mode", ["joint", "sequence"])
def test_contract(method: str, edges: int, mode: str) -> None:
    config = config_of("best", **FAST, **{"discovery.edges": edges, "discovery.edge_mode": mode})
    network = Network.generate(config, 0)
    result = discover(network, config, seed=1, method=method)
    graph = result.graph
    assert graph.slots.shape == (9, edges)
    for receiver, edge in zip(*graph.links, strict=True):
        slot = graph.slots[receiver, edge]
        assert graph.transmitter[receiver, edge] == network.candidates[receiver, slot]
        assert (graph.allocated[receiver, edge][~network.trust[receiver, slot]] == 0).all()
        assert graph.allocated[receiver, edge].sum() > 0
    pairs = graph.edges
    assert len(set(pairs)) == len(pairs)
    assert all(one != other for one, other in pairs)
    assert (network.counts - graph.given() >= np.minimum(network.counts, network.threshold) - 1e-9).all()
    assert result.transmissions >= result.messages >= 3 * len(pairs)
    plain = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    for key in (
        "edges",
        "expected_datapoints",
        "expected_counts_after",
        "objective",
        "local_rewards",
        "labels_satisfied",
        "distance_to_iid",
        "success_probability",
        "inter_cluster_share",
        "messages",
        "transmissions",
        "message_bits",
        "steps",
        "seconds",
        "seed",
        "config",
    ):
        assert key in plain
    assert len(plain["edges"]) == len(plain["expected_datapoints"])


@pytest.mark.parametrize("method", LEARNED)
@pytest.mark.parametrize("case", ["deaf", "no trust", "no surplus", "one device", "no data"])
def test_where_nothing_can_move_there_is_no_edge(method: str, case: str) -> None:
    devices = 1 if case == "one device" else 4
    counts = {"no surplus": np.full((devices, 3), 5.0), "no data": np.zeros((devices, 3))}.get(
        case, np.eye(devices, 3) * 30
    )
    network = Network.from_arrays(
        counts=counts,
        threshold=np.full((devices, 3), 10.0 if case != "no data" else 0.0),
        trust=np.zeros((devices, devices, 3)) if case == "no trust" else np.ones((devices, devices, 3)),
        drop=np.full((devices, devices), 1.0 if case == "deaf" else 0.1),
    )
    result = discover(network, config_of("best", **FAST), method=method)
    assert result.graph.edges == []
    assert result.evaluation.success_probability is None
    assert (result.evaluation.counts_after == counts).all()
    reasons = {
        "deaf": "hears nobody",
        "no trust": "is trusted with nothing",
        "no surplus": "hears nobody with a surplus of what it needs",
        "one device": "hears nobody",
        "no data": NOTHING_HELD,
    }
    assert reasons[case] in why_unlinked(network, result.graph)


def test_simple_rules_by_hand() -> None:
    trust = np.zeros((3, 3, 2))
    trust[0, 2] = 1
    trust[0, 1, 1] = 1
    network = Network.from_arrays(
        counts=[[30, 0], [0, 30], [0, 30]],
        threshold=np.full((3, 2), 10.0),
        trust=trust,
        drop=[[0, 0.1, 0.2], [0.3, 0, 0.1], [0.3, 0.1, 0]],
    )
    config = config_of("best")
    assert discover(network, config, method="closest").graph.edges == [(1, 0)]
    assert discover(network, config, method="most-trusted").graph.edges == [(2, 0)]
    assert discover(network, config, method="none").graph.edges == []


def nearest_of(network: Network) -> np.ndarray:
    """nearest[receiver] by a loop over positions."""
    place = network.positions
    everyone = range(network.devices)
    apart = [[np.hypot(*(place[i] - place[j])) if i != j else np.inf for j in everyone] for i in everyone]
    return np.argmin(apart, axis=1)


@pytest.mark.parametrize("kind", ["path-loss", "harsh", "physical"])
def test_closest_is_the_nearest_device(kind: str) -> None:
    """R49: power is clipped, so many candidates are equally reliable; the nearest of them is meant."""
    config = config_of("best", **{"network.devices": 25, "channel.kind": kind})
    for seed in range(4):
        network = Network.generate(config, seed)
        slots = METHODS["closest"].find(Task(network, config, seed)).slots[:, 0]
        assert (network.candidates[np.arange(25), slots] == nearest_of(network)).all()


def chosen_among_equals(method: str, network: Network, config: Config, seed: int) -> np.ndarray:
    slots = METHODS[method].find(Task(network, config, seed)).slots[:, 0]
    return network.candidates[np.arange(network.devices), slots]


@pytest.mark.parametrize("method", ["closest", "most-trusted"])
def test_equals_are_told_apart_by_chance(method: str) -> None:
    """R39, R49: without positions and with links all alike, not everybody goes to device 0; the same seed, the same picks."""
    devices, config = 40, config_of("best")
    network = Network.from_arrays(
        counts=np.eye(devices, 3) * 30,
        threshold=np.full((devices, 3), 10.0),
        trust=np.ones((devices, devices, 3)),
        drop=np.full((devices, devices), 0.1),
    )
    one, same, other = (chosen_among_equals(method, network, config, seed) for seed in (0, 0, 1))
    assert (one == same).all()
    assert (one != other).mean() > 0.8
    assert np.bincount(one).max() <= 6


def test_closest_goes_by_power_where_places_say_nothing_about_it() -> None:
    for changes in ({"channel.kind": "gaussian"}, {"channel.dynamic": True}):
        config = config_of("best", **{"network.devices": 25}, **changes)
        network = Network.generate(config, 0)
        network = network.with_drop(np.random.default_rng(0).random(network.drop.shape) + 0.1, config.channel)
        slots = METHODS["closest"].find(Task(network, config, 0)).slots[:, 0]
        assert (slots == network.drop.argmin(axis=1)).all()


@pytest.mark.parametrize("rules", ["best", "best 5%", "paper"])
def test_branch_and_bound_equals_enumeration(rules: str) -> None:
    config = config_of(
        rules,
        **{
            "network.devices": 5,
            "discovery.edges": 1,
            "optimum.starts": 1,
            "optimum.sweeps": 1,
            "optimum.messages": 20,
        },
    )
    for seed in range(2):
        network = Network.generate(config, seed)
        over_ask = config.reward.over_ask
        best = max(
            evaluate(
                network, graph_of(network, np.array(slots, dtype=np.int32)[:, None], over_ask), config.reward
            ).objective
            for slots in itertools.product(range(-1, 4), repeat=5)
        )
        found = discover(network, config, seed=seed, method="optimum")
        assert found.proven
        assert np.isclose(found.evaluation.objective, best)
        assert np.isclose(found.upper_bound, best)


def test_the_upper_bound_holds_for_any_graph() -> None:
    config = config_of("best", **{"network.devices": 14})
    network = Network.generate(config, 3)
    terms = Terms.of(config.reward)
    board = board_of(network, terms)
    bounds = optimum.choice_bounds(board, terms, optimum.link_sets(network.slots, 1))
    ceiling = optimum.budget_ceiling(board, terms)
    for seed in range(60):
        slots = random_slots(network, 1, seed)
        play = game.load(board, terms, slots)
        assert (1.5 * play.local <= bounds[np.arange(14), slots[:, 0] + 1] + 1e-9).all()
        assert game.total(board, terms, play) <= bounds.max(axis=1).sum() + ceiling + 1e-9
    found = optimum.find(Task(network, config.with_(**FAST), 0))
    assert not found.proven
    assert found.upper_bound is not None


def test_sequence_masks_chosen_neighbours_and_shares_one_budget() -> None:
    config = config_of("best", **FAST, **{"discovery.edges": 3, "discovery.edge_mode": "sequence"})
    network = Network.generate(config, 0)
    graph = discover(network, config, method="closest").graph
    assert graph.slots.shape == (9, 3)
    for row in graph.slots:
        used = [slot for slot in row if slot >= 0]
        assert len(set(used)) == len(used)
    assert np.isclose(
        outside_requests(network, graph).sum(),
        sum(
            graph.allocated[r, e].sum()
            for r, e in zip(*graph.links, strict=True)
            if network.cluster[r] != network.cluster[graph.transmitter[r, e]]
        ),
    )


@pytest.mark.parametrize("preset", ["best", "paper"])
@pytest.mark.parametrize("method", [name for name in METHODS if name not in ("none", "optimum")])
def test_no_slot_is_chosen_twice(method: str, preset: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """R50: not even one over which nothing moved, or rules would repeat a dead link at every stage."""
    chosen: list[np.ndarray] = []
    one = METHODS[method]
    find = one.find

    def watched(task: Task) -> LinkChoice:
        choice = find(task)
        chosen.append(choice.slots.copy())
        return choice

    config = config_of(preset, **FAST, **{"discovery.edges": 4, "discovery.edge_mode": "sequence"})
    network = Network.generate(config, 2)
    monkeypatch.setitem(METHODS, method, replace(one, place=watched))
    discover(network, config, seed=1, method=method)
    slots = np.concatenate(chosen, axis=1)
    assert slots.shape == (9, 4)
    for row in slots:
        used = [slot for slot in row if slot >= 0]
        assert len(set(used)) == len(used)
    if not one.learns:
        assert (slots >= 0).all()  # a rule has somebody at every stage


def test_a_dead_link_does_not_stop_the_next_one() -> None:
    """By hand: the nearest has nothing for device 0, the second has."""
    network = Network.from_arrays(
        counts=[[30, 0], [30, 0], [0, 30]],
        threshold=np.full((3, 2), 10.0),
        trust=np.ones((3, 3, 2)),
        drop=[[0, 0.1, 0.2], [0.1, 0, 1], [0.1, 1, 0]],
    )
    config = config_of("best", **{"discovery.edges": 2, "discovery.edge_mode": "sequence"})
    assert (2, 0) in discover(network, config, method="closest").graph.edges


def test_more_edges_are_worth_more_and_all_at_once_is_no_worse() -> None:
    values = {}
    for mode in ("joint", "sequence"):
        for edges in (1, 3):
            config = config_of("best", **{"network.devices": 12, "discovery.edges": edges, "discovery.edge_mode": mode})
            values[mode, edges] = np.mean(
                [discover(Network.generate(config, s), config, seed=s).evaluation.objective for s in range(3)]
            )
    assert values["joint", 3] > values["joint", 1]
    assert values["sequence", 3] > values["sequence", 1]


def test_unknown_method() -> None:
    config = config_of("best")
    with pytest.raises(UserError, match="the methods are marginal"):
        discover(Network.generate(config, 0), config, method="nothing")


def small_graph() -> tuple[Network, Graph]:
    config = config_of("best")
    network = Network.generate(config, 0)
    return network, graph_of(network, random_slots(network, 2, 0), True)


def test_exports_agree() -> None:
    network, graph = small_graph()
    drawn = graph.to_networkx(network)
    assert sorted(drawn.edges) == sorted(graph.edges)
    assert drawn.number_of_nodes() == 9
    parsed = nx.parse_graphml(graph.to_graphml(network), node_type=int)
    assert sorted(parsed.edges) == sorted(graph.edges)
    one, other = graph.edges[0]
    assert np.isclose(parsed.edges[one, other]["expected_datapoints"], sum(graph.to_dict()["expected_datapoints"][0]))
    assert set(parsed.nodes[0]) == {"name", "cluster", "counts", "x_m", "y_m"}
    assert nx.parse_graphml(graph.to_graphml()).number_of_nodes() == 9
