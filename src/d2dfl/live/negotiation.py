"""A discovery as it goes, or as it went: its graph at every moment, objective and temperature as charts."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from d2dfl.config import Config
from d2dfl.discovery.discover import graph_at
from d2dfl.discovery.evaluation import Evaluation, evaluate
from d2dfl.discovery.methods import METHODS
from d2dfl.discovery.trace import Moment, Trace
from d2dfl.experiment.findings.maps import graph_layer
from d2dfl.experiment.folder.traces import every_second
from d2dfl.live.maps import LivingMap
from d2dfl.network import Network
from d2dfl.network.graph import Graph
from d2dfl.report.findings import Chart, Findings, Layer, Line
from d2dfl.report.look import Colours, palettes
from d2dfl.report.page.map_data import numbers
from d2dfl.report.page.widgets import chart_data

MOST_LINKS = 40_000  # of all moments together that a browser is given


class Negotiation:
    """What a trace shows. A moment is computed once."""

    def __init__(self, trace: Trace, config: Config, place: LivingMap, where: str = "") -> None:
        self.trace, self.config, self.map, self.where = trace, config, place, where
        self._worth: dict[int, tuple[Moment, float]] = {}  # the moment is kept, so that nobody takes its number

    @property
    def title(self) -> str:
        method = METHODS.get(self.trace.method)
        return method.title if method else self.trace.method

    @property
    def name(self) -> str:
        """Which discovery this is, among all that are shown."""
        return ", ".join(filter(None, (self.title, f"seed {self.trace.seed}", self.where)))

    @property
    def colours(self) -> Colours:
        line = Line(self.trace.method, self.title, (), (), (), ())
        return palettes([Findings("", "", charts=(Chart("", "", "", (line,)),))])[0]

    @property
    def network(self) -> Network:
        assert self.trace.network is not None  # it has begun
        return self.trace.network

    def _settled(self, moment: Moment) -> tuple[Graph, Evaluation]:
        """The graph of a moment, as it would be if it were the last."""
        graph = graph_at(self.network, self.config, self.trace.method, moment.stages)
        worth = evaluate(self.network, graph, self.config.reward)
        self._worth[id(moment)] = (moment, worth.objective)
        return graph, worth

    def layer(self, moment: Moment) -> Layer:
        """What a map shows of a moment."""
        return graph_layer(self.trace.method, self.title, self.network, *self._settled(moment))

    def objective(self, moment: Moment) -> float:
        if id(moment) not in self._worth:
            self._settled(moment)  # without its map: a quarter of the work
        return self._worth[id(moment)][1]

    def _axis(self, moments: Sequence[Moment]) -> tuple[list[float], str]:
        """Where moments stand on charts: by messages, where these rise, else by the share of the work."""
        sent = [moment.messages / self.network.devices for moment in moments]
        if sent[-1] > 0 and all(a < b for a, b in pairwise(sent)):
            return sent, "messages a device"
        return [100 * moment.share for moment in moments], "percent of the work"

    def charts(self, moments: Sequence[Moment]) -> list[dict[str, Any]]:
        """The objective, and the temperature where there is one."""
        x, x_name = self._axis(moments)
        found = [Chart("Objective", x_name, "objective", (self._line(x, [self.objective(one) for one in moments]),))]
        heat = [(place, one.temperature) for place, one in zip(x, moments, strict=True) if one.temperature is not None]
        if heat:
            line = self._line([place for place, _ in heat], [value for _, value in heat])
            found.append(Chart("Temperature", x_name, "temperature", (line,)))
        return [{**chart_data(chart, self.colours), "log": False} for chart in found]

    def _line(self, x: Sequence[float], y: Sequence[float]) -> Line:
        values = tuple(y)
        return Line(self.trace.method, self.title, tuple(x), values, values, values)

    def now(self) -> dict[str, Any]:
        """The newest moment, and the charts until then."""
        moments = list(self.trace.moments)
        return {
            "title": self.name,
            "map": self.map.base,
            "layer": self.map.layer(self.layer(moments[-1]), self.colours),
            "charts": self.charts(moments),
        }

    def whole(self) -> dict[str, Any]:
        """Every moment: links by number, of which each is described once."""
        moments = list(self.trace.moments)
        layers = [self.layer(moment) for moment in moments]
        while len(moments) > 2 and sum(len(layer.links) for layer in layers) > MOST_LINKS:
            moments, layers = every_second(moments), every_second(layers)
        links: dict[tuple[int, int], int] = {}
        described: list[dict[str, Any]] = []
        frames = []
        for moment, layer in zip(moments, layers, strict=True):
            shown = self.map.layer(layer, self.colours)
            rows = []
            for link in shown.pop("links"):
                key = (link["from"], link["to"])
                if key not in links:
                    links[key] = len(described)
                    described.append({name: value for name, value in link.items() if name != "amounts"})
                rows.append([links[key], link["amounts"]])
            facts = numbers((moment.share, moment.messages, self.objective(moment)))
            heat = None if moment.temperature is None else numbers((moment.temperature,))[0]
            frames.append({**shown, "rows": rows, "facts": [*facts, heat]})
        return {
            "title": self.name,
            "map": self.map.base,
            "links": described,
            "frames": frames,
            "places": self._axis(moments)[0],
            "charts": self.charts(moments),
        }
