"""`discover`: network in, graph out. The methods are in the registry, discovery/methods."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from d2dfl.compiled import logged
from d2dfl.config import Config, config_from
from d2dfl.config.seeds import checked_seed
from d2dfl.discovery import changing_channel
from d2dfl.discovery.equations.worth import clusters_after
from d2dfl.discovery.evaluation import Evaluation, evaluate, graph_of, joined, outside_requests
from d2dfl.discovery.methods import METHODS as METHODS  # also here: plug-ins look for it in this place
from d2dfl.discovery.methods import Method as Method
from d2dfl.discovery.methods import method_named
from d2dfl.discovery.needs import check_discovery
from d2dfl.discovery.task import NEGOTIATION, LinkChoice, Task
from d2dfl.discovery.trace import Slots, Trace
from d2dfl.errors import UserError
from d2dfl.network import Network
from d2dfl.network.channel import control_transmissions
from d2dfl.network.graph import Graph
from d2dfl.notebook import facts_html, line
from d2dfl.progress import Share, silent
from d2dfl.words import counted

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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

    @property
    def transmissions(self) -> float:
        """Messages with all repeats that losses cost in the mean, as joules are charged: spread evenly over devices and their links."""
        heard = self.network.candidates >= 0
        times = np.where(heard, control_transmissions(self.network.drop), 0.0).sum(axis=1)[heard.any(axis=1)]
        links = heard.sum(axis=1)[heard.any(axis=1)]
        return float(self.messages * (times / links).mean()) if len(links) else self.messages

    def _facts(self) -> dict[str, str]:
        worth, metric = self.evaluation, self.config.reward.metric
        before, after = worth.distance_before[metric], worth.distance_after[metric]
        return {
            "links": f"{counted(len(self.graph.edges), 'link')} among {counted(self.network.devices, 'device')}",
            **worth.facts(),
            "distance to i.i.d.": f"{metric} to i.i.d. {before:.3f} -> {after:.3f}",
            "messages": f"{self.messages / self.network.devices:,.0f} messages a device",
        }

    def __repr__(self) -> str:
        return line(f"Discovery by {self.method}", *self._facts().values())

    def _repr_html_(self) -> str:
        return facts_html(f"Discovery by {self.method}", self._facts())

    def plot(self, path: str | Path | None = None) -> "Figure":
        """The graph as a figure; with a path (.png, .svg, .pdf, .html) it is drawn there, too."""
        from d2dfl.report.drawing.picture import graph_figure

        title = METHODS[self.method].title if self.method in METHODS else self.method
        return graph_figure(self.network, self.graph, self.evaluation, title, None if path is None else Path(path))

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values, for JSON."""
        worth = self.evaluation
        return {
            "method": self.method,
            **self.graph.to_dict(),
            "counts_before": self.network.counts.tolist(),
            "expected_counts_after": worth.counts_after.tolist(),
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
            "expected_datapoints_moved": worth.datapoints_moved,
            "expected_datapoints_lost": worth.datapoints_lost,
            "messages": self.messages,
            "transmissions": self.transmissions,
            "message_bits": self.message_bits,
            "steps": self.steps,
            "seconds": self.seconds,
            "seed": self.seed,
            "config": self.config.to_dict(),
        }


def discover(
    network: Network,
    config: Config | Mapping[str, Any] | None = None,
    *,
    seed: int = 0,
    method: str | None = None,
    progress: Share = silent,
    trace: Trace | None = None,
) -> Discovery:
    """Find the D2D graph of a network. `config`: all settings, or those that are changed by their names.
    `trace` hears how it is found.

    1. choose the method; 2. find its links, all at once or stage by stage (R16); 3. settle what moves over them;
    4. measure.
    """
    config, seed = config_from(config, Config()), checked_seed(seed)
    if not isinstance(network, Network):
        raise UserError(
            f"network is of the type {type(network).__name__}: give a Network, such as Network.generate(config)"
        )
    chosen = method_named(config.discovery.method if method is None else method)
    if config.channel.dynamic:
        network = changing_channel.at_exchange(network, config.channel, seed)
    known = changing_channel.known_to(chosen, network, config.channel)
    check_discovery(chosen, config, network.shape)
    began = time.perf_counter()
    split = splits(config, chosen.name)
    first = by_partition(known) if split else known
    at_once = chosen.joint and config.discovery.edge_mode == "joint"
    stages, edges = (1, config.discovery.edges) if at_once else (config.discovery.edges, 1)
    if trace:
        trace.begin(known, chosen.name, seed, edges)
    hear = trace.stage(0, stages) if trace else silent
    task = Task(first, config, seed, edges=edges, progress=_part(progress, 0, stages), hear=hear)
    graphs: list[Graph] = []
    choices: list[LinkChoice] = []
    for stage in range(stages):  # R16: discover, exchange, discover again with chosen neighbours masked
        if stage:
            task = replace(
                task,
                network=_after_stage(task.network, graphs[-1], choices[-1].slots),
                stage=stage,
                spent=outside_requests(first, joined(graphs)),  # one budget over all stages
                population=first.population,
                progress=_part(progress, stage, stages),
                hear=trace.stage(stage, stages) if trace else silent,
            )
        with logged(chosen.name):
            choices.append(_checked(chosen.find(task), chosen, task.network))
        if trace:
            trace.settle(choices[-1].slots, choices[-1].messages, (stage + 1) / stages)
        graphs.append(graph_of(task.network, choices[-1].slots, task.over_ask))
    graph = graphs[0] if at_once else joined(graphs)
    graph = _whole(graph, network, split)
    if known is not network:
        graph = changing_channel.with_losses(graph, network)
    found = _discovery(task, chosen, network, graph, choices, began)
    if trace:
        trace.agree(found.messages)
    return found


def splits(config: Config, method: str) -> bool:
    """Whether this method chooses a partition with every link (R17)."""
    return method_named(method).learns and config.discovery.action == "partition"


def graph_at(network: Network, config: Config, method: str, stages: Sequence[Slots]) -> Graph:
    """The graph of links that were in force at a moment of a discovery in this network, settled stage by stage as there."""
    here = by_partition(network) if splits(config, method) else network
    graphs: list[Graph] = []
    for stage, slots in enumerate(stages):
        if stage:
            here = _after_stage(here, graphs[-1], stages[stage - 1])
        graphs.append(graph_of(here, slots, config.reward.over_ask))
    return _whole(joined(graphs), network, splits(config, method))


def _whole(graph: Graph, network: Network, split: bool) -> Graph:
    """The same graph with slots of the network itself, where each had one for every partition."""
    if not split:
        return graph
    return replace(graph, slots=np.where(graph.slots >= 0, graph.slots // network.partitions, -1).astype(np.int32))


def _discovery(
    task: Task, method: Method, network: Network, graph: Graph, choices: Sequence[LinkChoice], began: float
) -> Discovery:
    """What was found, measured; the datapoints themselves are negotiated over the final links."""
    config, links, alone = task.config, len(graph.edges), len(choices) == 1
    bits = links * network.partitions * (1 + 2 * config.discovery.count_bits)
    return Discovery(
        method=method.name,
        seed=task.seed,
        config=config,
        network=network,
        graph=graph,
        evaluation=evaluate(network, graph, config.reward),
        messages=sum(choice.messages for choice in choices) + NEGOTIATION * links,
        message_bits=sum(choice.message_bits for choice in choices) + bits,
        steps=sum(choice.steps for choice in choices),
        seconds=time.perf_counter() - began,
        upper_bound=choices[0].upper_bound if alone else None,
        proven=alone and choices[0].proven,
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
        channel__trace="",  # a recorded one is of as many devices as there are
        **method_named(method).least,
    )
    network = Network.generate(tiny, 0)
    if clustered:
        shape = (*network.counts.shape, 1)
        places = np.arange(network.counts.size, dtype=np.float64).reshape(shape)
        spreads, request = np.ones((*shape, 1)), network.counts.sum(axis=1) / 2
        network = replace(network, centroids=places, covariances=spreads, request=request)
    discover(network, tiny, method=method)


def _checked(choice: LinkChoice, method: Method, network: Network) -> LinkChoice:
    """What a method chose; that of a user's own is looked at before compiled code sees it."""
    slots = choice.slots if isinstance(choice, LinkChoice) else None
    if not isinstance(slots, np.ndarray) or slots.dtype.kind != "i" or slots.shape[:1] != (network.devices,):
        raise UserError(f"the method {method.name!r} gave no LinkChoice with whole-numbered slots[receiver, edge]")
    if slots.ndim != 2 or (slots.size and not -1 <= slots.min() <= slots.max() < network.slots):
        raise UserError(f"the method {method.name!r} chose slots that are not there: give -1 to {network.slots - 1}")
    return choice


def _after_stage(network: Network, graph: Graph, slots: Slots) -> Network:
    """The network as the next stage finds it."""
    # R50: by what was chosen, not by the graph, which has no dead links: else a rule repeats one at every stage.
    candidates = _masked(network.candidates, slots)
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


def _part(progress: Share, stage: int, stages: int) -> Share:
    """Progress of one stage of several."""
    return lambda share: progress((stage + share) / stages)


def _masked(
    candidates: np.ndarray[Any, np.dtype[np.int32]], slots: np.ndarray[Any, np.dtype[np.int32]]
) -> np.ndarray[Any, np.dtype[np.int32]]:
    """The same candidates without the ones already chosen."""
    result = candidates.copy()
    receiver, edge = np.nonzero(slots >= 0)
    result[receiver, slots[receiver, edge]] = -1
    return result
