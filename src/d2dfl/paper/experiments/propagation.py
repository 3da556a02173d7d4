"""Fig. 8a: accuracy of propagated labels against components and the unlabelled share, radio signals, 15 devices."""

import numpy as np

from d2dfl.experiment.cell import Contender
from d2dfl.paper import NONE, Experiment, Point, Results, Shown, Values, exchange_only, line, task, text
from d2dfl.paper.charts import dashes
from d2dfl.report.findings import Chart, Table

COMPONENTS = {"tiny": (2, 8), "small": (2, 4, 8, 16, 32), "paper": (2, 4, 8, 16, 32)}
LABELLED = {"tiny": (0.05, 0.3), "small": (0.02, 0.05, 0.15, 0.3), "paper": (0.02, 0.05, 0.15, 0.3)}
SEEDS = {"tiny": 2, "small": 5, "paper": 5}


def points(scale: str) -> list[Point]:
    settings = task("radio", scale, devices=15)
    return [
        Point(
            f"{n} components, {share:.0%} labelled",
            {**settings, "partition.components": n, "partition.labelled": share},
            "semi",
            (NONE,),  # labels are given before anything is exchanged
            n,
        )
        for share in LABELLED[scale]
        for n in COMPONENTS[scale]
    ]


def accuracy(cell: Values) -> float:
    return float(cell["measures"]["label accuracy"])


def show(results: Results) -> Shown:
    counts, shares = COMPONENTS[results.scale], LABELLED[results.scale]
    found = np.array([results.each(point, "none", accuracy) for point in results.points])
    found = found.reshape(len(shares), len(counts), -1)  # [share, components, seed]
    lines = tuple(
        line(Contender(f"{share:.0%}", f"{1 - share:.0%} unlabelled", "none"), np.array(counts, float), found[n].T)
        for n, share in enumerate(shares)
    )
    rows = tuple(
        (f"{1 - share:.0%} unlabelled", *(text(values) for values in found[n])) for n, share in enumerate(shares)
    )
    quantities = {
        "components": {"distributed PCA + propagation": (found[:, -1] - found[:, 0]).mean(axis=0)},
        "share": {"distributed PCA + propagation": (found[-1] - found[0]).mean(axis=0)},
    }
    note = "Mean ± deviation over seeds. A device that gives every datapoint its most frequent label gets 0.70 right."
    note = "; ".join(filter(None, (note, dashes(rows, "not measured"))))
    table = Table("Label accuracy", ("", *(f"{n} components" for n in counts)), rows, note)
    chart = Chart("Label accuracy", "principal components", "share of right labels", lines)
    return Shown(quantities, (table,), (chart,))


EXPERIMENT = Experiment("propagation", points, show, exchange_only, SEEDS, trains=False)
