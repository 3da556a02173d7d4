"""Fig. 9: received power drawn anew at every step, against its quantisation levels; SVHN and CIFAR-10, supervised.

Nobody plans with the channel of the exchange. Right before it a device measures the level of each of its links: the paper's
policies choose by it, `closest` takes the highest, the others plan with mean losses and do not look; beside ours stands ours
with the mean losses of the levels. R45: N(0.3, 0.1) with 0.1 as deviation and as variance. The paper's reason for
the rise, policies that tell links apart, is measured over many networks as the share of datapoints that arrive.
"""

import numpy as np

from d2dfl.paper import (
    NONE,
    ON_PAPERS,
    OURS,
    PAPERS,
    Array,
    Contender,
    Experiment,
    Point,
    Quantities,
    Results,
    Shown,
    Values,
    final,
    sweep_lines,
    sweep_table,
    task,
)  # fmt: skip
from d2dfl.paper.leads import Value
from d2dfl.paper.terms import CLOSEST, TRUSTED, UNIFORM
from d2dfl.report.findings import Chart

LEVELS = {"tiny": (1, 4), "small": (1, 2, 4, 8, 16), "paper": (1, 2, 4, 8, 16)}
DATA = {"SVHN": "svhn", "CIFAR-10": "cifar10"}
READINGS = {"deviation 0.1": "deviation", "variance 0.1": "variance"}
LINKS = "links"
NETWORKS = {"tiny": 2, "small": 10, "paper": 10}
INFORMED = Contender("marginal-levels", "ours, plans by levels", "marginal", "best", {"channel.plan": "levels"})
LOOKERS = (*ON_PAPERS.papers, INFORMED, CLOSEST)
MOVERS = (*LOOKERS, OURS, TRUSTED, UNIFORM)


def points(scale: str) -> list[Point]:
    def at(title: str, reading: str, levels: int, contenders: tuple[Contender, ...]) -> Point:
        channel = {"channel.kind": "gaussian", "channel.dynamic": True, "channel.deviation_rule": READINGS[reading]}
        settings = {**task(DATA.get(title, "cifar10"), scale), **channel, "channel.levels": levels}
        trains = title in DATA
        name = f"{title}, {reading}, {levels} levels"
        return Point(
            name=name,
            settings=settings,
            paradigm="supervised",
            contenders=contenders,
            value=levels,
            trains=trains,
            seeds=None if trains else NETWORKS[scale],
        )

    first = LEVELS[scale][0]  # those that do not look at levels are measured once
    return [
        *(
            at(title, reading, n, (PAPERS, OURS, NONE) if n == first else (PAPERS,))
            for title in DATA
            for reading in READINGS
            for n in LEVELS[scale]
        ),
        *(at(LINKS, reading, n, MOVERS if n == first else LOOKERS) for reading in READINGS for n in LEVELS[scale]),
    ]


def success(cell: Values) -> float:
    return float(cell["success"]) if cell["success"] is not None else np.nan


def show(results: Results) -> Shown:
    quantities: Quantities = {}
    charts, tables = [], []
    for reading in READINGS:
        own = _points(results, LINKS, reading)
        quantities[f"success @ {reading}"] = {
            item.name if item is not INFORMED else item.title: rise(results, own, item, success)
            for item in LOOKERS
            if results.there(own[0], item.name) and results.there(own[-1], item.name)
        }
        lines = sweep_lines(results, own, success)
        charts.append(Chart(f"Probability of success, {reading}", "quantisation levels", "arrived / sent", lines))
        tables.append(sweep_table(results, f"Probability of success, {reading}", success, points=own))
        for title in DATA:
            own = _points(results, title, reading)
            quantities[f"rise @ {title}, {reading}"] = {PAPERS.name: rise(results, own, PAPERS, final)}
            lines = sweep_lines(results, own)
            charts.append(Chart(f"Accuracy, {title}, {reading}", "quantisation levels", "accuracy", lines))
            tables.append(sweep_table(results, f"Final accuracy, {title}, {reading}", points=own))
    return Shown(quantities, tuple(tables), tuple(charts))


def _points(results: Results, title: str, reading: str) -> list[Point]:
    return [point for point in results.points if point.name.startswith(f"{title}, {reading}")]


def rise(results: Results, own: list[Point], contender: Contender, of: Value) -> Array:
    """[seed] a value with the most levels above that with the fewest."""
    return results.each(own[-1], contender.name, of) - results.each(own[0], contender.name, of)


EXPERIMENT = Experiment("dynamic", points, show)
