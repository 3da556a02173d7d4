"""Fig. 4: the graphs themselves, CIFAR-10, supervised, 25 devices, one link a device.

Node colour: labels of which a device holds 5 % of its data or more after the exchange. Nobody trains.
"""

from dataclasses import asdict, replace

import numpy as np

from d2dfl.paper import (
    BASELINES,
    CONTROL,
    FIVE,
    OURS,
    PAPERS,
    SYSTEMS,
    Cell,
    Experiment,
    Point,
    Results,
    Shown,
    Values,
    each,
    exchange_values,
    prepared,
    sweep_table,
    task,
)  # fmt: skip
from d2dfl.report.findings import Map, read_record

CONTENDERS = (PAPERS, OURS, FIVE, *BASELINES, CONTROL)
SEEDS = {"tiny": 2, "small": 10, "paper": 10}


def points(scale: str) -> list[Point]:
    return [Point("CIFAR-10, 25 devices", task("cifar10", scale), contenders=CONTENDERS)]


def measure(cell: Cell) -> Values:
    from d2dfl.experiment.maps import layer_of, map_of

    item = prepared(cell)
    values = exchange_values(item)
    if cell.seed == 0 and item.discovery is not None:  # one map is enough to look at
        title = next(contender.title for contender in CONTENDERS if contender.name == cell.contender)
        layer = replace(layer_of(title, item.discovery, cell.contender), satisfied=tuple(values["labels"]))
        network = item.discovery.network
        enough = np.broadcast_to(0.05 * network.counts.sum(axis=1, keepdims=True), network.counts.shape)
        shown = replace(network, threshold=enough)  # R29, for everyone alike whatever threshold it asks by
        drawn = map_of("Seed 0", shown, [layer])
        if drawn is not None:
            values["map"] = asdict(drawn)
    return values


def satisfied(cell: Values) -> float:
    return float(np.mean(cell["labels"]))


def green(cell: Values) -> float:
    return float(np.sum(np.array(cell["labels"]) >= 5))


def show(results: Results) -> Shown:
    (point,) = results.points
    rivals = [item.name for item in BASELINES if results.there(point, item.name)]
    quantities = {}
    for key, of in (("green", green), ("satisfied", satisfied)):
        best = np.max([results.each(point, name, of) for name in rivals], axis=0)
        quantities[key] = {system.name: results.each(point, system.name, of) - best for system in SYSTEMS}
    tables = (
        sweep_table(results, "Devices with five labels or more", green, 1),
        sweep_table(results, "Labels a device", satisfied, 2),
    )
    return Shown(quantities, tables, maps=_maps(results, point))


def _maps(results: Results, point: Point) -> tuple[Map, ...]:
    """All graphs of seed 0 over the same devices."""
    here = [
        results.found[point.name, item.name, 0] for item in CONTENDERS if (point.name, item.name, 0) in results.found
    ]
    drawn = [cell["map"] for cell in here if "map" in cell]
    return (read_record(Map, {**drawn[0], "layers": [item["layers"][0] for item in drawn]}),) if drawn else ()


EXPERIMENT = Experiment("graphs", points, show, each(measure), SEEDS, trains=False)
