"""Charts, bars and texts of measured cells, for comparisons and reproductions alike."""

from collections.abc import Iterable

import numpy as np

from d2dfl.config import FederationConfig
from d2dfl.experiment.cells.cell import Contender, Point
from d2dfl.experiment.cells.results import Results
from d2dfl.experiment.measures import Array, geometric_mean, interval, known, spread
from d2dfl.report.findings import Bars, Chart, Line, spanned
from d2dfl.terminal import UNKNOWN, number, with_ends


def line(contender: Contender, x: Array, values: Array) -> Line:
    """values[seed, place] as a curve with its confidence band; places that nobody measured are left out."""
    places = [place for place in range(values.shape[1]) if len(known(values[:, place]))]
    bands = [interval(values[:, place]) for place in places]
    # One seed has no band.
    rows = [(mean, mean, mean) if not np.isfinite(low) else (mean, low, high) for mean, low, high in bands]
    columns = (x[places], *np.array(rows).reshape(-1, 3).T)
    return Line(contender.name, contender.title, *(tuple(float(value) for value in column) for column in columns))


def text(values: Array, digits: int = 3) -> str:
    """Mean and deviation over seeds, which one alone does not have."""
    found = known(values)
    if not len(found):
        return UNKNOWN
    deviation = spread(found)
    return number(float(found.mean()), digits) + ("" if deviation is None else f" ± {number(deviation, digits)}")


def with_interval(values: Array) -> str:
    """Mean and 95 % interval over seeds, which one alone does not have."""
    mean, low, high = interval(values)
    if not np.isfinite(mean):
        return UNKNOWN
    return with_ends(mean, low, high, 3) if np.isfinite(low) else number(mean, 3)


def times(ratios: Array) -> str:
    """Geometric mean over seeds."""
    return ratio_text(geometric_mean(ratios))


def ratio_text(value: float | None, digits: int = 1) -> str:
    """How many times, or which share; a dash where nobody knows."""
    return number(value, digits)


def rounds_text(settings: Iterable[FederationConfig]) -> str:
    """How long trainings are. A round of FedSGD is one step on the whole local gradient, not a number of minibatches."""
    from d2dfl.federation.schemes import scheme_named  # PyTorch comes with it, and experiments are also listed

    every = list(settings)
    whole = [scheme_named(one.scheme).full_gradient for one in every]
    steps = [scheme_named(one.scheme).round_steps(one) for one in every]
    parts = ["one full gradient"] if any(whole) else []
    if not all(whole):
        parts.append(spanned((count for count, full in zip(steps, whole, strict=True) if not full), "minibatch"))
    return f"{spanned((one.rounds for one in every), 'round')} of {' or '.join(parts)}"


def curve_chart(results: Results, point: Point, title: str) -> Chart:
    """Score against rounds."""
    lines = []
    for contender in results.contenders(point):
        cells = results.cells(point, contender.name)
        rounds = np.array(cells[0]["rounds"], dtype=np.float64)
        lines.append(line(contender, rounds, np.array([cell["scores"] for cell in cells])))
    return Chart(title, "round", results.score_name(point), tuple(lines))


def energy_bars(results: Results, point: Point, title: str, radio: str | None = None) -> Bars:
    """Joules of a whole run by purpose."""
    contenders = results.contenders(point)
    cells = {
        item.name: [cell["purposes"][radio or results.radio] for cell in results.cells(point, item.name)]
        for item in contenders
    }
    parts = list(next(iter(cells.values()))[0])
    values = tuple(
        tuple(float(np.mean([cell[part] for cell in cells[item.name]])) for item in contenders) for part in parts
    )
    return Bars(title, "J", tuple(item.title for item in contenders), tuple(parts), values)
