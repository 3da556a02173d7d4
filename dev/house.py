"""Draw the house: the packages of d2dfl by layer, and who imports whom, read from the code.

    python dev/house.py            (writes docs/images/house.svg)
    python dev/house.py --check    (fails where the picture is not of this code)

Layers are those of pyproject.toml. An arrow that follows from two others is left out.
"""

import ast
import sys
import tomllib
from itertools import product
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from pictures import svg_of, write_or_check

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "images" / "house.svg"
HOME = "d2dfl"
SUPPORT = "support"  # small modules that all may import stand in one box
SAYS = {
    "cli": "a file a group of commands",
    "live": "a run to be watched",
    "paper": "the reproduction",
    "env": "the game for other learners",
    "peer": "a process a device",
    "experiment": "setting, pipeline, measures, store",
    "report": "findings, figures, page",
    "energy": "radios, ledger, bill",
    "federation": "schemes, models, executors",
    "transfer": "datapoints move",
    "discovery": "equations, game, methods",
    "partition": "paradigms, PCA, K-means",
    "network": "channel, trust, graph",
    "data": "sets, readers, allocation",
    "config": "sections, presets",
}


def contract() -> dict[str, Any]:
    """What import-linter holds."""
    return dict(tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"][0])


def upward() -> set[tuple[str, str]]:
    """Imports against the layers that are allowed: nothing follows from them."""
    pairs = (text.split(" -> ") for text in contract()["ignore_imports"])
    return {(box_of(who), box_of(whom)) for who, whom in pairs}


def layers() -> list[list[str]]:
    """Rows of boxes, the highest first."""
    rows = [[name.strip().removeprefix(f"{HOME}.") for name in row.split("|")] for row in contract()["layers"]]
    known = [[name for name in row if name in SAYS] for row in rows]
    return [*(row for row in known if row), [SUPPORT]]


def box_of(module: str) -> str:
    """The box that a module stands in."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[1] in SAYS else SUPPORT


def imports() -> set[tuple[str, str]]:
    """(who, whom) between boxes; those that wait inside a function count too."""
    found = set()
    for path in (ROOT / "src" / HOME).rglob("*.py"):
        module = ".".join(path.relative_to(ROOT / "src").with_suffix("").parts)
        if module in (f"{HOME}.__init__", f"{HOME}.__main__"):
            continue  # the front door names everything
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == HOME:
                targets = (
                    [f"{node.module}.{alias.name}" for alias in node.names] if node.module == HOME else [node.module]
                )
                found |= {(box_of(module), box_of(target or "")) for target in targets}
    foreign = sorted(whom for who, whom in found if who == SUPPORT != whom)
    if foreign:  # a package that has no box yet: all arrows would follow from others
        raise SystemExit(f"a module without a box imports {foreign[0]}: give its package one in SAYS")
    return {(who, whom) for who, whom in found if who != whom}


def reduced(edges: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """Without the arrows that follow from others."""
    reach = set(edges)
    names = {name for edge in edges for name in edge}
    for middle, one, other in product(names, repeat=3):
        if (one, middle) in reach and (middle, other) in reach:
            reach.add((one, other))
    return {
        (one, other)
        for one, other in edges
        if not any((one, middle) in reach and (middle, other) in reach for middle in names - {one, other})
    }


def draw(rows: list[list[str]], edges: set[tuple[str, str]]) -> bytes:
    """The picture as SVG."""
    with matplotlib.rc_context({"svg.hashsalt": HOME, "svg.fonttype": "none", "font.family": "sans-serif"}):
        figure = Figure(figsize=(7.2, 0.62 * len(rows) + 0.3))
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set_axis_off()
        axes.set_xlim(0, 12)
        axes.set_ylim(-len(rows) + 0.4, 0.7)
        places = {}
        for depth, row in enumerate(rows):
            for number, name in enumerate(row):
                x = 6 + 3.9 * (number - (len(row) - 1) / 2) + (0 if len(row) > 1 else 1.3 * (-1) ** depth)
                places[name] = (x, -depth)
                box = FancyBboxPatch(
                    (x - 1.75, -depth - 0.24), 3.5, 0.48, boxstyle="round,pad=0.02", fc="#eef4f8", ec="#356"
                )
                axes.add_patch(box)
                axes.text(x, -depth + 0.05, name, ha="center", va="center", weight="bold", fontsize=8.5, color="#123")
                says = SAYS.get(name, "errors, storage, rng, registry, progress, …")
                axes.text(x, -depth - 0.14, says, ha="center", va="center", fontsize=6.2, color="#456")
        for who, whom in sorted(edges):
            (x, y), (to_x, to_y) = places[who], places[whom]
            far = abs(to_y - y) > 1
            bend = (0.28 if x >= to_x else -0.28) if far else 0.0
            arrow = FancyArrowPatch(
                (x, y - 0.26), (to_x, to_y + 0.26), connectionstyle=f"arc3,rad={bend}", arrowstyle="-|>",
                mutation_scale=7, lw=0.8, color="#789", zorder=0,
            )  # fmt: skip
            axes.add_patch(arrow)
        return svg_of(figure)


if __name__ == "__main__":
    sys.exit(write_or_check(PICTURE, lambda: draw(layers(), reduced(imports() - upward()) | upward()), __doc__))
