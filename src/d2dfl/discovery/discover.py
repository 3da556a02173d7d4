"""The registry of methods, and `discover`: network in, graph out."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from d2dfl.config import Config
from d2dfl.discovery.equations.worth import clusters_after
from d2dfl.discovery.evaluation import Evaluation, evaluate, graph_of, joined, outside_requests
from d2dfl.discovery.methods import bandit, dynamic, greedy, marginal, optimum, qlearning, rules
from d2dfl.discovery.task import LinkChoice, Progress, Task, silent
from d2dfl.errors import UserError
from d2dfl.needs import check_discovery
from d2dfl.network import Network
from d2dfl.network.graph import Graph

NEGOTIATION = 3  # V, Q and U over each final link, whatever the method


@dataclass(frozen=True)
class Method:
    """One way to find the graph."""

    name: str
    title: str
    find: Callable[[Task], LinkChoice]
    joint: bool  # can choose several links per device at once
    summary: str
    learns: bool = True  # chooses by rewards; rules look at links alone


def _gcn(task: Task) -> LinkChoice:
    from d2dfl.discovery.methods import gcn  # imports torch-geometric: seconds

    return gcn.find(task)


METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method(
            "marginal",
            "Marginal (ours)",
            marginal.find,
            True,
            "log-linear learning on marginal contributions",
        ),
        Method(
            "qlearning",
            "Q-learning (paper)",
            qlearning.find,
            False,
            "the paper's learner: softmax over mean rewards",
        ),
        Method("closest", "Closest", rules.closest, False, "the most reliable link", learns=False),
        Method(
            "most-trusted",
            "Most trusted",
            rules.most_trusted,
            False,
            "the transmitter that trusts with most partitions",
            learns=False,
        ),
        Method("uniform", "Uniform", rules.uniform, False, "a random candidate", learns=False),
        Method("none", "No exchange", rules.none, False, "no link at all", learns=False),
        Method("gcn", "GCN", _gcn, False, "a graph network at a server (needs the extra gcn)", learns=False),
        Method("bandit", "Bandit", bandit.find, False, "UCB1 or EXP3 per device on the paper's reward"),
        Method("greedy", "Greedy (central)", greedy.find, True, "a server adds the best link until none gains"),
        Method(
            "optimum",
            "Optimum (reference)",
            optimum.find,
            True,
            "branch and bound, or multi-start search, with full knowledge",
        ),
    )
}


@dataclass(frozen=True)
class Discovery:
    """A graph, what it is worth, and what it took to find it."""

    method: str
    seed: int
    config: Config
    network: Network
    graph: Graph
    evaluation: Evaluation
    messages: float
    message_bits: float
    steps: int
    seconds: float
    upper_bound: float | None
    proven: bool

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values, for JSON."""
        worth = self.evaluation
        return {
            "method": self.method,
            **self.graph.to_dict(),
            "counts_before": self.network.counts.tolist(),
            "counts_after": worth.counts_after.tolist(),
            "objective": worth.objective,
            "objective_no_exchange": worth.no_exchange,
            "upper_bound": self.upper_bound,
            "proven_optimal": self.proven,
            "local_rewards": worth.local_rewards.tolist(),
            "labels_satisfied": worth.labels_satisfied.tolist(),
            "distance_to_iid": {"before": worth.distance_before, "after": worth.distance_after},
            "success_probability": worth.success_probability,
            "inter_cluster_share": worth.inter_cluster_share,
            "cluster": self.network.cluster.tolist(),
            "cluster_use": worth.cluster_use.tolist(),
            "cluster_budget": self.network.budget.tolist(),
            "datapoints_moved": worth.datapoints_moved,
            "datapoints_lost": worth.datapoints_lost,
            "messages": self.messages,
            "message_bits": self.message_bits,
            "steps": self.steps,
            "seconds": self.seconds,
            "seed": self.seed,
            "config": self.config.to_dict(),
        }


def method_named(name: str) -> Method:
    """The method of this name, or a UserError that lists the names."""
    if name not in METHODS:
        raise UserError(f"there is no method {name!r}: the methods are {', '.join(METHODS)}")
    return METHODS[name]


def methods_listed(text: str) -> list[str]:
    """Names from a list separated by commas, each once."""
    return list(dict.fromkeys(method_named(name.strip()).name for name in text.split(",")))


def discover(
    network: Network,
    config: Config | None = None,
    *,
    seed: int = 0,
    method: str | None = None,
    progress: Progress = silent,
) -> Discovery:
    """Find the D2D graph of a network.

    1. choose the method; 2. find its links, all at once or stage by stage (R16); 3. settle what moves over them;
    4. measure.
    """
    config = config or Config()
    chosen = method_named(method or config.discovery.method)
    if config.channel.dynamic:
        network = dynamic.at_exchange(network, config.channel, seed)
    check_discovery(chosen.name, config, network.shape)
    began = time.perf_counter()
    split = chosen.learns and config.discovery.action == "partition"
    task = Task(by_partition(network) if split else network, config, seed, progress=progress)
    at_once = chosen.joint and config.discovery.edge_mode == "joint"
    graph, founds = _together(chosen, task) if at_once else _in_sequence(chosen, task)
    if split:
        graph = replace(graph, slots=np.where(graph.slots >= 0, graph.slots // network.partitions, -1).astype(np.int32))
    links = len(graph.edges)
    bits = links * network.partitions * (1 + 2 * config.discovery.count_bits)
    return Discovery(
        method=chosen.name,
        seed=seed,
        config=config,
        network=network,
        graph=graph,
        evaluation=evaluate(network, graph, config.reward),
        messages=sum(found.messages for found in founds) + NEGOTIATION * links,
        message_bits=sum(found.message_bits for found in founds) + bits,
        steps=sum(found.steps for found in founds),
        seconds=time.perf_counter() - began,
        upper_bound=founds[0].upper_bound if len(founds) == 1 else None,
        proven=len(founds) == 1 and founds[0].proven,
    )


def by_partition(network: Network) -> Network:
    """R17: the same network with a slot for each partition of each candidate, over which only that partition moves."""
    number = network.partitions
    only = np.tile(np.eye(number, dtype=bool), (network.slots, 1))
    return replace(
        network,
        candidates=np.repeat(network.candidates, number, axis=1),
        drop=np.repeat(network.drop, number, axis=1),
        trust=np.repeat(network.trust, number, axis=1) & only,
        rss=None if network.rss is None else np.repeat(network.rss, number, axis=1),
    )


def warm_up(method: str, config: Config, clustered: bool = False) -> None:
    """Compile, or load from the cache, all that a method needs, on a tiny network: so that times are the method's own.

    `clustered`: for a network whose partitions are data clusters.
    """
    tiny = config.with_(
        network__devices=3,
        network__partitions=2,
        network__labels_per_device=1,
        network__trust="full",
        channel__kind="path-loss",
        qlearning__steps=2,
        bandit__steps=2,
        gcn__epochs=1,
        gcn__systems=1,
        optimum__starts=1,
        optimum__sweeps=1,
        optimum__messages=10,
    )
    network = Network.generate(tiny, 0)
    if clustered:
        shape = (*network.counts.shape, 1)
        places = np.arange(network.counts.size, dtype=np.float64).reshape(shape)
        spreads, request = np.ones((*shape, 1)), network.counts.sum(axis=1) / 2
        network = replace(network, centroids=places, covariances=spreads, request=request)
    discover(network, tiny, method=method)


def _planned(task: Task, method: Method) -> Task:
    """On a changing channel our learner may plan with expected losses instead of the current ones."""
    config = task.config
    if config.channel.dynamic and method.name == "marginal" and config.marginal.dynamic == "expected":
        return replace(task, network=dynamic.expected(task.network, config.channel))
    return task


def _found(method: Method, task: Task) -> LinkChoice:
    """What a method finds; one of a user's own is checked before compiled code sees it."""
    found, network = method.find(task), task.network
    slots = found.slots if isinstance(found, LinkChoice) else None
    if not isinstance(slots, np.ndarray) or slots.dtype.kind != "i" or slots.shape[:1] != (network.devices,):
        raise UserError(f"the method {method.name!r} gave no LinkChoice with whole-numbered slots[receiver, edge]")
    if slots.ndim != 2 or (slots.size and not -1 <= slots.min() <= slots.max() < network.slots):
        raise UserError(f"the method {method.name!r} chose slots that are not there: give -1 to {network.slots - 1}")
    return found


def _together(method: Method, task: Task) -> tuple[Graph, list[LinkChoice]]:
    found = _found(method, _planned(replace(task, edges=task.config.discovery.edges), method))
    return graph_of(task.network, found.slots, task.over_ask), [found]


def _in_sequence(method: Method, task: Task) -> tuple[Graph, list[LinkChoice]]:
    """R16: discover, exchange, discover again with used neighbours masked; one budget over all stages."""
    stages = task.config.discovery.edges
    graphs: list[Graph] = []
    founds: list[LinkChoice] = []
    network, population = task.network, task.network.population
    for stage in range(stages):
        report = _scaled(task.progress, stage, stages)
        step = replace(task, network=network, stage=stage, population=population, progress=report)
        if graphs:
            step = replace(step, spent=outside_requests(task.network, joined(graphs)))
        founds.append(_found(method, _planned(step, method)))
        graphs.append(graph_of(network, founds[-1].slots, task.over_ask))
        network = _after_stage(network, graphs[-1])
    return joined(graphs), founds


def _after_stage(network: Network, graph: Graph) -> Network:
    """The network as the next stage finds it."""
    candidates = _masked(network.candidates, graph.slots)
    if network.centroids is None:
        return replace(network, counts=graph.counts_after(network.counts), candidates=candidates)
    counts, centroids, covariances = clusters_after(network, graph)
    # A device cannot tell which data cluster a datapoint that it is about to receive will be in: it passes none on.
    left = np.clip(network.surplus - graph.given(), 0.0, counts)
    return replace(
        network,
        counts=counts,
        threshold=counts - left,
        centroids=centroids,
        covariances=covariances,
        candidates=candidates,
    )


def _scaled(progress: Progress, stage: int, stages: int) -> Progress:
    return lambda share: progress((stage + share) / stages)


def _masked(
    candidates: np.ndarray[Any, np.dtype[np.int32]], slots: np.ndarray[Any, np.dtype[np.int32]]
) -> np.ndarray[Any, np.dtype[np.int32]]:
    """The same candidates without the ones already linked."""
    result = candidates.copy()
    receiver, edge = np.nonzero(slots >= 0)
    result[receiver, slots[receiver, edge]] = -1
    return result
