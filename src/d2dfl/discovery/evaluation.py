"""Measures of a graph: the objective and everything that is reported beside it."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from d2dfl.compiled import in_python
from d2dfl.config import RewardConfig
from d2dfl.discovery.equations.diversity import BUILT_IN, distances_to
from d2dfl.discovery.equations.messages import LEAST, SlotArray, exchange
from d2dfl.discovery.equations.reward import Terms, local_reward, local_rewards, objective
from d2dfl.discovery.equations.worth import clustered_worth
from d2dfl.network import Network
from d2dfl.network.graph import Graph
from d2dfl.notebook import facts_html, line

Array = NDArray[np.float64]


@dataclass(frozen=True, repr=False)
class Evaluation:
    """What a graph is worth."""

    objective: float
    no_exchange: float  # objective of the graph without links: the zero of every share
    local_rewards: Array  # [device]
    labels_satisfied: NDArray[np.int64]  # [device] labels that meet their threshold
    counts_after: Array  # [device, partition]
    cluster_use: Array  # [cluster] datapoints requested from outside (d')
    distance_before: dict[str, float]  # metric -> mean distance to the population
    distance_after: dict[str, float]
    datapoints_moved: float  # expected, as all here: the exchange itself draws losses
    datapoints_lost: float
    success_probability: float | None  # share of sent datapoints that arrive; None when nothing is sent
    inter_cluster_share: float | None  # share of sent datapoints that cross cluster borders
    agreement: float | None = None  # system agreement, where partitions are data clusters

    def facts(self) -> dict[str, str]:
        """What a reader wants to know first, each as a phrase."""
        return {
            "objective": f"objective {self.objective:.4f} (no exchange {self.no_exchange:.4f})",
            "expected": f"{self.datapoints_moved:,.0f} datapoints sent, {self.datapoints_lost:,.0f} of them lost",
        }

    def __repr__(self) -> str:
        return line("Evaluation", *self.facts().values())

    def _repr_html_(self) -> str:
        return facts_html("Evaluation", self.facts())


def graph_of(network: Network, slots: SlotArray, over_ask: bool) -> Graph:
    """The graph of these slots with all links settled at once; links over which nothing moves are dropped."""
    return _pruned(network, slots, exchange(network, slots, over_ask).allocated)


def joined(graphs: list[Graph]) -> Graph:
    """Links of successive stages side by side."""
    return Graph(
        slots=np.concatenate([graph.slots for graph in graphs], axis=1),
        transmitter=np.concatenate([graph.transmitter for graph in graphs], axis=1),
        drop=np.concatenate([graph.drop for graph in graphs], axis=1),
        allocated=np.concatenate([graph.allocated for graph in graphs], axis=1),
    )


def _pruned(network: Network, slots: SlotArray, allocated: Array) -> Graph:
    receivers = np.arange(network.devices)[:, None]
    used = (slots >= 0) & (allocated.sum(axis=2) > LEAST)
    return Graph(
        slots=np.where(used, slots, -1).astype(np.int32),
        transmitter=np.where(used, network.candidates[receivers, slots], -1).astype(np.int32),
        drop=np.where(used, network.drop[receivers, slots], 0.0),
        allocated=np.where(used[:, :, None], allocated, 0.0),
    )


def outside_requests(network: Network, graph: Graph) -> Array:
    """d'[cluster]: datapoints allocated to the cluster's devices by devices of other clusters."""
    crossing = (graph.transmitter >= 0) & (network.cluster[graph.transmitter] != network.cluster[:, None])
    amount = (graph.allocated.sum(axis=2) * crossing).sum(axis=1)
    return np.bincount(network.cluster, weights=amount, minlength=len(network.budget)).astype(np.float64)


def evaluate(network: Network, graph: Graph, config: RewardConfig) -> Evaluation:
    """Everything about a graph that does not depend on how it was found."""
    terms = Terms.of(config, network.centroids is not None)
    after = graph.counts_after(network.counts)
    sent = network.counts + graph.allocated.sum(axis=1) - graph.given()
    population = network.population
    cost = graph.drop.sum(axis=1)
    local, met = local_rewards(terms, network.counts, after, sent, network.threshold, population, cost)
    use = outside_requests(network, graph)
    members = np.bincount(network.cluster, minlength=len(network.budget)).astype(np.float64)
    still, _ = local_rewards(
        terms,
        network.counts,
        network.counts,
        network.counts,
        network.threshold,
        population,
        np.zeros(network.devices),
    )
    agreement, no_agreement = None, 0.0
    if network.centroids is not None:
        gain, agreement, no_agreement = clustered_worth(network, graph, config)
        local, still = in_python(local_reward)(terms, gain, cost), np.zeros(network.devices)
    metrics = dict.fromkeys((*BUILT_IN, config.metric))
    moved, arrived = float(graph.allocated.sum()), float(graph.received.sum())
    return Evaluation(
        objective=objective(terms, local, agreement or 0.0, members, network.budget, use),
        no_exchange=objective(terms, still, no_agreement, members, network.budget, np.zeros_like(use)),
        local_rewards=local,
        labels_satisfied=met,
        counts_after=after,
        cluster_use=use,
        distance_before={m: float(distances_to(network.counts, population, m).mean()) for m in metrics},
        distance_after={m: float(distances_to(after, population, m).mean()) for m in metrics},
        datapoints_moved=moved,
        datapoints_lost=moved - arrived,
        success_probability=arrived / moved if moved > 0 else None,
        inter_cluster_share=float(use.sum()) / moved if moved > 0 else None,
        agreement=agreement,
    )


def share_of(value: float, best: float, no_exchange: float) -> float:
    """Share of the best known objective: 0 is no exchange, 1 is the best known graph."""
    return (value - no_exchange) / (best - no_exchange) if best - no_exchange > 1e-12 else 1.0
