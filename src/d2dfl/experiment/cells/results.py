"""Measured cells by point, contender and seed."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from d2dfl.config.metrics import SHOWN
from d2dfl.config.sections.learning import FIRST_ORDER
from d2dfl.discovery.methods import IID, NO_EXCHANGE
from d2dfl.experiment.cells.cell import Cell, Contender, Point
from d2dfl.experiment.measures import (
    Array,
    effort,
    effort_or_all,
    final,
    geometric_mean,
    interval,
    known,
    share_of_gap,
    spread,
    standing,
)


@dataclass(frozen=True)
class Against:
    """One method against the best of the others, on the same seeds."""

    method: str  # the best of the others by mean score; found from the same seeds
    gain: float  # mean over seeds, above 0 where the one is better
    interval: tuple[float, float] | None  # of the mean, 95 %; None: one seed has none
    standing: str  # ahead, behind, nobody can tell, too few seeds


@dataclass(frozen=True)
class Row:
    """One contender at one point, over all seeds."""

    method: str  # or the name of a contender that is more than a method
    title: str
    score: float  # mean over seeds of final scores
    spread: float | None  # their standard deviation; None: one seed has none
    interval: tuple[float, float] | None  # of their mean, 95 %; None: one seed has none
    against: Against | None  # None for the i.i.d. shuffle, which is no method, and where nobody else is there
    over_devices: float  # standard deviation over devices at the end; 0 where all hold the same model
    gap_closed: float | None  # None where i.i.d. data is not clearly better than none, so that there is no gap
    rounds_to: float | None  # until the score that no exchange ends with on the same seed; None: some seed never
    rounds_ratio: float | None  # how many times fewer rounds than no exchange until then
    joules_ratio: float | None
    moved: float
    lost: float
    joules: float  # of the whole run
    distance: float  # total variation to i.i.d. after the exchange


@dataclass(frozen=True)
class Results:
    """Everything that was measured. A cell that failed is missing."""

    points: tuple[Point, ...]
    seeds: tuple[int, ...]
    found: Mapping[tuple[str, str, int], Mapping[str, Any]]  # (point, contender, seed) -> values
    radio: str = FIRST_ORDER  # by which joules are counted

    @staticmethod
    def keyed(found: Mapping[Cell, Mapping[str, Any]]) -> dict[tuple[str, str, int], Mapping[str, Any]]:
        """Values of cells by what they are found by."""
        return {(cell.point, cell.contender, cell.seed): values for cell, values in found.items()}

    def cells(self, point: Point, name: str) -> list[Mapping[str, Any]]:
        """What was measured of one contender, one entry a seed."""
        keys = [(point.name, name, seed) for seed in self.seeds]
        return [self.found[key] for key in keys if key in self.found]

    def there(self, point: Point, name: str) -> bool:
        """Whether anything was."""
        return bool(self.cells(point, name))

    def contenders(self, point: Point) -> list[Contender]:
        """Those that were measured here."""
        return [contender for contender in point.contenders if self.there(point, contender.name)]

    def each(self, point: Point, name: str, of: Callable[[Any], float]) -> Array:
        """[seed] a value of one contender; NaN where its cell is missing."""
        keys = [(point.name, name, seed) for seed in self.seeds]
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

    def gap_closed(self, point: Point, name: str) -> float | None:
        """Share of the way from no exchange to the i.i.d. shuffle; None where there is no clear way to go."""
        rows = np.stack([self.final(point, who) for who in (name, NO_EXCHANGE, IID)])
        mine, none, iid = rows[:, np.isfinite(rows).all(axis=0)]
        return share_of_gap(mine, none, iid, self.sign(point) > 0) if len(mine) else None

    def speedup(self, point: Point, name: str, over: str, radio: str | None = None) -> Array:
        """[seed] how many times fewer rounds (or joules) it takes than another until the other's final score.

        A system that never gets there has taken all its rounds, and the ratio is at most what it is now.
        """
        ratios = []
        for mine, other in self._pairs(point, name, over):
            if mine is None or other is None:
                ratios.append(np.nan)
                continue
            target = final(other)
            ratios.append(effort_or_all(other, target, radio) / effort_or_all(mine, target, radio))
        return np.array(ratios)

    def rounds_to(self, point: Point, name: str, over: str = NO_EXCHANGE) -> float | None:
        """Mean over seeds of the rounds until another's final score; None where some seed never gets there."""
        pairs = self._pairs(point, name, over)
        reached = [effort(mine, final(other)) for mine, other in pairs if mine is not None and other is not None]
        found = [rounds for rounds in reached if rounds is not None]
        return float(np.mean(found)) if found and len(found) == len(reached) else None

    def _pairs(
        self, point: Point, one: str, other: str
    ) -> list[tuple[Mapping[str, Any] | None, Mapping[str, Any] | None]]:
        """[seed] the cells of two contenders."""
        return [
            (self.found.get((point.name, one, seed)), self.found.get((point.name, other, seed))) for seed in self.seeds
        ]

    def others(self, point: Point, name: str) -> list[Contender]:
        """Every other method that was measured here, the best first."""
        return self.ranked(point, [item for item in point.contenders if item.name not in (name, IID)])

    def ranked(self, point: Point, contenders: Iterable[Contender]) -> list[Contender]:
        """Those that were measured here, by mean final score."""
        here = [contender for contender in contenders if self.there(point, contender.name)]
        return sorted(here, key=lambda item: -self.sign(point) * float(known(self.final(point, item.name)).mean()))

    def against(self, point: Point, name: str) -> Against | None:
        """A method against the best of the others."""
        others = self.others(point, name)
        if not others or name == IID:
            return None
        gains = known(self.gain(point, name, others[0].name))
        if not len(gains):
            return None
        return Against(others[0].name, float(np.mean(gains)), _ends(gains), standing(gains))

    def row(self, point: Point, contender: Contender) -> Row:
        """All measures of one contender that trained."""
        name, scores = contender.name, known(self.final(point, contender.name))

        def mean(of: Callable[[Any], float]) -> float:
            return float(known(self.each(point, name, of)).mean())

        return Row(
            method=name,
            title=contender.title,
            score=float(scores.mean()),
            spread=spread(scores),
            interval=_ends(scores),
            against=self.against(point, name),
            over_devices=mean(lambda cell: cell["spreads"][-1]),
            gap_closed=self.gap_closed(point, name),
            rounds_to=self.rounds_to(point, name),
            rounds_ratio=geometric_mean(self.speedup(point, name, NO_EXCHANGE)),
            joules_ratio=geometric_mean(self.speedup(point, name, NO_EXCHANGE, self.radio)),
            moved=mean(lambda cell: cell["moved"]),
            lost=mean(lambda cell: cell["lost"]),
            joules=mean(lambda cell: cell["joules"][self.radio][-1]),
            distance=mean(lambda cell: cell["after"][SHOWN]),
        )


def _ends(values: Sequence[float] | Array) -> tuple[float, float] | None:
    """The ends of the interval of a mean; one seed has none."""
    _, low, high = interval(values)
    return (low, high) if np.isfinite(low) else None
