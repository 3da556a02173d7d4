"""Fig. 8d: distance of the devices' labels to i.i.d. against the number of links, Fashion-MNIST without labels.

Labels serve to measure only. Nobody trains.
"""

import numpy as np

from d2dfl.notebook import counted
from d2dfl.paper import (
    BASELINES,
    CONTROL,
    OURS,
    PAPERS,
    Experiment,
    Point,
    Results,
    Shown,
    Values,
    exchange_only,
    sweep_chart,
    sweep_table,
    task,
)  # fmt: skip

LINKS = {"tiny": (1, 2), "small": (1, 2, 3), "paper": (1, 2, 3)}
SEEDS = {"tiny": 2, "small": 5, "paper": 10}
CONTENDERS = (PAPERS, OURS, *BASELINES, CONTROL)


def points(scale: str) -> list[Point]:
    settings = task("fmnist", scale, devices=10, paradigm="unsupervised")
    return [
        Point(counted(n, "link"), {**settings, "discovery.edges": n}, "unsupervised", CONTENDERS, n)
        for n in LINKS[scale]
    ]


def fall(cell: Values) -> float:
    """Share of the distance that the exchange takes away."""
    return float(1.0 - cell["after"]["wasserstein"] / cell["before"]["wasserstein"])


def show(results: Results) -> Shown:
    one, two = results.points[:2]
    rivals = np.stack([results.each(one, item.name, fall) for item in BASELINES if results.there(one, item.name)])
    systems = [item.name for item in (PAPERS, OURS)]
    first = {name: results.each(one, name, fall) for name in systems}
    quantities = {
        "first": first,
        "second": {name: results.each(two, name, fall) - first[name] for name in systems},
        "lead": {name: first[name] - rivals.max(axis=0) for name in systems},
    }
    table = sweep_table(results, "Fall of the mean 1-Wasserstein distance to i.i.d.", fall)
    chart = sweep_chart(results, "Fall of the distance to i.i.d.", "links a device", "share of the distance", fall)
    return Shown(quantities, (table,), (chart,))


EXPERIMENT = Experiment("edges", points, show, exchange_only, SEEDS, trains=False)
