"""Discoveries as tables, JSON, pictures and files."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich import box
from rich.table import Table

from d2dfl.cli.output import console, say_results
from d2dfl.discovery.discover import Discovery
from d2dfl.discovery.evaluation import share_of
from d2dfl.discovery.methods import METHODS
from d2dfl.experiment import summary
from d2dfl.network.files import save_network
from d2dfl.storage import write_whole


def print_side_by_side(results: list[Discovery], best: float | None) -> None:
    """Measures down, methods across: for one or two methods."""
    table = Table("", *(item.method for item in results), box=box.SIMPLE_HEAD, pad_edge=False)
    for column in table.columns[1:]:
        column.justify = "right"
    columns = [summary.measures(item, best) for item in results]
    for (name, _), *values in zip(summary.shown(best), *columns, strict=True):
        table.add_row(name, *values)
    _print(results, table)


def print_comparison(results: list[Discovery], best: float | None) -> None:
    """Methods down, measures across: for many methods."""
    table = Table(
        "method", *(short for _, short in summary.shown(best)), box=box.SIMPLE_HEAD, pad_edge=False, padding=0
    )
    for column in table.columns[1:]:
        column.justify = "right"
    for item in results:
        table.add_row(item.method, *summary.measures(item, best))
    _print(results, table, summary.column_sentences(results, best))


def _print(results: list[Discovery], table: Table, explained: Sequence[str] = ()) -> None:
    console.print(summary.headline(results[0]))
    console.print(table)
    for sentence in (*explained, summary.dash_sentence(results), *map(summary.bound_sentence, results)):
        if sentence:
            console.print(sentence)


def as_dict(item: Discovery, best: float | None) -> dict[str, Any]:
    share = None if best is None else share_of(item.evaluation.objective, best, item.evaluation.no_exchange)
    return {**item.to_dict(), "best_known_objective": best, "share_of_best_known": share}


def as_json(item: Discovery, best: float | None) -> str:
    return json.dumps(as_dict(item, best), allow_nan=False)


def draw_one(item: Discovery, path: Path) -> None:
    from d2dfl.report.drawing.picture import draw_graph

    draw_graph(item.network, item.graph, item.evaluation, path, title=METHODS[item.method].title)


def draw_all(items: list[Discovery], path: Path) -> None:
    from d2dfl.report.drawing.picture import draw_row

    draw_row(items[0].network, [(METHODS[i.method].title, i.graph, i.evaluation) for i in items], path)


def save_all(item: Discovery, best: float | None, folder: Path) -> None:
    """JSON, GraphML, pictures and the network in one folder."""
    write_whole(folder / "graph.json", as_json(item, best).encode())
    write_whole(folder / "graph.graphml", item.graph.to_graphml(item.network).encode())
    save_network(item.network, folder / "network.npz")
    for suffix in ("png", "html"):
        draw_one(item, folder / f"graph.{suffix}")
    summary.keep([item], best, folder)
    say_results(folder)
