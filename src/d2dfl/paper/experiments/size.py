"""Fig. 7c and 18: joules until an accuracy against the number of devices, CIFAR-10 and SVHN, supervised.

Devices stand in the same square whatever their number: else distances would grow with it, and joules with their square.
"""

from functools import partial

import numpy as np

from d2dfl.config.sections.learning import FIRST_ORDER
from d2dfl.energy.purposes import BEFORE
from d2dfl.paper import (
    NONE,
    SYSTEMS,
    Array,
    Experiment,
    Point,
    Results,
    Shown,
    Values,
    effort_or_all,
    known,
    sweep_lines,
    sweep_table,
    task,
)  # fmt: skip
from d2dfl.report.findings import Chart

SIZES = {"tiny": (4, 8), "small": (5, 10, 15, 20, 25), "paper": (5, 10, 15, 20, 25)}
DATA = {"CIFAR-10": "cifar10", "SVHN": "svhn"}
TARGETS = (0.8, 1.0)  # of what no exchange ends with at the hardest size, so that everybody gets there
GROWTH_TARGET = 1.0  # the one of them by which joules are said to grow
SIDE_M = 500.0
CONTENDERS = (NONE, *SYSTEMS)  # the claim is about one's own joules, whoever else spends some


def points(scale: str) -> list[Point]:
    return [
        Point(
            f"{title}, {n} devices",
            {**task(dataset, scale, devices=n), "network.devices": n, "channel.side_m": SIDE_M * (25 / n) ** 0.5},
            contenders=CONTENDERS,
            value=n,
        )
        for title, dataset in DATA.items()
        for n in SIZES[scale]
    ]


def show(results: Results) -> Shown:
    quantities, charts, tables = {}, [], []
    for title in DATA:
        own = [point for point in results.points if point.name.startswith(title)]
        hardest = min(known(results.final(point, NONE.name)).mean() for point in own)
        for share in TARGETS:
            spent = partial(kilojoules, target=share * hardest)
            what = f"Kilojoules until accuracy {share * hardest:.3f}, {title}"
            charts.append(Chart(what, "devices", "kJ, first-order radio", sweep_lines(results, own, spent)))
            tables.append(sweep_table(results, f"{what} (lower is better)", spent, 0, own))
        tables.append(sweep_table(results, f"Of which before training (D2D), {title}", before_training, 2, own))
        until = partial(kilojoules, target=GROWTH_TARGET * hardest)
        quantities[f"exponent @ {title}"] = {
            system.name: growth([results.each(point, system.name, until) for point in own], own) for system in SYSTEMS
        }
    return Shown(quantities, tuple(tables), tuple(charts))


def kilojoules(cell: Values, target: float) -> float:
    return effort_or_all(cell, target, FIRST_ORDER) / 1000


def before_training(cell: Values) -> float:
    return float(sum(cell["purposes"][FIRST_ORDER][name] for name in BEFORE)) / 1000


def growth(joules: list[Array], own: list[Point]) -> Array:
    """[seed] p in joules ∝ devices^p."""
    rows = np.log(np.stack(joules, axis=1))
    sizes = np.log([point.value for point in own])
    return np.array([np.polyfit(sizes, row, 1)[0] if np.isfinite(row).all() else np.nan for row in rows])


EXPERIMENT = Experiment("size", points, show)
