"""Fig. 16 and 17: random, block, row-sparse and column-sparse trust; CIFAR-10 and SVHN, supervised, 20 devices."""

import numpy as np

from d2dfl.findings import Table
from d2dfl.reproduce import SYSTEMS, Experiment, Point, Results, Shown, task

RULES = {"random": "random:0.5", "block": "block", "rows": "rows:0.5", "columns": "columns:0.5"}
DATA = {"CIFAR-10": "cifar10", "SVHN": "svhn"}


def points(scale: str) -> list[Point]:
    return [
        Point(f"{title}, {name}", {**task(dataset, scale, devices=20), "network.trust": rule})
        for title, dataset in DATA.items()
        for name, rule in RULES.items()
    ]


def show(results: Results) -> Shown:
    quantities, tables = {}, []
    for title in DATA:
        own = {point.name.split(", ")[1]: point for point in results.points if point.name.startswith(title)}
        for system in SYSTEMS:
            scores = {name: results.final(point, system.name) for name, point in own.items()}
            structured = max((scores[name] for name in ("block", "rows", "columns")), key=np.mean)
            sparse = max((scores[name] for name in ("block", "rows")), key=np.mean)
            quantities.setdefault(f"random @ {title}", {})[system.name] = scores["random"] - structured
            quantities.setdefault(f"columns @ {title}", {})[system.name] = scores["columns"] - sparse
        rows = tuple(
            (item.title, *(_text(results.final(point, item.name)) for point in own.values()))
            for item in results.contenders(own["random"])
        )
        tables.append(Table(f"Final accuracy, {title}", ("method", *own), rows))
    return Shown(quantities, tuple(tables))


def _text(values: np.ndarray) -> str:
    return f"{values.mean():.3f} ± {values.std():.3f}" if len(values) else "–"


EXPERIMENT = Experiment("trust", points, show)
