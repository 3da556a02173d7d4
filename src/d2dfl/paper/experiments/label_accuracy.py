"""Fig. 14a: how wrong pseudo-labels hurt. The neighbours of label propagation vary; SVHN, semi-supervised."""

import numpy as np

from d2dfl.notebook import counted
from d2dfl.paper import OURS, PAPERS, Experiment, Point, Results, Shown, Values, sweep_chart, sweep_table, task

NEIGHBOURS = {"tiny": (1, 20), "small": (1, 3, 7, 20, 60), "paper": (1, 3, 7, 20, 60)}
SYSTEMS = (PAPERS, OURS)


def points(scale: str) -> list[Point]:
    return [
        Point(counted(n, "neighbour"), {**task("svhn", scale), "partition.neighbours": n}, "semi", SYSTEMS, n)
        for n in NEIGHBOURS[scale]
    ]


def label_accuracy(cell: Values) -> float:
    return float(cell["measures"]["label accuracy"])


def show(results: Results) -> Shown:
    from scipy.stats import spearmanr

    ranks, falls = {}, {}
    for system in SYSTEMS:
        labels = np.array([results.each(point, system.name, label_accuracy) for point in results.points])
        scores = np.array([results.final(point, system.name) for point in results.points])
        ranks[system.name] = np.array([spearmanr(a, b).statistic for a, b in zip(labels.T, scores.T, strict=True)])
        mean = np.nanmean(labels, axis=1)
        best, worst = mean.argmax(), mean.argmin()
        falls[system.name] = scores[best] - scores[worst]
    return Shown(
        {"rank": ranks, "fall": falls},
        (sweep_table(results, "Label accuracy", label_accuracy), sweep_table(results, "Final accuracy")),
        (
            sweep_chart(results, "Label accuracy", "neighbours", "label accuracy", label_accuracy),
            sweep_chart(results, "Final accuracy", "neighbours", "accuracy"),
        ),
    )


EXPERIMENT = Experiment("label-accuracy", points, show)
