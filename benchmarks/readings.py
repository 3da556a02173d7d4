"""What each reading of the paper does (PAPER.md, "Readings"): 25 devices, mean over random networks.

The learner's readings are measured as the share of the best known objective that `qlearning` reaches on the preset
`paper`; the reward's readings by what the best graph for that reward does to the devices.

    python benchmarks/readings.py [--networks 10]
"""

import argparse
from collections.abc import Callable

import numpy as np
from joblib import Parallel, delayed

from d2dfl import Config, Discovery, Network, discover, preset
from d2dfl.discovery.evaluation import share_of
from d2dfl.experiment.measures import spread

LONG = {"marginal.messages": 5000, "optimum.starts": 8}
PAPER = preset("paper")
# Our preset with one link and the weights of the paper's, so that only the reading differs.
BEST = preset("best").with_(**{"discovery.edges": 1, "reward.reliability_weight": 1.0, "channel.budget_share": 0.1})
# The paper preset with the learner's readings that work best, to change one at a time.
TUNED = PAPER.with_(
    **{"qlearning.reduction_rule": "subtract", "qlearning.temperature": 0.2, "qlearning.temperature_end": 0.02}
)

LEARNER: dict[str, Config] = {
    "all readings at their best": TUNED,
    "R2 literal: one mean for all actions": TUNED.with_(**{"qlearning.update": "literal"}),
    "R3 temperature 1 throughout": TUNED.with_(**{"qlearning.temperature": 1.0, "qlearning.temperature_end": 1.0}),
    "R3 graph sampled, not argmax": TUNED.with_(**{"qlearning.final": "sample"}),
    "R4 literal: bad rewards times 0.1": TUNED.with_(**{"qlearning.reduction_rule": "multiply"}),
    "R4 no reduction": TUNED.with_(**{"qlearning.reduction": 0.0}),
    "R12 no link allowed": TUNED.with_(**{"discovery.no_link": True}),
    "R13 untried actions count 0": TUNED.with_(**{"qlearning.untried": "zero"}),
    "R13 untried actions count 1": TUNED.with_(**{"qlearning.untried": "optimistic"}),
    "preset paper": PAPER,
}
REWARD: dict[str, Config] = {
    **{
        f"R1 {rule}": PAPER.with_(**{"reward.threshold_rule": rule})
        for rule in ("strict", "before-loss", "tolerance", "over-ask")
    },
    **{f"R9 {rule}": PAPER.with_(**{"reward.budget_rule": rule}) for rule in ("ratio", "hinge", "literal")},
    **{f"R7 {kind}, no gate": PAPER.with_(**{"reward.kind": kind, "reward.gate": 0}) for kind in ("change", "gain")},
    **{
        f"R8 gain in {metric}": BEST.with_(**{"reward.metric": metric})
        for metric in ("total-variation", "wasserstein", "jensen-shannon")
    },
    "preset best, b = 5 %": BEST.with_(**{"network.threshold": "0.05"}),
    "preset best, b = i.i.d. share": BEST,
}
EDGES: dict[str, Config] = {
    f"R16 {edges} links, {mode}": BEST.with_(**{"discovery.edges": edges, "discovery.edge_mode": mode})
    for edges in (1, 2, 3, 5)
    for mode in ("joint", "sequence")
    if edges > 1 or mode == "joint"
}
DYNAMIC: dict[str, Config] = {
    **{
        f"R5 {state}, {levels} levels": TUNED.with_(
            **{"channel.dynamic": True, "channel.levels": levels, "qlearning.state": state}
        )
        for state, levels in (("link", 1), ("link", 2), ("link", 4), ("link", 8), ("vector", 4))
    }
}


def learner_share(config: Config, seed: int) -> list[float]:
    """Share of the best known objective of one qlearning run, with and without one common reference."""
    network = Network.generate(config, seed)
    reference = config.with_(**{"discovery.no_link": True, **LONG})
    best = max(discover(network, reference, seed=seed, method=m).evaluation.objective for m in ("marginal", "optimum"))
    worth = discover(network, config, seed=seed, method="qlearning").evaluation
    return [share_of(worth.objective, best, worth.no_exchange)]


def of_best_graph(config: Config, seed: int) -> list[float]:
    """What the best known graph for a reward does: objective won, labels, TV before and after, inter-cluster share, links."""
    item = discover(Network.generate(config, seed), config.with_(**LONG), seed=seed, method="marginal")
    return _measures(item)


def _measures(item: Discovery) -> list[float]:
    worth = item.evaluation
    return [
        worth.objective - worth.no_exchange,
        float(worth.labels_satisfied.mean()),
        worth.distance_after["total-variation"],
        worth.inter_cluster_share or 0.0,
        len(item.graph.edges) / item.network.devices,
        worth.datapoints_moved,
    ]


def report(
    title: str, columns: str, measure: Callable[[Config, int], list[float]], cases: dict[str, Config], networks: int
) -> None:
    print(f"\n{title}\n{'':40s}{columns}")
    for name, config in cases.items():
        rows = np.array(Parallel(n_jobs=2)(delayed(measure)(config, seed) for seed in range(networks)))
        cells = "  ".join(f"{column.mean():9.3f} ±{spread(column) or 0:6.3f}" for column in rows.T)
        print(f"{name:40s}{cells}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--networks", type=int, default=10)
    networks = parser.parse_args().networks
    graph_columns = "won, labels satisfied, TV to i.i.d., inter-cluster share, links per device, moved"
    report("The learner's readings", "qlearning's share of the best known objective", learner_share, LEARNER, networks)
    report("Channel drawn anew at each step", "the same", learner_share, DYNAMIC, networks)
    report("The reward's readings: the best known graph", graph_columns, of_best_graph, REWARD, networks)
    report("Several links, our learner", graph_columns, of_best_graph, EDGES, networks)


if __name__ == "__main__":
    main()
