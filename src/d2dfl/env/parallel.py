"""The graph-discovery game as a PettingZoo environment (needs the extra `env`).

    from d2dfl import preset
    from d2dfl.env import GraphDiscovery

    env = GraphDiscovery(preset("best"), reward="marginal", steps=100)
    observations, infos = env.reset(seed=0)

The rules are those of `d2dfl.env.vector`, which steps many copies at once; docs/env.md shows both.
"""

import tempfile
import warnings
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from matplotlib.image import imread
from numpy.typing import NDArray

from d2dfl.config import Config
from d2dfl.discovery.evaluation import evaluate
from d2dfl.env.vector import REWARDS, VectorGame
from d2dfl.errors import MissingExtraError, UserError
from d2dfl.network import Network
from d2dfl.network.graph import Graph
from d2dfl.registry import no_such
from d2dfl.report.drawing.picture import draw_graph
from d2dfl.rng import stream

try:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # deprecations inside the packages are not ours to mend
        from gymnasium import spaces
        from pettingzoo import ParallelEnv
except ImportError as error:
    raise MissingExtraError("the environment", "pettingzoo", "env") from error

Observation = dict[str, NDArray[Any]]
Info = dict[str, float]
INFOS = (*REWARDS, "messages", "message_bits")  # what an agent is told about a step


class GraphDiscovery(ParallelEnv):  # type: ignore[misc]  # PettingZoo has no types
    """Every device is an agent that chooses whom to receive from; nobody leaves before the last step.

    An action is a candidate slot, or the number of slots for no link, which is always legal. An action that the mask
    forbids counts as no link. With several links (discovery.edges) a step revises one of them, in turn: an action stays
    one number with one mask, where all links at once would need a mask that depends on the other choices.

    Rewards: "local" is r of the device, "global" the objective J of the network, "marginal" J minus J without the link
    that the device has just chosen (R6). All three are in `infos`, with the messages and bits that the step took.
    """

    metadata: ClassVar[dict[str, Any]] = {"name": "graph_discovery_v0", "render_modes": ["rgb_array"], "render_fps": 1}

    def __init__(
        self,
        config: Config | None = None,
        network: Network | None = None,
        *,
        reward: str = "marginal",
        steps: int = 100,
        render_mode: str | None = None,
    ) -> None:
        if steps < 1:
            raise UserError(f"steps cannot be {steps}: give at least 1")
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise no_such("render_mode", render_mode, "give rgb_array or None")
        self.config = config or Config()
        self.reward, self.steps, self.render_mode = reward, steps, render_mode
        self._fixed = network
        self._seeds = stream(0, "env-seeds")
        self._seed = 0  # of the first reset that names none
        self._begin(0)
        self.possible_agents = [f"device_{number}" for number in range(self.game.devices)]
        self.agents: list[str] = []
        self._done = 0
        self._make_spaces()

    @property
    def network(self) -> Network:
        """The network of the last step; before the first one, as the devices see it now."""
        return self.game.played()

    @property
    def graph(self) -> Graph:
        """The links in force and what would move over them."""
        return self.game.graph()

    def observation_space(self, agent: str) -> spaces.Dict:
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Discrete:
        return self.action_spaces[agent]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Observation], dict[str, Info]]:
        """Start over without links; `options` are not used.

        With a seed, a generated network is `Network.generate(config, seed)`; without one, the next seed is drawn from the
        last one given (at first: 0). A network that was given stays; only a dynamic channel is drawn anew.
        """
        if seed is not None:
            self._seed, self._seeds = seed, stream(seed, "env-seeds")
        self._begin(self._seed)
        self._seed = int(self._seeds.integers(2**31))
        self.agents = list(self.possible_agents)
        self._done = 0
        return self._observations(), {agent: {} for agent in self.agents}

    def step(
        self, actions: dict[str, int]
    ) -> tuple[dict[str, Observation], dict[str, float], dict[str, bool], dict[str, bool], dict[str, Info]]:
        """One synchronous round; after `steps` of them everybody is truncated."""
        if not self.agents:
            raise UserError("the episode is over or has not begun: call reset() first")
        if missing := [agent for agent in self.agents if agent not in actions]:
            raise UserError(f"{missing[0]} has no action: give one for every agent")
        outcome = self.game.step([[actions[agent] for agent in self.agents]])
        self._done += 1
        over = self._done >= self.steps
        columns = (outcome.local, outcome.marginal, outcome.messages, outcome.message_bits)
        shared = float(outcome.objective[0])
        infos = {
            agent: dict(zip(INFOS, (local, shared, marginal, messages, bits), strict=True))
            for agent, local, marginal, messages, bits in zip(
                self.agents, *(column[0].tolist() for column in columns), strict=True
            )
        }
        rewards = {agent: info[self.reward] for agent, info in infos.items()}
        terminations, truncations = dict.fromkeys(self.agents, False), dict.fromkeys(self.agents, over)
        observations = self._observations()
        if over:
            self.agents = []
        return observations, rewards, terminations, truncations, infos

    def state(self) -> NDArray[np.float32]:
        """For a central critic: all observations, then loss probability and trust of every link, device by device."""
        network = self.game.networks[0]
        parts = (self.game.observe().ravel(), network.drop.ravel(), network.trust.ravel())
        return np.concatenate(parts, dtype=np.float32, casting="same_kind")

    def render(self) -> NDArray[np.uint8]:
        """A picture [height, width, 3] of the graph of the last step."""
        if self.render_mode is None:
            raise UserError(
                "there is no picture without a render_mode: make the environment with render_mode='rgb_array'"
            )
        network, graph = self.network, self.graph
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "graph.png"
            draw_graph(network, graph, evaluate(network, graph, self.config.reward), path, title=f"Step {self._done}")
            return np.asarray(255 * imread(path)[:, :, :3]).round().astype(np.uint8)

    def _begin(self, seed: int) -> None:
        network = self._fixed or Network.generate(self.config, seed)
        self.game = VectorGame([network], self.config, reward=self.reward, seed=seed)

    def _make_spaces(self) -> None:
        """A space of its own for every agent: each is seeded on its own."""
        game = self.game
        high = np.ones(game.width, dtype=np.float32)
        low = np.zeros_like(high)
        low[-1] = -1.0  # the last reward
        self.action_spaces = {agent: spaces.Discrete(game.slots + 1) for agent in self.possible_agents}
        self.observation_spaces = {
            agent: spaces.Dict(
                {
                    "observation": spaces.Box(low, high, dtype=np.float32),
                    "action_mask": spaces.Box(0, 1, (game.slots + 1,), dtype=np.int8),
                }
            )
            for agent in self.possible_agents
        }
        links = np.zeros(game.devices * game.slots * (1 + game.partitions), dtype=np.float32)
        lowest = np.concatenate([np.tile(low, game.devices), links])
        self.state_space = spaces.Box(lowest, np.ones_like(lowest), dtype=np.float32)

    def _observations(self) -> dict[str, Observation]:
        seen, masks = self.game.observe()[0], self.game.masks()[0]
        return {
            agent: {"observation": seen[number], "action_mask": masks[number]}
            for number, agent in enumerate(self.agents)
        }
