"""Quality: what share of the best known objective each method reaches, over random networks.

Settings of the paper: 3 labels a device (70/20/10), trust 0.5, thresholds at 5 % of a device's data, full mesh. Two
objectives: ours (gain in total variation) and the paper's (1-Wasserstein change, gate of 5 labels). Share 0 is no
exchange, share 1 the best graph that anything found: any method, our learner with 5,000 messages a device, or the
multi-start reference search. `marginal` runs with 5,000 messages a device (the paper runs 5,000 steps of 4 messages
each) and with a tenth, everything counted.

With several links a device, `marginal` gets 5,000 or 500 messages for each. Settings of the learner were tuned on networks 1000 to
1023 (25 devices) and 1000 to 1003 (100 devices); the tables of docs/measurements.md are of networks from 6000 on.

    python benchmarks/quality.py [--networks 20] [--first 6000] [--sizes 25,100] [--links 1,2,3,5,8] [--objectives best,paper]
                                 [--methods ...] [--messages 5000,500] [--starts 16] [--search 5000] [--jobs 2] [--lines FILE [--show]]
"""

import argparse
from collections import defaultdict
from pathlib import Path

import numpy as np

from d2dfl import METHODS, Config, Network, discover, preset
from d2dfl.discovery.evaluation import share_of
from d2dfl.experiment.measures import spread
from lines import Line, measure

OBJECTIVES = {"best": "ours (gain, total variation)", "paper": "the paper's (change, Wasserstein, gate 5)"}
BUDGETS = "5000,500"


def settings(name: str, devices: int, links: int = 1, starts: int = 0, search: int = 0) -> Config:
    # Both presets give qlearning the readings that make it strongest here (annealing, R4); the objective differs.
    ours = preset("best")
    config = (
        ours
        if name == "best"
        else ours.with_(**{f"reward.{k}": v for k, v in preset("paper").to_dict()["reward"].items()})
    )
    many = starts or (16 if devices <= 25 else 6)
    as_the_paper = {"discovery.edges": links, "reward.reliability_weight": 1.0, "channel.budget_share": 0.1}
    reference = {"optimum.starts": many, "optimum.messages": search or config.optimum.messages}
    return config.with_(**{"network.devices": devices, "network.threshold": "0.05", **reference, **as_the_paper})


def one_method(
    objective: str, devices: int, links: int, network: int, method: str, messages: int, starts: int, search: int
) -> dict[str, float]:
    """What one method finds on one network. `messages`: our learner's budget; `starts`, `search`: those of `optimum`, and the
    budget of the learner that it also starts from; 0 as usual."""
    config = settings(objective, devices, links, starts, search)
    if messages:
        config = config.with_(**{"marginal.messages": messages})
    found = discover(Network.generate(config, network), config, seed=network, method=method)
    return {
        "value": found.evaluation.objective,
        "none": found.evaluation.no_exchange,
        "sent": found.messages / devices,
        "labels": float(found.evaluation.labels_satisfied.mean()),
        "distance": found.evaluation.distance_after["total-variation"],
    }


def tasks_of(options: argparse.Namespace) -> list[Line]:
    """Every method on a network, then the next network: what is cut short has all methods of some networks."""
    tasks = []
    for network in range(options.first, options.first + options.networks):
        for devices in (int(size) for size in options.sizes.split(",")):
            for objective in options.objectives.split(","):
                for links in (int(count) for count in options.links.split(",")):
                    setting = {"objective": objective, "devices": devices, "links": links, "network": network}
                    for method in options.methods.split(","):
                        effort = (options.starts, options.search) if method == "optimum" else (0, 0)
                        for messages in options.messages if method == "marginal" else (0,):
                            own = {"messages": messages, "starts": effort[0], "search": effort[1]}
                            tasks.append({**setting, "method": method, **own})
    return tasks


def label_of(line: Line) -> str:
    return f"{line['method']}, {line['messages']:,} messages" if line["messages"] else str(line["method"])


def table(title: str, lines: list[Line]) -> None:
    """Networks of which every method's line is there."""
    labels = list(dict.fromkeys(label_of(line) for line in lines))
    networks: dict[int, dict[str, Line]] = defaultdict(dict)
    for line in lines:
        networks[line["network"]][label_of(line)] = line
    whole = [found for found in networks.values() if len(found) == len(labels)]
    print(f"\n{title}, {len(whole)} networks")
    if not whole:
        return
    print(f"{'method':28s} share of best known (mean, lowest, spread)   labels  TV to i.i.d.  messages a device")
    best = [max(line["value"] for line in found.values()) for found in whole]
    for label in labels:
        rows = [found[label] for found in whole]
        share = np.array([share_of(row["value"], top, row["none"]) for row, top in zip(rows, best, strict=True)])
        means = {key: float(np.mean([row[key] for row in rows])) for key in ("labels", "distance", "sent")}
        print(
            f"{label:28s} {share.mean():7.3f} {share.min():7.3f} {spread(share) or 0.0:7.3f} {'':21s}"
            f"{means['labels']:6.2f} {means['distance']:9.3f} {means['sent']:12,.0f}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--networks", type=int, default=20)
    parser.add_argument("--first", type=int, default=6000, help="seed of the first network")
    parser.add_argument("--sizes", default="25,100")
    parser.add_argument("--links", default="1,2,3,5,8")
    parser.add_argument("--objectives", default="best,paper")
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--starts", type=int, default=0, help="of optimum; 0: 16, beyond 25 devices 6")
    parser.add_argument(
        "--search", type=int, default=0, help="messages of the learner that optimum starts from; 0: 5,000"
    )
    parser.add_argument("--messages", default=BUDGETS, help="budgets of marginal, a device and link")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--lines", type=Path, help="file of results; those that it has are not measured again")
    parser.add_argument("--show", action="store_true", help="tables of what --lines has, nothing else")
    options = parser.parse_args()
    options.messages = [int(text) for text in options.messages.split(",")]
    lines = measure(one_method, tasks_of(options), options.jobs, options.lines, options.show)
    settings_there = dict.fromkeys((line["devices"], line["objective"], line["links"]) for line in lines)
    for devices, objective, links in sorted(settings_there):
        there = [
            line for line in lines if (line["devices"], line["objective"], line["links"]) == (devices, objective, links)
        ]
        table(f"{devices} devices, up to {links} links, objective: {OBJECTIVES[objective]}", there)


if __name__ == "__main__":
    main()
