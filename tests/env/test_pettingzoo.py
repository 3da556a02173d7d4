"""The game as an environment of PettingZoo."""

import importlib.util
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from phones import three_phones, worth

from conftest import config_of
from d2dfl import Config, Network, UserError
from d2dfl.env.vector import REWARDS, VectorGame
from d2dfl.errors import MissingExtraError

needs_pettingzoo = pytest.mark.skipif(
    importlib.util.find_spec("pettingzoo") is None, reason="no PettingZoo: pip install 'd2dfl[env]'"
)
PAGE = Path(__file__).parents[2] / "docs" / "env.md"


def environment(*arguments: Any, **settings: Any) -> Any:
    from d2dfl.env import GraphDiscovery

    return GraphDiscovery(*arguments, **settings)


def test_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pettingzoo", None)
    for name in ("d2dfl.env", "d2dfl.env.parallel"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    with pytest.raises(MissingExtraError, match=r"pip install 'd2dfl\[env\]'"):
        importlib.import_module("d2dfl.env")


@needs_pettingzoo
@pytest.mark.parametrize("edges", [1, 3])
@pytest.mark.parametrize("dynamic", [False, True])
def test_pettingzoos_own_checks(edges: int, dynamic: bool) -> None:
    from pettingzoo.test import parallel_api_test, parallel_seed_test

    config = config_of("best", **{"discovery.edges": edges, "channel.dynamic": dynamic, "channel.slots": 5})
    parallel_api_test(environment(config, steps=20), 50)
    parallel_seed_test(lambda: environment(config, steps=20), 50)


def episode(env: Any, seed: int | None, actions: int) -> list[Any]:
    """Everything that an episode of random legal actions shows."""
    rng = np.random.default_rng(actions)
    seen, infos = env.reset(seed=seed)
    told = [seen, infos, env.state()]
    while env.agents:
        agents = env.agents
        assert list(seen) == agents
        assert all(env.observation_space(agent).contains(seen[agent]) for agent in agents)
        assert env.state_space.contains(env.state())
        chosen = {agent: int(rng.choice(np.flatnonzero(seen[agent]["action_mask"]))) for agent in agents}
        assert all(env.action_space(agent).contains(chosen[agent]) for agent in agents)
        seen, *rest = env.step(chosen)
        told += [seen, *rest, env.state()]
    assert all(env.observation_space(agent).contains(seen[agent]) for agent in env.possible_agents)
    return told


@needs_pettingzoo
@pytest.mark.parametrize("dynamic", [False, True])
def test_the_same_seed_gives_the_same_episode(dynamic: bool) -> None:
    from gymnasium.utils.env_checker import data_equivalence

    config = config_of("best", **{"discovery.edges": 2, "channel.dynamic": dynamic, "channel.slots": 5})
    env = environment(config, steps=6)
    first, following = episode(env, 3, 0), episode(env, None, 0)
    assert data_equivalence(first, episode(env, 3, 0))
    assert data_equivalence(following, episode(env, None, 0))
    assert not data_equivalence(first, following)  # a network of its own
    assert not data_equivalence(first, episode(env, 4, 0))


@needs_pettingzoo
@pytest.mark.parametrize("reward", REWARDS)
def test_steps_show_the_game(reward: str) -> None:
    config = config_of("best", **{"discovery.edges": 1})
    env = environment(config, reward=reward, steps=3)
    observations, infos = env.reset(seed=7)
    game = VectorGame([Network.generate(config, 7)], config, reward=reward)
    np.testing.assert_array_equal(env.network.counts, game.networks[0].counts)
    assert env.agents == [f"device_{number}" for number in range(9)]
    assert infos == {agent: {} for agent in env.agents}
    rng = np.random.default_rng(0)
    for step in range(3):
        agents, actions = env.agents, rng.integers(9, size=9)
        outcome = game.step([actions])
        observations, rewards, terminations, truncations, infos = env.step(dict(zip(agents, actions, strict=True)))
        assert not any(terminations.values())
        assert list(truncations.values()) == [step == 2] * 9
        for number, agent in enumerate(agents):
            parts = {
                "local": outcome.local[0, number],
                "global": outcome.objective[0],
                "marginal": outcome.marginal[0, number],
                "messages": outcome.messages[0, number],
                "message_bits": outcome.message_bits[0, number],
            }
            assert infos[agent] == parts
            assert rewards[agent] == parts[reward]
            np.testing.assert_array_equal(observations[agent]["observation"], game.observe()[0, number])
            np.testing.assert_array_equal(observations[agent]["action_mask"], game.masks()[0, number])
    assert env.agents == []
    assert worth(env.network, env.graph.slots, config).objective == pytest.approx(infos["device_0"]["global"])
    env.close()


@needs_pettingzoo
def test_a_given_network_stays() -> None:
    network = three_phones()
    env = environment(Config(), network, steps=1)
    for seed in (1, 2, None):
        env.reset(seed=seed)
        assert env.network is network


@needs_pettingzoo
def test_a_picture() -> None:
    config = config_of("best")
    env = environment(config, render_mode="rgb_array")
    env.reset(seed=0)
    empty = env.render()
    env.step(dict.fromkeys(env.agents, 0))
    picture = env.render()
    assert picture.dtype == np.uint8
    assert picture.ndim == 3
    assert picture.shape[2] == 3
    assert picture.shape != empty.shape or (picture != empty).any()


@needs_pettingzoo
def test_bad_input_to_the_environment() -> None:
    config = config_of("best")
    env = environment(config)
    with pytest.raises(UserError, match="call reset"):
        env.step({})
    env.reset()
    for make, words in (
        (lambda: environment(config, reward="team"), "local, global, marginal"),
        (lambda: environment(config, steps=0), "at least 1"),
        (lambda: environment(config, render_mode="human"), "rgb_array"),
        (lambda: environment(config.with_(**{"network.devices": 1})), "no device hears"),
        (lambda: env.step({"device_0": 0}), "device_1 has no action"),
        (env.render, "render_mode='rgb_array'"),
    ):
        with pytest.raises(UserError) as caught:
            make()
        assert words in str(caught.value)


@needs_pettingzoo
def test_the_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    blocks = PAGE.read_text(encoding="utf-8").split("```python\n")[1:]
    for block in blocks:
        exec(block.split("```")[0], {})
    assert len(blocks) == 2
    assert "objective" in capsys.readouterr().out
