"""Charts, tables and claims that many experiments share."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from d2dfl.findings import Bars, Chart, Line, Table
from d2dfl.reproduce.experiment import SYSTEMS, Contender, Point
from d2dfl.reproduce.results import DEFAULT_RADIO, Array, Results, Shown, interval
from d2dfl.reproduce.work import final

Quantities = dict[str, dict[str, Array]]


def line(contender: Contender, x: Array, values: Array) -> Line:
    """values[seed, place] as a curve with its confidence band."""
    mean = values.mean(axis=0)
    bands = [interval(values[:, place]) for place in range(values.shape[1])]
    # One seed has no band.
    low = [mean[n] if not np.isfinite(band[1]) else band[1] for n, band in enumerate(bands)]
    high = [mean[n] if not np.isfinite(band[2]) else band[2] for n, band in enumerate(bands)]
    rows = (x, mean, low, high)
    return Line(contender.name, contender.title, *(tuple(float(value) for value in row) for row in rows))


def curve_chart(results: Results, point: Point, title: str) -> Chart:
    """Score against rounds."""
    lines = []
    for contender in results.contenders(point):
        cells = [results.found[point.name, contender.name, seed] for seed in results.whole(point, contender.name)]
        rounds = np.array(cells[0]["rounds"], dtype=np.float64)
        lines.append(line(contender, rounds, np.array([cell["scores"] for cell in cells])))
    return Chart(title, "round", results.score_name(point), tuple(lines))


def sweep_chart(results: Results, title: str, x_name: str, y_name: str, of: Callable[[Any], float] = final) -> Chart:
    """A value of each contender against the points of a sweep."""
    names = [contender for contender in results.points[0].contenders if _everywhere(results, contender)]
    x = np.array([point.value for point in results.points])
    lines = []
    for contender in names:
        columns = [results.each(point, contender.name, of) for point in results.points]
        seeds = min(len(column) for column in columns)
        lines.append(line(contender, x, np.stack([column[:seeds] for column in columns], axis=1)))
    return Chart(title, x_name, y_name, tuple(lines))


def sweep_table(
    results: Results, title: str, of: Callable[[Any], float] = final, digits: int = 3, note: str = ""
) -> Table:
    """The same as a table: contenders down, points across."""
    rows = []
    for contender in dict.fromkeys(item for point in results.points for item in point.contenders):
        cells = []
        for point in results.points:
            values = results.each(point, contender.name, of)
            cells.append(f"{values.mean():.{digits}f} ± {values.std():.{digits}f}" if len(values) else "–")
        rows.append((contender.title, *cells))
    return Table(title, ("method", *(point.name for point in results.points)), tuple(rows), note)


def _everywhere(results: Results, contender: Contender) -> bool:
    return all(results.whole(point, contender.name) for point in results.points)


def method_table(results: Results, point: Point, title: str) -> Table:
    """One line a method: score, share of the gap, rounds and joules against no exchange, datapoints."""
    rows = []
    for contender in results.contenders(point):
        name = contender.name
        values, share = results.final(point, name), results.gap_closed(point, name)
        rounds = results.speedup(point, name, "none") if results.whole(point, "none") else np.array([])
        joules = results.speedup(point, name, "none", DEFAULT_RADIO) if len(rounds) else rounds
        moved, lost = (results.each(point, name, lambda cell, key=key: cell[key]).mean() for key in ("moved", "lost"))  # type: ignore[misc]  # a default binds the loop variable
        rows.append(
            (
                contender.title,
                f"{values.mean():.3f} ± {values.std():.3f}",
                "–" if share is None else f"{share:.2f}",
                f"{rounds.mean():.1f}" if len(rounds) else "–",
                f"{joules.mean():.1f}" if len(joules) else "–",
                f"{moved:,.0f} / {lost:,.0f}",
            )
        )
    columns = ("method", results.score_name(point), "gap closed", "rounds ÷", "joules ÷", "moved / lost")
    note = (
        "Mean ± deviation over seeds of the last fifth of the curve. ÷: how many times fewer rounds and joules "
        f"({DEFAULT_RADIO} radio) than no exchange until the score that no exchange ends with."
    )
    return Table(title, columns, tuple(rows), note)


def energy_bars(results: Results, point: Point, title: str, radio: str = DEFAULT_RADIO) -> Bars:
    """Joules of a whole run by purpose."""
    contenders = results.contenders(point)
    cells = {
        item.name: [
            results.found[point.name, item.name, seed]["purposes"][radio] for seed in results.whole(point, item.name)
        ]
        for item in contenders
    }
    parts = list(next(iter(cells.values()))[0])
    values = tuple(
        tuple(float(np.mean([cell[part] for cell in cells[item.name]])) for item in contenders) for part in parts
    )
    return Bars(title, "J", tuple(item.title for item in contenders), tuple(parts), values)


def lead(results: Results, point: Point, suffix: str = "") -> Quantities:
    """How far each system is ahead: of the weakest baseline (what "up to" says), and of the strongest."""
    ranked = results.baselines(point)
    ways: Mapping[str, Contender] = {"up-to": ranked[-1], "over-best": ranked[0]}
    return {
        key + suffix: {
            system.name: results.gain(point, system.name, rival.name)
            for system in SYSTEMS
            if results.whole(point, system.name, rival.name)
        }
        for key, rival in ways.items()
    }


def speed(results: Results, point: Point, suffix: str = "", radio: str | None = None) -> Quantities:
    """How many times fewer rounds (or joules) than the weakest and than the strongest baseline."""
    what, ranked = "rounds" if radio is None else "joules", results.baselines(point)
    return {
        f"{what}-{way}{suffix}": {
            system.name: results.speedup(point, system.name, rival.name, radio)
            for system in SYSTEMS
            if results.whole(point, system.name, rival.name)
        }
        for way, rival in (("up-to", ranked[-1]), ("over-best", ranked[0]))
    }


def curves(results: Results) -> Shown:
    """An experiment that plots score against rounds, at one point or at several."""
    quantities: Quantities = {}
    tables, charts, bars = [], [], []
    measured = [point for point in results.points if results.baselines(point)]
    for point in measured:
        suffix = f" @ {point.name}" if len(results.points) > 1 else ""
        quantities |= {**lead(results, point, suffix), **speed(results, point, suffix)}
        quantities |= speed(results, point, suffix, DEFAULT_RADIO)
        charts.append(curve_chart(results, point, point.name))
        tables.append(method_table(results, point, point.name))
        bars.append(energy_bars(results, point, f"Joules of the whole run, {point.name}"))
    missing = [point.name for point in results.points if point not in measured]
    notes = (f"not measured: {'; '.join(missing)}",) if missing else ()
    return Shown(quantities, tuple(tables), tuple(charts), tuple(bars), notes=notes)
