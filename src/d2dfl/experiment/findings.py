"""Figures and tables of a comparison."""

import csv
import io
from functools import partial
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from d2dfl.discovery.discover import METHODS
from d2dfl.energy.ledger import PURPOSES
from d2dfl.experiment.compare import Comparison, Row
from d2dfl.experiment.exports import write_exports
from d2dfl.experiment.maps import layer_of, map_of
from d2dfl.experiment.setting import IID
from d2dfl.report.drawing.lines import Line as Series
from d2dfl.report.drawing.lines import figure_of, write_figure
from d2dfl.report.findings import Bars, Chart, Findings, Line, Map, Picture, Table, counted, span
from d2dfl.storage import write_whole

COLUMNS = ("method", "score", "gap closed", "rounds", "moved", "lost", "joules", "TV to i.i.d.")


def title_of(method: str) -> str:
    """What a method is called in figures."""
    return "i.i.d. shuffle" if method == IID else METHODS[method].title


def cells(row: Row) -> list[str]:
    """One line of the table, in the order of COLUMNS."""
    return [
        row.method,
        f"{row.score:.3f} ± {row.spread:.3f}",
        "–" if row.gap_closed is None else f"{row.gap_closed:.2f}",
        "–" if row.rounds_to_target is None else f"{row.rounds_to_target:.1f}",
        f"{row.moved:,.0f}",
        f"{row.lost:,.0f}",
        f"{row.joules:,.2f}",
        f"{row.distance:.3f}",
    ]


def markdown(comparison: Comparison) -> str:
    """The table as Markdown."""
    lines = ["| " + " | ".join(COLUMNS) + " |", "|---" + "|---:" * (len(COLUMNS) - 1) + "|"]
    lines += ["| " + " | ".join(cells(row)) + " |" for row in comparison.rows]
    return "\n".join([*lines, "", note(comparison), ""])


def note(comparison: Comparison) -> str:
    """What stands below the table."""
    return (
        f"score: {comparison.score_name}; rounds: until the score that no exchange ends with, {comparison.target:.3f}"
    )


def curves_figure(comparison: Comparison) -> Figure:
    """Score against rounds, mean over seeds with a band of one standard deviation."""
    lines = []
    for row in comparison.rows:
        mine = [curve for method, _, curve in comparison.cells if method == row.method]
        dashes = {"none": ":", IID: "--"}.get(row.method, "-")
        lines.append(Series(title_of(row.method), mine[0].rounds, [curve.scores for curve in mine], dashes))
    return figure_of(lines, "round", comparison.score_name)


def write_curves(comparison: Comparison, path: Path) -> None:
    """All curves as CSV: method, seed, round, score, loss."""
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    writer.writerow(["method", "seed", "round", comparison.score_name, "loss"])
    for method, seed, curve in comparison.cells:
        for done, score, loss in zip(curve.rounds, curve.scores, curve.losses, strict=True):
            writer.writerow([method, seed, done, repr(score), repr(loss)])
    write_whole(path, buffer.getvalue().encode())


def _draw_embeddings(comparison: Comparison, folder: Path) -> None:
    """Three panels at most: no exchange, the first method, the i.i.d. shuffle."""
    if not comparison.embeddings:
        return
    from d2dfl.report.drawing.embedding import draw_embeddings

    found, dataset = dict(comparison.embeddings), comparison.prepared[0].setting.dataset
    chosen = dict.fromkeys(["none", comparison.rows[0].method, IID])
    panels = [(title_of(name), found[name]) for name in chosen]
    labels = dataset.test_targets[: len(panels[0][1])]
    draw_embeddings(panels, labels, dataset.class_names, folder / "embeddings.png")


def findings(comparison: Comparison) -> Findings:
    """The comparison as a record that `d2dfl report` shows."""
    setting = comparison.prepared[0].setting
    config, rows = setting.config, comparison.rows
    sizes = [len(held) for held in setting.holdings]
    seeds = len({seed for _, seed, _ in comparison.cells})
    return Findings(
        name="comparison",
        title=f"{setting.dataset.name}, {config.partition.paradigm}, {config.federation.scheme}",
        setting=(
            f"{counted(len(sizes), 'device')} with {span(sizes)} datapoints, {counted(config.federation.rounds, 'round')} of "
            f"{config.federation.interval} minibatches, {counted(seeds, 'seed')}{'; ' + setting.dataset.note if setting.dataset.note else ''}"
        ),
        config=config.to_toml(),
        tables=(Table("All methods", COLUMNS, tuple(tuple(cells(row)) for row in rows), note(comparison)),),
        charts=(
            Chart("Score against rounds", "round", comparison.score_name, tuple(map(partial(_line, comparison), rows))),
        ),
        bars=(_joules(comparison),),
        maps=_maps(comparison),
        pictures=(Picture("Embeddings of test inputs", "embeddings.png"),) if comparison.embeddings else (),
    )


def _line(comparison: Comparison, row: Row) -> Line:
    """Mean over seeds with a band of one standard deviation."""
    mine = [curve for method, _, curve in comparison.cells if method == row.method]
    scores = np.array([curve.scores for curve in mine])
    mean, spread = scores.mean(axis=0), scores.std(axis=0)
    columns = (np.array(mine[0].rounds, dtype=np.float64), mean, mean - spread, mean + spread)
    return Line(row.method, title_of(row.method), *(tuple(column.tolist()) for column in columns))


def _joules(comparison: Comparison) -> Bars:
    books: dict[str, list[dict[str, float]]] = {}
    for (method, _, _), book in zip(comparison.cells, comparison.ledgers, strict=True):
        books.setdefault(method, []).append(book.by_purpose())
    values = tuple(
        tuple(float(np.mean([book[part] for book in books[row.method]])) for row in comparison.rows)
        for part in PURPOSES
    )
    return Bars("Joules by purpose", "J", tuple(title_of(row.method) for row in comparison.rows), PURPOSES, values)


def _maps(comparison: Comparison) -> tuple[Map, ...]:
    """The graphs of the first seed."""
    setting = comparison.prepared[0].setting
    layers = [
        layer_of(title_of(item.method), item.discovery)
        for item in comparison.prepared
        if item.setting.seed == setting.seed and item.discovery is not None
    ]
    names, number = setting.dataset.class_names, setting.network.partitions
    partitions = names if len(names) == number else tuple(f"partition {place}" for place in range(number))
    shown = map_of(f"Seed {setting.seed}", setting.network, layers, partitions)
    return () if shown is None else (shown,)


def write_all(comparison: Comparison, folder: Path) -> None:
    """Table, curves, figures."""
    from d2dfl.report.drawing.picture import draw_row

    write_whole(folder / "table.md", markdown(comparison).encode())
    findings(comparison).save(folder)
    write_curves(comparison, folder / "curves.csv")
    for suffix in ("png", "svg"):
        write_figure(curves_figure(comparison), folder / f"curves.{suffix}")
    _draw_embeddings(comparison, folder)
    first = comparison.prepared[0].setting.seed
    graphs = [
        (title_of(item.method), item.discovery.graph, item.discovery.evaluation)
        for item in comparison.prepared
        if item.setting.seed == first and item.discovery is not None
    ]
    for suffix in ("png", "html"):
        draw_row(comparison.prepared[0].setting.network, graphs, folder / f"graphs.{suffix}")
    write_exports(comparison, folder)
