"""What each reading of the paper does (PAPER.md, "Readings"): 25 devices, mean over random networks.

The learner's readings are measured as the share of the best known objective that `qlearning` reaches on the preset
`paper`; the reward's readings by what the best graph for that reward does to the devices.

    python benchmarks/readings.py [--networks 10]
    python benchmarks/readings.py --only counted      (R43 to R45 alone: what figures count; a minute)
"""

import argparse
from collections.abc import Callable

import numpy as np
from joblib import Parallel, delayed

from d2dfl import Config, Discovery, Network, discover, preset
from d2dfl.discovery.evaluation import share_of
from d2dfl.experiment.measures import spread
from d2dfl.paper.terms import TUNED as TUNED_ON_PAPERS

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


COUNTED: dict[str, Config] = {
    "qlearning": PAPER,
    "qlearning, tuned": PAPER.with_(**TUNED_ON_PAPERS),
    **{name: PAPER.with_(**{"discovery.method": name}) for name in ("marginal", "most-trusted", "closest", "uniform")},
}
FIVE = {f"R43 {name}": config for name, config in COUNTED.items()}
SHARED = {
    f"R44 {name}": config.with_(**{"network.devices": 10, "network.partitions": 11}) for name, config in COUNTED.items()
}
ARRIVED: dict[str, Config] = {
    f"R45 0.1 as {rule}, {levels} levels, {name}": config.with_(
        **{
            "channel.kind": "gaussian",
            "channel.dynamic": True,
            "channel.levels": levels,
            "channel.deviation_rule": rule,
        }
    )
    for rule in ("deviation", "variance")
    for name, config in (
        ("qlearning", PAPER),
        ("marginal, by levels", preset("best").with_(**{"discovery.edges": 1, "channel.plan": "levels"})),
    )
    for levels in (1, 16)
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


def five_labels(config: Config, seed: int) -> list[float]:
    """R43: devices with five labels by the rule under which the graph was sought, and strictly after losses; objective won."""
    network = Network.generate(config, seed)
    item = discover(network, config, seed=seed)
    worth = item.evaluation
    strictly = (worth.counts_after >= network.threshold - 1e-9).sum(axis=1)
    won = worth.objective - worth.no_exchange
    return [float((worth.labels_satisfied >= 5).sum()), float((strictly >= 5).sum()), won]


def arrived(config: Config, seed: int) -> list[float]:
    """R44, R45: arrived / lacked, and arrived / sent."""
    network = Network.generate(config, seed)
    worth = discover(network, config, seed=seed).evaluation
    came = worth.datapoints_moved - worth.datapoints_lost
    return [came / float(network.need.sum()), came / worth.datapoints_moved if worth.datapoints_moved else np.nan]


def report(
    title: str,
    columns: str,
    measure: Callable[[Config, int], list[float]],
    cases: dict[str, Config],
    networks: int,
    jobs: int,
) -> None:
    print(f"\n{title}\n{'':40s}{columns}")
    for name, config in cases.items():
        rows = np.array(Parallel(n_jobs=jobs)(delayed(measure)(config, seed) for seed in range(networks)))
        cells = "  ".join(f"{np.nanmean(column):9.3f} ±{spread(column) or 0:6.3f}" for column in rows.T)
        print(f"{name:40s}{cells}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--networks", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--only", choices=("counted",), help="these alone")
    given = parser.parse_args()
    size = (given.networks, given.jobs)
    report("What figures count", "five labels by the rule, strictly after losses, won", five_labels, FIVE, *size)
    report("What is shared", "arrived / lacked, arrived / sent", arrived, SHARED, *size)
    report("What arrives over a changing channel", "arrived / lacked, arrived / sent", arrived, ARRIVED, *size)
    if given.only:
        return
    graph_columns = "won, labels satisfied, TV to i.i.d., inter-cluster share, links per device, moved"
    report("The learner's readings", "qlearning's share of the best known objective", learner_share, LEARNER, *size)
    report("Channel drawn anew at each step", "the same", learner_share, DYNAMIC, *size)
    report("The reward's readings: the best known graph", graph_columns, of_best_graph, REWARD, *size)
    report("Several links, our learner", graph_columns, of_best_graph, EDGES, *size)


if __name__ == "__main__":
    main()
