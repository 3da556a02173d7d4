"""Colours of graphs, and what a legend says of them."""

from typing import Any

import numpy as np

from d2dfl.report.drawing.labels import READABLE, Lettering, level_texts, link_cuts, node_cuts
from d2dfl.report.drawing.scene import Stage, link_width

# Vermillion, amber and teal: at least 28 apart in CIELAB for simulated protan, deutan and tritan vision.
LEVELS = ("#c8471c", "#efb03f", "#0b7a75")
ON_LEVELS = ("#ffffff", "#3a2a05", "#ffffff")
TINTS = ("#7b9cc9", "#a88bc4", "#8a97a6", "#6fb0c4", "#c490ad", "#a5a687")
INK, MUTED, FRAME, PAPER = "#1f2933", "#5c6876", "#d5dbe3", "#fbfcfd"


def keys(stage: Stage, most: float, partitions: int, letters: Lettering) -> list[tuple[str, list[Any]]]:
    """Headings and entries of the legend."""
    from matplotlib.lines import Line2D  # a page has a legend of its own, and does without matplotlib
    from matplotlib.patches import Patch

    dot: dict[str, Any] = {"marker": "o", "markersize": 8, "linestyle": "none", "markeredgecolor": "white"}
    texts = [level_texts(cuts, partitions) for cuts in (node_cuts(partitions), link_cuts(partitions))]
    nodes = [Line2D([], [], color=c, label=t, **dot) for c, t in zip(LEVELS, texts[0], strict=True)]
    links = [Line2D([], [], color=c, label=t, lw=2) for c, t in zip(LEVELS, texts[1], strict=True)]
    groups: list[tuple[str, list[Any]]] = [("Partitions at threshold", nodes), ("Partitions trusted on link", links)]
    if most > 0:
        amounts = sorted({round_down(most / part) for part in (1, 2, 5)})
        widths = [
            (link_width(stage, amount / most), f"{amount:,.9g} datapoint{'' if amount == 1 else 's'}")
            for amount in amounts
        ]
        groups.append(("Link width", [Line2D([], [], color=MUTED, lw=w, label=t) for w, t in widths]))
    cluster = Patch(facecolor=TINTS[0] + "29", edgecolor=TINTS[0] + "99", lw=0.7, label="reliable cluster")
    words = letters.sentences() if stage.radius >= READABLE else []
    said = [Line2D([], [], linestyle="none", label=text) for text in words]
    return [*groups, ("Map", [cluster, *said])]


def round_down(value: float) -> float:
    """The largest of 1, 2, 5, 10, 20, ... (or 0.5, 0.2, ...) that is not above the value."""
    power = 10.0 ** np.floor(np.log10(value))
    return float(max(step for step in (1, 2, 5) if step * power <= value * (1 + 1e-9)) * power)
