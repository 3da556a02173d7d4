"""A page of what a fleet did: one HTML file without a script."""

import math
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from d2dfl.storage import write_whole

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #123; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
table { border-collapse: collapse; margin: 1rem 0 } td, th { padding: .25rem .6rem; text-align: right }
th { border-bottom: 1px solid #9ab; font-weight: 600 } td:first-child, th:first-child { text-align: left }
.cells td { min-width: 2.2rem; border: 1px solid #fff } code { font-size: 12px } svg { max-width: 34rem; width: 100% }
"""


def write_page(
    path: Path,
    peers: Sequence[dict[str, Any]],
    before: Sequence[Sequence[int]],
    labels: Sequence[str],
    edges: Sequence[Sequence[int]],
    summary: str,
) -> None:
    """Peers as `reports.status` gives them, and what they held of each label before."""
    after = [[peer["holds"].get(label, 0) for label in labels] for peer in peers]
    names = [peer["name"] for peer in peers]
    moved = _moved(peers)
    body = [
        "<h1>What the fleet did</h1>",
        f"<p>{escape(summary)}. Links of the graph: {len(edges)}; links over which datapoints moved: {len(moved)}.</p>",
        _picture(names, moved),
        "<h2>Labels before</h2>",
        _cells(names, labels, before),
        "<h2>Labels now</h2>",
        _cells(names, labels, after),
        "<h2>Devices</h2>",
        _devices(peers),
    ]
    page = f'<!doctype html><html lang="en"><meta charset="utf-8"><title>Fleet</title><style>{STYLE}</style>{"".join(body)}</html>'
    write_whole(path, page.encode())


def _moved(peers: Sequence[dict[str, Any]]) -> dict[tuple[str, str], int]:
    return {
        (giver, peer["name"]): number for peer in peers for giver, number in peer["received_from"].items() if number
    }


def _picture(names: Sequence[str], moved: dict[tuple[str, str], int]) -> str:
    """Devices on a circle; an arrow's width is what moved."""
    places = {
        name: (200 + 150 * math.sin(2 * math.pi * k / len(names)), 200 - 150 * math.cos(2 * math.pi * k / len(names)))
        for k, name in enumerate(names)
    }
    most = max(moved.values(), default=1)
    parts = [
        '<svg viewBox="0 0 400 400" role="img" aria-label="who gave to whom"><defs><marker id="a" viewBox="0 0 8 8" refX="7" refY="4" '
        'markerWidth="9" markerHeight="9" markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0L8 4L0 8z" fill="#356"/></marker></defs>'
    ]
    for (giver, taker), number in moved.items():
        (x, y), (to_x, to_y) = places[giver], places[taker]
        length = math.hypot(to_x - x, to_y - y)
        cut = 24 / length
        bend_x, bend_y = (x + to_x) / 2 + 0.12 * (to_y - y), (y + to_y) / 2 - 0.12 * (to_x - x)
        start = (x + (bend_x - x) * cut * 2, y + (bend_y - y) * cut * 2)
        end = (to_x + (bend_x - to_x) * cut * 2, to_y + (bend_y - to_y) * cut * 2)
        parts.append(
            f'<path d="M{start[0]:.1f} {start[1]:.1f}Q{bend_x:.1f} {bend_y:.1f} {end[0]:.1f} {end[1]:.1f}" fill="none" stroke="#356" '
            f'stroke-width="{0.8 + 2.2 * number / most:.1f}" marker-end="url(#a)"><title>{escape(giver)} gave {escape(taker)} '
            f"{number}</title></path>"
        )
    for name, (x, y) in places.items():
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="22" fill="#eef4f8" stroke="#356"/>')
        short = escape(name.removeprefix("device-"))
        parts.append(f'<text x="{x:.1f}" y="{y + 5:.1f}" text-anchor="middle" font-size="14">{short}</text>')
    return "".join([*parts, "</svg>"])


def _cells(names: Sequence[str], labels: Sequence[str], counts: Sequence[Sequence[int]]) -> str:
    most = max((number for row in counts for number in row), default=1) or 1
    head = "".join(f"<th>{escape(label)}</th>" for label in labels)
    rows = "".join(
        f"<tr><td>{escape(name)}</td>"
        + "".join(
            f'<td style="background:rgba(51,102,153,{0.75 * number / most:.2f})">{number or ""}</td>' for number in row
        )
        + "</tr>"
        for name, row in zip(names, counts, strict=True)
    )
    return f'<table class="cells"><tr><th>device</th>{head}</tr>{rows}</table>'


def _devices(peers: Sequence[dict[str, Any]]) -> str:
    rows = []
    for peer in peers:
        gave = peer["outgoing"].get("done", {"transfers": 0, "datapoints": 0})
        trips = [link["round_trip_s"] for link in peer["links"].values() if link["round_trip_s"] is not None]
        trip = f"{1000 * sorted(trips)[len(trips) // 2]:.1f} ms" if trips else "–"
        rows.append(
            f"<tr><td>{escape(peer['name'])}</td><td><code>{peer['fingerprint'][:16]}</code></td><td>{gave['transfers']}</td>"
            f"<td>{gave['datapoints']}</td><td>{sum(peer['received_from'].values())}</td><td>{trip}</td>"
            f"<td>{peer['audit']['lines']} lines, <code>{peer['audit']['head'][:16]}</code></td></tr>"
        )
    head = "<th>device</th><th>fingerprint</th><th>transfers</th><th>gave</th><th>got</th><th>round trip</th><th>audit</th>"
    return f"<table><tr>{head}</tr>{''.join(rows)}</table>"
