"""Findings as figures for a paper: one column of IEEE wide, 8 point text, fonts embedded, the same bytes every time."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullLocator

from d2dfl.errors import UserError
from d2dfl.report.drawing.keys import INK, MUTED, keys, round_down
from d2dfl.report.drawing.labels import drawable, lettering, level, link_cuts, node_cuts
from d2dfl.report.drawing.map_stage import cluster_names, layer_links, map_stage, most_sent
from d2dfl.report.drawing.picture import panel
from d2dfl.report.drawing.saving import save_figure
from d2dfl.report.drawing.scene import Stage
from d2dfl.report.findings import Bars, Chart, Findings, Layer, Map
from d2dfl.report.look import COLOURS, GREY, PARTS, Colours, dash_of, logarithmic, palettes, slugs

FORMATS = ("pdf", "svg", "png")
WIDTH = 3.5  # inches
FEW = 8  # points up to which each has a mark of its own
STEPS = [1, 2, 5, 10]  # round numbers between ticks
DASHES: dict[str, Any] = {"solid": "-", "dashed": (0, (4, 2)), "dotted": (0, (1, 1.5))}
STYLE: Any = {
    "font.family": ["STIXGeneral", "DejaVu Sans"],  # both come with matplotlib, so that every machine draws the same
    "font.size": 8,
    "axes.labelsize": 8,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.fontsize": 8,
    "axes.linewidth": 0.6,
    "axes.edgecolor": MUTED,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "axes.labelcolor": INK,
    "figure.constrained_layout.w_pad": 0.02,
    "figure.constrained_layout.h_pad": 0.02,
    "grid.linewidth": 0.4,
    "grid.alpha": 0.35,
    "pdf.fonttype": 42,
    "ps.fonttype": 42,
    "svg.hashsalt": "d2dfl",
}


def draw_figures(findings: Findings, folder: Path, formats: Sequence[str] = FORMATS) -> list[Path]:
    """Every chart, every set of bars and the graph of every method, each as one file a format."""
    unknown = [name for name in formats if name not in FORMATS]
    if unknown:
        raise UserError(f"cannot draw figures as {unknown[0]!r}: the formats are {', '.join(FORMATS)}")
    drawings = list(_drawings(findings))
    paths = []
    for name, (_, draw) in zip(slugs(title for title, _ in drawings), drawings, strict=True):
        with matplotlib.rc_context(), warnings.catch_warnings():
            matplotlib.rcdefaults()  # a style of the reader's own must not change the figure
            matplotlib.rcParams.update(STYLE)
            warnings.filterwarnings("ignore", message="Glyph")  # what no font has is drawn as a box
            figure = draw()
            FigureCanvasAgg(figure)
            for suffix in formats:
                paths.append(folder / f"{name}.{suffix}")
                save_figure(figure, paths[-1], dpi=300)
    return paths


def _drawings(findings: Findings) -> Iterator[tuple[str, Callable[[], Figure]]]:
    """Title and drawing of every figure."""
    (colours,) = palettes([findings])
    for chart in findings.charts:
        if any(line.x for line in chart.lines):
            yield chart.title, partial(_chart, chart, colours)
    for bars in findings.bars:
        if bars.bars:
            yield bars.title, partial(_bars, bars)
    for item in findings.maps[:1]:  # the page has those of all seeds
        stage = map_stage(item, 72 * WIDTH - 4)
        for layer in item.layers:
            yield f"{item.title} {layer.title}", partial(_map, item, layer, stage)


def _chart(chart: Chart, colours: Colours) -> Figure:
    """Lines with bands; the legend stands above, where no line is."""
    looks: list[dict[str, Any]] = [
        {"color": _colour(colours[line.name]), "linestyle": DASHES[dash_of(chart, index)], "linewidth": 1.2}
        for index, line in enumerate(chart.lines)
    ]
    handles = [Line2D([], [], **look) for look in looks]
    figure, axes = _blank([line.title for line in chart.lines], handles, 2.0)
    low, high = _range(chart)
    for look, line in zip(looks, chart.lines, strict=True):
        few: dict[str, Any] = {"marker": "o", "markersize": 2.6} if len(line.x) <= FEW else {}
        axes.plot(line.x, line.mean, **look, **few)
        if sum(line.high) - sum(line.low) <= len(line.x) * (high - low):
            shade = min(0.15, 0.7 / len(chart.lines))
            axes.fill_between(line.x, line.low, line.high, color=look["color"], alpha=shade, linewidth=0)
        else:
            axes.set_title("bands wider than the axis are left out", size=7, color=MUTED, loc="right", pad=2)
    axes.grid(axis="y")
    axes.set_xlabel(_clean(chart.x_name), parse_math=False)
    axes.set_ylabel(_clean(chart.y_name), parse_math=False)
    axes.margins(x=0.02)
    axes.set_ylim(low, high)
    axes.yaxis.set_major_locator(MaxNLocator(6, steps=STEPS))
    _places(axes, chart)
    return figure


def _range(chart: Chart) -> tuple[float, float]:
    """Lowest and highest of the y axis; wide bands over few seeds are cut before they flatten the lines."""
    means = [value for line in chart.lines for value in line.mean]
    span = max(means) - min(means) or abs(means[0]) or 1.0
    low = max(min(means + [value for line in chart.lines for value in line.low]), min(means) - 0.6 * span)
    high = min(max(means + [value for line in chart.lines for value in line.high]), max(means) + 0.6 * span)
    pad = 0.05 * (high - low or abs(high) or 1.0)
    return low - pad, high + pad


def _places(axes: Axes, chart: Chart) -> None:
    """Ticks of the x axis; in powers where the values grow so, and then at the values where they are few."""
    places = sorted({x for line in chart.lines for x in line.x})
    if logarithmic(chart):
        axes.set_xscale("log")
        few = len(places) <= FEW
        axes.xaxis.set_major_locator(FixedLocator(places) if few else LogLocator(10, subs=(1, 2, 5), numticks=7))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.6g}"))
    else:
        whole = all(float(x).is_integer() for x in places)
        axes.xaxis.set_major_locator(MaxNLocator(7, steps=STEPS, integer=whole))


def _bars(bars: Bars) -> Figure:
    """Stacked bars, the first at the top, each with its total."""
    shades = [PARTS[index % len(PARTS)] for index in range(len(bars.parts))]
    figure, axes = _blank(bars.parts, [Patch(color=shade) for shade in shades], 0.35 + 0.19 * len(bars.bars))
    places, start = np.arange(len(bars.bars)), np.zeros(len(bars.bars))
    for values, shade in zip(bars.values, shades, strict=True):
        axes.barh(places, values, left=start, height=0.62, color=shade, edgecolor="white", linewidth=0.4)
        start += values
    most = float(start.max(initial=0.0)) or 1.0
    for place, total in zip(places, start, strict=True):
        axes.text(float(total) + 0.015 * most, float(place), f"{total:,.3g}", va="center_baseline", color=INK)
    axes.set_xlim(0, 1.14 * most)
    axes.set_ylim(len(places) - 0.4, -0.6)
    axes.set_yticks(places, [_clean(text, 28) for text in bars.bars], parse_math=False)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.xaxis.set_major_locator(MaxNLocator(6, steps=STEPS))
    axes.grid(axis="x")
    axes.set_xlabel(_clean(bars.unit), parse_math=False)
    return figure


def _blank(labels: Sequence[str], handles: Sequence[Any], height: float) -> tuple[Figure, Axes]:
    """A figure of one column with a legend above its axes, in as many columns as fit."""
    longest = max(map(len, labels), default=1)
    columns = max(1, min(4, len(labels), int(62 / (longest + 6))))
    rows = -(-len(labels) // columns)
    figure = Figure(figsize=(WIDTH, height + 0.16 * rows), layout="constrained")
    axes = figure.add_subplot()
    style: dict[str, Any] = {"loc": "outside upper center", "ncols": columns, "frameon": False, "borderpad": 0.2}
    style |= {"handlelength": 1.8, "columnspacing": 1.2, "labelspacing": 0.25, "handletextpad": 0.5}
    legend = figure.legend(list(handles), ["–"] * len(labels), labelcolor=INK, **style)
    for text, label in zip(legend.get_texts(), labels, strict=True):
        text.set(text=_clean(label), parse_math=False)  # a label with an underscore in front would be left out
    return figure, axes


def _map(item: Map, layer: Layer, stage: Stage) -> Figure:
    """The graph of one method, in the look of drawing/picture.py, with its keys below."""
    most = most_sent(item)
    satisfied, partitions = np.array(layer.satisfied, dtype=np.int64), len(item.partitions)
    letters = lettering(drawable(item.devices), satisfied)
    groups = [group for group in keys(stage, most, partitions, letters) if group[0] != "Map"]
    below = 11.0 * (2.6 + max(len(handles) for _, handles in groups))
    width, height = 72 * WIDTH, stage.height + below + 4
    figure = Figure(figsize=(width / 72, height / 72), dpi=72)
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, width), ylim=(0, height))
    axes.set_axis_off()
    links = layer_links(layer, len(item.partitions), stage, most)
    levels = level(satisfied, node_cuts(partitions)), level(links.trusted, link_cuts(partitions))
    panel(axes, stage, links, levels, cluster_names(item), np.array([2.0, below]), letters)
    style: dict[str, Any] = {"frameon": False, "borderpad": 0, "borderaxespad": 0, "alignment": "left", "fontsize": 8}
    style |= {"loc": "upper left", "bbox_transform": axes.transData, "labelspacing": 0.25, "handlelength": 1.5}
    style |= {"labelcolor": INK, "title_fontproperties": {"size": 8, "weight": "bold"}}
    for index, (heading, handles) in enumerate(groups):
        place = (3.0 + index * width / len(groups), below - 6)
        texts = [str(handle.get_label()) for handle in handles]
        axes.add_artist(Legend(axes, handles, texts, title=heading, bbox_to_anchor=place, **style))
    _ruler(axes, stage)
    return figure


def _ruler(axes: Axes, stage: Stage) -> None:
    if stage.points_per_m > 0:
        metres = round_down(40 / stage.points_per_m)
        end = 3.0 + metres * stage.points_per_m
        axes.plot([3, 3, end, end], [7, 3, 3, 7], color=INK, lw=0.8)
        axes.text(end + 5, 2.5, f"{metres:,.9g} m", color=INK)


def _colour(number: int | None) -> str:
    return GREY if number is None else COLOURS[number]


def _clean(text: str, most: int = 60) -> str:
    """One line of printable characters."""
    words = "".join(character if character.isprintable() else " " for character in text)
    return words if len(words) <= most else words[: most - 1] + "…"
