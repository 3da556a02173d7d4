"""Fig. 7d and 15: accuracy with 1 to 5 labels a device, SVHN and CIFAR-10, supervised, 10 devices."""

from d2dfl.findings import Chart, Table
from d2dfl.reproduce import SYSTEMS, Experiment, Point, Results, Shown, line, task

LABELS = {"tiny": (1, 5), "small": (1, 2, 3, 4, 5), "paper": (1, 2, 3, 4, 5)}
DATA = {"SVHN": "svhn", "CIFAR-10": "cifar10"}


def points(scale: str) -> list[Point]:
    return [
        Point(f"{title}, {n} labels", {**task(dataset, scale, devices=10), "data.allocation": f"labels:{n}"}, value=n)
        for title, dataset in DATA.items()
        for n in LABELS[scale]
    ]


def show(results: Results) -> Shown:
    import numpy as np

    quantities, charts, tables = {}, [], []
    for title in DATA:
        own = [point for point in results.points if point.name.startswith(title)]

        def ratio(point: Point, name: str) -> np.ndarray:
            return results.final(point, name) / results.final(point, "none")

        names = [system.name for system in SYSTEMS]
        quantities[f"one @ {title}"] = {name: ratio(own[0], name) for name in names}
        quantities[f"five @ {title}"] = {name: ratio(own[-1], name) for name in names}
        quantities[f"falls @ {title}"] = {name: ratio(own[0], name) - ratio(own[-1], name) for name in names}
        x = np.array([point.value for point in own])
        here = results.contenders(own[0])
        scores = {item: np.stack([results.final(point, item.name) for point in own], axis=1) for item in here}
        lines = tuple(line(item, x, rows) for item, rows in scores.items())
        charts.append(Chart(f"Accuracy, {title}", "labels a device", "accuracy", lines))
        rows = tuple((item.title, *(f"{value:.3f}" for value in rows.mean(axis=0))) for item, rows in scores.items())
        tables.append(Table(f"Final accuracy, {title}", ("method", *(f"{n:.0f} labels" for n in x)), rows))
    return Shown(quantities, tuple(tables), tuple(charts))


EXPERIMENT = Experiment("skew", points, show)
