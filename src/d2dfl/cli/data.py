"""What the commands about datasets do."""

import sys

from rich import box
from rich.console import Console
from rich.progress import DownloadColumn
from rich.table import Table

from d2dfl.cli.output import bar
from d2dfl.data import datasets


def print_list() -> None:
    """All datasets and whether they are on this machine."""
    table = Table("dataset", "here", "what it is", box=box.SIMPLE_HEAD, pad_edge=False)
    for name in datasets.names():
        table.add_row(name, "yes" if datasets.status(name).ready else "no", datasets.describe(name).title)
    Console(markup=False).print(table)


def print_info(name: str) -> None:
    """One dataset: what it is, where it was found, what is missing."""
    entry, status = datasets.describe(name), datasets.status(name)
    out = Console(soft_wrap=True, highlight=False, markup=False)
    shape = " x ".join(map(str, entry.shape))
    out.print(
        f"{name}: {entry.title}; {shape}, {entry.classes or 'no'} classes; licence: {entry.licence}; home: {entry.home}"
    )
    for path in status.paths:
        out.print(f"found   {path}")
    for missing in status.missing:
        out.print(f"missing {missing}")
    if not status.ready and status.advice:
        out.print(status.advice)


def fetch_and_print(name: str) -> None:
    """Download a dataset from its public home into the user cache."""
    with bar(name, DownloadColumn(), total=100.0) as tell:
        datasets.fetch(name, lambda what, done, total: tell(description=what, completed=done, total=total or None))
    sys.stdout.write(f"{datasets.path(name)}\n")


def print_path(name: str) -> None:
    """Where the files of a dataset are."""
    sys.stdout.write(f"{datasets.path(name)}\n")
