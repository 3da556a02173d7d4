"""Fig. 7c and 18: joules until an accuracy against the number of devices, CIFAR-10 and SVHN, supervised."""

from functools import partial

import numpy as np

from d2dfl.findings import Chart, Table
from d2dfl.reproduce import CONTENDERS, SYSTEMS, Experiment, Point, Results, Shown, final, line, task

SIZES = {"tiny": (4, 8), "small": (5, 10, 15, 20, 25), "paper": (5, 10, 15, 20, 25)}
DATA = {"CIFAR-10": "cifar10", "SVHN": "svhn"}


def points(scale: str) -> list[Point]:
    return [
        Point(f"{title}, {n} devices", {**task(dataset, scale, devices=n), "network.devices": n}, value=n)
        for title, dataset in DATA.items()
        for n in SIZES[scale]
    ]


def show(results: Results) -> Shown:
    quantities, charts, tables = {}, [], []
    for title in DATA:
        own = [point for point in results.points if point.name.startswith(title)]
        devices = np.array([point.value for point in own])
        # The target: what no exchange ends with on the hardest size, so that everybody gets there.
        target = min(results.final(point, "none").mean() for point in own)
        joules = {
            item: np.stack([results.each(point, item.name, partial(to_target, target=target)) for point in own], axis=1)
            for item in CONTENDERS
            if all(results.whole(point, item.name) for point in own)
        }
        quantities[f"linear @ {title}"] = {
            item.name: np.array([straight(devices, row) for row in joules[item]]) for item in SYSTEMS if item in joules
        }
        lines = tuple(line(item, devices, rows) for item, rows in joules.items())
        charts.append(Chart(f"Joules until {target:.2f}, {title}", "devices", "joules, first-order radio", lines))
        rows = tuple((item.title, *(f"{value:,.1f}" for value in rows.mean(axis=0))) for item, rows in joules.items())
        columns = ("method", *(f"{n:.0f} devices" for n in devices))
        tables.append(Table(f"Joules until accuracy {target:.3f}, {title}", columns, rows))
    return Shown(quantities, tuple(tables), tuple(charts))


def to_target(cell: dict, target: float) -> float:
    """Joules at the first evaluation that reaches the target, or of the whole run."""
    target = min(target, final(cell))
    return next(j for j, score in zip(cell["joules"]["first-order"], cell["scores"], strict=True) if score >= target)


def straight(x: np.ndarray, y: np.ndarray) -> float:
    """R² of the best straight line."""
    rest = y - np.polyval(np.polyfit(x, y, 1), x)
    return 1.0 - float(rest.var() / y.var())


EXPERIMENT = Experiment("size", points, show)
