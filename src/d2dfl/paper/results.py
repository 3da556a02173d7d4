"""Measured cells of one experiment, and the numbers over seeds that figures and verdicts are made of.

Values by seed have NaN where a cell is missing, so that whatever is computed from two contenders pairs their seeds.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from d2dfl.discovery.methods import IID, NO_EXCHANGE
from d2dfl.paper.cells import final
from d2dfl.paper.experiment import BASELINES, Cell, Contender, Experiment, Point
from d2dfl.report.findings import Bars, Chart, Map, Picture, Table

Array = NDArray[np.float64]
CONFIDENCE = 0.95
DEFAULT_RADIO = "first-order"


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
    from scipy.stats import t as student  # takes half a second to import

    half = float(student.ppf((1 + CONFIDENCE) / 2, len(found) - 1) * found.std(ddof=1) / len(found) ** 0.5)
    return mean, mean - half, mean + half


@dataclass(frozen=True)
class Shown:
    """What an experiment makes of its cells. quantities[name][contender] are values by seed, for the verdicts."""

    quantities: Mapping[str, Mapping[str, Array]] = field(default_factory=dict)
    tables: tuple[Table, ...] = ()
    charts: tuple[Chart, ...] = ()
    bars: tuple[Bars, ...] = ()
    maps: tuple[Map, ...] = ()
    pictures: tuple[Picture, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Results:
    """Everything that was measured. A cell that failed is missing."""

    experiment: Experiment
    scale: str
    points: tuple[Point, ...]
    seeds: int
    found: Mapping[tuple[str, str, int], Mapping[str, Any]]

    @classmethod
    def of(cls, experiment: Experiment, scale: str, seeds: int, found: Mapping[Cell, Mapping[str, Any]]) -> "Results":
        keyed = {(cell.point, cell.contender, cell.seed): values for cell, values in found.items()}
        return cls(experiment, scale, tuple(experiment.points(scale)), seeds, keyed)

    def cells(self, point: Point, name: str) -> list[Mapping[str, Any]]:
        """What was measured of one contender, one entry a seed."""
        keys = [(point.name, name, seed) for seed in range(self.seeds)]
        return [self.found[key] for key in keys if key in self.found]

    def there(self, point: Point, name: str) -> bool:
        """Whether anything was."""
        return bool(self.cells(point, name))

    def contenders(self, point: Point) -> list[Contender]:
        """Those that were measured here."""
        return [contender for contender in point.contenders if self.there(point, contender.name)]

    def each(self, point: Point, name: str, of: Callable[[Any], float]) -> Array:
        """[seed] a value of one contender; NaN where its cell is missing."""
        keys = [(point.name, name, seed) for seed in range(self.seeds)]
        return np.array([of(self.found[key]) if key in self.found else np.nan for key in keys], dtype=np.float64)

    def final(self, point: Point, name: str) -> Array:
        """[seed] final scores."""
        return self.each(point, name, final)

    def sign(self, point: Point) -> int:
        """1 where a higher score is better, -1 where a lower one is."""
        return 1 if self._any(point)["higher_is_better"] else -1

    def score_name(self, point: Point) -> str:
        return str(self._any(point)["score_name"])

    def _any(self, point: Point) -> Mapping[str, Any]:
        return next(values for (name, _, _), values in self.found.items() if name == point.name)

    def gain(self, point: Point, name: str, over: str) -> Array:
        """[seed] how much better the final score is than another's."""
        return self.sign(point) * (self.final(point, name) - self.final(point, over))

    def baselines(self, point: Point) -> list[Contender]:
        """Baselines that were measured here, the best by mean final score first."""
        here = [contender for contender in BASELINES if self.there(point, contender.name)]
        return sorted(here, key=lambda item: -self.sign(point) * float(known(self.final(point, item.name)).mean()))

    def gap_closed(self, point: Point, name: str) -> float | None:
        """Share of the way from no exchange to the i.i.d. shuffle; None where there is no clear way to go."""
        rows = np.stack([self.final(point, who) for who in (name, NO_EXCHANGE, IID)])
        mine, none, iid = rows[:, np.isfinite(rows).all(axis=0)]
        from d2dfl.experiment.compare import share_of_gap  # imports PyTorch

        return share_of_gap(mine, none, iid, self.sign(point) > 0) if len(mine) else None

    def speedup(self, point: Point, name: str, over: str, radio: str | None = None) -> Array:
        """[seed] how many times fewer rounds (or joules) it takes than another until the other's final score.

        A system that never gets there has taken all its rounds, and the ratio is at most what it is now.
        """
        ratios = []
        for seed in range(self.seeds):
            pair = [self.found.get((point.name, who, seed)) for who in (name, over)]
            if pair[0] is None or pair[1] is None:
                ratios.append(np.nan)
                continue
            target = final(pair[1])
            ratios.append(effort(pair[1], target, radio) / effort(pair[0], target, radio))
        return np.array(ratios)


def effort(values: Mapping[str, Any], target: float, radio: str | None = None) -> float:
    """Rounds (or joules) until a score, on a straight line between two evaluations; all of them where it never comes."""
    sign = 1 if values["higher_is_better"] else -1
    spent = values["rounds"] if radio is None else values["joules"][radio]
    scores = [sign * score for score in values["scores"]]
    place = next((n for n, score in enumerate(scores) if score >= sign * target - 1e-12), None)
    if place is None:
        return float(spent[-1])
    if place == 0:
        return float(spent[0])
    share = (sign * target - scores[place - 1]) / max(scores[place] - scores[place - 1], 1e-12)
    return float(spent[place - 1] + min(share, 1.0) * (spent[place] - spent[place - 1]))
