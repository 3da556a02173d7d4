"""What the command line prints and writes about discoveries."""

import json
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from d2dfl import summary
from d2dfl.discovery.evaluate import share_of
from d2dfl.errors import UserError
from d2dfl.methods import METHODS, Discovery
from d2dfl.network.files import save_network
from d2dfl.storage import write_whole

console = Console(stderr=True)
if not console.is_terminal:
    console = Console(stderr=True, width=100)  # a file or a pipe has no width of its own


def print_side_by_side(results: list[Discovery], best: float | None) -> None:
    """Measures down, methods across: for one or two methods."""
    table = Table("", *(item.method for item in results), box=box.SIMPLE_HEAD, pad_edge=False)
    for column in table.columns[1:]:
        column.justify = "right"
    for (name, _), *values in zip(summary.MEASURES, *(summary.measures(item, best) for item in results), strict=True):
        table.add_row(name, *values)
    _print(results, table)


def print_comparison(results: list[Discovery], best: float | None) -> None:
    """Methods down, measures across: for many methods."""
    table = Table("method", *(short for _, short in summary.MEASURES), box=box.SIMPLE_HEAD, pad_edge=False, padding=0)
    for column in table.columns[1:]:
        column.justify = "right"
    for item in results:
        table.add_row(item.method, *summary.measures(item, best))
    _print(results, table)


def _print(results: list[Discovery], table: Table) -> None:
    console.print(summary.headline(results[0]), highlight=False)
    console.print(table)
    for item in results:
        sentence = summary.bound_sentence(item)
        if sentence:
            console.print(sentence, highlight=False)


def as_dict(item: Discovery, best: float | None) -> dict[str, Any]:
    share = None if best is None else share_of(item.evaluation.objective, best, item.evaluation.no_exchange)
    return {**item.to_dict(), "best_known_objective": best, "share_of_best_known": share}


def as_json(item: Discovery, best: float | None) -> str:
    return json.dumps(as_dict(item, best), allow_nan=False)


def check_picture(picture: Path | None) -> None:
    """Refuse a picture format before minutes of work, not after."""
    if picture is not None:
        from d2dfl.draw import check_suffix

        check_suffix(picture)


def draw_one(item: Discovery, path: Path) -> None:
    from d2dfl.draw import draw_graph

    draw_graph(item.network, item.graph, item.evaluation, path, title=METHODS[item.method].title)


def draw_all(items: list[Discovery], path: Path) -> None:
    from d2dfl.draw import draw_row

    draw_row(items[0].network, [(METHODS[i.method].title, i.graph, i.evaluation) for i in items], path)


def make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot make the folder {str(folder)!r}: {error.strerror}") from None


def save_all(item: Discovery, best: float | None, folder: Path) -> None:
    """JSON, GraphML, pictures, network and configuration in one folder."""
    make_folder(folder)
    write_whole(folder / "graph.json", as_json(item, best).encode())
    write_whole(folder / "graph.graphml", item.graph.to_graphml(item.network).encode())
    write_whole(folder / "config.toml", item.config.to_toml().encode())
    save_network(item.network, folder / "network.npz")
    for suffix in ("png", "html"):
        draw_one(item, folder / f"graph.{suffix}")
    console.print(f"results: {folder}", highlight=False, soft_wrap=True)
