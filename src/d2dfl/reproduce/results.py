"""Measured cells of one experiment, and the numbers over seeds that figures and verdicts are made of."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

from d2dfl.findings import Bars, Chart, Map, Picture, Table
from d2dfl.reproduce.experiment import BASELINES, Cell, Contender, Experiment, Point
from d2dfl.reproduce.work import final

Array = NDArray[np.float64]
CONFIDENCE = 0.95
DEFAULT_RADIO = "first-order"


def interval(values: Sequence[float] | Array) -> tuple[float, float, float]:
    """Mean and 95 % confidence interval (Student's t) over seeds; one seed alone says nothing about its error."""
    found = np.asarray(values, dtype=np.float64)
    mean = float(found.mean())
    if len(found) < 2:
        return mean, -np.inf, np.inf
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

    def whole(self, point: Point, *names: str) -> list[int]:
        """Seeds for which all of these contenders were measured."""
        return [seed for seed in range(self.seeds) if all((point.name, name, seed) in self.found for name in names)]

    def contenders(self, point: Point) -> list[Contender]:
        """Those that were measured here."""
        return [contender for contender in point.contenders if self.whole(point, contender.name)]

    def each(self, point: Point, name: str, of: Callable[[Any], float], beside: Sequence[str] = ()) -> Array:
        """A value of one contender by seed, over the seeds that those beside it have too."""
        seeds = self.whole(point, name, *beside)
        return np.array([of(self.found[point.name, name, seed]) for seed in seeds], dtype=np.float64)

    def final(self, point: Point, name: str, beside: Sequence[str] = ()) -> Array:
        """Final scores by seed."""
        return self.each(point, name, final, beside)

    def sign(self, point: Point) -> int:
        """1 where a higher score is better, -1 where a lower one is."""
        values = next(values for (name, _, _), values in self.found.items() if name == point.name)
        return 1 if values["higher_is_better"] else -1

    def score_name(self, point: Point) -> str:
        return str(next(values for (name, _, _), values in self.found.items() if name == point.name)["score_name"])

    def gain(self, point: Point, name: str, over: str) -> Array:
        """How much better the final score is than another's, by seed."""
        return self.sign(point) * (self.final(point, name, (over,)) - self.final(point, over, (name,)))

    def baselines(self, point: Point) -> list[Contender]:
        """Baselines that were measured here, the best by mean final score first."""
        here = [contender for contender in BASELINES if self.whole(point, contender.name)]
        return sorted(here, key=lambda item: -self.sign(point) * float(self.final(point, item.name).mean()))

    def gap_closed(self, point: Point, name: str) -> float | None:
        """Share of the way from no exchange to the i.i.d. shuffle; None where there is no clear way to go."""
        if not self.whole(point, name, "none", "iid"):
            return None
        none, iid = self.final(point, "none"), self.final(point, "iid")
        way = self.sign(point) * (iid.mean() - none.mean())
        if way <= max(float(np.hypot(none.std(), iid.std())) / len(iid) ** 0.5, 1e-9):
            return None
        return float((self.final(point, name).mean() - none.mean()) / (iid.mean() - none.mean()))

    def speedup(self, point: Point, name: str, over: str, radio: str | None = None) -> Array:
        """How many times fewer rounds (or joules) it takes than another until the other's final score, by seed.

        A system that never gets there has taken all its rounds, and the ratio is at most what it is now.
        """
        ratios = []
        for seed in self.whole(point, name, over):
            mine, theirs = (self.found[point.name, who, seed] for who in (name, over))
            target = final(theirs)
            ratios.append(self._effort(theirs, target, radio) / max(self._effort(mine, target, radio), 1e-300))
        return np.array(ratios)

    def _effort(self, values: Mapping[str, Any], target: float, radio: str | None) -> float:
        sign = 1 if values["higher_is_better"] else -1
        pairs = list(zip(values["rounds"], values["scores"], strict=True))
        place = next((n for n, (done, score) in enumerate(pairs) if done and sign * score >= sign * target), -1)
        return float(values["rounds"][place] if radio is None else values["joules"][radio][place])
