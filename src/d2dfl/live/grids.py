"""A reproduction while it goes on: the newest discovery of its workers, how many cells are measured, and the charts of experiments
that have enough of them.
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from d2dfl.config import Config
from d2dfl.experiment.grid.grid import GridProgress
from d2dfl.experiment.overheard import Listener, Overheard
from d2dfl.live.maps import LivingMap, first_map
from d2dfl.live.negotiation import Negotiation
from d2dfl.live.stand import Stand
from d2dfl.live.views import CURVES, DISCOVERIES, ENERGY, HEAD, NEGOTIATION, PUSHED, DiscoveryView
from d2dfl.report.findings import Findings
from d2dfl.report.look import palettes, titles
from d2dfl.report.page.widgets import bars_data, chart_data
from d2dfl.terminal import in_time
from d2dfl.words import counted

MOST_CHARTS = 24  # on one page


class GridView(DiscoveryView):
    """Cells of many processes: what they tell of their discoveries while somebody looks, and what they measured."""

    def __init__(self, stand: Stand, listener: Listener | None = None) -> None:
        super().__init__(stand)
        self.listener = listener
        self._under_way: dict[str, Negotiation] = {}
        self._one_at_a_time = threading.Lock()  # a browser and the terminal may look at once
        self.state = GridProgress(0, 0, 0, None, None)
        self.so_far: Callable[[], list[Findings]] = list

    def tell(self, state: GridProgress) -> None:
        """A cell has ended."""
        self.state = state
        self.progress.what = f"cells: {state.last_key or ''}".rstrip(": ")
        self.progress.share = state.done / max(state.total, 1)
        self.stand.put(HEAD, self._head)
        if state.done:
            self.stand.put(CURVES, lambda: self._records("charts"))
            self.stand.put(ENERGY, lambda: self._records("bars"))

    def look(self) -> None:
        if self.listener is None or not self._one_at_a_time.acquire(blocking=False):
            return
        try:
            for told in self.listener.look():
                self._hear(told)
        finally:
            self._one_at_a_time.release()

    def _hear(self, told: Overheard) -> None:
        """Show the newest discovery; the last few that have ended can be stepped through."""
        network = told.trace.network
        assert network is not None  # it has begun
        before = self._under_way.pop(told.key, None)
        place = before.map if before else LivingMap.of(f"Seed {told.trace.seed}", network)
        shown = Negotiation(told.trace, told.config, place, _where(told.config))
        self.stand.put(NEGOTIATION, shown.now, first_map(network.devices))
        if not told.over:
            self._under_way[told.key] = shown
        else:
            self.traces[told.key] = shown
            self.stand.offer(told.key, shown.whole)
            for old in list(self.traces)[:-PUSHED]:
                del self.traces[old]
                self.stand.withdraw(old)
            self.stand.put(DISCOVERIES, self._list)

    def _head(self) -> dict[str, Any]:
        state = self.state
        left = "no estimate yet" if state.remaining_s is None else f"about {in_time(state.remaining_s)} left"
        failed = f", {state.failed} failed" if state.failed else ""
        return {
            "what": self.progress.what,
            "share": round(self.progress.share, 4),
            "left": f"{state.done} of {state.total} cells{failed}, {left}",
        }

    def _records(self, kind: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        for record in self.so_far():
            found += _charts(record) if kind == "charts" else _bars(record)
        return found[:MOST_CHARTS]


def _where(config: Config) -> str:
    """Among which devices, and with how many links each: cells of a reproduction differ in that."""
    links = counted(config.discovery.edges, "link")
    return f"{config.network.devices} devices with {config.data.dataset}, {links} each"


def _charts(record: Findings) -> list[dict[str, Any]]:
    colours = palettes([record])[0]
    named = (replace(chart, title=f"{record.name}: {chart.title}") for chart in record.charts)
    return [chart_data(chart, colours) for chart in named if any(line.x for line in chart.lines)]


def _bars(record: Findings) -> Sequence[dict[str, Any]]:
    names = titles([record])[0]
    return [bars_data(replace(bars, title=f"{record.name}: {bars.title}"), names) for bars in record.bars]
