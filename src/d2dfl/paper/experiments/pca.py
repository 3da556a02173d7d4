"""Fig. 8b: what the shared principal components do, Fashion-MNIST without labels, 10 devices.

Flat however we measure it: by linear evaluation, as the paper does, and by how much nearer to i.i.d. devices come.
"""

from d2dfl.paper import (
    FIVE,
    OURS,
    PAPERS,
    SYSTEMS,
    Contender,
    Experiment,
    Point,
    Results,
    Shown,
    fall,
    sweep_lines,
    sweep_table,
    task,
)  # fmt: skip
from d2dfl.report.findings import Chart

COMPONENTS = {"tiny": (2, 4, 8), "small": (2, 8, 32), "paper": (2, 8, 32)}
NETWORKS = {"tiny": 2, "small": 10, "paper": 10}
MOVERS = (PAPERS, OURS, FIVE)


def points(scale: str) -> list[Point]:
    settings = task("fmnist", scale, devices=10, paradigm="unsupervised")

    def at(name: str, number: int, contenders: tuple[Contender, ...], trains: bool) -> Point:
        changes = {**settings, "partition.components": number}
        return Point(
            name=name,
            settings=changes,
            paradigm="unsupervised",
            contenders=contenders,
            value=number,
            trains=trains,
            seeds=None if trains else NETWORKS[scale],
        )

    trained = [at(f"{n} components", n, SYSTEMS, True) for n in COMPONENTS[scale]]
    return trained + [at(f"{n} components, distance", n, MOVERS, False) for n in COMPONENTS[scale]]


def show(results: Results) -> Shown:
    trained, moved = ([point for point in results.points if point.trains is trains] for trains in (True, False))
    scores = {s.name: [results.final(point, s.name) for point in trained] for s in results.systems(*trained)}
    falls = {s.name: [results.each(point, s.name, fall) for point in moved] for s in results.systems(*moved)}
    quantities = {
        "rise": {name: high - low for name, (low, _, high) in scores.items()},
        "diminishing": {name: (mid - low) - (high - mid) for name, (low, mid, high) in scores.items()},
        "distance": {name: high - low for name, (low, _, high) in falls.items()},
    }
    tables = (
        sweep_table(results, "Final linear evaluation", points=trained),
        sweep_table(results, "Fall of the 1-Wasserstein distance to i.i.d.", fall, points=moved),
    )
    chart = Chart("Linear evaluation", "principal components", "linear evaluation", sweep_lines(results, trained))
    note = (
        "Flat however measured: two components already tell clusters apart well enough for the exchange, and linear evaluation "
        "is a few hundredths from no exchange to i.i.d. at most, so that no sweep of the partition can move it by more."
    )
    return Shown(quantities, tables, (chart,), notes=(note,))


EXPERIMENT = Experiment("pca", points, show)
