"""What the page's script draws: charts, bars and maps as small plain data, and the elements that hold them."""

import re
from collections.abc import Sequence
from typing import Any

from d2dfl.energy.purposes import BEFORE, PURPOSES
from d2dfl.report.drawing.labels import level_texts, link_cuts
from d2dfl.report.findings import Bars, Chart, Map
from d2dfl.report.look import Colours, dash_of, logarithmic, slug
from d2dfl.report.page.html import Html, embedded, tag
from d2dfl.report.page.map_data import map_data, numbers


def chart_widget(chart: Chart, colours: Colours) -> Html:
    """Lines with bands; an empty chart says so."""
    return _widget("chart", chart.title, chart_data(chart, colours))


def chart_data(chart: Chart, colours: Colours) -> dict[str, Any]:
    """A chart as the script draws it."""
    lines = [
        {
            "title": line.title,
            "colour": colours[line.name],
            "dash": dash_of(chart, index),
            "x": numbers(line.x, 9),
            "mean": numbers(line.mean),
            "low": numbers(line.low),
            "high": numbers(line.high),
        }
        for index, line in enumerate(chart.lines)
        if line.x
    ]
    return {"title": chart.title, "x": chart.x_name, "y": chart.y_name, "log": logarithmic(chart), "lines": lines}


def bars_widget(bars: Bars, colours: Colours) -> Html:
    """Stacked bars; a bar that is named like a method has its colour beside its name."""
    return _widget("bars", bars.title, bars_data(bars, colours))


def bars_data(bars: Bars, colours: Colours) -> dict[str, Any]:
    """Bars as the script draws them."""
    return {
        "title": bars.title,
        "unit": bars.unit,
        "bars": [{"title": name, "colour": colours.get(name.lower(), -1)} for name in bars.bars],
        "parts": bars.parts,
        "values": [numbers(values) for values in bars.values],
        "exchange": _exchange(bars),
    }


def _exchange(bars: Bars) -> list[int]:
    """The parts that an exchange costs, where bars are joules by purpose: models cost every method the same."""
    if not set(bars.parts) <= set(PURPOSES):
        return []
    return [index for index, part in enumerate(bars.parts) if part in BEFORE]


def map_widget(maps: Sequence[Map], colours: Colours) -> Html:
    """Devices, clusters and the graph of each method, on one map or on one of several."""
    found = [map_data(item, colours) for item in maps]
    title = re.sub(r"^Seed (?=\d)", "Who sends to whom, seed ", maps[0].title)
    title = title if len(maps) == 1 else f"Who sends to whom, {len(maps)} networks"
    data = {"title": title, "maps": [data for data, _ in found]}
    return _widget("map", title, data, _map_keys(len(maps[0].partitions), found[0][1]))


def _map_keys(partitions: int, said: list[str]) -> Html:
    """The legend of a map; `said` is what it says about what is written there. The script adds the colours of devices."""
    texts = level_texts(link_cuts(partitions), partitions)
    keys = (
        tag("li", tag("i", class_=f"stroke level{index}", aria_hidden="true"), text) for index, text in enumerate(texts)
    )
    outline = tag("li", tag("i", class_="outline", aria_hidden="true"), "reliable cluster")
    width = tag("li", tag("i", class_="widths", aria_hidden="true"), "width: datapoints sent")
    words = (tag("li", text) for text in said)
    return tag(
        "div",
        tag("div", tag("h5", "Partitions trusted on link"), tag("ul", *keys)),
        tag("div", tag("h5", "Map"), tag("ul", outline, width, *words)),
        class_="keys",
    )


def _widget(kind: str, title: str, data: dict[str, Any], *more: str) -> Html:
    place = tag("div", class_="stage")
    look = {"class_": f"widget {kind}", "data_widget": kind, "data_name": slug(title)}
    return tag("figure", tag("figcaption", title), place, *more, embedded(data), **look)
