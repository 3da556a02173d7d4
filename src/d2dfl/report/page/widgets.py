"""What the page's script draws: charts, bars and maps as small plain data, and the elements that hold them."""

from typing import Any

import numpy as np

from d2dfl.report.drawing.keys import LINK_LEVELS, NODE_LEVELS, round_down
from d2dfl.report.drawing.map_stage import cluster_names, layer_links, map_stage, most_sent
from d2dfl.report.drawing.picture import short_name
from d2dfl.report.drawing.scene import Stage, link_level, node_level
from d2dfl.report.findings import Bars, Chart, Layer, Map
from d2dfl.report.look import Colours, dash_of, logarithmic
from d2dfl.report.page.html import Html, embedded, tag

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
    data = {
        "title": item.title,
        "size": [stage.width, round(stage.height, 1)],
        "radius": round(stage.radius, 2),
        "devices": _flipped(stage.xy, stage),
        "names": item.devices or [str(device) for device in range(len(item.positions))],
        "labels": [short_name(name) for name in item.devices],
        "hulls": [_flipped(hull, stage) for hull in stage.hulls],
        "cluster": cluster_names(item).tolist(),
        "partitions": item.partitions,
        "threshold": [_numbers(row) for row in item.threshold],
        "before": [_numbers(row) for row in item.before],
        "layers": [_layer(layer, item, stage, most, colours) for layer in item.layers],
        "scale": _scale(stage),
    }
    return _widget("map", item.title, data, _map_keys())


def _layer(layer: Layer, item: Map, stage: Stage, most: float, colours: Colours) -> dict[str, Any]:
    links = layer_links(layer, len(item.partitions), stage, most)
    start, end = stage.xy[links.sender], stage.xy[links.receiver]
    right = np.stack([end[:, 1] - start[:, 1], start[:, 0] - end[:, 0]], axis=1)
    bends = _flipped((start + end) / 2 + links.bow[:, None] * right, stage)  # control points of the curves
    levels = link_level(links.trusted).tolist()
    return {
        "title": layer.title,
        "colour": colours[layer.name],
        "after": [_numbers(row) for row in layer.after],
        "satisfied": layer.satisfied,
        "level": node_level(np.array(layer.satisfied, dtype=np.int64)).tolist(),
        "links": [
            {
                "from": link.transmitter,
                "to": link.receiver,
                "loss": _numbers((link.loss,))[0],
                "trusted": link.trusted,
                "level": level,
                "width": round(float(width), 2),
                "bend": bend,
                "amounts": [[index, amount] for index, amount in enumerate(_numbers(link.amounts)) if amount],
            }
            for link, level, width, bend in zip(layer.links, levels, links.width, bends, strict=True)
        ],
    }


def _map_keys() -> Html:
    """The legend of every map."""
    groups = []
    for kind, heading, texts in (
        ("dot", "Partitions at threshold", NODE_LEVELS),
        ("stroke", "Partitions trusted on link", LINK_LEVELS),
    ):
        keys = (
            tag("li", tag("i", class_=f"{kind} level{index}", aria_hidden="true"), text)
            for index, text in enumerate(texts)
        )
        groups.append(tag("div", tag("h5", heading), tag("ul", *keys)))
    outline = tag("li", tag("i", class_="outline", aria_hidden="true"), "reliable cluster")
    width = tag("li", tag("i", class_="widths", aria_hidden="true"), "width: datapoints sent")
    groups.append(tag("div", tag("h5", "Map"), tag("ul", outline, width)))
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
