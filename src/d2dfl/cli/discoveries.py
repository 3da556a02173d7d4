"""Discoveries as tables on the terminal."""

from collections.abc import Sequence

from rich.table import Table

from d2dfl.cli.output import console, numbers_table
from d2dfl.discovery.discover import Discovery
from d2dfl.experiment.findings import summary


def print_side_by_side(results: Sequence[Discovery], best: float | None) -> None:
    """Measures down, methods across: for one or two methods."""
    table = numbers_table("", *(item.method for item in results))
    columns = [summary.shown_values(item, best) for item in results]
    for (name, _), *values in zip(summary.shown(best), *columns, strict=True):
        table.add_row(name, *values)
    _print(results, table)


def print_comparison(results: Sequence[Discovery], best: float | None) -> None:
    """Methods down, measures across: for many methods."""
    table = numbers_table("method", *(short for _, short in summary.shown(best)), padding=0)
    for item in results:
        table.add_row(item.method, *summary.shown_values(item, best))
    _print(results, table, summary.column_sentences(results, best))


def _print(results: Sequence[Discovery], table: Table, explained: Sequence[str] = ()) -> None:
    console.print(summary.headline(results[0]))
    console.print(table)
    for sentence in (*explained, summary.dash_sentence(results), *map(summary.bound_sentence, results)):
        if sentence:
            console.print(sentence)
