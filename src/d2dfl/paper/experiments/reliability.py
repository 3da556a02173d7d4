"""Fig. 6d: probability that a datapoint arrives, and the share that crosses between reliable clusters; nobody trains."""

import numpy as np

from d2dfl.paper import (
    BASELINES,
    CONTROL,
    FIVE,
    NONE,
    OURS,
    PAPERS,
    SYSTEMS,
    Array,
    Experiment,
    Point,
    Results,
    Shown,
    Values,
    exchange_only,
    sweep_table,
    task,
)  # fmt: skip

MOVERS = tuple(item for item in BASELINES if item is not NONE)
SEEDS = {"tiny": 2, "small": 10, "paper": 20}


def points(scale: str) -> list[Point]:
    contenders = (PAPERS, OURS, FIVE, *MOVERS, CONTROL)
    return [Point("radio signals, 10 devices", task("radio", scale, devices=10), "semi", contenders)]


def success(cell: Values) -> float:
    return np.nan if cell["success"] is None else float(cell["success"])


def inter(cell: Values) -> float:
    return np.nan if cell["inter"] is None else float(cell["inter"])


def moved(cell: Values) -> float:
    return float(cell["moved"])


def show(results: Results) -> Shown:
    (point,) = results.points
    rivals = [item.name for item in MOVERS if results.there(point, item.name)]
    theirs = np.stack([results.each(point, name, success) for name in rivals])
    volume = np.stack([results.each(point, name, moved) for name in rivals])
    crossing = np.mean([results.each(point, name, inter) for name in rivals], axis=0)
    quantities: dict[str, dict[str, Array]] = {"success": {}, "success-moving": {}, "inter": {}}
    for system in SYSTEMS:
        mine, amount = results.each(point, system.name, success), results.each(point, system.name, moved)
        busy = np.where(volume >= 0.5 * amount, theirs, np.nan)
        quantities["success"][system.name] = mine - highest(theirs)
        quantities["success-moving"][system.name] = mine - highest(busy)
        quantities["inter"][system.name] = results.each(point, system.name, inter) - crossing
    tables = (
        sweep_table(results, "Probability of success", success),
        sweep_table(results, "Share between clusters", inter),
        sweep_table(results, "Datapoints sent", moved, 0),
    )
    return Shown(quantities, tables)


def highest(rows: np.ndarray) -> np.ndarray:
    """[seed] the largest of rows[rival, seed] among rivals that have a value; NaN where none has."""
    best = np.where(np.isnan(rows), -np.inf, rows).max(axis=0)
    return np.where(np.isfinite(best), best, np.nan)


EXPERIMENT = Experiment("reliability", points, show, exchange_only, SEEDS, trains=False)
