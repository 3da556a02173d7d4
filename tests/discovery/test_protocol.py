"""Devices that share nothing but messages find link for link what the compiled learner finds, with as many messages."""

import numpy as np
import pytest

from d2dfl import Config, Network, discover
from d2dfl.discovery.equations.reward import Terms
from d2dfl.discovery.game import state as game
from d2dfl.discovery.game.board import board_of
from d2dfl.discovery.methods import marginal
from d2dfl.discovery.task import NEGOTIATION
from d2dfl.partition.masked.bill import masked_sum_cost
from fleets import compiled, fleet_of


@pytest.mark.parametrize(("edges", "messages"), [(1, 150), (3, 60), (2, 40)])
@pytest.mark.parametrize("labels", [3, 1])
def test_devices_find_what_the_compiled_learner_finds(config: Config, edges: int, messages: int, labels: int) -> None:
    changes = {"discovery.edges": edges, "marginal.messages": messages, "network.labels_per_device": labels}
    config, terms = config.with_(**changes), Terms.of(config.reward)
    for seed in range(3):
        network = Network.generate(config, seed)
        play, learner, rules = compiled(network, config, seed)
        fleet = fleet_of(network, config, seed, learner)
        fleet.introduce()
        assert fleet.messages == (network.candidates >= 0).sum()
        board = board_of(network, terms)
        unit = marginal.unit_of(board, terms, game.start(board, terms, edges), learner)
        assert np.isclose(np.mean([device.best_alone() for device in fleet.devices]), unit)
        fleet.run(rules)
        assert fleet.slots().tolist() == play.slots.tolist()
        assert [device.spent for device in fleet.devices] == learner.spent.tolist()
        assert [device.turns for device in fleet.devices] == learner.turns.tolist()
        assert all(device.ended for device in fleet.devices)
        standing = [device.holdings.standing() for device in fleet.devices]
        assert np.allclose(standing, play.local)


def test_what_devices_send_is_what_a_discovery_is_charged(config: Config) -> None:
    changes = {"discovery.edges": 2, "discovery.edge_mode": "joint", "marginal.messages": 60, "marginal.spread": 0.0}
    config = config.with_(**changes)
    network = Network.generate(config, 1)
    found = discover(network, config, seed=1, method="marginal")
    _, learner, rules = compiled(network, config, 1)
    fleet = fleet_of(network, config, 1, learner)
    fleet.introduce()
    fleet.run(rules)
    sums = masked_sum_cost(network.devices, [network.partitions, 1]).messages
    assert found.messages == fleet.messages + sums + NEGOTIATION * len(found.graph.edges)
