"""What `d2dfl report` does: one web page, and figures for a paper."""

import itertools
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from d2dfl.cli.output import say
from d2dfl.errors import UserError
from d2dfl.experiment.folder.mark import RunPlan
from d2dfl.experiment.folder.store import check_results, run_folder
from d2dfl.storage import check_output, make_folder, read_bytes, write_whole

if TYPE_CHECKING:
    from d2dfl.report.page.data import PageEntry

PAGE = "report.html"


def write_page(names: list[str], given: Path | None, figures: bool, title: str) -> None:
    """Everything that was found, as one self-contained web page."""
    from d2dfl.report.page.data import load_entries
    from d2dfl.report.page.page import page  # draws with matplotlib and SciPy, which take a while to import

    if not all(names):
        raise UserError("a run folder has an empty name: give one that a command made with --out")
    runs = list(map(Path, names))
    out = given or _default(runs)
    if out.is_dir():
        raise UserError(f"{out} is a folder: name a file, such as {out / PAGE}")
    if out.suffix not in (".html", ".htm"):
        raise UserError(f"cannot write a page to {str(out)!r}: name a file that ends in .html")
    if out.exists() and b'content="d2dfl' not in read_bytes(out)[:4000]:
        raise UserError(f"{out} is there and not a page of d2dfl: name another file with --out")
    for run in runs:
        check_results(run)
    entries, folder = load_entries(runs), out.with_name(f"{out.stem}-figures")
    if out.parent.is_dir():
        check_output(out)
    with run_folder(folder, RunPlan("figures"), "add") if figures else nullcontext():
        content = page(entries, title)
        make_folder(out.parent)
        write_whole(out, content.encode(errors="replace"))
        say(f"page: {out}")
        if figures:
            _draw(entries, folder)


def _default(runs: list[Path]) -> Path:
    """In the folder of the run; the page of several runs is put here, beside those that are here already."""
    if len(runs) == 1:
        return (runs[0] if runs[0].is_dir() else runs[0].parent) / PAGE
    return next(path for path in _numbered(Path(PAGE)) if not path.exists())


def _numbered(path: Path) -> Iterator[Path]:
    """report.html, report-2.html, …"""
    yield path
    yield from (path.with_stem(f"{path.stem}-{number}") for number in itertools.count(2))


def _draw(entries: "list[PageEntry]", folder: Path) -> None:
    """Figures of every record, in a folder of its own each."""
    from d2dfl.report.figures import draw_figures
    from d2dfl.report.look import slugs

    for entry, name in zip(entries, slugs(entry.findings.name for entry in entries), strict=True):
        make_folder(folder / name)
        draw_figures(entry.findings, folder / name)
    say(f"figures: {folder}")
