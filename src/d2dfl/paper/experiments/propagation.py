"""Fig. 8a: accuracy of propagated labels against components and the unlabelled share, radio signals, 15 devices.

In two ways, each with two scores. The paper projects raw values, whose phase and time are random in every window; spectra
(partition.features) forget both. A device that gives all its datapoints its most frequent label gets 0.70 right: balanced
accuracy, in which each of its three labels counts the same, says 0.33 of that.
"""

import numpy as np

from d2dfl.experiment.cells.cell import Contender
from d2dfl.paper import NONE, Experiment, Point, Quantities, Results, Shown, Values, exchange_only, line, task, text
from d2dfl.paper.charts import dashes
from d2dfl.report.findings import Chart, Table

COMPONENTS = {"tiny": (2, 8), "small": (2, 4, 8, 16, 32), "paper": (2, 4, 8, 16, 32)}
LABELLED = {"tiny": (0.05, 0.3), "small": (0.02, 0.05, 0.15, 0.3), "paper": (0.02, 0.05, 0.15, 0.3)}
FEATURES = {"spectra": "spectrum", "raw values": "raw"}
SEEDS = {"tiny": 2, "small": 5, "paper": 5}
WHO = "distributed PCA + propagation"


def points(scale: str) -> list[Point]:
    settings = task("radio", scale, devices=15)
    return [
        Point(
            f"{title}, {n} components, {share:.0%} labelled",
            {**settings, "partition.features": kind, "partition.components": n, "partition.labelled": share},
            "semi",
            (NONE,),  # labels are given before anything is exchanged
            n,
        )
        for title, kind in FEATURES.items()
        for share in LABELLED[scale]
        for n in COMPONENTS[scale]
    ]


def accuracy(cell: Values) -> float:
    return float(cell["measures"]["label accuracy"])


def balanced(cell: Values) -> float:
    return float(cell["measures"]["balanced label accuracy"])


def show(results: Results) -> Shown:
    counts, shares = COMPONENTS[results.scale], LABELLED[results.scale]
    quantities: Quantities = {}
    tables, charts = [], []
    for title in FEATURES:
        own = [point for point in results.points if point.name.startswith(title)]
        for prefix, of in (("", accuracy), ("balanced-", balanced)):
            found = np.array([results.each(point, NONE.name, of) for point in own])
            found = found.reshape(len(shares), len(counts), -1)  # [share, components, seed]
            quantities[f"{prefix}components @ {title}"] = {WHO: (found[:, -1] - found[:, 0]).mean(axis=0)}
            quantities[f"{prefix}share @ {title}"] = {WHO: (found[-1] - found[0]).mean(axis=0)}
            name = f"{prefix.replace('-', ' ')}label accuracy, {title}".capitalize()
            tables.append(_table(name, found, results.scale))
            charts.append(_chart(name, found, results.scale))
    return Shown(quantities, tuple(tables), tuple(charts))


def _table(title: str, found: np.ndarray, scale: str) -> Table:
    rows = tuple(
        (f"{1 - share:.0%} unlabelled", *(text(values) for values in found[n]))
        for n, share in enumerate(LABELLED[scale])
    )
    note = "Mean ± deviation over seeds. A device that gives every datapoint its most frequent label gets 0.70 right, 0.33 balanced."
    note = "; ".join(filter(None, (note, dashes(rows, "not measured"))))
    return Table(title, ("", *(f"{n} components" for n in COMPONENTS[scale])), rows, note)


def _chart(title: str, found: np.ndarray, scale: str) -> Chart:
    x = np.array(COMPONENTS[scale], float)
    lines = tuple(
        line(Contender(f"{share:.0%}", f"{1 - share:.0%} unlabelled", NONE.name), x, found[n].T)
        for n, share in enumerate(LABELLED[scale])
    )
    return Chart(title, "principal components", "share of right labels", lines)


EXPERIMENT = Experiment("propagation", points, show, exchange_only, SEEDS, trains=False)
