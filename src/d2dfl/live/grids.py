"""A reproduction while it goes on: how many cells are measured, and the charts of experiments that have enough of them."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from d2dfl.experiment.grid.grid import GridProgress
from d2dfl.live.stand import Stand
from d2dfl.live.views import CURVES, ENERGY, HEAD, DiscoveryView
from d2dfl.report.findings import Findings
from d2dfl.report.look import palettes, titles
from d2dfl.report.page.widgets import bars_data, chart_data
from d2dfl.terminal import in_time

MOST_CHARTS = 24  # on one page


class GridView(DiscoveryView):
    """Cells of many processes: their discoveries are not seen, what they measured is."""

    def __init__(self, stand: Stand) -> None:
        super().__init__(stand)
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


def _charts(record: Findings) -> list[dict[str, Any]]:
    colours = palettes([record])[0]
    named = (replace(chart, title=f"{record.name}: {chart.title}") for chart in record.charts)
    return [chart_data(chart, colours) for chart in named if any(line.x for line in chart.lines)]


def _bars(record: Findings) -> Sequence[dict[str, Any]]:
    names = titles([record])[0]
    return [bars_data(replace(bars, title=f"{record.name}: {bars.title}"), names) for bars in record.bars]
