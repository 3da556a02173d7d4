"""The compiled learner and the fleet of devices that is held against it, on the same network."""

from collections.abc import Sequence

import numpy as np

from d2dfl import Config, Network
from d2dfl.discovery.equations.reward import Terms
from d2dfl.discovery.game import state as game
from d2dfl.discovery.game.board import board_of, free_choice
from d2dfl.discovery.game.cycles import BestCycle, begin_cycle
from d2dfl.discovery.game.learning import NO_DEVICE, Devices, LearnerState
from d2dfl.discovery.game.revisions import take_turns
from d2dfl.discovery.methods import marginal
from d2dfl.discovery.protocol.device import Device
from d2dfl.discovery.protocol.fleet import Fleet
from d2dfl.discovery.protocol.own_clock import OwnClock
from d2dfl.discovery.protocol.revision import Rules
from d2dfl.rng import device_keys


def compiled(network: Network, config: Config, seed: int) -> tuple[game.Play, LearnerState, Rules]:
    """The compiled learner to its end, and the rules that it went by."""
    terms, edges = Terms.of(config.reward), config.discovery.edges
    board = board_of(network, terms)
    cycles, best = marginal.cycles_of(config.marginal), BestCycle()
    budget, spread = config.marginal.messages * edges, config.marginal.spread
    learner = marginal.introduce(board, terms, budget, spread, edges, cycles=cycles)
    play = game.start(board, terms, edges)
    cooling = marginal.cooling_of(learner, config.marginal)
    keys = device_keys(seed, "marginal", 0, devices=network.devices)
    devices = Devices(keys, free_choice(board, config.discovery.no_link))
    whole = learner.account.copy()
    for cycle in range(cycles):
        now, device = begin_cycle(learner, cooling, whole, cycle, cycles), np.int64(0)
        while device != NO_DEVICE:
            device = take_turns(board, board.gauss, terms, play, learner, now, devices, device, 1000)
        if cycles > 1:
            best.stay_or_go_back(play, learner)
    return play, learner, Rules(*cooling, network.devices, cycles)


def fleet_of(network: Network, config: Config, seed: int, learner: LearnerState) -> Fleet:
    board = board_of(network, Terms.of(config.reward))
    keys = device_keys(seed, "marginal", 0, devices=network.devices)
    free = free_choice(board, config.discovery.no_link)
    return Fleet.of(network, config, keys, learner.account, free, learner.claim)


def clocks_of(network: Network, config: Config, seed: int, learner: LearnerState) -> Fleet:
    """The same devices, each with a clock of its own."""
    board = board_of(network, Terms.of(config.reward))
    keys = device_keys(seed, "marginal", 0, devices=network.devices)
    free = free_choice(board, config.discovery.no_link)
    return Fleet.of(network, config, keys, learner.account, free, learner.claim, kind=OwnClock)


def sides_agree(devices: Sequence[Device]) -> None:
    """Every link is believed in by both sides, who agree on what moves; nobody gives what it needs itself."""
    for receiver in devices:
        for link in receiver.holdings.links:
            if link is not None:
                giving = devices[receiver.holdings.heard[link.slot].device].giving
                # Shares that differ by rounding are not told anew.
                assert np.allclose(giving.granted(receiver.number), link.granted, rtol=1e-9, atol=1e-9)
                asked = giving.requesters[receiver.number].asked if receiver.number in giving.requesters else []
                assert asked == link.asked or not any(link.asked)
    for transmitter in devices:
        holdings, giving = transmitter.holdings, transmitter.giving
        for name in giving.requesters:
            assert any(
                link and devices[name].holdings.heard[link.slot].device == transmitter.number
                for link in devices[name].holdings.links
            )
        got = np.sum([giving.granted(name) for name in giving.requesters], axis=0)
        assert np.allclose(got, holdings.given)
        assert (np.array(holdings.given) <= np.array(holdings.surplus) + 1e-9).all()
