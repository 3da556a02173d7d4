"""What every view has: names of records, how far it is, and discoveries as they go. Loads no PyTorch."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from d2dfl.config import Config
from d2dfl.discovery.trace import Trace
from d2dfl.experiment.cells.cell import Cell
from d2dfl.experiment.folder.traces import trace_name
from d2dfl.experiment.observer import Observer
from d2dfl.live.maps import LivingMap
from d2dfl.live.negotiation import Negotiation
from d2dfl.live.stand import FORMING, Stand
from d2dfl.report.findings import Bars, Chart, Findings, Map, Table
from d2dfl.report.look import palettes, titles
from d2dfl.report.page.tables import said_once
from d2dfl.report.page.widgets import bars_data, chart_data
from d2dfl.terminal import in_time

HEAD, NEGOTIATION, DISCOVERIES, GRAPHS = "head", "negotiation", "discoveries", "graphs"
CURVES, ENERGY, TABLE, TRACES = "curves", "energy", "table", "traces"
SUMS = "sums"  # energy and table of the same round
PUSHED = 8  # discoveries that a browser is given at the end, to be stepped through when nobody serves them any more


class Progress:
    """What is being done, how much of it, and how long the rest of it takes at this pace."""

    LEAST_S = 2.0  # of a part before anything is said about its rest

    def __init__(self, stand: Stand, clock: Callable[[], float] = time.monotonic) -> None:
        self.stand, self.clock = stand, clock
        self.what, self.share = "", 0.0
        self.began = (clock(), 0.0)

    def __call__(self, what: str, share: float) -> None:
        part = what.partition(":")[0]
        if part != self.what.partition(":")[0]:
            self.began = (self.clock(), share)
        self.what, self.share = what, share
        self.stand.put(HEAD, self.shown)

    def shown(self) -> dict[str, Any]:
        return {"what": self.what, "share": round(min(max(self.share, 0.0), 1.0), 4), "left": self.left()}

    def left(self) -> str:
        began, start = self.began
        spent = self.clock() - began
        if spent < self.LEAST_S or self.share <= start:
            return ""
        return f"about {in_time(spent * (1.0 - self.share) / (self.share - start))} left of this part"


class DiscoveryView(Observer):
    """Discoveries, as far as they are."""

    def __init__(self, stand: Stand) -> None:
        self.stand, self.progress = stand, Progress(stand)
        self.config = Config()
        self.cells: Sequence[Cell] = ()
        self.maps: dict[int, LivingMap] = {}  # by seed
        self.traces: dict[str, Negotiation] = {}
        stand.looked = self.look

    def begin(self, config: Config, cells: Sequence[Cell]) -> None:
        self.config, self.cells = config, cells

    def step(self, what: str, share: float) -> None:
        self.progress(what, share)

    def negotiate(self, trace: Trace) -> None:
        key = trace_name(trace.method, trace.seed)
        if key not in self.traces:
            assert trace.network is not None  # it has begun
            if trace.seed not in self.maps:
                self.maps[trace.seed] = LivingMap.of(f"Seed {trace.seed}", trace.network)
            self.traces[key] = Negotiation(trace, self.config, self.maps[trace.seed])
        if len(trace.moments) > 1:  # the first has no link yet: drawing it would keep the next ones waiting
            self.stand.put(NEGOTIATION, self.traces[key].now, FORMING)

    def look(self) -> None:
        """Somebody looks: a view of other processes asks them what there is."""

    def found(self, trace: Trace) -> None:
        """A discovery has ended: one may step through it."""
        key = trace_name(trace.method, trace.seed)
        self.stand.offer(key, self.traces[key].whole)
        self.stand.put(DISCOVERIES, self._list)

    def end(self) -> None:
        """Nothing more will come: browsers get the first discoveries whole."""
        if self.traces:
            self.stand.put(TRACES, lambda: {key: one.whole() for key, one in list(self.traces.items())[:PUSHED]})

    def table(self) -> Table | None:
        """What is known so far in numbers, where that is a table."""
        return None

    def _list(self) -> list[list[str]]:
        return [[key, one.name] for key, one in list(self.traces.items())]


def table_data(table: Table) -> dict[str, Any]:
    """A table as the script writes it."""
    shown = {"title": table.title, "columns": table.columns, "rows": table.rows, "note": table.note}
    return {**shown, "explained": said_once(table)}


def one_chart(chart: Chart) -> dict[str, Any]:
    """A chart with the colours of its methods."""
    return chart_data(chart, palettes([Findings("", "", charts=(chart,))])[0])


def one_bars(bars: Bars) -> dict[str, Any]:
    """Bars with the colours of their methods."""
    return bars_data(bars, titles([Findings("", "", bars=(bars,))])[0])


def put_findings(stand: Stand, found: Findings) -> None:
    """Charts, bars and tables of a finished record."""
    colours, names = palettes([found])[0], titles([found])[0]
    stand.put(CURVES, lambda: [chart_data(chart, colours) for chart in found.charts])
    stand.put(ENERGY, lambda: [bars_data(bars, names) for bars in found.bars])
    if found.tables:
        stand.put(TABLE, lambda: table_data(found.tables[0]))
    if found.maps:
        item: Map = found.maps[0]
        place = LivingMap(replace(item, layers=()))
        stand.put(GRAPHS, lambda: {**place.base, "layers": [place.layer(layer, colours) for layer in item.layers]})
