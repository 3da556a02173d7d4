"""Figures and tables of a comparison."""

import csv
import io
from pathlib import Path

import matplotlib
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from d2dfl.experiment.cell import IID
from d2dfl.experiment.charts import curve_chart, energy_bars
from d2dfl.experiment.compare import Comparison, title_of
from d2dfl.experiment.maps import layer_of, map_of
from d2dfl.experiment.results import Row
from d2dfl.report.findings import Chart, Findings, Map, Picture, Table, counted, span
from d2dfl.report.look import COLOURS, GREY
from d2dfl.storage import write_whole

COLUMNS = ("method", "score", "gap closed", "rounds", "moved", "lost", "joules", "TV to i.i.d.")


def cells(row: Row) -> list[str]:
    """One line of the table, in the order of COLUMNS."""
    return [
        row.name,
        f"{row.score:.3f} ± {row.spread:.3f}",
        "–" if row.gap_closed is None else f"{row.gap_closed:.2f}",
        "–" if row.rounds_to is None else f"{row.rounds_to:.1f}",
        f"{row.moved:,.0f}",
        f"{row.lost:,.0f}",
        f"{row.joules:,.2f}",
        f"{row.distance:.3f}",
    ]


def markdown(comparison: Comparison) -> str:
    """The table as Markdown."""
    lines = ["| " + " | ".join(COLUMNS) + " |", "|---" + "|---:" * (len(COLUMNS) - 1) + "|"]
    lines += ["| " + " | ".join(cells(row)) + " |" for row in comparison.rows]
    return "\n".join([*lines, "", _note(comparison), ""])


def _note(comparison: Comparison) -> str:
    return (
        f"score: {comparison.score_name}, mean of the last fifth of the curve; "
        "rounds: until the score that no exchange ends with on the same seed"
    )


def draw_curves(chart: Chart, path: Path) -> None:
    """Score against rounds, mean over seeds with a confidence band."""
    with matplotlib.rc_context({"svg.hashsalt": "d2dfl", "axes.spines.top": False, "axes.spines.right": False}):
        figure = Figure(figsize=(7.0, 4.2), layout="constrained")
        axes = figure.add_subplot()
        colours = iter(COLOURS)
        for line in chart.lines:
            yardstick = line.name in (IID, "none")
            colour = GREY if yardstick else next(colours)
            dashes = ":" if line.name == "none" else "--" if yardstick else "-"
            axes.plot(line.x, line.mean, label=line.title, linewidth=1.8, color=colour, linestyle=dashes)
            axes.fill_between(line.x, line.low, line.high, color=colour, alpha=0.12, linewidth=0)
        axes.set_xlabel(chart.x_name)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_ylabel(chart.y_name)
        axes.grid(alpha=0.25)
        axes.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
        buffer = io.BytesIO()
        figure.savefig(
            buffer, format=path.suffix[1:], dpi=200, metadata={"Date": None} if path.suffix == ".svg" else {}
        )
    write_whole(path, buffer.getvalue())


def write_curves(comparison: Comparison, path: Path) -> None:
    """All curves as CSV: method, seed, round, score, loss."""
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    writer.writerow(["method", "seed", "round", comparison.score_name, "loss"])
    for cell, values in zip(comparison.cells, comparison.values, strict=True):
        for done, score, loss in zip(values["rounds"], values["scores"], values["losses"], strict=True):
            writer.writerow([cell.method, cell.seed, done, repr(score), repr(loss)])
    write_whole(path, buffer.getvalue().encode())


def _draw_embeddings(comparison: Comparison, folder: Path) -> None:
    """Three panels at most: no exchange, the first method, the i.i.d. shuffle."""
    if not comparison.embeddings:
        return
    from d2dfl.report.drawing.embedding import draw_embeddings

    found, dataset = dict(comparison.embeddings), comparison.dataset
    chosen = dict.fromkeys(["none", comparison.rows[0].name, IID])
    panels = [(title_of(name), found[name]) for name in chosen]
    labels = dataset.test_targets[: len(panels[0][1])]
    draw_embeddings(panels, labels, dataset.class_names, folder / "embeddings.png")


def findings(comparison: Comparison) -> Findings:
    """The comparison as a record that `d2dfl report` shows."""
    setting, dataset = comparison.prepared[0].setting, comparison.dataset
    config, rows = comparison.config, comparison.rows
    sizes = [len(held) for held in setting.holdings]
    seeds = len(comparison.results.seeds)
    return Findings(
        name="comparison",
        title=f"{dataset.name}, {config.partition.paradigm}, {config.federation.scheme}",
        setting=(
            f"{counted(len(sizes), 'device')} with {span(sizes)} datapoints, {counted(config.federation.rounds, 'round')} of "
            f"{config.federation.interval} minibatches, {counted(seeds, 'seed')}{'; ' + dataset.note if dataset.note else ''}"
        ),
        config=config.to_toml(),
        tables=(Table("All methods", COLUMNS, tuple(tuple(cells(row)) for row in rows), _note(comparison)),),
        charts=(_curves(comparison),),
        bars=(energy_bars(comparison.results, comparison.point, "Joules by purpose"),),
        maps=_maps(comparison),
        pictures=(Picture("Embeddings of test inputs", "embeddings.png"),) if comparison.embeddings else (),
    )


def _curves(comparison: Comparison) -> Chart:
    return curve_chart(comparison.results, comparison.point, "Score against rounds")


def _maps(comparison: Comparison) -> tuple[Map, ...]:
    """The graphs of the first seed."""
    setting = comparison.prepared[0].setting
    layers = [
        layer_of(title_of(item.method), item.discovery)
        for item in comparison.prepared
        if item.setting.seed == setting.seed and item.discovery is not None
    ]
    names, number = comparison.dataset.class_names, setting.network.partitions
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
        draw_curves(_curves(comparison), folder / f"curves.{suffix}")
    _draw_embeddings(comparison, folder)
    first = comparison.prepared[0].setting.seed
    graphs = [
        (title_of(item.method), item.discovery.graph, item.discovery.evaluation)
        for item in comparison.prepared
        if item.setting.seed == first and item.discovery is not None
    ]
    for suffix in ("png", "html"):
        draw_row(comparison.prepared[0].setting.network, graphs, folder / f"graphs.{suffix}")
