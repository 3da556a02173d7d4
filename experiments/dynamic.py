"""Fig. 9: received power drawn anew at every step, against its quantisation levels; SVHN and CIFAR-10, supervised."""

import numpy as np

from d2dfl.findings import Chart, Table
from d2dfl.reproduce import BASELINES, OURS, PAPERS, Experiment, Point, Results, Shown, final, line, task

LEVELS = {"tiny": (1, 4), "small": (1, 2, 4, 8, 16), "paper": (1, 2, 4, 8, 16)}
DATA = {"SVHN": "svhn", "CIFAR-10": "cifar10"}
CONTENDERS = (PAPERS, OURS, *BASELINES)


def points(scale: str) -> list[Point]:
    channel = {"channel.kind": "gaussian", "channel.dynamic": True}
    return [
        Point(
            f"{title}, {n} levels", {**task(data, scale), **channel, "channel.levels": n}, "supervised", CONTENDERS, n
        )
        for title, data in DATA.items()
        for n in LEVELS[scale]
    ]


def success(cell: dict) -> float:
    return cell["success"] if cell["success"] is not None else np.nan


def show(results: Results) -> Shown:
    quantities, charts, tables = {}, [], []
    for title in DATA:
        own = [point for point in results.points if point.name.startswith(title)]
        x = np.array([point.value for point in own])
        for key, of in (("rise", final), ("success", success)):
            quantities[f"{key} @ {title}"] = {
                item.name: results.each(own[-1], item.name, of) - results.each(own[0], item.name, of)
                for item in (PAPERS, OURS)
            }
        here = results.contenders(own[0])
        scores = {item: np.stack([results.final(point, item.name) for point in own], axis=1) for item in here}
        lines = tuple(line(item, x, rows) for item, rows in scores.items())
        charts.append(Chart(f"Accuracy, {title}", "quantisation levels", "accuracy", lines))
        rows = tuple((item.title, *(f"{value:.3f}" for value in rows.mean(axis=0))) for item, rows in scores.items())
        tables.append(Table(f"Final accuracy, {title}", ("method", *(f"{n:.0f} levels" for n in x)), rows))
    return Shown(quantities, tuple(tables), tuple(charts))


EXPERIMENT = Experiment("dynamic", points, show)
