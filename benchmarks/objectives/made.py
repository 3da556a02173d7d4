"""What it buys to make graphs for a candidate: accuracy of the graph best by it, beside that best by total variation and ours."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from objectives.families import OTHERS
from objectives.measures import Array

DRAWS = 4000  # of the bootstrap
TODAYS = {
    f"best {OTHERS}": "total variation",
    "ours": "ours",
}  # what is taken off: the objective alone, and with claims


class Pair(NamedTuple):
    """A named graph of a cell, and by how much it is more accurate than one of today's."""

    cell: str
    links: int
    chooses: bool
    more: Mapping[str, float]


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
    """Each named graph's accuracy minus that of today's in the same cell, best of the choosing part first."""
    found: dict[str, list[Pair]] = {}
    for path in paths:
        with np.load(path) as file:
            about, links = json.loads(str(file["about"])), file["links"].tolist()
            accuracy = file["accuracy"].mean(axis=1)
        place = {(name, edges): at for at, (name, edges) in enumerate(zip(about["names"], links, strict=True))}
        for (name, edges), at in place.items():
            if edges and not name.startswith("mixed"):
                more = {text: float(accuracy[at] - accuracy[place[base, edges]]) for base, text in TODAYS.items()}
                found.setdefault(name, []).append(Pair(path.stem, edges, about["chooses"], more))
    return sorted(
        (_row(name, own) for name, own in found.items()), key=lambda row: -next(iter(row["more"].values()))[0]
    )


def _row(name: str, own: Sequence[Pair]) -> dict[str, Any]:
    choosing, reporting = [one for one in own if one.chooses], [one for one in own if not one.chooses]
    choosing, reporting = choosing or reporting, reporting or choosing  # a tiny run may have one part only
    parts = {"choosing, − total variation": (choosing, "total variation")}
    parts |= {f"reporting, − {text}": (reporting, text) for text in TODAYS.values()}
    for edges in sorted({one.links for one in own}):
        parts[f"{edges} link(s), − ours"] = [one for one in reporting if one.links == edges], "ours"
    more = {
        what: bootstrap([one.cell for one in part], np.array([one.more[base] for one in part]))
        for what, (part, base) in parts.items()
    }
    return {"graph": name, "more": more}


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Markdown: differences of accuracy with their intervals."""
    kinds = list(rows[0]["more"])
    lines = [f"| graph | {' | '.join(kinds)} |", f"|---|{'---:|' * len(kinds)}"]
    for row in rows:
        cells = " | ".join(f"{mean:+.4f} ({low:+.4f} to {high:+.4f})" for mean, low, high in row["more"].values())
        lines.append(f"| {row['graph']} | {cells} |")
    return "\n".join(lines)
