"""Fig. 8c: linear evaluation against the number of K-means clusters, Fashion-MNIST without labels, 10 devices."""

import numpy as np

from d2dfl.paper import SYSTEMS, Experiment, Point, Results, Shown, sweep_chart, sweep_table, task

CLUSTERS = {"tiny": (3, 7), "small": (3, 5, 7, 10, 20), "paper": (3, 5, 7, 10, 20)}


def points(scale: str) -> list[Point]:
    settings = task("fmnist", scale, devices=10, paradigm="unsupervised")
    return [
        Point(f"{n} clusters", {**settings, "partition.clusters": n}, "unsupervised", value=n) for n in CLUSTERS[scale]
    ]


def show(results: Results) -> Shown:
    lead = {}
    for system in SYSTEMS:
        scores = {point.value: results.final(point, system.name) for point in results.points}
        others = max((values for n, values in scores.items() if n != 7), key=np.nanmean)
        lead[system.name] = scores[7] - others
    chart = sweep_chart(results, "Linear evaluation against clusters", "clusters", "linear evaluation")
    return Shown({"seven": lead}, (sweep_table(results, "Final linear evaluation"),), (chart,))


EXPERIMENT = Experiment("kmeans", points, show)
