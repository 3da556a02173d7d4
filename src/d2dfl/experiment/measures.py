"""The numbers that tables, pictures and verdicts are made of. Each has its one definition here.

Values by seed have NaN where a cell is missing, so that whatever is computed from two contenders pairs their seeds.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from d2dfl.errors import UserError
from d2dfl.report.findings import AHEAD, BEHIND, FEW, UNDECIDED

Array = NDArray[np.float64]
CONFIDENCE = 0.95
LEAST = 3  # seeds that decide anything: two that happen to agree have an interval without width
FEW_TESTS = 30  # test datapoints, below which a score says little
LEAST_GAP = 0.02  # between no exchange and i.i.d. data where fewer seeds say nothing about its error


def known(values: Sequence[float] | Array) -> Array:
    """Those that were measured."""
    found = np.asarray(values, dtype=np.float64)
    return found[np.isfinite(found)]


def interval(values: Sequence[float] | Array) -> tuple[float, float, float]:
    """Mean and 95 % confidence interval (Student's t) over seeds; one seed alone says nothing about its error."""
    found = known(values)
    if not len(found):
        return np.nan, -np.inf, np.inf
    mean = float(found.mean())
    if len(found) < 2:
        return mean, -np.inf, np.inf
    half = _quantile(len(found) - 1) * (spread(found) or 0.0) / len(found) ** 0.5
    return mean, mean - half, mean + half


def spread(values: Sequence[float] | Array) -> float | None:
    """Standard deviation over seeds, as a sample of all seeds there could be (divided by n - 1); one seed has none."""
    found = known(values)
    return float(found.std(ddof=1)) if len(found) > 1 else None


@cache
def _quantile(freedom: int) -> float:
    """The two-sided quantile of Student's t."""
    from scipy.stats import t as student

    return float(student.ppf((1 + CONFIDENCE) / 2, freedom))


def standing(gains: Sequence[float] | Array) -> str:
    """Whether somebody is better than another, by the interval of the differences on the same seeds."""
    if len(known(gains)) < LEAST:
        return FEW
    _, low, high = interval(gains)
    return AHEAD if low > 0 else BEHIND if high < 0 else UNDECIDED


def final(cell: Mapping[str, Any]) -> float:
    """Mean score of the last fifth of a curve: one evaluation alone moves by a hundredth from round to round."""
    if "scores" not in cell:
        raise UserError("this experiment does not train: it has no final score")
    return final_score(cell["scores"])


def final_score(scores: Sequence[float]) -> float:
    """The same of a curve alone."""
    return float(np.mean(scores[-last_fifth(len(scores)) :]))


def last_fifth(evaluations: int) -> int:
    """How many of the evaluations of a curve are its last fifth."""
    return max(1, evaluations // 5)


def effort(cell: Mapping[str, Any], target: float, radio: str | None = None) -> float | None:
    """Rounds, or joules with a radio, until a score, on a straight line between two evaluations; None: it never comes."""
    sign = 1 if cell["higher_is_better"] else -1
    spent = cell["rounds"] if radio is None else cell["joules"][radio]
    scores = [sign * score for score in cell["scores"]]
    place = next((n for n, score in enumerate(scores) if score >= sign * target - 1e-12), None)
    if place is None:
        return None
    if place == 0:
        return float(spent[0])
    share = (sign * target - scores[place - 1]) / max(scores[place] - scores[place - 1], 1e-12)
    return float(spent[place - 1] + min(share, 1.0) * (spent[place] - spent[place - 1]))


def effort_or_all(cell: Mapping[str, Any], target: float, radio: str | None = None) -> float:
    """The same; all that was spent where the score never comes, which is at most what it would take."""
    found = effort(cell, target, radio)
    return float((cell["rounds"] if radio is None else cell["joules"][radio])[-1]) if found is None else found


def share_of_gap(mine: Array, none: Array, iid: Array, higher_is_better: bool) -> float | None:
    """Share of the way from no exchange to i.i.d. data, from scores by seed.

    None where i.i.d. data is not better by more than the standard error over seeds: there is no gap to close. One seed says
    nothing about its error, and two may happen to agree: with fewer than three the gap must also be more than 0.02, two points
    of accuracy, or 2 % of a score of which less is better.
    """
    start, end = float(np.mean(none)), float(np.mean(iid))
    way = end - start
    error = float(np.hypot(spread(none) or 0.0, spread(iid) or 0.0)) / len(iid) ** 0.5
    least = LEAST_GAP * (1.0 if higher_is_better else abs(start)) if len(iid) < LEAST else 0.0
    if (way if higher_is_better else -way) <= max(error, least, 1e-9):
        return None
    return (float(np.mean(mine)) - start) / way


def geometric_mean(ratios: Sequence[float] | Array) -> float | None:
    """The geometric mean of those that were measured; None where none was."""
    found = known(ratios)
    return float(np.exp(np.log(found).mean())) if len(found) else None
