"""Fig. 14a: how wrong pseudo-labels hurt. The neighbours of label propagation vary; SVHN, semi-supervised.

Projections of raw pixels tell digits apart by their light: whatever the neighbours, labels are about as good as a device's most
frequent one, and there is nothing to see. With gradients (partition.features) they range from good to that. Balanced
accuracy counts each label of a device the same; by the plain one, to give all the most frequent label looks best.
"""

import numpy as np

from d2dfl.paper import (
    FIVE,
    OURS,
    PAPERS,
    Array,
    Experiment,
    Point,
    Quantities,
    Results,
    Shown,
    Values,
    sweep_lines,
    sweep_table,
    task,
)  # fmt: skip
from d2dfl.report.findings import Chart
from d2dfl.words import counted

NEIGHBOURS = {"tiny": (1, 20), "small": (1, 3, 7, 20, 60), "paper": (1, 3, 7, 20, 60)}
FEATURES = {"gradients": "gradients", "raw pixels": "raw"}
CONTENDERS = (PAPERS, OURS, FIVE)


def points(scale: str) -> list[Point]:
    return [
        Point(
            f"{title}, {counted(n, 'neighbour')}",
            {**task("svhn", scale), "partition.neighbours": n, "partition.features": kind},
            "semi",
            CONTENDERS,
            n,
        )
        for title, kind in FEATURES.items()
        for n in NEIGHBOURS[scale]
    ]


def accuracy(cell: Values) -> float:
    return float(cell["measures"]["label accuracy"])


def balanced(cell: Values) -> float:
    return float(cell["measures"]["balanced label accuracy"])


SCORES = {"": accuracy, "balanced-": balanced}


def show(results: Results) -> Shown:
    quantities: Quantities = {}
    tables, charts = [], []
    for title in FEATURES:
        own = [point for point in results.points if point.name.startswith(title)]
        for system in results.systems(*own):
            scores = np.array([results.final(point, system.name) for point in own])
            for prefix, of in SCORES.items():
                labels = np.array([results.each(point, system.name, of) for point in own])
                mean = np.nanmean(labels, axis=1)
                fallen = scores[mean.argmax()] - scores[mean.argmin()]
                quantities.setdefault(f"{prefix}rank @ {title}", {})[system.name] = ranks(labels, scores)
                quantities.setdefault(f"{prefix}fall @ {title}", {})[system.name] = fallen
        tables += [
            sweep_table(results, f"Label accuracy, {title}", accuracy, points=own),
            sweep_table(results, f"Balanced label accuracy, {title}", balanced, points=own),
            sweep_table(results, f"Final accuracy, {title}", points=own),
        ]
        lines = sweep_lines(results, own, balanced)
        charts += [
            Chart(f"Balanced label accuracy, {title}", "neighbours", "balanced label accuracy", lines),
            Chart(f"Final accuracy, {title}", "neighbours", "accuracy", sweep_lines(results, own)),
        ]
    return Shown(quantities, tuple(tables), tuple(charts))


def ranks(labels: Array, scores: Array) -> Array:
    """[seed] rank correlation over the sweep of labels[point, seed] and scores[point, seed]."""
    from scipy.stats import spearmanr

    return np.array([spearmanr(one, other).statistic for one, other in zip(labels.T, scores.T, strict=True)])


EXPERIMENT = Experiment("label-accuracy", points, show)
