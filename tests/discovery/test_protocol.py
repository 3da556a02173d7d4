"""Devices that share nothing but messages find link for link what the compiled learner finds, with as many messages."""

import numpy as np
import pytest

from conftest import config_of
from d2dfl import Config, Network
from d2dfl.discovery.equations.reward import Terms
from d2dfl.discovery.game import state as game
from d2dfl.discovery.game.board import board_of, free_choice
from d2dfl.discovery.game.learning import NO_DEVICE, LearnerState
from d2dfl.discovery.game.revisions import take_turns
from d2dfl.discovery.methods import marginal
from d2dfl.discovery.protocol.device import Rules
from d2dfl.discovery.protocol.fleet import Fleet
from d2dfl.rng import device_keys


def compiled(network: Network, config: Config, seed: int) -> tuple[game.Play, LearnerState, Rules]:
    """The compiled learner to its end, and the rules that it went by."""
    terms, edges = Terms.of(config.reward), config.discovery.edges
    board = board_of(network, terms)
    learner = marginal.introduce(board, terms, config.marginal.messages * edges, config.marginal.spread, edges)
    play = game.start(board, terms, edges)
    cooling = marginal.cooling_of(board, terms, play, learner, config.marginal)
    keys = device_keys(seed, "marginal", 0, devices=network.devices)
    free = free_choice(board, config.discovery.no_link)
    device = np.int64(0)
    while device != NO_DEVICE:
        device = take_turns(board, terms, play, learner, cooling, keys, free, device, 1000)
    return play, learner, Rules(*cooling, network.devices)


def fleet_of(network: Network, config: Config, seed: int, learner: LearnerState) -> Fleet:
    board = board_of(network, Terms.of(config.reward))
    keys = device_keys(seed, "marginal", 0, devices=network.devices)
    free = free_choice(board, config.discovery.no_link)
    return Fleet.of(network, config, keys, learner.account, free, learner.claim)


@pytest.mark.parametrize(("edges", "messages"), [(1, 150), (3, 60), (2, 40)])
@pytest.mark.parametrize("labels", [3, 1])
def test_devices_find_what_the_compiled_learner_finds(config: Config, edges: int, messages: int, labels: int) -> None:
    changes = {"discovery.edges": edges, "marginal.messages": messages, "network.labels_per_device": labels}
    config = config.with_(**changes)
    for seed in range(3):
        network = Network.generate(config, seed)
        play, learner, rules = compiled(network, config, seed)
        fleet = fleet_of(network, config, seed, learner)
        fleet.introduce()
        assert fleet.messages == (network.candidates >= 0).sum()
        alone = [device.best_alone() for device in fleet.devices]
        assert np.isclose(
            np.mean(alone),
            marginal.unit_of(
                board_of(network, Terms.of(config.reward)),
                Terms.of(config.reward),
                game.start(board_of(network, Terms.of(config.reward)), Terms.of(config.reward), edges),
                learner,
            ),
        )
        fleet.run(rules)
        assert fleet.slots().tolist() == play.slots.tolist()
        assert [device.spent for device in fleet.devices] == learner.spent.tolist()
        assert [device.turns for device in fleet.devices] == learner.turns.tolist()
