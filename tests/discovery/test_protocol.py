"""Devices that share nothing but messages find link for link what the compiled learner finds, with as many messages."""

import numpy as np
import pytest

from conftest import config_of
from d2dfl import Config, Network, discover
from d2dfl.discovery.task import NEGOTIATION
from d2dfl.partition.masked.bill import masked_sum_cost
from fleets import compiled, fleet_of


@pytest.mark.parametrize(
    ("edges", "messages", "cycle"), [(1, 150, 500), (3, 60, 500), (2, 40, 500), (1, 300, 90), (3, 120, 30)]
)
@pytest.mark.parametrize("labels", [3, 1])
def test_devices_find_what_the_compiled_learner_finds(
    config: Config, edges: int, messages: int, cycle: int, labels: int
) -> None:
    budget = {"marginal.messages": messages, "marginal.cycle": cycle}
    config = config.with_(**{"discovery.edges": edges, "network.labels_per_device": labels, **budget})
    for seed in range(3):
        network = Network.generate(config, seed)
        play, learner, rules = compiled(network, config, seed)
        fleet = fleet_of(network, config, seed, learner)
        fleet.introduce()
        assert fleet.messages == (network.candidates >= 0).sum()
        assert np.isclose(np.mean([device.best_alone() for device in fleet.devices]), learner.unit[0])
        fleet.run(rules)
        assert fleet.slots().tolist() == play.slots.tolist()
        assert [device.spent for device in fleet.devices] == learner.spent.tolist()
        assert [device.turns for device in fleet.devices] == learner.turns.tolist()
        assert all(device.ended for device in fleet.devices)
        standing = [device.holdings.standing() for device in fleet.devices]
        assert np.allclose(standing, play.local)


@pytest.mark.parametrize("cycle", [500, 20])
def test_what_devices_send_is_what_a_discovery_is_charged(config: Config, cycle: int) -> None:
    budget = {"marginal.messages": 60, "marginal.cycle": cycle, "marginal.spread": 0.0}
    config = config.with_(**{"discovery.edges": 2, "discovery.edge_mode": "joint", **budget})
    network = Network.generate(config, 1)
    found = discover(network, config, seed=1, method="marginal")
    _, learner, rules = compiled(network, config, 1)
    fleet = fleet_of(network, config, 1, learner)
    fleet.introduce()
    fleet.run(rules)
    sums = masked_sum_cost(network.devices, [network.partitions, 1]).messages
    assert found.messages == fleet.messages + sums + NEGOTIATION * len(found.graph.edges)


@pytest.mark.parametrize("cycle", [500, 20])
def test_who_looks_for_nothing_says_so_when_the_token_first_comes(cycle: int) -> None:
    """Nobody knows beforehand who that is, the first device may be among them, and all messages are charged."""
    budget = {"marginal.messages": 60, "marginal.cycle": cycle}
    config = config_of("best", **{"discovery.edges": 2, "network.trust": "insecure:0.5", **budget})
    first = set()
    for seed in range(4):
        network = Network.generate(config, seed)
        found = discover(network, config, seed=seed, method="marginal")
        play, learner, rules = compiled(network, config, seed)
        fleet = fleet_of(network, config, seed, learner)
        fleet.introduce()
        idle = [device.number for device in fleet.devices if not device.useful]
        first.add(0 in idle)
        assert 1 < len(idle) < network.devices
        fleet.run(rules)
        assert fleet.slots().tolist() == play.slots.tolist()
        assert [device.spent for device in fleet.devices] == learner.spent.tolist()
        sums = masked_sum_cost(network.devices, [network.partitions, 1]).messages
        assert found.messages == fleet.messages + sums + NEGOTIATION * len(found.graph.edges)
    assert first == {True, False}
