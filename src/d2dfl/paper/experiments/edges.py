"""Fig. 8d: distance of the devices' labels to i.i.d. against the number of links, Fashion-MNIST without labels.

Labels serve to measure only. Nobody trains.
"""

from d2dfl.paper import (
    NONE,
    ON_OURS,
    ON_PAPERS,
    Experiment,
    Point,
    Results,
    Shown,
    above_best,
    above_next,
    exchange_only,
    fall,
    sweep_chart,
    sweep_table,
    task,
)  # fmt: skip
from d2dfl.words import counted

LINKS = {"tiny": (1, 2), "small": (1, 2, 3), "paper": (1, 2, 3)}
SEEDS = {"tiny": 2, "small": 5, "paper": 10}
CONTENDERS = (NONE, *ON_PAPERS.contenders, *ON_OURS.contenders)


def points(scale: str) -> list[Point]:
    settings = task("fmnist", scale, devices=10, paradigm="unsupervised")
    return [
        Point(counted(n, "link"), {**settings, "discovery.edges": n}, "unsupervised", CONTENDERS, n)
        for n in LINKS[scale]
    ]


def show(results: Results) -> Shown:
    one, two = results.points[:2]
    systems = [item.name for item in results.systems(one, two)]
    first = {name: results.each(one, name, fall) for name in systems}
    second = {name: results.each(two, name, fall) - first[name] for name in systems}
    quantities = {
        "first": first,
        "second": second,
        "diminishing": {name: first[name] - second[name] for name in systems},
        "lead": above_best(results, one, fall),
        "over-next": above_next(results, one, fall),
    }
    table = sweep_table(results, "Fall of the mean 1-Wasserstein distance to i.i.d.", fall)
    chart = sweep_chart(results, "Fall of the distance to i.i.d.", "links a device", "share of the distance", fall)
    return Shown(quantities, (table,), (chart,))


EXPERIMENT = Experiment("edges", points, show, exchange_only, SEEDS, trains=False)
