"""Maps as small plain data for the page's script: devices, clusters, and the graph of each method."""

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
    link_cuts,
    short_names,
)
from d2dfl.report.drawing.map_stage import cluster_names, layer_links, map_stage, most_sent
from d2dfl.report.drawing.scene import Arrows, Stage, link_width
from d2dfl.report.findings import Layer, Map
from d2dfl.report.look import Colours

NOBODY = Layer("", "", (), (), ())  # a graph without links
WIDTH = 400.0  # of a map's stage; the page scales it


def map_data(item: Map, colours: Colours, stage: Stage | None = None) -> tuple[dict[str, Any], list[str]]:
    """One map, and what its legend says about what is written there; `stage`: where devices stand, if that is known."""
    stage, most = stage or map_stage(item, WIDTH), most_sent(item)
    arrows = [layer_links(layer, len(item.partitions), stage, most) for layer in item.layers]
    letters = lettering(short_names(item.devices), np.zeros(len(item.positions), dtype=np.int64))
    written = stage.radius >= READABLE and any(letters.beside)
    first = arrows[0] if arrows else layer_links(NOBODY, len(item.partitions), stage, most)
    data = {
        "title": item.title,
        "size": [stage.width, round(stage.height, 1)],
        "radius": round(stage.radius, 2),
        "wide": round(float(link_width(stage, 1.0)), 2),
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
        "threshold": [numbers(row) for row in item.threshold],
        "before": [numbers(row) for row in item.before],
        "distance": numbers(item.distance),
        "layers": [
            layer_data(layer, item, stage, links, colours) for layer, links in zip(item.layers, arrows, strict=True)
        ],
        "scale": _scale(stage),
    }
    return data, letters.sentences() if stage.radius >= READABLE else []


def layer_data(layer: Layer, item: Map, stage: Stage, links: Arrows, colours: Colours) -> dict[str, Any]:
    """The graph of one method; `links` are those of the layer, as they lie on the stage."""
    start, end = stage.xy[links.sender], stage.xy[links.receiver]
    right = np.stack([end[:, 1] - start[:, 1], start[:, 0] - end[:, 0]], axis=1)
    bends = _flipped((start + end) / 2 + links.bow[:, None] * right, stage)  # control points of the curves
    levels = level(links.trusted, link_cuts(len(item.partitions))).tolist()
    return {
        "title": layer.title,
        "colour": colours[layer.name],
        "after": [numbers(row) for row in layer.after],
        "went": [numbers(row) for row in layer.went],
        "satisfied": layer.satisfied,
        "distance": numbers(layer.distance),
        "wentDistance": numbers(layer.went_distance),
        "scores": numbers(layer.scores),
        "faint": faintness(len(layer.links)),
        "links": [
            {
                "from": link.transmitter,
                "to": link.receiver,
                "loss": numbers((link.loss,))[0],
                "trusted": link.trusted,
                "level": colour,
                "bend": bend,
                "amounts": [[index, amount] for index, amount in enumerate(numbers(link.amounts)) if amount],
                "went": numbers(link.went),
            }
            for link, colour, bend in zip(layer.links, levels, bends, strict=True)
        ],
    }


def _scale(stage: Stage) -> dict[str, Any] | None:
    """A round length in metres and how long it is on the stage."""
    if not stage.points_per_m:
        return None
    metres = round_down(70 / stage.points_per_m)
    return {"length": round(metres * stage.points_per_m, 1), "text": f"{metres:,.9g} m"}


def _flipped(xy: Any, stage: Stage) -> list[list[float]]:
    """Points with y downwards, as screens have it."""
    return [[round(float(x), 1), round(stage.height - float(y), 1)] for x, y in xy]


def numbers(values: tuple[float, ...], digits: int = 6) -> list[float]:
    """Fewer digits than the record: more than any screen shows, and a small file."""
    return [_short(value, digits) if value else 0 for value in values]


def _short(value: float, digits: int) -> float:
    short = float(f"{value:.{digits}g}")
    return int(short) if short.is_integer() and abs(short) < 1e15 else short
