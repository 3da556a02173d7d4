"""The compiled learner and the fleet of devices that is held against it, on the same network."""

import numpy as np

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
        device = take_turns(board, board.gauss, terms, play, learner, cooling, keys, free, device, 1000)
    return play, learner, Rules(*cooling, network.devices)


def fleet_of(network: Network, config: Config, seed: int, learner: LearnerState) -> Fleet:
    board = board_of(network, Terms.of(config.reward))
    keys = device_keys(seed, "marginal", 0, devices=network.devices)
    free = free_choice(board, config.discovery.no_link)
    return Fleet.of(network, config, keys, learner.account, free, learner.claim)
