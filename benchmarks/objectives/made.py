"""What it buys to make graphs for a candidate: accuracy of the graph that is best by it, beside that best by total variation."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from objectives.families import OTHERS
from objectives.measures import Array

DRAWS = 4000  # of the bootstrap
BASE = f"best {OTHERS}"


def bootstrap(cells: Sequence[str], values: Array) -> tuple[float, float, float]:
    """Mean, and the middle 95 % of a bootstrap over cells: values of a cell share their network."""
    names = sorted(set(cells))
    of = np.array([names.index(cell) for cell in cells])
    sums, sizes = np.bincount(of, values), np.bincount(of)
    picked = np.random.Generator(np.random.PCG64(0)).integers(len(names), size=(DRAWS, len(names)))
    means = sums[picked].sum(axis=1) / sizes[picked].sum(axis=1)
    low, high = np.quantile(means, [0.025, 0.975])
    return float(values.mean()), float(low), float(high)


def differences(paths: Sequence[Path]) -> list[dict[str, Any]]:
    """Accuracy of each named graph minus that of the graph best by total variation, in cells that report and by links."""
    found: dict[str, list[tuple[str, int, bool, float]]] = {}
    for path in paths:
        with np.load(path) as file:
            about, links = json.loads(str(file["about"])), file["links"]
            accuracy = file["accuracy"].mean(axis=1)
        place = {(name, int(edges)): at for at, (name, edges) in enumerate(zip(about["names"], links, strict=True))}
        for (name, edges), at in place.items():
            if edges and not name.startswith("mixed"):
                off = float(accuracy[at] - accuracy[place[BASE, edges]])
                found.setdefault(name, []).append((path.stem, edges, about["chooses"], off))
    rows = [_row(name, own) for name, own in found.items()]
    return sorted(rows, key=lambda row: -row["all"][0])


def _row(name: str, own: Sequence[tuple[str, int, bool, float]]) -> dict[str, Any]:
    mine = [one for one in own if not one[2]] or list(own)  # a tiny run may have cells that choose only
    parts = {f"{edges} link(s)": [one for one in mine if one[1] == edges] for edges in sorted({one[1] for one in mine})}
    return {"graph": name, **{what: _interval(part) for what, part in {"all": mine, **parts}.items()}}


def _interval(part: Sequence[tuple[str, int, bool, float]]) -> tuple[float, float, float]:
    return bootstrap([one[0] for one in part], np.array([one[3] for one in part]))


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Markdown: differences of accuracy with their intervals."""
    kinds = [kind for kind in rows[0] if kind != "graph"]
    lines = [f"| graph, reporting part | {' | '.join(kinds)} |", f"|---|{'---:|' * len(kinds)}"]
    for row in rows:
        cells = " | ".join(
            f"{mean:+.4f} ({low:+.4f} to {high:+.4f})" for mean, low, high in (row[kind] for kind in kinds)
        )
        lines.append(f"| {row['graph']} | {cells} |")
    return "\n".join(lines)
