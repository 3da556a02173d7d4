"""Measured cells of one experiment, and what it makes of them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from d2dfl.experiment.cells import cell, results
from d2dfl.experiment.cells.cell import Cell, Contender
from d2dfl.experiment.measures import Array
from d2dfl.paper.experiment import Experiment, Point
from d2dfl.paper.terms import LEARNERS, NONE, PAPERS, terms_of
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

    def systems(self, *points: Point) -> list[Contender]:
        """Learners that were measured at all of these points."""
        return [item for item in LEARNERS if all(self.there(point, item.name) for point in points)]

    def baselines(self, point: Point, system: str = PAPERS.name) -> list[Contender]:
        """The paper's baselines on the terms of a system, as far as they were measured here; the best first."""
        return self.ranked(point, terms_of(system).baselines)

    def others(self, point: cell.Point, name: str) -> list[Contender]:
        """Every other method on the terms of a contender, learners too; the best first."""
        everybody = (NONE, *terms_of(name).contenders)
        return self.ranked(point, [item for item in everybody if item.name != name])
