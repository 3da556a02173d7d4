"""The game for others: its rewards are those of `evaluate`, its messages those of the learners, its interface PettingZoo's."""

from collections.abc import Iterator

import numpy as np
import pytest
from phones import three_phones, worth

from conftest import config_of
from d2dfl import Config, Network, UserError
from d2dfl.discovery.equations.messages import exchange
from d2dfl.discovery.methods import qlearning
from d2dfl.discovery.task import Task
from d2dfl.env.vector import StepOutcome, VectorGame
from d2dfl.network import channel
from networks import clustered


def rounds(game: VectorGame, number: int, seed: int = 0) -> Iterator[tuple[int, StepOutcome]]:
    """Random joint actions, legal or not: the link that each step revises, and what it gave."""
    rng = np.random.default_rng(seed)
    for _ in range(number):
        edge = game.edge
        yield edge, game.step(rng.integers(game.slots + 1, size=(game.copies, game.devices)))


def agrees(game: VectorGame, edge: int, outcome: StepOutcome) -> None:
    """Every number of a step against `evaluate`, with and without each device's link."""
    for copy in range(game.copies):
        network, links = game.played(copy), game.links[copy]
        whole = worth(network, links, game.config)
        assert outcome.objective[copy] == pytest.approx(whole.objective, abs=1e-9)
        np.testing.assert_allclose(outcome.local[copy], whole.local_rewards, atol=1e-9)
        for device in range(game.devices):
            fewer = links.copy()
            fewer[device, edge] = -1
            lost = whole.objective - worth(network, fewer, game.config).objective
            assert outcome.marginal[copy, device] == pytest.approx(lost, abs=1e-9)


@pytest.mark.parametrize("edges", [1, 3])
@pytest.mark.parametrize("dynamic", [False, True])
def test_rewards_are_those_of_evaluate(config: Config, edges: int, dynamic: bool) -> None:
    config = config.with_(**{"discovery.edges": edges, "channel.dynamic": dynamic, "channel.slots": 5})
    game = VectorGame([Network.generate(config, seed) for seed in (1, 2)], config)
    for edge, outcome in rounds(game, 6):
        agrees(game, edge, outcome)
        assert (outcome.marginal[game.links[:, :, edge] < 0] == 0).all()


@pytest.mark.parametrize("edges", [1, 2])
def test_rewards_on_data_clusters(edges: int) -> None:
    config = Config().with_(**{"discovery.edges": edges})
    game = VectorGame([clustered(seed=0), clustered(seed=1)], config)
    for edge, outcome in rounds(game, 6):
        agrees(game, edge, outcome)
        seen = game.observe()
        assert np.abs(seen).max() <= 1.0
        assert (seen[:, :, :-1] >= 0.0).all()


def test_marginal_rewards_differ_as_the_objective_does() -> None:
    """R6: an exact potential game, whoever changes its learner."""
    config = config_of("best", **{"discovery.edges": 1})
    network = Network.generate(config, 4)
    actions = np.random.default_rng(0).integers(9, size=(1, 9))
    for device in range(9):
        other = actions.copy()
        other[0, device] = (other[0, device] + 3) % 9
        one, two = (VectorGame([network], config).step(choice) for choice in (actions, other))
        change = one.marginal[0, device] - two.marginal[0, device]
        assert change == pytest.approx(one.objective[0] - two.objective[0], abs=1e-12)


def test_copies_do_not_know_of_each_other() -> None:
    config = config_of("best", **{"discovery.edges": 2})
    networks = [Network.generate(config, seed) for seed in range(3)]
    together, alone = VectorGame(networks, config), [VectorGame([network], config) for network in networks]
    rng = np.random.default_rng(1)
    for _ in range(5):
        actions = rng.integers(9, size=(3, 9))
        outcome, parts = together.step(actions), [one.step(actions[[at]]) for at, one in enumerate(alone)]
        for column, columns in zip(outcome, zip(*parts, strict=True), strict=True):
            np.testing.assert_array_equal(column, np.concatenate(columns))
        np.testing.assert_array_equal(together.observe(), np.concatenate([one.observe() for one in alone]))
        np.testing.assert_array_equal(together.masks(), np.concatenate([one.masks() for one in alone]))


def test_reset_forgets_everything() -> None:
    config = config_of("best", **{"discovery.edges": 2, "channel.dynamic": True})
    game = VectorGame([Network.generate(config, 0)], config, seed=3)
    first = [game.observe()] + [game.observe() for _ in rounds(game, 3)]
    game.reset(3)
    again = [game.observe()] + [game.observe() for _ in rounds(game, 3)]
    np.testing.assert_array_equal(first, again)
    game.reset(4)
    assert (game.observe() != first[0]).any()


def test_an_observation_by_hand() -> None:
    config = Config().with_(**{"discovery.edges": 1, "channel.levels": 4})
    game = VectorGame([three_phones()], config, reward="local")
    np.testing.assert_array_equal(game.masks()[0], [[1, 1, 1], [1, 0, 1], [1, 0, 1]])
    first = game.observe()[0]
    held = [[70 / 80, 10 / 80], [10 / 64, 54 / 64], [40 / 50, 10 / 50]]
    np.testing.assert_allclose(first[:, :2], held, rtol=1e-6)
    np.testing.assert_allclose(first[:, 2:4], [[0, 2 / 3], [2 / 3, 0], [0, 2 / 3]], rtol=1e-6)
    # What arrives goes from 0.5 to 1: losses of 0.5, 0.2, 0.3 and 0 are on levels 1, 3, 2 and 4 of 4.
    np.testing.assert_allclose(first[:, 4:6], [[1 / 4, 3 / 4], [2 / 4, 0], [1, 0]])
    assert (first[:, 6:] == 0).all()
    outcome = game.step([[0, 2, 0]])
    seen = game.observe()[0]
    np.testing.assert_array_equal(seen[:, :6], first[:, :6])
    np.testing.assert_array_equal(seen[:, 6:8], [[1, 0], [0, 0], [1, 0]])
    np.testing.assert_allclose(seen[:, 8:10], [[0, 1], [0, 0], [0, 1]])  # both ask device 1 for all they lack
    # Device 0 over-asks for 40, device 2 for 20, and device 1 has 24 to spare: 24 / 60 for both.
    np.testing.assert_allclose(seen[:, 10:12], [[0, 0.4], [0, 0], [0, 0.4]], rtol=1e-6)
    np.testing.assert_allclose(seen[:, 12], outcome.local[0] / (1 + np.abs(outcome.local[0])), rtol=1e-6)
    game.step([[1, 1, 2]])  # 1 keeps partition 1 from device 0; slot 1 of device 1 is padding: no link
    np.testing.assert_array_equal(game.links[0, :, 0], [1, -1, -1])
    assert (game.observe()[0, :, 8:12] == 0).all()


def test_masks_follow_the_links_in_turn() -> None:
    config = config_of("best", **{"discovery.edges": 2, "channel.slots": 4})
    game = VectorGame([Network.generate(config, 0)], config)
    assert (game.masks() == 1).all()
    game.step(np.zeros((1, 9), dtype=int))
    np.testing.assert_array_equal(game.masks()[0], np.tile([0, 1, 1, 1, 1], (9, 1)))
    game.step(np.zeros((1, 9), dtype=int))  # forbidden: no link
    np.testing.assert_array_equal(game.links[0], np.tile([0, -1], (9, 1)))
    assert (game.masks() == 1).all()  # the first link is revised: its slot is free
    game.step(np.full((1, 9), 4))
    assert (game.links == -1).all()


def test_a_dynamic_channel_shows_the_powers_of_the_next_step() -> None:
    config = config_of("best", **{"discovery.edges": 1, "channel.dynamic": True, "channel.levels": 8})
    game = VectorGame([Network.generate(config, 0)], config)
    seen = set()
    for _ in rounds(game, 3):
        assert game.played() is not game.networks[0]
        shown = game.observe()[0, :, 12:20]
        agrees(game, 0, game.step(np.zeros((1, 9), dtype=int)))
        np.testing.assert_allclose(shown, (channel.quantise(game.played().rss, config.channel) + 1) / 8, rtol=1e-6)
        seen.add(shown.tobytes())
    assert len(seen) == 3


@pytest.mark.parametrize("reward", ["local", "global"])
def test_messages_of_a_round_are_those_of_the_papers_learner(reward: str) -> None:
    for config, network in (
        (config_of("paper"), Network.generate(config_of("paper"), 0)),
        (Config().with_(**{"discovery.edges": 1}), clustered()),
    ):
        game = VectorGame([network], config, reward=reward)
        spent = [(outcome.messages.sum(), outcome.message_bits.sum()) for _, outcome in rounds(game, 5)]
        assert np.sum(spent, axis=0) == pytest.approx(qlearning.cost(Task(network, config, 0), 5))


def test_a_marginal_reward_costs_what_a_quote_costs() -> None:
    config = config_of("best", **{"discovery.edges": 1, "network.trust": "full", "channel.slots": 3})
    network = Network.generate(config, 0)
    game = VectorGame([network], config)
    total, settings = 0, config.discovery
    for _, outcome in rounds(game, 10):
        links = game.links[0]
        before = exchange(network, links, True).allocated.sum(axis=1)
        for device in range(9):
            fewer = links.copy()
            fewer[device] = -1
            moved = np.abs(exchange(network, fewer, True).allocated.sum(axis=1) - before).max(axis=1) > 1e-12
            linked = links[device, 0] >= 0
            moved[[device, network.candidates[device, links[device, 0]]]] = False
            others = int(moved.sum()) if linked else 0
            assert outcome.messages[0, device] == 4 + 2 * others
            bits = (3 + others) * 6 * settings.count_bits + (2 + 2 * linked + 3 * others) * settings.real_bits
            assert outcome.message_bits[0, device] == bits
            total += others
    assert total >= 20


def test_a_marginal_reward_on_data_clusters_takes_sums() -> None:
    """Each device whose share changes tells its sums too: 11 numbers with 2 components."""
    config = Config().with_(**{"discovery.edges": 1})
    one, two = (VectorGame([clustered()], config, reward=reward) for reward in ("local", "marginal"))
    for (_, local), (_, marginal) in zip(rounds(one, 10), rounds(two, 10), strict=True):
        others = (marginal.messages - local.messages) / 2
        reals = 2 * (two.links[:, :, 0] >= 0) + (3 + 11) * others
        np.testing.assert_array_equal(marginal.message_bits - local.message_bits, 3 * 16 * others + 32 * reals)


def test_other_links_are_asked_again() -> None:
    config = config_of("best", **{"discovery.edges": 3})
    game = VectorGame([Network.generate(config, 0)], config, reward="local")
    actions = iter(np.array([[0], [1], [2], [8]]).repeat(9, axis=1))
    for kept in (0, 1, 2, 2):  # links beside the one that the step revises
        assert (game.step([next(actions)]).messages == 4 + 2 * kept).all()


def test_bad_input_is_one_sentence() -> None:
    config = config_of("best")
    network = Network.generate(config, 0)
    game = VectorGame([network], config)
    lonely = Network.generate(config.with_(**{"network.devices": 1}), 0)
    other = Network.generate(config.with_(**{"network.devices": 5}), 0)
    for make, words in (
        (lambda: VectorGame([network], config, reward="team"), "local, global, marginal"),
        (lambda: VectorGame([], config), "at least one"),
        (lambda: VectorGame([lonely], config), "no device hears"),
        (lambda: VectorGame([network, other], config), "differ in shape"),
        (lambda: VectorGame([network], config.with_(**{"discovery.action": "partition"})), "discovery.action=device"),
        (lambda: game.step([[0] * 8]), "[1, 9]"),
        (lambda: game.step([[0.5] * 9]), "whole numbers"),
        (lambda: game.step([[9] * 9]), "0 to 8"),
        (lambda: game.step([[-1] * 9]), "0 to 8"),
    ):
        with pytest.raises(UserError) as caught:
            make()
        assert words in str(caught.value)
