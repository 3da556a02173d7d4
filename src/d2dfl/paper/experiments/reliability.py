"""Fig. 6d: how reliably datapoints are shared, radio signals, semi-supervised, 10 devices; nobody trains.

R44: the text faults `closest` for sharing little, which the probability that a datapoint arrives, arrived / sent, rewards.
Beside it stands arrived / lacked: of all that devices lack to their thresholds, the share that they receive. What they seem
to hold are pseudo-labels: of raw values little more than a device's most frequent label, which leaves little to share; of
spectra nearly the true ones (see `propagation`).
"""

import numpy as np

from d2dfl.paper import (
    TERMS,
    Array,
    Experiment,
    Point,
    Quantities,
    Results,
    Shown,
    Values,
    above_best,
    above_next,
    exchange_only,
    sweep_table,
    task,
    terms_of,
)  # fmt: skip

CONTENDERS = tuple(item for terms in TERMS for item in terms.contenders)
FEATURES = {"spectra": "spectrum", "raw values": "raw"}
SEEDS = {"tiny": 2, "small": 10, "paper": 10}


def points(scale: str) -> list[Point]:
    settings = task("radio", scale, devices=10)
    return [
        Point(title, {**settings, "partition.features": kind}, "semi", CONTENDERS) for title, kind in FEATURES.items()
    ]


def success(cell: Values) -> float:
    return np.nan if cell["success"] is None else float(cell["success"])


def shared(cell: Values) -> float:
    return float(cell["arrived"] / cell["lacked"]) if cell["lacked"] else np.nan


def inter(cell: Values) -> float:
    return np.nan if cell["inter"] is None else float(cell["inter"])


def show(results: Results) -> Shown:
    quantities: Quantities = {}
    for point in results.points:
        quantities |= {
            f"success @ {point.name}": above_best(results, point, success),
            f"shared @ {point.name}": above_best(results, point, shared),
            f"over-next @ {point.name}": above_next(results, point, shared),
            f"inter @ {point.name}": {
                system.name: results.each(point, system.name, inter) - usual(results, point, system.name)
                for system in results.systems(point)
            },
        }
    tables = (
        sweep_table(results, "Arrived / sent: probability of success", success),
        sweep_table(results, "Arrived / lacked", shared),
        sweep_table(results, "Share between clusters", inter),
        sweep_table(results, "Datapoints sent", lambda cell: float(cell["moved"]), 0),
    )
    return Shown(quantities, tables)


def usual(results: Results, point: Point, system: str) -> Array:
    """[seed] the share between clusters of the baselines on a system's terms, in the mean over those that send anything."""
    names = [item.name for item in terms_of(system).baselines if results.there(point, item.name)]
    rows = np.array([results.each(point, name, inter) for name in names])
    number = np.isfinite(rows).sum(axis=0)
    return np.where(number > 0, np.nansum(rows, axis=0) / np.maximum(number, 1), np.nan)


EXPERIMENT = Experiment("reliability", points, show, exchange_only, SEEDS, trains=False)
