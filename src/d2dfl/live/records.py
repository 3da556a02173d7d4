"""What a run shows while it goes on: records as the page of a run has them, from what is there so far."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from d2dfl.discovery.methods import IID
from d2dfl.experiment.cells.cell import Contender, Point
from d2dfl.experiment.cells.results import Results
from d2dfl.experiment.cells.values import energy
from d2dfl.experiment.comparison import title_of
from d2dfl.experiment.findings.charts import curve_chart, energy_bars
from d2dfl.experiment.findings.maps import MANY, layer_of, with_exchange
from d2dfl.experiment.folder.traces import trace_name
from d2dfl.experiment.measures import final_score
from d2dfl.experiment.pipeline import PreparedCell
from d2dfl.experiment.setting import Setting
from d2dfl.federation import Curves, State
from d2dfl.live.maps import LivingMap, first_map
from d2dfl.live.stand import Stand
from d2dfl.live.views import (
    CURVES,
    ENERGY,
    GRAPHS,
    NEGOTIATION,
    SUMS,
    TABLE,
    DiscoveryView,
    one_bars,
    one_chart,
    table_data,
)
from d2dfl.report.findings import Findings, Table
from d2dfl.report.look import palettes
from d2dfl.terminal import number


class Measured(NamedTuple):
    """What is there of a training. Its lists grow while it is shown: so many of them are taken."""

    curves: Curves
    evaluations: int
    rounds: int
    parameters: int

    @classmethod
    def of(cls, curves: Curves, parameters: int) -> "Measured":
        return cls(curves, min(len(curves.rounds), len(curves.scores)), len(curves.training_losses), parameters)


class RunView(DiscoveryView):
    """A comparison, as far as it is."""

    def __init__(self, stand: Stand) -> None:
        super().__init__(stand)
        self.items: dict[int, PreparedCell] = {}
        self.told: dict[int, Curves] = {}  # not their states, which may be gigabytes
        self.parameters: dict[int, int] = {}
        self.curves: dict[int, Measured] = {}  # what is shown of them
        self._bills: dict[int, tuple[int, dict[str, float]]] = {}
        self.over = False

    def place(self, setting: Setting) -> None:
        if setting.network.devices <= MANY:
            self.maps[setting.seed] = LivingMap.of(f"Seed {setting.seed}", setting.network)

    def prepare(self, number: int, item: PreparedCell) -> None:
        self.items[number] = item
        key = trace_name(item.method, item.setting.seed)
        if key in self.traces:
            self.found(self.traces[key].trace)
        if item.method != IID and item.setting.seed in self.maps and item.setting.seed == self.cells[0].seed:
            self.stand.put(GRAPHS, self._graphs, first_map(item.setting.network.devices, placed=True))
        self.stand.put(TABLE, lambda: table_data(self.table()))

    def train(self, states: Mapping[int, State]) -> None:
        first = not self.told
        for cell, state in states.items():
            if cell not in self.told:
                self.parameters[cell] = int(state.params.shape[1])
            self.told[cell] = state.curves
        if first:  # all graphs are found
            self.stand.settled(NEGOTIATION, GRAPHS)
            self.stand.put(CURVES, self._charts)
            self.stand.put(SUMS, self._sums)
        elif self.stand.watched:
            self.stand.renew(CURVES, SUMS)

    def end(self) -> None:
        super().end()
        self.over = True
        if self.told:
            self.stand.renew(CURVES, SUMS)

    def _measure(self) -> None:
        """What there is of all curves: they grow while they are drawn."""
        told = list(self.told.items())
        self.curves = {cell: Measured.of(curves, self.parameters[cell]) for cell, curves in told}

    def _charts(self) -> list[dict[str, Any]]:
        self._measure()
        return [one_chart(curve_chart(*self._results(), "Score against rounds"))]

    def _sums(self) -> dict[str, Any]:
        title = "Joules by purpose" if self.over else "Joules by purpose, so far"
        self._measure()
        return {ENERGY: [one_bars(energy_bars(*self._results(), title))], TABLE: table_data(self._table())}

    def _graphs(self) -> dict[str, Any]:
        """The graphs of the first seed, with what moved over them."""
        seed = self.cells[0].seed
        place, layers = self.maps[seed], []
        for item in [item for _, item in sorted(self.items.items()) if item.setting.seed == seed]:
            if item.discovery is not None and item.exchanged is not None:
                of = item.setting.partitioning.partition_of
                layer = layer_of(title_of(item.method), item.discovery)
                layers.append(with_exchange(layer, item.discovery.network, item.exchanged, of, ()))
        record = Findings("", "", maps=(replace(place.item, layers=tuple(layers)),))
        colours = palettes([record])[0]
        return {**place.base, "layers": [place.layer(layer, colours) for layer in layers], "moment": "went"}

    def _results(self) -> tuple[Results, Point]:
        """What was measured so far, as the measures of a finished run take it."""
        names = dict.fromkeys(cell.method for cell in self.cells)
        point = Point("", {}, contenders=tuple(Contender(name, title_of(name), name) for name in names))
        longest = max((one.curves.rounds[: one.evaluations] for one in self.curves.values()), key=len)
        found = {}
        for place, one in sorted(self.curves.items()):
            cell, radio = self.cells[place], self.config.energy.radio
            scores = [float(score) for score in one.curves.scores[: one.evaluations]]
            found["", cell.contender, cell.seed] = {
                "score_name": one.curves.score_name,
                "higher_is_better": one.curves.higher_is_better,
                "rounds": list(longest),
                "scores": scores + [float("nan")] * (len(longest) - len(scores)),
                "purposes": {radio: self._joules(place, one)},
            }
        seeds = tuple(dict.fromkeys(cell.seed for cell in self.cells))
        return Results((point,), seeds, found, self.config.energy.radio), point

    def _joules(self, place: int, one: Measured) -> dict[str, float]:
        """Joules of a cell by purpose until the end of a round; computed once a round."""
        curves, rounds, parameters = one.curves, one.rounds, one.parameters
        known = self._bills.get(place)
        if known is None or known[0] != rounds:
            until = replace(
                curves,
                uploads=curves.uploads[:rounds],
                downloads=curves.downloads[:rounds],
                links=curves.links[:rounds],
            )
            self._bills[place] = known = (rounds, energy(self.items[place], until, parameters).by_purpose())
        return known[1]

    def table(self) -> Table:
        """One line a method: what was found, what moved, and where the score stands."""
        self._measure()
        return self._table()

    def _table(self) -> Table:
        rows = []
        for method in dict.fromkeys(cell.method for cell in self.cells):
            mine = [place for place, cell in enumerate(self.cells) if cell.method == method and place in self.items]
            if mine:
                rows.append((method, *self._row(mine)))
        columns = ("method", "seeds", "links", "objective", "sent", "lost", "round", "score", "joules")
        title, note = (
            ("All methods", "means over seeds")
            if self.over
            else ("So far", "means over the seeds that are there by now")
        )
        return Table(title, columns, tuple(rows), note, self._meanings())

    def _meanings(self) -> tuple[str, ...]:
        """What the columns say."""
        return (
            *("", "", "", "mean reward of all devices, as discovery expects it"),
            *(
                "datapoints sent in the exchange as it went, not as it was expected",
                "those of them that did not arrive",
            ),
            *("", "mean of the last fifth of the curve so far", f"until that round, {self.config.energy.radio} radio"),
        )

    def _row(self, mine: Sequence[int]) -> tuple[str, ...]:
        items = [self.items[place] for place in mine]
        found = [item.discovery for item in items if item.discovery is not None]
        moved = [item.exchanged for item in items if item.exchanged is not None]
        trained = [(place, self.curves[place]) for place in mine if place in self.curves]
        scores = [final_score(one.curves.scores[: one.evaluations]) for _, one in trained if one.evaluations]
        joules = [sum(self._joules(place, one).values()) for place, one in trained]
        return (
            str(len(items)),
            number(_mean([len(one.graph.links[0]) for one in found]), 0),
            number(_mean([one.evaluation.objective for one in found]), 4),
            number(_mean([one.moved for one in moved]), 0),
            number(_mean([one.dropped for one in moved]), 0),
            number(_mean([one.rounds for _, one in trained]), 0),
            number(_mean(scores), 3),
            number(_mean(joules), 2),
        )


def _mean(values: Sequence[float]) -> float | None:
    return float(np.mean(values)) if values else None
