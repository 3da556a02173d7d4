"""The graph-discovery game for learners of one's own, in arrays: many copies are stepped with one call.

`d2dfl.env.GraphDiscovery` is one copy of it behind PettingZoo's interface; this module needs no extra.

A step is a synchronous round: every device chooses the transmitter behind one of its candidate slots, or no link, and
Algorithm 1 (or 2) says what would move. Nothing does move: the exchange comes after the game. With E links a device
revises one of them a step, in turn, and keeps the others. So an action is always one number with one mask, which every
learner can handle; choosing all E at once would need (slots + 1)^E joint choices, most of them the same up to order.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from d2dfl.compiled import kernel, part
from d2dfl.config import ChannelConfig, Config
from d2dfl.discovery.changing_channel import at_exchange
from d2dfl.discovery.equations.reward import OVER_ASK, total_reward
from d2dfl.discovery.evaluation import graph_of
from d2dfl.discovery.game.cluster_revisions import reals_in_sums
from d2dfl.discovery.game.rewards import agreement_in
from d2dfl.discovery.game.state import NO_LINK, set_link, start
from d2dfl.discovery.methods.qlearning import cost
from d2dfl.discovery.task import Task
from d2dfl.errors import UserError
from d2dfl.network import Network, channel
from d2dfl.network.graph import Graph
from d2dfl.registry import entry_named
from d2dfl.rng import stream

REWARDS = ("local", "global", "marginal")  # r, J, and J minus J without the link just chosen
Array = NDArray[np.float64]


class StepOutcome(NamedTuple):
    """What a step was worth and what it took, per copy and device."""

    reward: Array  # [copy, device] of the kind that the game was made with
    local: Array  # [copy, device] r
    objective: Array  # [copy] J, the global reward of every device of the copy
    marginal: Array  # [copy, device] J minus J without the link that the device has just chosen (R6)
    messages: Array  # [copy, device]
    message_bits: Array  # [copy, device]


class VectorGame:
    """Copies of the game on networks of one shape."""

    def __init__(
        self, networks: Sequence[Network], config: Config | None = None, *, reward: str = "marginal", seed: int = 0
    ) -> None:
        self.config = config or Config()
        self.reward = reward
        _check(networks, self.config, reward)
        self.networks = list(networks)  # as the devices see them now
        first = networks[0]
        self.devices, self.slots, self.partitions = first.devices, first.slots, first.partitions
        self.edges = self.config.discovery.edges
        tasks = [Task(network, self.config, seed) for network in networks]
        self._terms = tasks[0].terms
        self._boards = [task.board() for task in tasks]
        self._heard = np.stack([network.candidates >= 0 for network in networks])
        held = np.stack([network.counts for network in networks])
        need = np.stack([network.need for network in networks])
        # Held: share of the device's own data. Lacking: share of the threshold, or of request and counts (clusters).
        self._held = held / np.maximum(held.sum(axis=2, keepdims=True), 1.0)
        self._lacking = need / np.maximum(need + held, 1e-300)
        messages, bits = cost(tasks[0], 1)
        self._fee = messages / self.devices, bits / self.devices
        self.reset(seed)

    @property
    def copies(self) -> int:
        return len(self.networks)

    @property
    def width(self) -> int:
        """Numbers in an observation."""
        return 4 * self.partitions + 2 * self.slots + 1

    def reset(self, seed: int = 0) -> None:
        """No links, nothing told yet; on a dynamic channel powers are drawn anew from the seed."""
        self._rng = stream(seed, "env")
        self.links = np.full((self.copies, self.devices, self.edges), NO_LINK, dtype=np.int32)
        self.edge = 0  # the link that the next step revises
        self._told = np.zeros((self.copies, self.devices, 2 * self.partitions))
        self._last = np.zeros((self.copies, self.devices))
        self._draw_channel()
        self._played = list(self.networks)
        self._plays = [start(board, self._terms, self.edges) for board in self._boards]

    def step(self, actions: ArrayLike) -> StepOutcome:
        """One round of every copy. actions[copy, device]: a slot, or `slots` for no link.

        An action that its mask forbids counts as no link.
        """
        self.links[:, :, self.edge] = self._chosen(actions)
        shape = (self.copies, self.devices)
        local, marginal, others = np.empty(shape), np.empty(shape), np.empty(shape)
        objective = np.empty(self.copies)
        for copy, (board, play) in enumerate(zip(self._boards, self._plays, strict=True)):
            arrays = self.links[copy], self.edge, local[copy], marginal[copy], others[copy], self._told[copy]
            objective[copy] = _round(board, self._terms, play, *arrays)
        messages, bits = self._charge(others)
        shared = np.repeat(objective[:, None], self.devices, axis=1)
        reward = dict(zip(REWARDS, (local, shared, marginal), strict=True))[self.reward]
        self._last = reward.copy()  # a learner may scale its rewards in place
        self.edge = (self.edge + 1) % self.edges
        self._played = list(self.networks)
        if self.config.channel.dynamic:
            self._draw_channel()
            self._plays = [start(board, self._terms, self.edges) for board in self._boards]
        return StepOutcome(reward, local, objective, marginal, messages, bits)

    def observe(self) -> NDArray[np.float32]:
        """observation[copy, device, number]: what each device knows itself or was told, all from 0 to 1 but the last.

        In this order: counts as shares of its data [L]; what it lacks as shares of its threshold [L]; level of the
        received power of each slot, 0 for padding [S]; its links in force [S]; what it asked over the link of the last
        step and what it was allocated there, both as shares of what it lacks [L, L]; its last reward x as x / (1 + |x|).
        """
        linked = np.zeros((self.copies, self.devices, self.slots + 1))
        np.put_along_axis(linked, self.links, 1.0, axis=2)  # no link, -1, lands behind the slots
        reward = (self._last / (1.0 + np.abs(self._last)))[:, :, None]
        parts = (self._held, self._lacking, self._strength, linked[:, :, :-1], self._told, reward)
        return np.concatenate(parts, axis=2, dtype=np.float32, casting="same_kind")

    def masks(self) -> NDArray[np.int8]:
        """mask[copy, device, action]: 0 for padded slots and for slots that another link of the device uses."""
        legal = np.ones((self.copies, self.devices, self.slots + 1), dtype=np.int8)
        legal[:, :, :-1] = self._heard
        np.put_along_axis(legal, np.delete(self.links, self.edge, axis=2), 0, axis=2)
        legal[:, :, -1] = 1
        return legal

    def graph(self, copy: int = 0) -> Graph:
        """The graph of the last step, for `evaluate`, `draw_graph` and exports, on the network that `played` gives."""
        return graph_of(self.played(copy), self.links[copy], self._terms.rule == OVER_ASK)

    def played(self, copy: int = 0) -> Network:
        """The network at the moment of the last step; on a dynamic channel `networks` has moved on since."""
        return self._played[copy]

    def _chosen(self, actions: ArrayLike) -> NDArray[np.int32]:
        wanted = np.asarray(actions)
        if wanted.shape != (self.copies, self.devices) or wanted.dtype.kind not in "iu":
            raise UserError(
                f"actions are {wanted.dtype} of shape {wanted.shape}: give whole numbers of shape [{self.copies}, {self.devices}]"
            )
        if wanted.min() < 0 or wanted.max() > self.slots:
            raise UserError(f"actions go from {wanted.min()} to {wanted.max()}: give 0 to {self.slots} (no link)")
        legal = np.take_along_axis(self.masks(), wanted[:, :, None], axis=2)[:, :, 0] > 0
        return np.where(legal & (wanted < self.slots), wanted, NO_LINK).astype(np.int32)

    def _charge(self, others: Array) -> tuple[Array, Array]:
        """Messages and bits of the last step, per copy and device.

        A round costs what it costs the paper's learner (V, Q, U, one broadcast), and a new Q and U at each other link,
        whose part of the need changes. A marginal reward also takes what a quote of our learner takes: U as it would be
        to each of the `others` whose share the link changes, three numbers back, two to the device over each link.
        """
        settings, partitions = self.config.discovery, self.partitions
        links = (self.links >= 0).sum(axis=2)
        kept = links - (self.links[:, :, self.edge] >= 0)
        messages, counts, reals = 2.0 * kept, 2.0 * kept * partitions, np.zeros(kept.shape)
        if self.reward == "marginal":
            answer = 3 + (reals_in_sums(self._plays[0].shape) if self._terms.agreement != 0.0 else 0)
            messages, counts = messages + 2.0 * others, counts + others * partitions
            reals = 2.0 * links + answer * others
        bits = counts * settings.count_bits + reals * settings.real_bits
        return self._fee[0] + messages, self._fee[1] + bits

    def _draw_channel(self) -> None:
        settings = self.config.channel
        if settings.dynamic:
            seeds = self._rng.integers(2**63, size=self.copies).tolist()
            self.networks = [at_exchange(one, settings, seed) for one, seed in zip(self.networks, seeds, strict=True)]
            self._boards = [
                board._replace(drop=network.drop) for board, network in zip(self._boards, self.networks, strict=True)
            ]
        self._strength = np.stack([_strength(network, settings) for network in self.networks])


def _check(networks: Sequence[Network], config: Config, reward: str) -> None:
    entry_named("reward", reward, dict.fromkeys(REWARDS))
    if config.discovery.action != "device":
        raise UserError("the game's actions are devices: take discovery.action=device")
    if not networks:
        raise UserError("there is no network to play on: give at least one")
    shapes = {(network.trust.shape, network.centroids is None) for network in networks}
    if len(shapes) > 1:
        raise UserError("the networks differ in shape: give networks of as many devices, slots and partitions each")
    for network in networks:
        if not (network.candidates >= 0).any():
            raise UserError("no device hears any other: give a network with at least one candidate")


def _strength(network: Network, settings: ChannelConfig) -> Array:
    """[device, slot] (level + 1) / levels of the received power; 0 for padding."""
    heard, power = network.candidates >= 0, network.rss
    if power is None or (settings.kind == "physical" and not settings.dynamic):
        # Watts, or losses alone, are not on the configured grid: what arrives is, from the network's worst to its best.
        power = 1.0 - network.drop
        settings = replace(settings, lowest=float(power[heard].min()), highest=float(power[heard].max()) + 1e-12)
    return np.where(heard, (channel.quantise(power, settings) + 1.0) / settings.levels, 0.0)


@kernel
def _round(
    board: Any, terms: Any, play: Any, links: Any, edge: Any, local: Any, marginal: Any, others: Any, words: Any
) -> Any:
    """Put all links in force and say what that is worth; returns the objective and fills the last four arrays."""
    devices, edges = links.shape
    for device in range(devices):
        for number in range(edges):
            set_link(board, terms, play, device, number, np.int64(links[device, number]))
    # Not local[:] = …: that takes the compiler a second, for the sentence about a wrong shape.
    for device in range(devices):
        local[device] = play.local[device]
    agreement = agreement_in(play.shape)
    whole = total_reward(terms, play.local, agreement, board.members, board.budget, play.used)
    objective = whole / devices
    _tell(board, terms, play, edge, words)
    for device in range(devices):  # R6: what the objective loses without the device's link, and to whom it matters
        change, touched, _ = set_link(board, terms, play, device, edge, NO_LINK)
        set_link(board, terms, play, device, edge, np.int64(links[device, edge]))
        marginal[device], others[device] = -change / devices, touched
    return objective


@part
def _tell(board: Any, terms: Any, play: Any, edge: Any, words: Any) -> None:
    """Q and U of one link of each device, as shares of what the device lacks, before losses are allowed for."""
    devices, partitions = board.counts.shape
    words[:] = 0.0
    for device in range(devices):
        slot = play.slots[device, edge]
        if slot < 0:
            continue
        arrives = 1.0 - board.drop[device, slot] if terms.rule == OVER_ASK and not terms.clustered else 1.0
        for label in range(partitions):
            if play.request[device, edge, label] > 0.0:
                asked = min(play.request[device, edge, label] * arrives / board.need[device, label], 1.0)
                words[device, label] = asked
                words[device, partitions + label] = asked * play.share[board.candidates[device, slot], label]
