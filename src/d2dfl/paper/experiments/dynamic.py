"""Fig. 9: received power drawn anew at every step, against its quantisation levels; SVHN and CIFAR-10, supervised.

Only the paper's learner looks at levels: the others are measured once.
"""

import numpy as np

from d2dfl.paper import (
    BASELINES,
    OURS,
    PAPERS,
    Experiment,
    Point,
    Results,
    Shown,
    Values,
    final,
    sweep_lines,
    sweep_table,
    task,
)  # fmt: skip
from d2dfl.report.findings import Chart

LEVELS = {"tiny": (1, 4), "small": (1, 2, 4, 8, 16), "paper": (1, 2, 4, 8, 16)}
DATA = {"SVHN": "svhn", "CIFAR-10": "cifar10"}


def points(scale: str) -> list[Point]:
    channel = {"channel.kind": "gaussian", "channel.dynamic": True}
    return [
        Point(
            f"{title}, {n} levels",
            {**task(data, scale), **channel, "channel.levels": n},
            contenders=(PAPERS, OURS, *BASELINES) if n == LEVELS[scale][0] else (PAPERS,),
            value=n,
        )
        for title, data in DATA.items()
        for n in LEVELS[scale]
    ]


def success(cell: Values) -> float:
    return float(cell["success"]) if cell["success"] is not None else np.nan


def show(results: Results) -> Shown:
    quantities, charts, tables = {}, [], []
    for title in DATA:
        own = [point for point in results.points if point.name.startswith(title)]
        for key, of in (("rise", final), ("success", success)):
            ends = [results.each(point, PAPERS.name, of) for point in (own[-1], own[0])]
            quantities[f"{key} @ {title}"] = {PAPERS.name: ends[0] - ends[1]}
        charts.append(Chart(f"Accuracy, {title}", "quantisation levels", "accuracy", sweep_lines(results, own)))
        tables.append(sweep_table(results, f"Final accuracy, {title}", points=own))
        tables.append(sweep_table(results, f"Probability of success, {title}", success, points=own))
    return Shown(quantities, tuple(tables), tuple(charts))


EXPERIMENT = Experiment("dynamic", points, show)
