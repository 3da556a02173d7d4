"""What `d2dfl reproduce` does: the paper's figures and tables, with its numbers beside ours; and the list of them."""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import typer
from rich import box
from rich.console import Console
from rich.progress import MofNCompleteColumn, TextColumn
from rich.table import Table
from rich.text import Text

from d2dfl.cli.output import bar, console, nothing_to_resume, numbers_table, say, say_results, to_resume
from d2dfl.errors import UserError
from d2dfl.experiment.cells.files import CELLS
from d2dfl.experiment.folder.store import TABLE, folder_to_resume, is_free, numbered
from d2dfl.experiment.grid.grid import GridProgress
from d2dfl.progress import silent
from d2dfl.report.findings import AHEAD, BEHIND, DIRECTION, FILE, NOT, REPRODUCED, UNDECIDED, Findings, Verdict
from d2dfl.storage import TakenError, write_whole
from d2dfl.terminal import in_time
from d2dfl.words import counted

if TYPE_CHECKING:
    from d2dfl.cli.commands.results import Reproduce as Options
    from d2dfl.cli.commands.watching import Watching
    from d2dfl.cli.live.session import LiveSession
    from d2dfl.paper.run import Reproduced, ReproductionRequest

OUT = Path("runs/reproduce")
COLOURS = {
    **dict.fromkeys((REPRODUCED, AHEAD), "green"),
    **dict.fromkeys((DIRECTION, UNDECIDED), "yellow"),
    **dict.fromkeys((NOT, BEHIND), "red"),
}


def reproduce_and_print(names: Sequence[str], options: "Options", watching: "Watching") -> None:
    """Measure experiments with a bar, print what they found, write tables and figures."""
    from d2dfl.paper.catalogue import experiment_names

    chosen = experiment_names() if names == ["all"] else list(dict.fromkeys(names))
    with _watched(watching, chosen, options) as (session, told):
        done, folder = _measured(chosen, options, session, told)
        _print_all(done, folder, options.json_output)
        if session:
            session.finish()
    if not done.findings:
        raise UserError("nothing could be measured: the reasons stand above")
    if done.failures:
        raise typer.Exit(1)


def _measured(
    chosen: Sequence[str], options: "Options", session: "LiveSession | None", told: Path | None
) -> "tuple[Reproduced, Path]":
    """Measure with a bar, in the folder that was named or the first that is free; workers tell of discoveries in `told`."""
    from d2dfl.paper.run import ReproductionRequest, reproduce

    scale, out, again = options.scale, options.out, options.resume or options.show
    with _bar() if session is None or not session.in_terminal else nullcontext(silent) as show:
        for folder in [out] if out is not None else _folders(scale, again):
            if options.resume and is_free(folder):
                say(nothing_to_resume(folder))
            request = ReproductionRequest(
                names=chosen,
                scale=scale,
                out=folder,
                seeds=options.seeds,
                engine=options.engine,
                workers=options.workers,
                resume=options.resume,
                show=options.show,
                exchange_only=options.exchange_only,
                watched=told,
            )
            tell = _told(show, session, request)
            try:
                return reproduce(request, tell, partial(_write, folder=folder, figures=options.figures)), folder
            except KeyboardInterrupt:
                raise KeyboardInterrupt(_kept(folder)) from None
            except TakenError:  # a default folder that holds these measurements: the next one may not
                if out is not None or again:
                    raise
    raise AssertionError("there is always a next folder")


@contextmanager
def _watched(
    watching: "Watching", chosen: Sequence[str], options: "Options"
) -> "Iterator[tuple[LiveSession | None, Path | None]]":
    """A page, and a folder that is gone afterwards, where workers tell of their discoveries."""
    if not watching.live:
        yield None, None
        return
    from d2dfl.cli.live.session import live_session
    from d2dfl.experiment.overheard import Listener
    from d2dfl.live.grids import GridView

    title = chosen[0] if len(chosen) == 1 else counted(len(chosen), "experiment")
    with TemporaryDirectory(prefix="d2dfl-live-", ignore_cleanup_errors=True) as folder:
        told = Path(folder)
        view = partial(GridView, listener=Listener(told))
        with live_session(watching, f"Reproduction of {title}, {options.scale}", view, elsewhere=True) as session:
            yield session, told


def _told(
    show: Callable[[GridProgress], None], session: "LiveSession | None", request: "ReproductionRequest"
) -> Callable[[GridProgress], None]:
    """Bar and page hear the same."""
    if session is None:
        return show
    from d2dfl.live.grids import GridView
    from d2dfl.paper.so_far import findings_so_far

    view = session.view
    assert isinstance(view, GridView)
    view.so_far = lambda: findings_so_far(request.names, request.scale, request.seeds, request.out)

    def tell(state: GridProgress) -> None:
        show(state)
        view.tell(state)

    return tell


def _print_all(done: "Reproduced", folder: Path, as_text: bool) -> None:
    """Everything that was found, and what was not."""
    for found in done.findings:
        _print_findings(found)
    if as_text:
        sys.stdout.write(as_json(done.findings) + "\n")
    for notice in done.notices:
        console.print(notice)
    for failure in done.failures[:20]:
        say(f"not measured: {failure.key}: {failure.reason}")
    if len(done.failures) > 20:
        say(f"… and {len(done.failures) - 20} more, see {folder / 'failures'}")
    say_results(folder)


def _kept(folder: Path) -> str:
    """What a reproduction that was stopped leaves behind, and how it goes on."""
    cells = len(list((folder / CELLS).glob("*.json")))
    if not cells:
        return "nothing was kept: no cell was finished"
    return f"{counted(cells, 'finished cell')} kept in {folder}; to go on: {to_resume(folder)}"


def _folders(scale: str, again: bool) -> Iterator[Path]:
    """Default folders in the order of trying; `again`: the last one that holds a reproduction of this scale."""
    from d2dfl.paper.run import plan_of

    default = OUT.with_name(f"{OUT.name}-{scale}")
    return iter([folder_to_resume(default, plan_of(scale)) or default]) if again else numbered(default)


def _write(done: "Reproduced", folder: Path, figures: bool) -> None:
    """The table of all that the folder holds by now, and figures of what was measured now."""
    if done.findings:
        write_whole(folder / TABLE, overview(_all(folder)).encode())
        if figures:
            _draw(done.findings, folder)


def _all(folder: Path) -> list[Findings]:
    """Everything that the folder holds by now, in the order of the paper; a damaged record is passed over."""
    from d2dfl.paper.catalogue import experiment_names

    order = {name: place for place, name in enumerate(experiment_names())}
    found = []
    for path in folder.glob(f"*/{FILE}"):
        with suppress(UserError):
            found.append(Findings.load(path.parent))
    return sorted(found, key=lambda item: (order.get(item.name, len(order)), item.name))


def _draw(findings: tuple[Findings, ...], folder: Path) -> None:
    from d2dfl.report.figures import draw_figures

    for found in findings:
        draw_figures(found, folder / found.name)


def _print_findings(found: Findings) -> None:
    console.print(Text.assemble("\n", (found.name, "bold"), f"  {found.figure}: {found.title}"))
    console.print(f"{found.setting}\nclaim: {found.claim}")
    for each in found.tables:
        table = numbers_table(*each.columns, title=each.title, title_justify="left")
        for row in each.rows:
            table.add_row(*row)
        console.print(table)
        if each.words:
            console.print(each.words)
    if found.verdicts:
        _print_verdicts(found.verdicts)
    for note in found.notes:
        console.print(note)


def _print_verdicts(verdicts: tuple[Verdict, ...]) -> None:
    """Claims, and below each what every system gave."""
    columns = ("claim of the paper, measured", "mean [95 %]", "verdict")
    table = Table(*columns, box=box.SIMPLE_HEAD, pad_edge=False)
    claims: dict[tuple[str, str], list[Verdict]] = {}
    for item in verdicts:
        claims.setdefault((item.quantity, item.paper), []).append(item)
    for (quantity, paper), own in claims.items():
        table.add_row(Text(quantity, "bold"), Text(f"paper: {paper}", "italic"))
        for item in own:
            table.add_row(f"  {item.system}", item.ours, Text(item.verdict, COLOURS.get(item.verdict, "default")))
    console.print(table)


def overview(findings: Sequence[Findings]) -> str:
    """All verdicts as one Markdown table."""
    lines = [
        "| experiment | of the paper | quantity | of | paper | ours [95 %] | seeds | verdict |",
        "|---|---|---|---|---|---:|---:|---|",
    ]
    lines += [
        f"| {found.name} | {found.figure} | {item.quantity} | {item.system} | {item.paper} | {item.ours} | {item.seeds} "
        f"| {item.verdict} |"
        for found in findings
        for item in found.verdicts
    ]
    settings = [f"- {found.name} ({found.scale}): {found.setting}" for found in findings]
    return "\n".join([*lines, "", *settings, ""])


def as_json(findings: tuple[Findings, ...]) -> str:
    import dataclasses
    import json

    return json.dumps({found.name: [dataclasses.asdict(item) for item in found.verdicts] for found in findings})


@contextmanager
def _bar() -> Iterator[Callable[[GridProgress], None]]:
    """A bar on a terminal; elsewhere, as in the log of a night, a line a minute."""
    if not console.is_terminal:
        yield Lines(console.print)
        return
    with bar("cells", MofNCompleteColumn(), TextColumn("{task.fields[left]}"), total=None, left="") as tell:
        yield lambda share: tell(
            description=(share.last_key or "cells")[:60], completed=share.done, total=share.total, left=_left(share)
        )


class Lines:
    """How far a grid is, as lines: at most one a minute, but a failure at once."""

    EVERY_S = 60.0

    def __init__(self, write: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self.write, self.clock = write, clock
        self.last, self.failed = clock(), 0

    def __call__(self, share: GridProgress) -> None:
        if share.failed > self.failed or self.clock() - self.last >= self.EVERY_S:
            self.last, self.failed = self.clock(), share.failed
            self.write(f"{share.done} of {share.total}, {_left(share)}; {share.last_key}")


def _left(share: GridProgress) -> str:
    """What failed, and an honest estimate of the time left."""
    left = "no estimate yet" if share.remaining_s is None else f"about {in_time(share.remaining_s)} left"
    return f"{share.failed} failed, {left}" if share.failed else left


def print_experiments() -> None:
    """All experiments with their cells at every scale, what these take, and the claim."""
    from d2dfl.paper.catalogue import claims_of, experiment_names, load_experiment
    from d2dfl.paper.experiment import SCALES

    table = Table("experiment", "of the paper", *SCALES, "the paper's claim", box=box.SIMPLE_HEAD, pad_edge=False)
    names = experiment_names()
    for name in names:
        claims, experiment = claims_of(name), load_experiment(name)
        costs = [_cost(experiment.count(scale), claims.cost.get(scale)) for scale in SCALES]
        table.add_row(name, claims.figure, *costs, claims.claim, end_section=name == names[-1])
    known = {scale: [claims_of(name).cost.get(scale) for name in names] for scale in SCALES}
    sums = {scale: sum(cost for cost in costs if cost is not None) for scale, costs in known.items()}
    signs = {scale: "over " if None in costs else "" for scale, costs in known.items()}
    table.add_row("all", "", *(signs[scale] + in_time(sums[scale]) for scale in SCALES), "")
    shown = Console(markup=False) if sys.stdout.isatty() else Console(markup=False, width=150)
    shown.print(table)
    shown.print(
        "cells (methods × points × seeds), and the time of one core where we measured it (paper scale: mostly of an H200)\n"
        "To load packages and to draw takes about 10 s more, and the first run after installation compiles for 20 s."
    )


def _cost(cells: int, seconds: float | None) -> str:
    return f"{cells}" if seconds is None else f"{cells}, {in_time(seconds)}"
