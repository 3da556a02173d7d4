"""What methods take in memory and time, from shapes alone, without the compiler (benchmarks/needs.py measures it).

A method's work is split into kinds, each with its cost in seconds; `layout` is always the first of them: the network laid
out for compiled code.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from d2dfl.config import Config
from d2dfl.config.needs import POINTS, NetworkShape

# What work is counted by and methods go by; here, because a method's own file loads the compiler.
EXACT_DEVICES = 12  # beyond, branch and bound has no chance
STEPS = 128  # of Adam in an epoch at most: many systems are trained on in batches
INTRODUCTIONS = 0.1  # share of a budget of messages that introductions may cost


@dataclass(frozen=True)
class Game:
    """The shapes that a method's work is counted in."""

    devices: float
    slots: float
    partitions: float
    edges: int
    at_once: int  # links that are chosen at once
    clusters: float  # numbers of the data clusters of a device; 0: partitions are labels

    @classmethod
    def of(cls, shape: NetworkShape, edges: int, at_once: int) -> "Game":
        clusters = float(shape.partitions) * shape.components**2
        return cls(float(shape.devices), float(shape.slots), float(shape.partitions), edges, at_once, clusters)

    @property
    def stages(self) -> int:
        return self.edges // self.at_once

    @property
    def links(self) -> float:
        return self.devices * self.slots

    @property
    def pairs(self) -> float:
        return self.links * self.edges


def layout(game: Game, shape: NetworkShape) -> float:
    """Numbers that are laid out for compiled code; data clusters take points that stand for them."""
    points = POINTS * (shape.components**2 + game.partitions * shape.components) / 4
    return game.stages * game.links * game.partitions * (1.0 + points)


def _no_work(config: Config, game: Game) -> tuple[float, ...]:
    return ()


def _no_bytes(config: Config, whole: NetworkShape, shape: NetworkShape) -> float:
    return 0.0


@dataclass(frozen=True)
class Costs:
    """Kinds of work beyond the layout, seconds of each (the layout's first), and bytes beyond the game's own."""

    seconds: tuple[float, ...]
    work: Callable[[Config, Game], tuple[float, ...]] = _no_work
    more_bytes: Callable[[Config, NetworkShape, NetworkShape], float] = (
        _no_bytes  # given the network's shape, and as it is acted in
    )
    advice: str = ""  # how it could take less memory


def _marginal_work(config: Config, game: Game) -> tuple[float, ...]:
    return _revisions(config.marginal.messages, game)


def _revisions(messages: int, game: Game) -> tuple[float, ...]:
    """The work of our learner: messages, candidates looked at for them, and data clusters computed again."""
    # With several links one revision takes more of them.
    spent = float(messages) * game.devices * game.stages * math.sqrt(game.at_once)
    known = min(game.slots, max(1.0, INTRODUCTIONS * messages * game.at_once))
    return spent, spent * known * game.partitions, spent * game.clusters


def _label_tables(config: Config, whole: NetworkShape, shape: NetworkShape) -> float:
    """Which labels meet: tables of all pairs of them."""
    return 0.0 if shape.components else 48.0 * float(whole.partitions) ** 2


def _marginal_bytes(config: Config, whole: NetworkShape, shape: NetworkShape) -> float:
    """What transmitters have told about every link, and which labels meet."""
    told = 0.0 if shape.components else 32.0 * shape.devices * config.discovery.edges * shape.partitions
    return told + _label_tables(config, whole, shape)


def _steps_work(steps: int, search: float, game: Game) -> tuple[float, ...]:
    rounds = game.devices * game.stages * float(steps)
    return rounds, rounds * search, rounds * game.partitions, rounds * game.clusters


def _qlearning_work(config: Config, game: Game) -> tuple[float, ...]:
    actions = game.slots + 1.0
    return _steps_work(config.qlearning.steps, actions if config.channel.dynamic else math.sqrt(actions), game)


def _qlearning_bytes(config: Config, whole: NetworkShape, shape: NetworkShape) -> float:
    settings, links, devices = config.qlearning, float(shape.devices) * shape.slots, float(shape.devices)
    if config.channel.dynamic:
        rows = settings.steps + 1 if settings.state == "vector" else config.channel.levels
        return 12.0 * rows * (links + devices)
    logged = settings.steps if settings.steps > settings.buffer else 0
    return 28.0 * links + devices * (12.0 * logged + 8.0 * min(settings.buffer, settings.steps))


def _bandit_work(config: Config, game: Game) -> tuple[float, ...]:
    return _steps_work(config.bandit.steps, game.slots + 1.0, game)


def _bandit_bytes(config: Config, whole: NetworkShape, shape: NetworkShape) -> float:
    return 40.0 * shape.devices * shape.slots


def _greedy_work(config: Config, game: Game) -> tuple[float, ...]:
    return game.pairs, game.pairs * game.partitions, game.pairs * game.clusters


def _heap(config: Config, whole: NetworkShape, shape: NetworkShape) -> float:
    """A heap of Python's own numbers."""
    return 120.0 * shape.devices * shape.slots


def sweep_effort(slots: float, at_once: int, clustered: bool) -> float:
    """How many sweeps of an annealing stand for one.

    One sweep proposes one slot per link, so with more candidates it takes more sweeps to see as many of them. With
    several links a sweep is longer, and data clusters make each proposal about ten times as dear.
    """
    return max(1.0, slots / 24) / at_once / (10.0 if clustered else 1.0)


def exact_nodes(nodes: int, devices: int, slots: int, at_once: int, clustered: bool) -> float:
    """Links that branch and bound changes at most; 0 where it has no chance with so many nodes, and is not begun.

    With one link at once bounds spare it most graphs. Bounds of sets of links spare it little: there must be few graphs.
    """
    if devices > EXACT_DEVICES:
        return 0.0
    if at_once == 1:
        return float(nodes)
    sets = sum(math.comb(slots, size) for size in range(min(at_once, slots) + 1))
    changes = devices * math.log(sets) + math.log(at_once)
    return math.exp(changes) if changes <= math.log(nodes) and not clustered else 0.0


def _optimum_work(config: Config, game: Game) -> tuple[float, ...]:
    settings = config.optimum
    effort = sweep_effort(game.slots, game.at_once, bool(game.clusters))
    proposals = settings.starts * max(1.0, settings.sweeps * effort) * game.devices * game.edges
    proposals += 4.0 * (settings.starts + 2) * game.pairs
    nodes = exact_nodes(settings.nodes, int(game.devices), int(game.slots), game.at_once, bool(game.clusters))
    exact = nodes * game.stages
    greedy = _greedy_work(config, game)
    return *_revisions(settings.messages, game), *greedy, proposals, proposals * game.partitions, exact


def _optimum_bytes(config: Config, whole: NetworkShape, shape: NetworkShape) -> float:
    return _label_tables(config, whole, shape) + _heap(config, whole, shape)


def _distances(config: Config, whole: NetworkShape, shape: NetworkShape) -> float:
    """Bytes of the distance to every candidate, and of the numbers that order equal ones."""
    return 40.0 * shape.devices * shape.slots


def _gcn_work(config: Config, game: Game) -> tuple[float, ...]:
    systems, epochs = float(config.gcn.systems), float(config.gcn.epochs)
    steps, links = epochs * min(systems, float(STEPS)), game.stages * game.links
    return systems, systems * game.partitions, steps, epochs * systems, links


def _gcn_bytes(config: Config, whole: NetworkShape, shape: NetworkShape) -> float:
    return 150.0 * shape.devices * shape.slots


MARGINAL = Costs((1.9e-08, 6.3e-06, 3.6e-09, 2e-08), _marginal_work, _marginal_bytes)
QLEARNING = Costs(
    (2.4e-08, 5.2e-07, 0, 0, 2.8e-08),
    _qlearning_work,
    _qlearning_bytes,
    ", or fewer steps with --set qlearning.steps=1000",
)
BANDIT = Costs((1.4e-08, 3.2e-07, 3.8e-09, 4.3e-10, 9.1e-08), _bandit_work, _bandit_bytes)
CLOSEST = Costs((1.3e-08,), more_bytes=_distances)
MOST_TRUSTED = Costs((1.1e-08,))
UNIFORM = Costs((9.6e-09,))
NONE = Costs((4.9e-09,))
GREEDY = Costs((1.8e-08, 1.8e-05, 2e-07, 1.2e-07), _greedy_work, _heap)
OPTIMUM = Costs((0, 6.4e-06, 3.7e-09, 0, 8.9e-05, 0, 1.4e-06, 3.1e-06, 2.3e-08, 3.7e-06), _optimum_work, _optimum_bytes)
GCN = Costs((3e-07, 0.036, 0.00017, 0.0034, 0, 0), _gcn_work, _gcn_bytes)
