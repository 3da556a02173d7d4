"""The same pictures as one self-contained page: devices and links explain themselves to the pointer."""

import json
from typing import Any

import numpy as np
import plotly.graph_objects as go
from plotly.offline import get_plotlyjs

from d2dfl.report.drawing import picture as draw
from d2dfl.report.drawing.hover import device_words, for_plotly, link_words
from d2dfl.report.drawing.keys import FRAME, INK, LEVELS, MUTED, ON_LEVELS, PAPER, TINTS
from d2dfl.report.drawing.labels import (
    READABLE,
    Lettering,
    beside,
    cluster_places,
    faintness,
    lettering,
    level,
    level_texts,
    link_cuts,
    node_cuts,
    short_names,
)
from d2dfl.report.drawing.picture import summary
from d2dfl.report.drawing.scene import Array, Scene, curves
from d2dfl.report.page.html import Html, embedded, head, source, tag

PIXELS = 1.7  # per point of the stage
WIDTHS = 4  # plotly draws a trace in one width, so links are sorted into this many
MANY = 500  # links from which only the middle of a link answers the pointer, to keep the file small
PLACE = "d2dfl"
STYLE = "body{margin:0;display:flex;justify-content:center}"
# Plotly has a button that uploads the chart to a company's cloud: not from here.
START = f"""
const {{data, layout}} = JSON.parse(document.getElementById("{PLACE}-data").textContent);
const options = {{modeBarButtonsToRemove: ["sendChartToCloud"], plotlyServerURL: ""}};
Plotly.newPlot("{PLACE}", data, layout, {{displaylogo: false, scrollZoom: true, ...options}});
"""


def page(scenes: list[Scene], subtitle: str = "") -> str:
    """One HTML file that works offline; buttons switch between the scenes."""
    shared = [*_clusters(scenes[0]), *_keys(scenes[0])]
    own = [_traces(scene) for scene in scenes]
    for index, traces in enumerate(own):
        for trace in traces:
            trace.visible = index == 0
    everything = [*shared, *(trace for traces in own for trace in traces)]
    figure = go.Figure(everything, _layout(scenes, subtitle))
    if len(scenes) > 1:
        owner = np.repeat(np.arange(len(own)), [len(traces) for traces in own])
        figure.update_layout(updatemenus=[_switch(scenes, len(shared), owner)])
    return _document(figure, " · ".join(scene.title for scene in scenes if scene.title) or "d2dfl")


def _document(figure: go.Figure, title: str) -> str:
    """The whole page. What scenes and titles say is data in it, and never part of a script."""
    library = get_plotlyjs()
    width, height = figure.layout.width, figure.layout.height
    # Plotly sets styles wherever it draws, and pictures to download pass through a blob.
    ours = f"{source(library)} {source(START)}"
    top = head(title, STYLE, scripts=ours, styles="'unsafe-inline'", images="data: blob:")
    body = tag(
        "body",
        tag("noscript", "This map needs JavaScript."),
        tag("div", id=PLACE, class_="plotly-graph-div", style=f"width:{width}px;height:{height}px"),
        embedded(json.loads(figure.to_json()), id=f"{PLACE}-data"),
        tag("script", Html(library)),
        tag("script", Html(START)),
    )
    return f'<!doctype html>\n<html lang="en">{top}\n{body}</html>\n'


def _heading(scene: Scene, subtitle: str) -> str:
    lines = [f'<span style="font-size:13px;color:{MUTED}">{"  ·  ".join(summary(scene))}</span>']
    if subtitle:
        lines.insert(0, f'<span style="font-size:13px;color:{MUTED}">{for_plotly(subtitle)}</span>')
    if scene.title:
        lines.insert(0, f"<b>{for_plotly(scene.title)}</b>")
    return "<br>".join(lines)


def _layout(scenes: list[Scene], subtitle: str) -> go.Layout:
    stage = scenes[0].stage
    top = 130 if len(scenes) > 1 else 105 if subtitle else 80
    height = stage.height * PIXELS + top + 30
    place = {"x": 0, "xref": "paper", "y": 1 - 32 / height, "yanchor": "top"}  # below plotly's own buttons
    rim = {"color": FRAME, "width": 1}
    frame = {"type": "rect", "x0": 0, "x1": stage.width, "y0": 0, "y1": stage.height, "layer": "below"}
    return go.Layout(
        template="none",
        width=stage.width * PIXELS + 230,
        height=height,
        margin={"l": 20, "r": 210, "t": top, "b": 30},
        title={"text": _heading(scenes[0], subtitle), **place},
        font={"family": "Helvetica, Arial, sans-serif", "color": INK, "size": 13},
        xaxis={"visible": False, "range": [0, stage.width]},
        yaxis={"visible": False, "range": [0, stage.height], "scaleanchor": "x"},
        hovermode="closest",
        dragmode="pan",
        hoverlabel={
            "bgcolor": "white",
            "bordercolor": MUTED,
            "font": {"color": INK},
            "align": "left",
        },
        legend={"itemclick": False, "itemdoubleclick": False, "tracegroupgap": 16, "y": 1, "yanchor": "top"},
        shapes=[{**frame, "fillcolor": PAPER, "line": rim}],
    )


def _switch(scenes: list[Scene], shared: int, owner: Any) -> dict[str, Any]:
    """Buttons for a few scenes, a menu for many."""
    buttons = []
    for index, scene in enumerate(scenes):
        visible = [True] * shared + (owner == index).tolist()
        change = [{"visible": visible}, {"title.text": _heading(scene, "")}]
        buttons.append({"label": for_plotly(scene.title) or f"graph {index}", "method": "update", "args": change})
    look = {"bgcolor": "white", "bordercolor": FRAME, "pad": {"b": 8}, "showactive": True}
    place = {"x": 0, "xanchor": "left", "y": 1, "yanchor": "bottom"}
    kind = {"type": "buttons", "direction": "right"} if len(scenes) <= draw.COLUMNS else {"type": "dropdown"}
    return {"buttons": buttons, **look, **place, **kind}


def _clusters(scene: Scene) -> list[go.Scatter]:
    """One trace per tint."""
    traces = []
    for index, tint in enumerate(TINTS):
        hulls = [np.vstack([hull, hull[:1]]) for hull in scene.stage.hulls[index :: len(TINTS)]]
        if hulls:
            look = {"fill": "toself", "fillcolor": tint + "29", "line": {"color": tint + "99", "width": 1}}
            traces.append(_lines(hulls, **look))
    return traces


def _lines(pieces: Any, **look: Any) -> go.Scatter:
    """Many lines as one trace: a gap ends a line."""
    xy = np.concatenate([np.vstack([piece, [[np.nan, np.nan]]]) for piece in pieces])
    return _trace(xy, mode="lines", hoverinfo="skip", **look)


def _trace(xy: Array, **look: Any) -> go.Scatter:
    # A tenth of a point is finer than any screen, and keeps the file small.
    x, y = ([None if np.isnan(value) else round(float(value), 1) for value in column] for column in xy.T)
    return go.Scatter(x=x, y=y, showlegend=False, **look)


def _keys(scene: Scene) -> list[go.Scatter]:
    """Traces without points, for the legend alone."""
    keys, partitions = [], scene.network.partitions
    for colour, text in zip(LEVELS, level_texts(node_cuts(partitions), partitions), strict=True):
        keys.append(_key("Partitions at threshold", text, mode="markers", marker={"color": colour, "size": 12}))
    for colour, text in zip(LEVELS, level_texts(link_cuts(partitions), partitions), strict=True):
        keys.append(_key("Partitions trusted on link", text, mode="lines", line={"color": colour, "width": 3}))
    square = {
        "symbol": "square",
        "size": 14,
        "color": TINTS[0] + "29",
        "line": {"color": TINTS[0], "width": 1},
    }
    keys.append(_key("Link width", "datapoints sent", mode="lines", line={"color": MUTED, "width": 3}))
    keys.append(_key("Map", "reliable cluster", mode="markers", marker=square))
    words = _letters(scene).sentences() if scene.stage.radius >= READABLE else []
    return [*keys, *(_key("Map", text, mode="markers", marker={"color": "rgba(0,0,0,0)"}) for text in words)]


def _letters(scene: Scene) -> Lettering:
    return lettering(short_names(scene.network.device_names), scene.evaluation.labels_satisfied)


def _key(heading: str, text: str, **look: Any) -> go.Scatter:
    group = {"legendgroup": heading, "legendgrouptitle": {"text": f"<b>{heading}</b>"}}
    return go.Scatter(x=[None], y=[None], name=text, hoverinfo="skip", **look, **group)


def _traces(scene: Scene) -> list[go.Scatter]:
    """Links, the places where they answer the pointer, and devices on top."""
    on_top = [*_labels(scene), _devices(scene)]
    if not len(scene.links.sender):
        return on_top
    places = np.array([0.3, 0.5, 0.7] if len(scene.links.sender) < MANY else [0.5])
    spots = curves(scene.stage, scene.links, places).reshape(-1, 2)
    words = {"text": [text for text in link_words(scene) for _ in places], "hoverinfo": "text"}
    answers = _trace(spots, mode="markers", marker={"size": 12, "opacity": 0}, **words)
    return [*_link_lines(scene), _heads(scene), answers, *on_top]


def _labels(scene: Scene) -> list[go.Scatter]:
    """Names of clusters, and what stands beside circles: names of devices, or how many partitions suffice."""
    letters = _letters(scene)
    if scene.stage.radius < READABLE:
        return []
    clusters = [f"C{name}" for name in np.unique(scene.network.cluster)]
    found = [_texts(cluster_places(scene.stage, scene.links, letters), clusters, 6.5, MUTED)]
    if any(letters.beside):
        texts = [for_plotly(text) if letters.named_inside else f"<b>{for_plotly(text)}</b>" for text in letters.beside]
        found.append(_texts(beside(scene.stage, scene.links, letters), texts, letters.size(scene.stage), INK))
    return found


def _texts(places: Array, texts: list[str], size: float, colour: str) -> go.Scatter:
    """Texts with a pale border at these places."""
    halo = ", ".join(f"{x}px {y}px 1px white" for x in (-1, 1) for y in (-1, 1))
    font = {"size": round(PIXELS * size, 1), "color": colour, "shadow": halo}
    return _trace(places, mode="text", text=texts, textfont=font, textposition="middle center", hoverinfo="skip")


def _link_lines(scene: Scene) -> list[go.Scatter]:
    links, traces = scene.links, []
    lines = curves(scene.stage, links, np.linspace(0, 1, 16))
    colours = level(links.trusted, link_cuts(scene.network.partitions))
    bucket = np.ceil(links.width / links.width.max() * WIDTHS).astype(np.int64)
    for colour, size in sorted(set(zip(colours.tolist(), bucket.tolist(), strict=True))):
        chosen = (colours == colour) & (bucket == size)
        look = {"color": LEVELS[colour], "width": round(PIXELS * float(links.width[chosen].mean()), 2)}
        traces.append(_lines(lines[chosen], line=look, opacity=faintness(len(links.sender))))
    return traces


def _heads(scene: Scene) -> go.Scatter:
    """Arrow heads at the rims of the receivers, which have the same size at every zoom."""
    before, tip = np.moveaxis(curves(scene.stage, scene.links, np.array([0.97, 1.0])), 1, 0)
    way = tip - before
    marker = {
        "symbol": "arrow",
        "line": {"width": 0},
        "size": np.round(6 + 4 * scene.links.width, 1).tolist(),
        "angle": np.degrees(np.arctan2(way[:, 0], way[:, 1])).round(1).tolist(),
        "standoff": scene.stage.radius * PIXELS,
        "color": [LEVELS[index] for index in level(scene.links.trusted, link_cuts(scene.network.partitions))],
        "opacity": faintness(len(scene.links.sender)),
    }
    return _trace(tip, mode="markers", marker=marker, hoverinfo="skip")


def _devices(scene: Scene) -> go.Scatter:
    labels, radius, letters = scene.evaluation.labels_satisfied, scene.stage.radius * PIXELS, _letters(scene)
    colour = level(labels, node_cuts(scene.network.partitions))
    marker = {"size": 2 * radius, "color": [LEVELS[index] for index in colour], "opacity": 1}
    marker["line"] = {"color": "white", "width": min(1.0, 0.2 * radius)}
    look: dict[str, Any] = {"mode": "markers", "marker": marker}
    if scene.stage.radius >= READABLE:
        font = {"color": [ON_LEVELS[index] for index in colour], "size": radius}
        texts = [f"<b>{for_plotly(text)}</b>" for text in letters.circle]
        if not letters.named_inside:
            font["size"], texts = 0.7 * radius, letters.circle
        look |= {"mode": "markers+text", "text": texts, "textfont": font}
    return _trace(scene.stage.xy, hovertext=device_words(scene), hoverinfo="text", **look)
