"""Figures and tables of a comparison."""

import csv
import io
from contextlib import suppress
from pathlib import Path

from matplotlib.figure import Figure

from d2dfl.discovery.methods import IID, NO_EXCHANGE
from d2dfl.errors import UserError
from d2dfl.experiment.cells.results import Against, Row
from d2dfl.experiment.comparison import Comparison, title_of
from d2dfl.experiment.findings.charts import curve_chart, energy_bars, rounds_text
from d2dfl.experiment.findings.crowd import Series, distance_chart, distances, draw_crowd
from d2dfl.experiment.findings.device_scores import device_chart, device_table
from d2dfl.experiment.findings.maps import MANY
from d2dfl.experiment.findings.seed_maps import drawn_seeds, seed_maps
from d2dfl.experiment.findings.takeaways import comparison_command, comparison_takeaway
from d2dfl.experiment.folder.exports import write_exports
from d2dfl.experiment.folder.store import CONFIG, TABLE
from d2dfl.experiment.inputs import configured_links
from d2dfl.experiment.measures import FEW_TESTS, LEAST, LEAST_GAP
from d2dfl.experiment.pipeline import PreparedCell
from d2dfl.report.drawing.lines import figure_of, write_figure
from d2dfl.report.findings import Chart, Findings, Picture, Table, span
from d2dfl.storage import write_whole
from d2dfl.terminal import UNKNOWN, number, with_ends
from d2dfl.words import counted

COLUMNS = ("method", "score", "gap closed", "rounds", "moved", "lost", "joules", "TV to i.i.d.")


def shown_cells(row: Row) -> list[str]:
    """One line of the table, in the order of COLUMNS. One seed has no interval."""
    half = "" if row.interval is None else f" ± {number(row.interval[1] - row.score, 3)}"
    return [
        row.method,
        number(row.score, 3) + half,
        number(row.gap_closed, 2),
        number(row.rounds_to, 1),
        number(row.moved, 0),
        number(row.lost, 0),
        number(row.joules, 2),
        number(row.distance, 3),
    ]


def table_of(comparison: Comparison) -> Table:
    """All methods, and below what the columns say."""
    rows = tuple(tuple(shown_cells(row)) for row in comparison.rows)
    return Table("All methods", COLUMNS, rows, _note(comparison), _meanings(comparison))


def against_table(comparison: Comparison) -> Table:
    """Every method against the best of the others, on the same seeds: who is ahead, or that nobody can tell."""
    rows = tuple(
        (row.method, row.against.method, _difference(row.against), row.against.standing)
        for row in comparison.rows
        if row.against is not None
    )
    note = (
        f"difference of scores on the same seeds, above 0 where the method is better, with its 95 % interval; {IID} is no "
        "method. Which other one is best is found from the same seeds."
    )
    return Table("Against the best other method", ("method", "best other", "better by", "so it is"), rows, note)


def _difference(item: Against) -> str:
    shown = number(item.gain, 3) if item.interval is None else with_ends(item.gain, *item.interval, 3)
    return f"{'' if shown.startswith('-') or not shown.partition(' ')[0].strip('0.') else '+'}{shown}"


def _meanings(comparison: Comparison) -> tuple[str, ...]:
    """What the columns say."""
    better = "" if comparison.results.sign(comparison.point) > 0 else " (lower is better)"
    spread = " ± half of its 95 % interval over seeds" if len(comparison.results.seeds) > 1 else ""
    return (
        "",
        f"{comparison.score_name}{better}, mean of the last fifth of the curve{spread}",
        f"share of the way from {NO_EXCHANGE} to {IID}",
        "until the score that no exchange ends with on the same seed",
        "datapoints sent in the exchange as it went, not as it was expected",
        "those of them that did not arrive",
        f"of the whole run, {comparison.config.energy.radio} radio",
        "total variation after the exchange as it went, lower is better",
    )


def _note(comparison: Comparison) -> str:
    """What every dash says, and a warning where there are few tests."""
    parts = []
    tests = len(comparison.dataset.test_inputs)
    if tests < FEW_TESTS:
        parts.append(f"only {counted(tests, 'test datapoint')}: too few to tell methods apart")
    if any(row.gap_closed is None for row in comparison.rows):
        few = "" if len(comparison.results.seeds) >= LEAST else f" (fewer than {LEAST} seeds: by more than {LEAST_GAP})"
        parts.append(
            f"{UNKNOWN} in gap closed: {IID} is not clearly better than {NO_EXCHANGE}{few}, so there is no gap"
        )
    if any(row.rounds_to is None for row in comparison.rows):
        parts.append(f"{UNKNOWN} in rounds: with some seed that score is not reached")
    return "; ".join(parts)


def used(comparison: Comparison) -> str:
    """What the devices held in the end, where the settings leave that to the data."""
    setting = comparison.prepared[0].setting
    sizes = [len(held) for held in setting.holdings]
    rule = "as the data says" if comparison.dataset.owners else setting.config.data.allocation
    often = sum(sizes) / max(len(setting.truth), 1)
    repeated = f", a datapoint at {often:.1f} devices on average" if often > 1 else ""
    of = f"of the {len(setting.truth):,} datapoints of {comparison.dataset.name} each ({rule}{repeated})"
    names = comparison.dataset.owners.names if comparison.dataset.owners else ()
    empty = [name for name, size in zip(names, sizes, strict=False) if not size]
    none = (
        f"; {counted(len(empty), 'device')} without data: {', '.join(empty[:8])}{', …' * (len(empty) > 8)}"
        if empty
        else ""
    )
    return f"{counted(len(sizes), 'device')} with {span(sizes)} {of}{none}"


def _said_elsewhere(comparison: Comparison) -> str:
    """A line for readers of the settings: which of them do not count, because another or a file of the user's own says otherwise."""
    config, fields = comparison.config, []
    if comparison.dataset.owners:
        fields += ["network.samples_per_device, network.labels_per_device, data.allocation"]
    elif config.data.samples:
        fields += ["network.samples_per_device (data.samples says it)"]
    with suppress(UserError):  # the file may be gone by now
        if config.network.file and configured_links(config).trusted:
            fields += [f"network.trust ({Path(config.network.file).name} says it)"]
    return f"# these do not count here: {'; '.join(fields)}\n" if fields else ""


def markdown(comparison: Comparison) -> str:
    """The tables as Markdown."""
    return "\n".join(_markdown(table) for table in (table_of(comparison), against_table(comparison)))


def _markdown(table: Table) -> str:
    lines = ["| " + " | ".join(table.columns) + " |", "|---" + "|---:" * (len(table.columns) - 1) + "|"]
    lines += ["| " + " | ".join(row) + " |" for row in table.rows]
    return "\n".join([*lines, "", table.words, ""])


def curves_figure(comparison: Comparison) -> Figure:
    """Score against rounds, mean over seeds with a confidence band."""
    return figure_of(_curves(comparison), {NO_EXCHANGE: ":", IID: "--"})


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
    chosen = dict.fromkeys([NO_EXCHANGE, comparison.rows[0].method, IID])
    panels = [(title_of(name), found[name]) for name in chosen]
    labels = dataset.test_targets[: len(panels[0][1])]
    draw_embeddings(panels, labels, dataset.class_names, folder / "embeddings.png")


def findings(comparison: Comparison) -> Findings:
    """The comparison as a record that `d2dfl report` shows."""
    setting, dataset = comparison.prepared[0].setting, comparison.dataset
    config = comparison.config
    sizes = [len(held) for held in setting.holdings]
    seeds = len(comparison.results.seeds)
    return Findings(
        name="comparison",
        title=f"{dataset.name}, {config.partition.paradigm}, {config.federation.scheme}",
        setting=(
            f"{counted(len(sizes), 'device')} with {span(sizes)} datapoints, {rounds_text([config.federation])}, "
            f"{counted(seeds, 'seed')}{'; ' + dataset.note if dataset.note else ''}"
        ),
        config=config.to_toml(),
        tables=tuple(filter(None, (table_of(comparison), against_table(comparison), _by_device(comparison)))),
        charts=tuple(
            filter(
                None,
                (
                    _curves(comparison),
                    device_chart(comparison.results),
                    distance_chart(_distances(comparison)) if _crowded(comparison) else None,
                ),
            )
        ),
        bars=(energy_bars(comparison.results, comparison.point, "Joules by purpose"),),
        maps=() if _crowded(comparison) else seed_maps(comparison),
        pictures=(
            *((Picture("Distance to i.i.d. where devices stand", "graphs.png"),) if _crowded(comparison) else ()),
            *((Picture("Embeddings of test inputs", "embeddings.png"),) if comparison.embeddings else ()),
        ),
        notes=_notes(comparison),
        takeaway=comparison_takeaway(comparison.results, comparison.rows),
        command=comparison_command(config, [row.method for row in comparison.rows], comparison.results.seeds),
    )


def _crowded(comparison: Comparison) -> bool:
    """Whether there are more devices than a map can show."""
    return comparison.prepared[0].setting.network.devices > MANY


def _distances(comparison: Comparison) -> list[Series]:
    """How far the devices of the first seed are from i.i.d. with every method."""
    return distances([(title_of(item.method), item) for item in _first(comparison) if item.method != NO_EXCHANGE])


def _first(comparison: Comparison) -> list[PreparedCell]:
    """The cells of the first seed."""
    seed = comparison.prepared[0].setting.seed
    return [item for item in comparison.prepared if item.setting.seed == seed]


def _curves(comparison: Comparison) -> Chart:
    return curve_chart(comparison.results, comparison.point, "Score against rounds")


def _by_device(comparison: Comparison) -> Table | None:
    first = comparison.prepared[0].setting.network
    held = {item.setting.seed: [len(points) for points in item.setting.holdings] for item in comparison.prepared}
    return device_table(comparison.results, list(map(first.device_name, range(first.devices))), held)


def _notes(comparison: Comparison) -> tuple[str, ...]:
    left = 0 if _crowded(comparison) else len(comparison.results.seeds) - len(drawn_seeds(comparison))
    return (
        (f"the map shows all seeds but the last {left}: their graphs have too many links for a page",) if left else ()
    )


def write_all(comparison: Comparison, folder: Path) -> None:
    """Table, curves, figures."""
    from d2dfl.report.drawing.picture import draw_row

    write_whole(folder / TABLE, markdown(comparison).encode())
    settings = comparison.config.to_toml()
    write_whole(folder / CONFIG, f"# used: {used(comparison)}\n{_said_elsewhere(comparison)}{settings}".encode())
    findings(comparison).save(folder)
    write_curves(comparison, folder / "curves.csv")
    for suffix in ("png", "svg"):
        write_figure(curves_figure(comparison), folder / f"curves.{suffix}")
    _draw_embeddings(comparison, folder)
    network = comparison.prepared[0].setting.network
    if _crowded(comparison):
        draw_crowd(_distances(comparison), network.positions, folder / "graphs.png")
    else:
        graphs = [
            (title_of(item.method), item.discovery.graph, item.discovery.evaluation)
            for item in _first(comparison)
            if item.discovery is not None
        ]
        for suffix in ("png", "html"):
            draw_row(network, graphs, folder / f"graphs.{suffix}")
    write_exports(comparison, folder)
