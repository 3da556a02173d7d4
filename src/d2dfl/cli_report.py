"""The command that shows what was found: one web page, and figures for a paper."""

from pathlib import Path
from typing import Annotated

import typer

from d2dfl.cli_output import console, make_folder
from d2dfl.errors import UserError


def report_command(
    runs: Annotated[
        list[Path], typer.Argument(help="Folders that run, compare or reproduce made.", show_default=False)
    ],
    out: Annotated[Path, typer.Option("--out", help="File of the page.")] = Path("report.html"),
    figures: Annotated[
        bool, typer.Option("--figures", help="Also draw every figure for a paper: PDF, SVG, PNG, one column wide.")
    ] = False,
    title: Annotated[
        str, typer.Option(help="Title of the page.  [default: by what it shows]", show_default=False)
    ] = "",
) -> None:
    """Everything that was found, as one self-contained web page."""
    from d2dfl.page import write_page  # draws with matplotlib and SciPy, which take a while to import

    if out.is_dir():
        raise UserError(f"{out} is a folder: name a file, such as {out / 'report.html'}")
    make_folder(out.parent)
    write_page(runs, out, title)
    console.print(f"page: {out}", highlight=False, soft_wrap=True)
    if figures:
        _draw(runs, out.with_name(f"{out.stem}-figures"))


def _draw(runs: list[Path], folder: Path) -> None:
    """Figures of every record, in a folder of its own each."""
    from d2dfl.figures import draw_figures
    from d2dfl.page_data import load_entries
    from d2dfl.page_look import slugs

    entries = load_entries(runs)
    for entry, name in zip(entries, slugs(entry.findings.name for entry in entries), strict=True):
        make_folder(folder / name)
        draw_figures(entry.findings, folder / name)
    console.print(f"figures: {folder}", highlight=False, soft_wrap=True)
