"""An experiment: points to measure, contenders to measure there, seeds, and how the outcome is shown.

The configuration of a cell is a preset, what all contenders have in common, the settings of the point, the changes of the
contender, in this order.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from d2dfl.config import Config
from d2dfl.config.presets import preset
from d2dfl.experiment.cells import cell
from d2dfl.experiment.cells.cell import Cell, Contender, Measure
from d2dfl.paper.terms import SWEEP

if TYPE_CHECKING:
    from pathlib import Path

    from d2dfl.paper.results import Results, Shown

SCALES = ("tiny", "small", "paper")
SEEDS: Mapping[str, int] = {"tiny": 2, "small": 3, "paper": 5}
# Section VI: at most one incoming link, two where nothing is labelled. R35: all contenders have the same pseudo-labels, or
# one could not tell the exchange from the labeller.
ONE_LINK: Mapping[str, Any] = {"discovery.edges": 1}
COMMON: Mapping[str, Mapping[str, Any]] = {
    "unsupervised": {"discovery.edges": 2, "federation.views": "literal"},  # R42: one loss for all contenders
    "semi": {**ONE_LINK, "partition.neighbours": 7},
}


@dataclass(frozen=True, eq=False)
class Point(cell.Point):
    """One place of a sweep, under the rules that Section VI sets for its paradigm."""

    contenders: tuple[Contender, ...] = SWEEP
    trains: bool = True  # False: its cells end with the exchange, and can be many
    seeds: int | None = None  # where this point has another number of them than the others

    def config(self, contender: Contender) -> Config:
        # All train alike, as the paper does: one could not tell the exchange from another loss.
        base = replace(preset(contender.preset, self.paradigm), federation=preset("paper", self.paradigm).federation)
        return base.with_(**{**COMMON.get(self.paradigm, ONE_LINK), **self.settings, **contender.changes})


@dataclass(frozen=True)
class Experiment:
    """One row of the paper's evaluation."""

    name: str
    points: Callable[[str], Sequence[Point]]  # of a scale
    show: "Callable[[Results], Shown]"
    measure: Measure | None = None  # None: discover, exchange, train
    seeds: Mapping[str, int] = field(default_factory=lambda: SEEDS)
    drawn: "Callable[[Results, Path], None] | None" = None  # writes pictures of its own into a folder
    setting: str = ""  # a sentence about the data, where no dataset is loaded
    random: bool = True  # False: one seed says all
    trains: bool = True  # False: its cells end before training

    def count(self, scale: str) -> int:
        """How many measurements it has, without making a configuration of any."""
        return sum(self._seeds_at(point, scale, None) * len(point.contenders) for point in self.points(scale))

    def _seeds_at(self, point: Point, scale: str, seeds: int | None) -> int:
        """As many as were asked for, or by default."""
        return seeds or point.seeds or self.seeds[scale] if self.random else 1

    def cells(self, scale: str, seeds: int | None = None) -> list[Cell]:
        """All measurements, in a fixed order."""
        return [
            Cell(point.name, contender.name, contender.method, seed, config, point.trains)
            for point in self.points(scale)
            for configs in [[(contender, point.config(contender)) for contender in point.contenders]]
            for seed in range(self._seeds_at(point, scale, seeds))
            for contender, config in configs
        ]
