"""Fig. 6e: joules until an accuracy, messages, datapoints and models all charged; how far the factor depends on the radio."""

import numpy as np

from d2dfl.energy.radios import RADIOS
from d2dfl.paper import (
    SYSTEMS,
    Experiment,
    Point,
    Results,
    Shown,
    curve_chart,
    energy_bars,
    method_table,
    task,
    times,
)
from d2dfl.report.findings import Chart, Line, Table


def points(scale: str) -> list[Point]:
    return [Point("radio signals", task("radio", scale), "semi")]


def show(results: Results) -> Shown:
    (point,) = results.points
    ranked = results.baselines(point)
    quantities = {
        f"factor{'' if radio == 'first-order' else '-' + radio}": {
            system.name: results.speedup(point, system.name, ranked[-1].name, radio) for system in SYSTEMS
        }
        for radio in RADIOS
    }
    best = {system.name: results.speedup(point, system.name, ranked[0].name, "first-order") for system in SYSTEMS}
    rows = tuple(
        (
            radio.title,
            *(times(results.speedup(point, system.name, ranked[-1].name, name)) for system in SYSTEMS),
        )
        for name, radio in RADIOS.items()
    )
    radios = Table("Times fewer joules than the weakest baseline", ("radio", *(s.title for s in SYSTEMS)), rows)
    return Shown(
        {**quantities, "over-best": best},
        (method_table(results, point, "All methods"), radios),
        (to_accuracy(results, point), curve_chart(results, point, "Accuracy against rounds")),
        tuple(energy_bars(results, point, f"Joules by purpose, {radio.title}", name) for name, radio in RADIOS.items()),
    )


def to_accuracy(results: Results, point: Point) -> Chart:
    """Accuracy against joules, mean over seeds."""
    lines = []
    for contender in results.contenders(point):
        cells = results.cells(point, contender.name)
        joules = np.mean([cell["joules"]["first-order"] for cell in cells], axis=0)
        scores = np.array([cell["scores"] for cell in cells])
        rows = (joules, scores.mean(axis=0), scores.min(axis=0), scores.max(axis=0))
        lines.append(Line(contender.name, contender.title, *(tuple(map(float, row)) for row in rows)))
    return Chart("Accuracy against joules", "joules, first-order radio", "accuracy", tuple(lines))


EXPERIMENT = Experiment("energy", points, show)
