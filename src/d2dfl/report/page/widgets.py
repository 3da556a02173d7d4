"""What the page's script draws: charts, bars and maps as small plain data, and the elements that hold them."""

from typing import Any

import numpy as np

from d2dfl.report.drawing.keys import round_down
from d2dfl.report.drawing.labels import (
    READABLE,
    beside,
    cluster_places,
    faintness,
    lettering,
    level,
    level_texts,
    link_cuts,
    node_cuts,
    short_name,
)
from d2dfl.report.drawing.map_stage import cluster_names, layer_links, map_stage, most_sent
from d2dfl.report.drawing.scene import Arrows, Stage
from d2dfl.report.findings import Bars, Chart, Layer, Map
from d2dfl.report.look import Colours, dash_of, logarithmic
from d2dfl.report.page.html import Html, embedded, tag

NOBODY = Layer("", "", (), (), ())  # a graph without links
WIDTH = 400.0  # of a map's stage; the page scales it


def chart_widget(chart: Chart, colours: Colours) -> Html:
    """Lines with bands; an empty chart says so."""
    lines = [
        {
            "title": line.title,
            "colour": colours[line.name],
            "dash": dash_of(chart, index),
            "x": _numbers(line.x, 9),
            "mean": _numbers(line.mean),
            "low": _numbers(line.low),
            "high": _numbers(line.high),
        }
        for index, line in enumerate(chart.lines)
        if line.x
    ]
    data = {"title": chart.title, "x": chart.x_name, "y": chart.y_name, "log": logarithmic(chart), "lines": lines}
    return _widget("chart", chart.title, data)


def bars_widget(bars: Bars, colours: Colours) -> Html:
    """Stacked bars; a bar that is named like a method has its colour beside its name."""
    data = {
        "title": bars.title,
        "unit": bars.unit,
        "bars": [{"title": name, "colour": colours.get(name.lower(), -1)} for name in bars.bars],
        "parts": bars.parts,
        "values": [_numbers(values) for values in bars.values],
    }
    return _widget("bars", bars.title, data)


def map_widget(item: Map, colours: Colours) -> Html:
    """Devices, clusters and the graph of each method."""
    stage, most = map_stage(item, WIDTH), most_sent(item)
    arrows = [layer_links(layer, len(item.partitions), stage, most) for layer in item.layers]
    letters = lettering(list(map(short_name, item.devices)), np.zeros(len(item.positions), dtype=np.int64))
    written = stage.radius >= READABLE and any(letters.beside)
    first = arrows[0] if arrows else layer_links(NOBODY, len(item.partitions), stage, most)
    data = {
        "title": item.title,
        "size": [stage.width, round(stage.height, 1)],
        "radius": round(stage.radius, 2),
        "devices": _flipped(stage.xy, stage),
        "names": item.devices or [str(device) for device in range(len(item.positions))],
        "readable": stage.radius >= READABLE,
        "inside": letters.named_inside,
        "labels": letters.circle if letters.named_inside else letters.beside,
        "places": _flipped(beside(stage, first, letters), stage) if written else [],
        "hulls": [_flipped(hull, stage) for hull in stage.hulls],
        "hullNames": _flipped(cluster_places(stage, first, letters), stage),
        "cluster": cluster_names(item).tolist(),
        "partitions": item.partitions,
        "threshold": [_numbers(row) for row in item.threshold],
        "before": [_numbers(row) for row in item.before],
        "layers": [
            _layer(layer, item, stage, links, colours) for layer, links in zip(item.layers, arrows, strict=True)
        ],
        "scale": _scale(stage),
    }
    said = letters.sentences() if stage.radius >= READABLE else []
    return _widget("map", item.title, data, _map_keys(len(item.partitions), said))


def _layer(layer: Layer, item: Map, stage: Stage, links: Arrows, colours: Colours) -> dict[str, Any]:
    partitions = len(item.partitions)
    start, end = stage.xy[links.sender], stage.xy[links.receiver]
    right = np.stack([end[:, 1] - start[:, 1], start[:, 0] - end[:, 0]], axis=1)
    bends = _flipped((start + end) / 2 + links.bow[:, None] * right, stage)  # control points of the curves
    levels = level(links.trusted, link_cuts(partitions)).tolist()
    return {
        "title": layer.title,
        "colour": colours[layer.name],
        "after": [_numbers(row) for row in layer.after],
        "satisfied": layer.satisfied,
        "level": level(np.array(layer.satisfied, dtype=np.int64), node_cuts(partitions)).tolist(),
        "faint": faintness(len(layer.links)),
        "links": [
            {
                "from": link.transmitter,
                "to": link.receiver,
                "loss": _numbers((link.loss,))[0],
                "trusted": link.trusted,
                "level": colour,
                "width": round(float(width), 2),
                "bend": bend,
                "amounts": [[index, amount] for index, amount in enumerate(_numbers(link.amounts)) if amount],
            }
            for link, colour, width, bend in zip(layer.links, levels, links.width, bends, strict=True)
        ],
    }


def _map_keys(partitions: int, said: list[str]) -> Html:
    """The legend of a map; `said` is what it says about what is written there."""
    groups = []
    for kind, heading, texts in (
        ("dot", "Partitions at threshold", level_texts(node_cuts(partitions), partitions)),
        ("stroke", "Partitions trusted on link", level_texts(link_cuts(partitions), partitions)),
    ):
        keys = (
            tag("li", tag("i", class_=f"{kind} level{index}", aria_hidden="true"), text)
            for index, text in enumerate(texts)
        )
        groups.append(tag("div", tag("h5", heading), tag("ul", *keys)))
    outline = tag("li", tag("i", class_="outline", aria_hidden="true"), "reliable cluster")
    width = tag("li", tag("i", class_="widths", aria_hidden="true"), "width: datapoints sent")
    words = (tag("li", text) for text in said)
    groups.append(tag("div", tag("h5", "Map"), tag("ul", outline, width, *words)))
    return tag("div", *groups, class_="keys")


def _scale(stage: Stage) -> dict[str, Any] | None:
    """A round length in metres and how long it is on the stage."""
    if not stage.points_per_m:
        return None
    metres = round_down(70 / stage.points_per_m)
    return {"length": round(metres * stage.points_per_m, 1), "text": f"{metres:,.9g} m"}


def _widget(kind: str, title: str, data: dict[str, Any], *more: str) -> Html:
    place = tag("div", class_="stage")
    return tag(
        "figure", tag("figcaption", title), place, *more, embedded(data), class_=f"widget {kind}", data_widget=kind
    )


def _flipped(xy: Any, stage: Stage) -> list[list[float]]:
    """Points with y downwards, as screens have it."""
    return [[round(float(x), 1), round(stage.height - float(y), 1)] for x, y in xy]


def _numbers(values: tuple[float, ...], digits: int = 6) -> list[float]:
    """Fewer digits than the record: more than any screen shows, and a small file."""
    short = (float(f"{value:.{digits}g}") for value in values)
    return [int(value) if value.is_integer() and abs(value) < 1e15 else value for value in short]
