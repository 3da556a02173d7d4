"""The compiled game agrees with the plain equations, and marginal contributions make it an exact potential game."""

from typing import Any

import numpy as np
import pytest

from conftest import config_of, random_slots
from d2dfl import Config, Network
from d2dfl.discovery.equations.reward import Terms
from d2dfl.discovery.evaluation import evaluate, graph_of
from d2dfl.discovery.game import state as game
from d2dfl.discovery.game.board import board_of
from d2dfl.discovery.game.expectations import expected_worth, split_label
from d2dfl.discovery.game.learning import gumbel
from d2dfl.discovery.game.offers import _price
from d2dfl.discovery.game.revisions import _top, _weigh


@pytest.mark.parametrize("edges", [1, 2, 3])
def test_every_change_equals_a_recomputation(config: Config, edges: int) -> None:
    network = Network.generate(config, 5)
    terms = Terms.of(config.reward)
    over_ask = config.reward.threshold_rule == "over-ask"
    board = board_of(network, terms)
    play = game.start(board, terms, edges)
    generator = np.random.default_rng(0)
    value = game.total(board, terms, play)
    for _ in range(150):
        device, edge = int(generator.integers(9)), int(generator.integers(edges))
        slot = int(generator.integers(-1, 8))
        if slot >= 0 and game.taken(play.slots, device, edge, slot):
            continue
        change, _, _ = game.change_link(board, terms, play, device, edge, slot)
        value += change
        worth = evaluate(network, graph_of(network, play.slots, over_ask), config.reward)
        assert np.isclose(value, 9 * worth.objective, atol=1e-9)
        assert np.allclose(play.local, worth.local_rewards, atol=1e-9)
        assert np.allclose(play.used, worth.cluster_use, atol=1e-6)


def test_load_gives_the_same_game_as_step_by_step() -> None:
    config = config_of("best")
    network = Network.generate(config, 1)
    terms = Terms.of(config.reward)
    board = board_of(network, terms)
    slots = random_slots(network, 2, 1)
    play = game.load(board, terms, slots)
    assert (play.slots == slots).all()
    assert np.isclose(
        game.total(board, terms, play),
        9 * evaluate(network, graph_of(network, slots, True), config.reward).objective,
    )


def test_spent_budget_counts_from_the_start() -> None:
    config = config_of("paper")
    network = Network.generate(config, 1)
    terms = Terms.of(config.reward)
    spent = network.budget * 0.5
    free = game.total(board_of(network, terms), terms, game.start(board_of(network, terms), terms, 1))
    board = board_of(network, terms, spent)
    used = game.total(board, terms, game.start(board, terms, 1))
    # ratio rule: half of every budget gone costs gamma * alpha_3 / 2 per device
    assert np.isclose(free - used, 9 * 0.5 * 0.5)


def test_devices_that_share_nobody_may_revise_in_any_order() -> None:
    """Moves at different transmitters commute when no device is touched by both: devices may act in parallel."""
    config = config_of("best", **{"network.devices": 20})
    network = Network.generate(config, 2)
    terms = Terms.of(config.reward)
    board = board_of(network, terms)
    slots = random_slots(network, 1, 4)
    moves = {3: 0, 11: 8}
    ends = [int(network.candidates[d, s]) for d, new in moves.items() for s in (slots[d, 0], new) if s >= 0]
    assert len({*ends, *moves}) == len(ends) + 2
    results = []
    for order in (list(moves), list(reversed(moves))):
        play = game.load(board, terms, slots)
        for device in order:
            game.change_link(board, terms, play, device, 0, moves[device])
        results.append(play.local.copy())
    assert np.array_equal(*results)


@pytest.mark.parametrize("function", [expected_worth, split_label, gumbel, _weigh, _top, _price])
def test_what_a_receiver_does_for_every_choice_counts_no_references(function: Any) -> None:
    """Counting them took two thirds of a discovery with 100 devices: each is an atomic operation."""
    assert function.targetoptions["_nrt"] is False
