"""Fig. 6e: joules until an accuracy, messages, datapoints and models all charged; how far the factor depends on the radio."""

from dataclasses import replace

import numpy as np

from d2dfl.config.sections.learning import FIRST_ORDER
from d2dfl.energy.radios import RADIOS
from d2dfl.paper import (
    CONTENDERS,
    NONE,
    SHUFFLE,
    TERMS,
    Array,
    Contender,
    Experiment,
    Point,
    Quantities,
    Results,
    Shown,
    curve_charts,
    energy_bars,
    equal_table,
    method_table,
    speed,
    task,
    times,
)  # fmt: skip
from d2dfl.report.findings import Chart, Line, Table

NEAR = ("closest", "uniform")  # of which the paper says less than of the other baselines


def points(scale: str) -> list[Point]:
    return [Point("radio signals", task("radio", scale), "semi", CONTENDERS)]


def show(results: Results) -> Shown:
    (point,) = results.points
    factors = {name: speed(results, point, radio=name) for name in RADIOS}
    quantities: Quantities = {
        f"factor{'' if name == FIRST_ORDER else '-' + name}": found["joules-up-to"] for name, found in factors.items()
    }
    quantities["over-best"] = factors[FIRST_ORDER]["joules-over-best"]
    for system in results.systems(point):
        baselines = results.baselines(point, system.name)
        near = [item for item in baselines if item.method in NEAR]
        for key, rivals in (("same-near", near), ("same-far", [item for item in baselines if item not in near])):
            if rivals:
                quantities.setdefault(key, {})[system.name] = ahead(results, point, system.name, rivals[0].name)
    systems = results.systems(point)
    rows = tuple(
        (radio.title, *(times(factors[name]["joules-up-to"][system.name]) for system in systems))
        for name, radio in RADIOS.items()
    )
    title = "Times fewer joules than the baseline that takes most of them, on the same terms"
    radios = Table(title, ("radio", *(system.title for system in systems)), rows)
    return Shown(
        quantities,
        (equal_table(results, point, point.name), method_table(results, point, "All methods"), radios),
        (
            *(to_accuracy(results, point, terms.contenders, terms.title) for terms in TERMS),
            *curve_charts(results, point),
        ),
        tuple(energy_bars(results, point, f"Joules by purpose, {radio.title}", name) for name, radio in RADIOS.items()),
    )


def ahead(results: Results, point: Point, name: str, over: str) -> Array:
    """[seed] how much better the score is than another's when both have spent as much as the one who spent less."""
    pairs = [[results.found.get((point.name, who, seed)) for who in (name, over)] for seed in results.seeds]
    found = []
    for mine, other in pairs:
        if mine is None or other is None:
            found.append(np.nan)
            continue
        spent = min(cell["joules"][FIRST_ORDER][-1] for cell in (mine, other))
        scores = [float(np.interp(spent, cell["joules"][FIRST_ORDER], cell["scores"])) for cell in (mine, other)]
        found.append(results.sign(point) * (scores[0] - scores[1]))
    return np.array(found)


def to_accuracy(results: Results, point: Point, contenders: tuple[Contender, ...], title: str) -> Chart:
    """Accuracy against joules, mean over seeds."""
    lines = []
    for contender in results.contenders(replace(point, contenders=(*contenders, NONE, SHUFFLE))):
        cells = results.cells(point, contender.name)
        joules = np.mean([cell["joules"][FIRST_ORDER] for cell in cells], axis=0)
        scores = np.array([cell["scores"] for cell in cells])
        rows = (joules, scores.mean(axis=0), scores.min(axis=0), scores.max(axis=0))
        lines.append(Line(contender.method, contender.title, *(tuple(map(float, row)) for row in rows)))
    return Chart(f"Accuracy against joules, {title}", "joules, first-order radio", "accuracy", tuple(lines))


EXPERIMENT = Experiment("energy", points, show)
