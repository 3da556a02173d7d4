"""Fig. 7a: accuracy when some devices never send their model, SVHN, supervised, 15 devices."""

import numpy as np

from d2dfl.paper import SYSTEMS, Experiment, Point, Results, Shown, sweep_chart, sweep_table, task

NUMBERS = {"tiny": (0, 4), "small": (0, 3, 6, 9, 12), "paper": (0, 3, 6, 9, 12)}


def points(scale: str) -> list[Point]:
    settings = task("svhn", scale, devices=15)
    return [
        Point(f"{number} stragglers", {**settings, "federation.stragglers": number}, value=number)
        for number in NUMBERS[scale]
    ]


def show(results: Results) -> Shown:
    first, last = results.points[0], results.points[-1]

    def fall(name: str) -> np.ndarray:
        return results.final(first, name) - results.final(last, name)

    rivals = np.stack([fall(item.name) for item in results.baselines(last)])
    best = results.baselines(last)[0].name
    quantities = {
        "kept": {system.name: rivals.min(axis=0) - fall(system.name) for system in SYSTEMS},
        "left": {system.name: results.gain(last, system.name, best) for system in SYSTEMS},
    }
    chart = sweep_chart(results, "Accuracy with stragglers", "stragglers", "accuracy")
    return Shown(quantities, (sweep_table(results, "Final accuracy"),), (chart,))


EXPERIMENT = Experiment("stragglers", points, show)
