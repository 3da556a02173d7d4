"""Pictures of graphs, in the manner of the paper's Fig. 4: .png, .svg and .pdf (matplotlib), .html (plotly).

Pages are laid out in points (1/72 inch): text, nodes and arrows keep their size in any network.
"""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import EllipseCollection, LineCollection, PolyCollection
from matplotlib.figure import Figure
from matplotlib.font_manager import findfont, get_font
from matplotlib.legend import Legend
from matplotlib.patches import FancyBboxPatch
from matplotlib.path import Path as Outline
from matplotlib.patheffects import withStroke
from numpy.typing import NDArray

from d2dfl.errors import UserError
from d2dfl.report.drawing.keys import FRAME, INK, LEVELS, MUTED, ON_LEVELS, PAPER, TINTS, keys, round_down
from d2dfl.report.drawing.scene import (
    Array,
    Arrows,
    Scene,
    Stage,
    curves,
    link_level,
    links_of,
    node_level,
    stage_of,
)
from d2dfl.storage import write_whole
from d2dfl.terminal import plain

if TYPE_CHECKING:  # a page needs no compiler
    from d2dfl.discovery.evaluation import Evaluation
    from d2dfl.network import Network
    from d2dfl.network.graph import Graph

Method = tuple[str, "Graph", "Evaluation"]

SUFFIXES = (".png", ".svg", ".pdf", ".html")

COLUMNS = 5  # panels in a row
GAP, LINE, KEYS = 14.0, 13.0, 132.0  # gap between panels, height of a line, width of a block of keys
LONGEST = 12  # characters of a name beside a circle
SMALLEST = 6.5  # size to which a line of words may shrink before it is cut
READABLE = 5.0  # node radius from which numbers and cluster names are written


def draw_graph(
    network: "Network", graph: "Graph", evaluation: "Evaluation", path: Path, title: str = "", subtitle: str = ""
) -> None:
    """Draw one graph into a file; its suffix says the format."""
    _draw(network, [(title, graph, evaluation)], path, subtitle)


def draw_row(network: "Network", methods: Sequence[Method], path: Path) -> None:
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


def check_suffix(path: Path) -> str:
    """The format that a file's name asks for, or a UserError."""
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise UserError(f"cannot draw {str(path)!r}: name a file that ends in {', '.join(SUFFIXES)}")
    return suffix


def _draw(network: "Network", methods: Sequence[Method], path: Path, subtitle: str) -> None:
    suffix = check_suffix(path)
    alone = len(methods) == 1 or suffix == ".html"
    stage = stage_of(network, 400.0 if alone else float(np.clip(690 / len(methods), 216, 300)))
    most = max(float(graph.allocated.sum(axis=2).max(initial=0.0)) for _, graph, _ in methods)
    scenes = [Scene(t, network, e, stage, links_of(network, g, stage, most)) for t, g, e in methods]
    if suffix == ".html":
        from d2dfl.report.drawing.interactive import page  # plotly takes long to import

        write_whole(path, page(scenes, subtitle).encode(errors="replace"))
        return
    buffer = io.BytesIO()
    metadata: dict[str, Any] = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(suffix, {})
    with matplotlib.rc_context():
        matplotlib.rcdefaults()  # a style of the reader's own must not change the picture
        matplotlib.rcParams.update({"svg.hashsalt": "d2dfl", "pdf.fonttype": 42})
        _figure(scenes, subtitle, most).savefig(buffer, format=suffix[1:], dpi=200, metadata=metadata)
    write_whole(path, buffer.getvalue())


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
    keys = np.array([KEYS, 0.0]) if alone else np.array([0.0, 5.2 * LINE])
    width, height = cell * (columns, rows) + keys + (GAP, 6.0)
    figure = Figure(figsize=(width / 72, height / 72), dpi=72, facecolor="white")
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, width), ylim=(0, height))
    axes.set_axis_off()
    for index, scene in enumerate(scenes):
        row, column = divmod(index, columns)
        corner = np.array([GAP + column * cell[0], height - row * cell[1] - above - stage.height])
        names, satisfied = scene.network.device_names, scene.evaluation.labels_satisfied
        panel(axes, stage, scene.links, satisfied, scene.network.cluster, corner, names)
        _words(axes, scene, subtitle, corner, width - 2 * GAP if alone else stage.width)
    place = (GAP + cell[0], height - above) if alone else (width / 2, 4.9 * LINE)
    _legend(axes, scenes[0], most, place, beside=not alone)
    return figure


def _words(axes: Axes, scene: Scene, subtitle: str, corner: Array, room: float) -> None:
    """Title and subtitle above a panel, the summary below."""
    (x, y), alone = corner, room > scene.stage.width
    top = y + scene.stage.height + 6
    if subtitle:
        _text(axes, x, top, subtitle, room, size=8.5, color=MUTED)
        top += LINE
    _text(axes, x, top, scene.title, room, size=11 if alone else 9.5, weight="bold")
    phrases = summary(scene)
    for line, text in enumerate(["  ·  ".join(phrases)] if alone else phrases):
        _text(axes, x, y - LINE * (1.1 + 0.8 * line), text, room, size=8 if alone else 7, color=MUTED)


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
    labels: NDArray[np.int64],
    cluster: NDArray[Any],
    corner: Array,
    names: Sequence[str] = (),
) -> None:
    """Frame, clusters, links and devices, in this order; devices have their names, or numbers, beside them."""
    style: dict[str, Any] = {"boxstyle": "round,pad=0,rounding_size=5", "fc": PAPER, "ec": FRAME, "lw": 0.8}
    axes.add_patch(FancyBboxPatch((corner[0], corner[1]), stage.width, stage.height, zorder=0, **style))
    tints = [TINTS[index % len(TINTS)] for index in range(len(stage.hulls))]
    style = {"facecolors": [tint + "29" for tint in tints], "edgecolors": [tint + "99" for tint in tints]}
    hulls = PolyCollection([hull + corner for hull in stage.hulls], linewidths=0.7, zorder=1, **style)
    axes.add_collection(hulls, autolim=False)
    if len(links.sender):
        _arrows(axes, stage, links, corner)
    level, width = node_level(labels), np.full(len(labels), 2 * stage.radius)
    style = {"facecolors": [LEVELS[index] for index in level], "edgecolors": "white", "zorder": 3}
    style |= {"units": "xy", "offsets": stage.xy + corner, "offset_transform": axes.transData}
    style |= {"linewidths": min(0.9, 0.15 * stage.radius)}
    axes.add_collection(EllipseCollection(width, width, np.zeros(len(level)), **style), autolim=False)
    if stage.radius >= READABLE:
        style = {"ha": "center", "va": "center_baseline", "weight": "bold", "zorder": 4}
        for (x, y), count, index in zip(stage.xy + corner, labels, level, strict=True):
            size = stage.radius * (1.1, 1.0, 0.75)[min(len(str(count)), 3) - 1]
            axes.text(x, y, str(count), size=size, color=ON_LEVELS[index], **style)
        _device_names(axes, stage, corner, names)
        _cluster_names(axes, stage, links, cluster, corner)


def short_name(name: str) -> str:
    """A name as it fits beside a circle."""
    words = plain(name)
    return words if len(words) <= LONGEST else words[: LONGEST - 1].rstrip() + "…"


def _device_names(axes: Axes, stage: Stage, corner: Array, names: Sequence[str]) -> None:
    """The name of each device, or its number, small, at the lower right of its circle."""
    style: dict[str, Any] = {"size": 5.0, "ha": "left", "va": "top", "color": INK, "zorder": 4.5, "parse_math": False}
    font = get_font(findfont("DejaVu Sans"))
    halo = [withStroke(linewidth=1.2, foreground=PAPER)]
    for device, (x, y) in enumerate(stage.xy + corner + [0.6 * stage.radius, -0.5 * stage.radius]):
        name = short_name(names[device]) if names else str(device)
        known = all(font.get_char_index(ord(letter)) for letter in name)  # else matplotlib warns, and draws a box
        axes.text(x, y, name if known else str(device), path_effects=halo, **style)


def _arrows(axes: Axes, stage: Stage, links: Arrows, corner: Array) -> None:
    """Curved arrows from rim to rim; each has a pale border, so that crossings stay readable."""
    order = np.argsort(-links.width, kind="stable")  # thin ones on top
    links = Arrows._make(column[order] for column in links)
    length = np.linalg.norm(stage.xy[links.sender] - stage.xy[links.receiver], axis=1)
    speed = (length * np.sqrt(1 + 4 * links.bow**2)).clip(min=1e-9)[:, None]  # of the curve at its ends
    trim = np.minimum((stage.radius + 1) / speed, 0.35)
    size = np.minimum(2.4 + 2.2 * links.width, stage.radius)[:, None]
    head = np.minimum(size / speed, 0.7 * (1 - 2 * trim))
    body = curves(stage, links, trim + (1 - 2 * trim - 0.9 * head) * np.linspace(0, 1, 24)) + corner
    base, tip = np.moveaxis(curves(stage, links, 1 - trim - head * [1, 0]) + corner, 1, 0)
    side = 0.42 * (tip - base)[:, ::-1] * [1, -1]
    heads = np.stack([tip, base + side, base - side], axis=1)
    colours = [LEVELS[index] for index in link_level(links.trusted)]
    style: dict[str, Any] = {"colors": [shade for colour in colours for shade in (PAPER, colour)]}
    style["linewidths"] = [width for line in links.width for width in (1.5 * line + 0.4, line)]
    axes.add_collection(LineCollection(list(body.repeat(2, axis=0)), zorder=2, **style), autolim=False)
    axes.add_collection(PolyCollection(list(heads), facecolors=colours, lw=0, zorder=2.5), autolim=False)


def _cluster_names(axes: Axes, stage: Stage, links: Arrows, cluster: NDArray[Any], corner: Array) -> None:
    """A name at the highest free spot beside each hull; none where everything is taken."""
    hulls = stage.hulls
    lines = curves(stage, links, np.linspace(0, 1, 25)).reshape(-1, 2)
    taken = np.concatenate([stage.xy, lines])
    reach = np.repeat([stage.radius + 5.0, 7.5], [len(stage.xy), len(lines)])
    style: dict[str, Any] = {"size": 6.5, "ha": "center", "va": "center", "color": MUTED, "zorder": 5}
    for index, name in enumerate(np.unique(cluster)):
        outward = hulls[index] - hulls[index].mean(axis=0)
        spots = hulls[index] + 7.0 * outward / np.linalg.norm(outward, axis=1, keepdims=True)
        free = ((spots > 9) & (spots < np.array([stage.width, stage.height]) - 9)).all(axis=1)
        free &= (np.linalg.norm(spots[:, None] - taken, axis=2) > reach).all(axis=1)
        for hull in hulls:  # a name inside another hull would name that one
            free &= ~Outline(hull).contains_points(spots)
        if free.any():
            x, y = spots[np.where(free, spots[:, 1], -np.inf).argmax()]
            halo = withStroke(linewidth=1.6, foreground=PAPER)
            axes.text(x + corner[0], y + corner[1], f"C{name}", path_effects=[halo], **style)
            taken, reach = np.vstack([taken, (x, y)]), np.append(reach, 14.0)


def _legend(axes: Axes, scene: Scene, most: float, place: tuple[float, float], beside: bool) -> None:
    """All keys outside the panels: below each other, or beside each other and centred at the place."""
    groups = keys(scene.stage, most)
    x, y = (place[0] - KEYS * len(groups) / 2 + 8.0, place[1]) if beside else place
    style: dict[str, Any] = {"frameon": False, "borderpad": 0, "borderaxespad": 0, "alignment": "left"}
    style |= {"fontsize": 7.5, "labelcolor": INK, "title_fontproperties": {"size": 7.5, "weight": "bold"}}
    style |= {"loc": "upper left", "bbox_transform": axes.transData}
    for index, (heading, handles) in enumerate(groups):
        labels = [str(handle.get_label()) for handle in handles]
        axes.add_artist(Legend(axes, handles, labels, title=heading, bbox_to_anchor=(x, y), **style))
        if index < len(groups) - 1:
            x, y = (x + KEYS, y) if beside else (x, y - LINE * (len(handles) + 1.9))
    y, text = y - 2.5 * LINE, "not to scale"
    if scene.stage.points_per_m > 0:
        metres = round_down(60 / scene.stage.points_per_m)
        end, text = x + metres * scene.stage.points_per_m, f"{metres:,.9g} m"
        axes.plot([x, x, end, end], [y + 2, y - 2, y - 2, y + 2], color=INK, lw=0.9)
        x = end + 6
    _text(axes, x, y, text, KEYS, size=7.5, va="center")
