"""Discoveries as tables on the terminal."""

from collections.abc import Sequence

from rich import box
from rich.table import Table

from d2dfl.cli.output import console
from d2dfl.discovery.discover import Discovery
from d2dfl.experiment.findings import summary


def print_side_by_side(results: Sequence[Discovery], best: float | None) -> None:
    """Measures down, methods across: for one or two methods."""
    table = Table("", *(item.method for item in results), box=box.SIMPLE_HEAD, pad_edge=False)
    for column in table.columns[1:]:
        column.justify = "right"
    columns = [summary.shown_values(item, best) for item in results]
    for (name, _), *values in zip(summary.shown(best), *columns, strict=True):
        table.add_row(name, *values)
    _print(results, table)


def print_comparison(results: Sequence[Discovery], best: float | None) -> None:
    """Methods down, measures across: for many methods."""
    table = Table(
        "method", *(short for _, short in summary.shown(best)), box=box.SIMPLE_HEAD, pad_edge=False, padding=0
    )
    for column in table.columns[1:]:
        column.justify = "right"
    for item in results:
        table.add_row(item.method, *summary.shown_values(item, best))
    _print(results, table, summary.column_sentences(results, best))


def _print(results: Sequence[Discovery], table: Table, explained: Sequence[str] = ()) -> None:
    console.print(summary.headline(results[0]))
    console.print(table)
    for sentence in (*explained, summary.dash_sentence(results), *map(summary.bound_sentence, results)):
        if sentence:
            console.print(sentence)
