"""What every view has: names of records, how far it is, and discoveries as they go. Loads no PyTorch."""

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any

from d2dfl.config import Config
from d2dfl.discovery.trace import Trace
from d2dfl.experiment.cells.cell import Cell
from d2dfl.experiment.folder.traces import trace_name
from d2dfl.experiment.observer import Observer
from d2dfl.live.maps import LivingMap, first_map
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
        self.what, self.share, self.put = "", 0.0, False
        self.began = (clock(), 0.0)

    def __call__(self, what: str, share: float) -> None:
        if what != self.what:
            if what.partition(":")[0] != self.what.partition(":")[0]:
                self.began = (self.clock(), share)
            self.what = what
        self.share = share
        if not self.put:
            self.put = True
            self.stand.put(HEAD, self.shown)
        elif self.stand.watched:
            self.stand.renew(HEAD)

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
        self._newest: Trace | None = None  # whose links are shown as they form
        stand.looked = self.look

    def begin(self, config: Config, cells: Sequence[Cell]) -> None:
        self.config, self.cells = config, cells

    def step(self, what: str, share: float) -> None:
        self.progress(what, share)

    def negotiate(self, trace: Trace) -> None:
        if trace is not self._newest:
            self._meet(trace)
        elif self.stand.watched:
            self.stand.renew(NEGOTIATION)

    def _meet(self, trace: Trace) -> None:
        """A discovery that has begun."""
        key = trace_name(trace.method, trace.seed)
        if key not in self.traces:
            assert trace.network is not None  # it has begun
            if trace.seed not in self.maps:
                self.maps[trace.seed] = LivingMap.of(f"Seed {trace.seed}", trace.network)
            self.traces[key] = Negotiation(trace, self.config, self.maps[trace.seed])
        if len(trace.moments) > 1:  # the first has no link yet: drawing it would keep the next ones waiting
            self._newest = trace
            self.stand.put(NEGOTIATION, self.traces[key].now, first_map(self.traces[key].network.devices, FORMING))

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


def put_findings(stand: Stand, found: Findings, stepped: Collection[str] = ()) -> None:
    """Charts, bars and tables of a finished record, and the graphs of its methods. `stepped`: methods that can be stepped through.

    A single graph that is among them is the last moment of its discovery, and is not shown a second time.
    """
    colours, names = palettes([found])[0], titles([found])[0]
    stand.put(CURVES, lambda: [chart_data(chart, colours) for chart in found.charts])
    stand.put(ENERGY, lambda: [bars_data(bars, names) for bars in found.bars])
    if found.tables:
        stand.put(TABLE, lambda: table_data(found.tables[0]))
    if found.maps and not _stepped(found.maps[0], stepped):
        item: Map = found.maps[0]
        place = LivingMap(lambda: replace(item, layers=()))
        shown = first_map(len(item.positions))
        stand.put(
            GRAPHS, lambda: {**place.base, "layers": [place.layer(layer, colours) for layer in item.layers]}, shown
        )


def _stepped(item: Map, methods: Collection[str]) -> bool:
    """Whether the only graph of a map is one whose discovery can be stepped through."""
    return len(item.layers) == 1 and item.layers[0].name in methods
