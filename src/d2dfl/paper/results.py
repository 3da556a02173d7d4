"""Measured cells of one experiment, and what it makes of them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from d2dfl.experiment import results
from d2dfl.experiment.cell import Cell, Contender
from d2dfl.experiment.measures import Array, known
from d2dfl.paper.experiment import BASELINES, Experiment, Point
from d2dfl.report.findings import Bars, Chart, Map, Picture, Table


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
class Results(results.Results):
    """The same with the scale at which it was measured, and the paper's baselines."""

    points: tuple[Point, ...]
    scale: str = ""

    @classmethod
    def of(cls, experiment: Experiment, scale: str, seeds: int, found: Mapping[Cell, Mapping[str, Any]]) -> "Results":
        points = tuple(experiment.points(scale))
        return cls(points, tuple(range(seeds)), cls.keyed(found), scale=scale)

    def baselines(self, point: Point) -> list[Contender]:
        """Baselines that were measured here, the best by mean final score first."""
        here = [contender for contender in BASELINES if self.there(point, contender.name)]
        return sorted(here, key=lambda item: -self.sign(point) * float(known(self.final(point, item.name)).mean()))
