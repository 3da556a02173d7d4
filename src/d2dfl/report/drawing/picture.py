"""Pictures of graphs, in the manner of the paper's Fig. 4: .png, .svg and .pdf (matplotlib), .html (plotly).

Pages are laid out in points (1/72 inch): text, nodes and arrows keep their size in any network.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import EllipseCollection, LineCollection, PolyCollection
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.patches import FancyBboxPatch
from matplotlib.patheffects import withStroke
from numpy.typing import NDArray

from d2dfl.errors import UserError
from d2dfl.report.drawing.keys import FRAME, INK, LEVELS, MUTED, ON_LEVELS, PAPER, TINTS, keys, round_down
from d2dfl.report.drawing.labels import (
    READABLE,
    Lettering,
    beside,
    cluster_places,
    drawable,
    faintness,
    lettering,
    level,
    link_cuts,
    node_cuts,
)
from d2dfl.report.drawing.saving import save_figure, suffix_among
from d2dfl.report.drawing.scene import Array, Arrows, Scene, Stage, curves, links_of, stage_of
from d2dfl.storage import write_whole

if TYPE_CHECKING:  # a page needs no compiler
    from d2dfl.discovery.evaluation import Evaluation
    from d2dfl.network import Network
    from d2dfl.network.graph import Graph

Drawn = tuple[str, "Graph", "Evaluation"]  # a title, and what is drawn below it

SUFFIXES = (".png", ".svg", ".pdf", ".html")

COLUMNS = 5  # panels in a row
GAP, LINE, KEYS = 14.0, 13.0, 132.0  # gap between panels, height of a line, width of a block of keys
SMALLEST = 6.5  # size to which a line of words may shrink before it is cut


def draw_graph(
    network: "Network", graph: "Graph", evaluation: "Evaluation", path: Path, title: str = "", subtitle: str = ""
) -> None:
    """Draw one graph into a file; its suffix says the format."""
    _draw(network, [(title, graph, evaluation)], path, subtitle)


def draw_row(network: "Network", methods: Sequence[Drawn], path: Path) -> None:
    """Draw graphs of one network, (title, graph, evaluation) each, side by side; in rows when more than 5."""
    if not methods:
        raise UserError("there is nothing to draw: give at least one graph")
    _draw(network, methods, path, "")


def graph_figure(
    network: "Network", graph: "Graph", evaluation: "Evaluation", title: str = "", path: Path | None = None
) -> Figure:
    """One graph as a figure of matplotlib; with a path it is drawn there, too."""
    if path is not None:
        draw_graph(network, graph, evaluation, path, title)
    stage, most = stage_of(network, 400.0), float(graph.allocated.sum(axis=2).max(initial=0.0))
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        return _figure([Scene(title, network, evaluation, stage, links_of(network, graph, stage, most))], "", most)


def network_figure(network: "Network", graph: "Graph | None" = None, path: Path | None = None) -> Figure:
    """A network with the links of a graph, or with none, as a figure; its worth is that of the default reward."""
    from d2dfl.config import Config
    from d2dfl.discovery.evaluation import evaluate, graph_of

    if graph is None:
        graph = graph_of(network, np.full((network.devices, 1), -1, dtype=np.int32), over_ask=False)
    elif graph.devices != network.devices:
        raise UserError(
            f"the graph has {graph.devices} devices and the network {network.devices}: give its own network"
        )
    return graph_figure(network, graph, evaluate(network, graph, Config().reward), path=path)


def check_suffix(path: Path) -> str:
    """The format that a file's name asks for, or a UserError."""
    return suffix_among(path, SUFFIXES)


def _draw(network: "Network", methods: Sequence[Drawn], path: Path, subtitle: str) -> None:
    suffix = check_suffix(path)
    alone = len(methods) == 1 or suffix == ".html"
    stage = stage_of(network, 400.0 if alone else float(np.clip(690 / len(methods), 216, 300)))
    most = max(float(graph.allocated.sum(axis=2).max(initial=0.0)) for _, graph, _ in methods)
    scenes = [Scene(t, network, e, stage, links_of(network, g, stage, most)) for t, g, e in methods]
    if suffix == ".html":
        from d2dfl.report.drawing.interactive import page  # plotly takes long to import

        write_whole(path, page(scenes, subtitle).encode(errors="replace"))
        return
    with matplotlib.rc_context():
        matplotlib.rcdefaults()  # a style of the reader's own must not change the picture
        matplotlib.rcParams.update({"svg.hashsalt": "d2dfl", "pdf.fonttype": 42})
        save_figure(_figure(scenes, subtitle, most), path, dpi=200)


def summary(scene: Scene) -> list[str]:
    """What the graph is worth, in three phrases."""
    result = scene.evaluation
    lost = f" ({1 - result.success_probability:.1%})" if result.success_probability is not None else ""
    return [
        f"objective {result.objective:.3f} (no exchange {result.no_exchange:.3f})",
        f"{result.labels_satisfied.mean():.1f} of {scene.network.partitions} labels satisfied per device",
        f"expected: {result.datapoints_moved:,.0f} datapoints moved, {result.datapoints_lost:,.0f} lost{lost}",
    ]


def _figure(scenes: list[Scene], subtitle: str, most: float) -> Figure:
    stage, alone = scenes[0].stage, len(scenes) == 1
    rows = -(-len(scenes) // COLUMNS)
    columns = -(-len(scenes) // rows)
    above = GAP + LINE * (1.1 * any(scene.title for scene in scenes) + bool(subtitle))
    cell = np.array([stage.width + GAP, above + stage.height + LINE * (1.4 if alone else 3)])
    groups = keys(stage, most, scenes[0].network.partitions, _letters(scenes[0]))
    room = np.array([KEYS, 0.0]) if alone else np.array([0.0, 6.4 * LINE])
    width, height = cell * (columns, rows) + room + (GAP, 6.0)
    foot = 0.0  # how far below a panel its summary begins
    if alone:  # below the keys, too: it is as wide as both
        beside = LINE * (1.6 + sum(len(handles) + 1.9 for _, handles in groups))
        foot = max(0.0, beside - stage.height)
        height = max(height, above + beside + LINE * 2)
    figure = Figure(figsize=(width / 72, height / 72), dpi=72, facecolor="white")
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, width), ylim=(0, height))
    axes.set_axis_off()
    for index, scene in enumerate(scenes):
        row, column = divmod(index, columns)
        corner = np.array([GAP + column * cell[0], height - row * cell[1] - above - stage.height])
        panel(axes, stage, scene.links, _levels(scene), scene.network.cluster, corner, _letters(scene))
        _words(axes, scene, subtitle, corner, width - 2 * GAP if alone else stage.width, foot)
    place = (GAP + cell[0], height - above) if alone else (width / 2, 6.1 * LINE)
    _legend(axes, stage, groups, place, side_by_side=not alone)
    return figure


def _letters(scene: Scene) -> Lettering:
    return lettering(drawable(scene.network.device_names), scene.evaluation.labels_satisfied)


def _levels(scene: Scene) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    partitions = scene.network.partitions
    satisfied, trusted = scene.evaluation.labels_satisfied, scene.links.trusted
    return level(satisfied, node_cuts(partitions)), level(trusted, link_cuts(partitions))


def _words(axes: Axes, scene: Scene, subtitle: str, corner: Array, room: float, foot: float) -> None:
    """Title and subtitle above a panel, the summary below."""
    (x, y), alone = corner, room > scene.stage.width
    top = y + scene.stage.height + 6
    if subtitle:
        _text(axes, x, top, subtitle, room, size=8.5, color=MUTED)
        top += LINE
    _text(axes, x, top, scene.title, room, size=11 if alone else 9.5, weight="bold")
    phrases = summary(scene)
    for line, text in enumerate(["  ·  ".join(phrases)] if alone else phrases):
        _text(axes, x, y - foot - LINE * (1.1 + 0.8 * line), text, room, size=8 if alone else 7, color=MUTED)


def _text(axes: Axes, x: float, y: float, text: str, room: float, **style: Any) -> None:
    """One line of text, smaller or even cut where it would leave its room."""
    words = text.replace("\n", " ")
    artist = axes.text(x, y, words, **{"color": INK, "parse_math": False, **style})
    size = float(artist.get_fontsize())
    while artist.get_window_extent().width > room and size > SMALLEST:
        size = max(SMALLEST, size - 0.25)
        artist.set_fontsize(size)
    while words and artist.get_window_extent().width > room:
        words = words[:-1]
        artist.set_text(words.rstrip() + "…")


def panel(
    axes: Axes,
    stage: Stage,
    links: Arrows,
    levels: tuple[NDArray[np.int64], NDArray[np.int64]],  # of devices and of links
    cluster: NDArray[Any],
    corner: Array,
    letters: Lettering,
) -> None:
    """Frame, clusters, links and devices, in this order; devices have their names, or numbers, in or beside them."""
    style: dict[str, Any] = {"boxstyle": "round,pad=0,rounding_size=5", "fc": PAPER, "ec": FRAME, "lw": 0.8}
    axes.add_patch(FancyBboxPatch((corner[0], corner[1]), stage.width, stage.height, zorder=0, **style))
    tints = [TINTS[index % len(TINTS)] for index in range(len(stage.hulls))]
    style = {"facecolors": [tint + "29" for tint in tints], "edgecolors": [tint + "99" for tint in tints]}
    hulls = PolyCollection([hull + corner for hull in stage.hulls], linewidths=0.7, zorder=1, **style)
    axes.add_collection(hulls, autolim=False)
    if len(links.sender):
        _arrows(axes, stage, links, levels[1], corner)
    colour, width = levels[0], np.full(len(stage.xy), 2 * stage.radius)
    style = {"facecolors": [LEVELS[index] for index in colour], "edgecolors": "white", "zorder": 3}
    style |= {"units": "xy", "offsets": stage.xy + corner, "offset_transform": axes.transData}
    style |= {"linewidths": min(0.9, 0.15 * stage.radius)}
    axes.add_collection(EllipseCollection(width, width, np.zeros(len(colour)), **style), autolim=False)
    if stage.radius >= READABLE:
        _write(axes, stage, links, colour, corner, letters)
        _cluster_names(axes, stage, links, cluster, corner, letters)


def _write(
    axes: Axes, stage: Stage, links: Arrows, colour: NDArray[np.int64], corner: Array, letters: Lettering
) -> None:
    """What stands in circles, and what beside them."""
    share = (1.1, 1.0, 0.75) if letters.named_inside else (0.7, 0.65, 0.5)
    style: dict[str, Any] = {"ha": "center", "va": "center_baseline", "parse_math": False, "zorder": 4}
    style["weight"] = "bold" if letters.named_inside else "normal"
    for (x, y), text, index in zip(stage.xy + corner, letters.circle, colour, strict=True):
        axes.text(x, y, text, size=stage.radius * share[min(len(text), 3) - 1], color=ON_LEVELS[index], **style)
    halo = [withStroke(linewidth=2.0, foreground=PAPER)]
    style = {"ha": "center", "va": "center", "parse_math": False, "color": INK, "zorder": 4.5, "path_effects": halo}
    style |= {"size": letters.size(stage), "weight": "normal" if letters.named_inside else "bold"}
    for (x, y), text in zip(beside(stage, links, letters) + corner, letters.beside, strict=True):
        if text:
            axes.text(x, y, text, **style)


def _arrows(axes: Axes, stage: Stage, links: Arrows, levels: NDArray[np.int64], corner: Array) -> None:
    """Curved arrows from rim to rim; each has a pale border, so that crossings stay readable."""
    order = np.argsort(-links.width, kind="stable")  # thin ones on top
    links, levels = Arrows._make(column[order] for column in links), levels[order]
    length = np.linalg.norm(stage.xy[links.sender] - stage.xy[links.receiver], axis=1)
    speed = (length * np.sqrt(1 + 4 * links.bow**2)).clip(min=1e-9)[:, None]  # of the curve at its ends
    trim = np.minimum((stage.radius + 1) / speed, 0.35)
    size = np.minimum(2.4 + 2.2 * links.width, stage.radius)[:, None]
    head = np.minimum(size / speed, 0.7 * (1 - 2 * trim))
    body = curves(stage, links, trim + (1 - 2 * trim - 0.9 * head) * np.linspace(0, 1, 24)) + corner
    base, tip = np.moveaxis(curves(stage, links, 1 - trim - head * [1, 0]) + corner, 1, 0)
    side = 0.42 * (tip - base)[:, ::-1] * [1, -1]
    heads = np.stack([tip, base + side, base - side], axis=1)
    colours, faint = [LEVELS[index] for index in levels], faintness(len(levels))
    style: dict[str, Any] = {"colors": [shade for colour in colours for shade in (PAPER, colour)], "alpha": faint}
    style["linewidths"] = [width for line in links.width for width in (1.5 * line + 0.4, line)]
    axes.add_collection(LineCollection(list(body.repeat(2, axis=0)), zorder=2, **style), autolim=False)
    axes.add_collection(PolyCollection(list(heads), facecolors=colours, lw=0, zorder=2.5, alpha=faint), autolim=False)


def _cluster_names(
    axes: Axes, stage: Stage, links: Arrows, cluster: NDArray[Any], corner: Array, letters: Lettering
) -> None:
    style: dict[str, Any] = {"size": 6.5, "ha": "center", "va": "center", "color": MUTED, "zorder": 5}
    style["path_effects"] = [withStroke(linewidth=1.6, foreground=PAPER)]
    for name, (x, y) in zip(np.unique(cluster), cluster_places(stage, links, letters) + corner, strict=True):
        axes.text(x, y, f"C{name}", **style)


def _legend(
    axes: Axes, stage: Stage, groups: list[tuple[str, list[Any]]], place: tuple[float, float], side_by_side: bool
) -> None:
    """All keys outside the panels: below each other, or beside each other and centred at the place."""
    x, y = (place[0] - KEYS * len(groups) / 2 + 8.0, place[1]) if side_by_side else place
    style: dict[str, Any] = {"frameon": False, "borderpad": 0, "borderaxespad": 0, "alignment": "left"}
    style |= {"fontsize": 7.5, "labelcolor": INK, "title_fontproperties": {"size": 7.5, "weight": "bold"}}
    style |= {"loc": "upper left", "bbox_transform": axes.transData}
    for index, (heading, handles) in enumerate(groups):
        labels = [str(handle.get_label()) for handle in handles]
        axes.add_artist(Legend(axes, handles, labels, title=heading, bbox_to_anchor=(x, y), **style))
        if index < len(groups) - 1:
            x, y = (x + KEYS, y) if side_by_side else (x, y - LINE * (len(handles) + 1.9))
    y, text = y - LINE * (len(groups[-1][1]) + 1.5), "not to scale"
    if stage.points_per_m > 0:
        metres = round_down(60 / stage.points_per_m)
        end, text = x + metres * stage.points_per_m, f"{metres:,.9g} m"
        axes.plot([x, x, end, end], [y + 2, y - 2, y - 2, y + 2], color=INK, lw=0.9)
        x = end + 6
    _text(axes, x, y, text, KEYS, size=7.5, va="center")
