"""Charts, tables and claims that many experiments share."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from d2dfl.experiment.findings.charts import curve_chart, energy_bars, line, ratio_text, text
from d2dfl.experiment.measures import final
from d2dfl.paper.experiment import Point
from d2dfl.paper.leads import Quantities, equal_table, lead, lower_is_better, speed, until
from d2dfl.paper.results import Results, Shown
from d2dfl.paper.terms import NONE, SHUFFLE, TERMS
from d2dfl.report.findings import Chart, Line, Table
from d2dfl.terminal import UNKNOWN, number

RADIO = Results.radio  # by which joules are counted unless an experiment says otherwise


def sweep_chart(results: Results, title: str, x_name: str, y_name: str, of: Callable[[Any], float] = final) -> Chart:
    """A value of each contender against the points of a sweep."""
    return Chart(title, x_name, y_name, sweep_lines(results, results.points, of))


def sweep_lines(results: Results, points: Sequence[Point], of: Callable[[Any], float] = final) -> tuple[Line, ...]:
    """One line a contender over the points; a method has one colour on all terms."""
    x = np.array([point.value for point in points])
    found = []
    for contender in dict.fromkeys(item for point in points for item in results.contenders(point)):
        rows = np.stack([results.each(point, contender.name, of) for point in points], axis=1)
        found.append(replace(line(contender, x, rows), name=contender.method))
    return tuple(found)


def sweep_table(
    results: Results,
    title: str,
    of: Callable[[Any], float] = final,
    digits: int = 3,
    points: Sequence[Point] = (),
) -> Table:
    """The same as a table: contenders down, points across (all of them, unless some are given)."""
    points = points or results.points
    rows = tuple(
        (contender.title, *(text(results.each(point, contender.name, of), digits) for point in points))
        for contender in dict.fromkeys(item for point in points for item in point.contenders)
    )
    measured = [point for point in points if results.contenders(point)]
    better = lower_is_better(results, measured[0]) if of is final and measured else ""
    note = "; ".join(filter(None, (f"mean ± deviation over seeds{better}", dashes(rows, "not measured"))))
    return Table(title, ("method", *(point.name for point in points)), rows, note)


def dashes(rows: Sequence[Sequence[str]], meaning: str, column: int | None = None) -> str:
    """What a dash in a table, or in one of its columns, says, where there is one."""
    cells = [cell for row in rows for cell in (row if column is None else row[column : column + 1])]
    return f"{UNKNOWN}: {meaning}" if UNKNOWN in cells else ""


def method_table(results: Results, point: Point, title: str) -> Table:
    """One line a method: score, share of the gap, rounds and joules against no exchange, datapoints."""
    rows = []
    for contender in results.contenders(point):
        row = results.row(point, contender)
        rows.append(
            (
                row.title,
                text(results.final(point, contender.name)),
                ratio_text(row.over_devices if row.over_devices > 0 else None, 3),
                ratio_text(row.gap_closed, 2),
                ratio_text(row.rounds_ratio),
                ratio_text(row.joules_ratio),
                f"{number(row.moved, 0)} / {number(row.lost, 0)}",
            )
        )
    columns = (
        "method",
        results.score_name(point),
        "over devices",
        "gap closed",
        "rounds ÷",
        "joules ÷",
        "moved / lost",
    )
    than_none = "than no exchange until the score that no exchange ends with (geometric mean over seeds"
    meanings = (
        "",
        f"mean ± deviation over seeds of the last fifth of the curve{lower_is_better(results, point)}",
        f"deviation at the end where they hold different models{_in_brackets(dashes(rows, 'all hold one', 2))}",
        "share of the way from no exchange to the i.i.d. shuffle"
        f"{_in_brackets(dashes(rows, 'the shuffle is not clearly better', 3))}",
        f"how many times fewer rounds {than_none}{_after(dashes(rows, 'no seed has both', 4))})",
        f"how many times fewer joules, {RADIO} radio, {than_none})",
        "datapoints of the exchange as it went",
    )
    return Table(title, columns, tuple(rows), meanings=meanings)


def _after(text: str) -> str:
    return f"; {text}" if text else ""


def _in_brackets(text: str) -> str:
    return f" ({text})" if text else ""


def curves(results: Results) -> Shown:
    """An experiment that plots score against rounds, at one point or at several."""
    return curves_until(results)


def curves_until(results: Results, target: float | None = None) -> Shown:
    """The same, where the paper also says how soon a score is reached."""
    quantities: Quantities = {}
    tables, charts, bars = [], [], []
    measured = [point for point in results.points if results.systems(point) and results.there(point, NONE.name)]
    for point in measured:
        suffix = f" @ {point.name}" if len(results.points) > 1 else ""
        quantities |= {**lead(results, point, suffix), **speed(results, point, suffix)}
        quantities |= speed(results, point, suffix, RADIO)
        if target is not None:
            quantities |= until(results, point, target, suffix)
        tables += [equal_table(results, point, point.name), method_table(results, point, point.name)]
        charts += curve_charts(results, point)
        bars.append(energy_bars(results, point, f"Joules of the whole run, {point.name}"))
    missing = [point.name for point in results.points if point not in measured]
    notes = (f"not measured: {'; '.join(missing)}",) if missing else ()
    return Shown(quantities, tuple(tables), tuple(charts), tuple(bars), notes=notes)


def curve_charts(results: Results, point: Point) -> list[Chart]:
    """Score against rounds, a chart for each terms between the yardsticks: all in one could not be told apart."""
    found = []
    for terms in TERMS:
        part = replace(point, contenders=(*terms.contenders, NONE, SHUFFLE))
        if results.there(point, terms.ours.name):
            chart = curve_chart(results, part, f"{point.name}, {terms.title}")
            methods = {item.name: item.method for item in part.contenders}  # one colour on all terms
            found.append(replace(chart, lines=tuple(replace(one, name=methods[one.name]) for one in chart.lines)))
    return found
