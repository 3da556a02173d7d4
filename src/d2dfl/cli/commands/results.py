"""Commands about the paper's results, and about what run folders hold: reproduce, replay, report."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from d2dfl.cli.commands import completion
from d2dfl.cli.commands.watching import Watching, check_live
from d2dfl.config.sections.learning import ENGINES
from d2dfl.config.seeds import MOST_SEEDS
from d2dfl.errors import UserError


@dataclass(frozen=True)
class Reproduce:
    """How a reproduction is measured, and where it is kept."""

    scale: Annotated[
        str,
        typer.Option(
            help="tiny (minutes), small (a laptop's night), paper (a GPU).",
            autocompletion=completion.beginning_with(completion.scales),
        ),
    ] = "tiny"
    seeds: Annotated[
        int | None, typer.Option(help="Seeds.  [default: by experiment]", show_default=False, min=1, max=MOST_SEEDS)
    ] = None
    engine: Annotated[
        str, typer.Option(help="local, or ray: an existing cluster.", autocompletion=completion.of(*ENGINES))
    ] = "local"
    workers: Annotated[
        int | None, typer.Option(help="Processes.  [default: one a core]", show_default=False, min=1, max=4096)
    ] = None
    resume: Annotated[bool, typer.Option("--resume", help="Measure only what is missing in --out.")] = False
    show: Annotated[bool, typer.Option("--show", help="Measure nothing: show what --out holds.")] = False
    exchange_only: Annotated[
        bool, typer.Option("--exchange-only", help="Leave out all that trains: minutes, and no GPU.")
    ] = False
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            help="Folder.  [default: runs/reproduce-SCALE, with a number where that has them]",
            show_default=False,
        ),
    ] = None
    json_output: Annotated[bool, typer.Option("--json", help="Verdicts as JSON on standard output.")] = False
    figures: Annotated[bool, typer.Option(help="Also draw every chart as PDF, SVG and PNG.")] = True


def reproduce(
    names: Annotated[
        list[str],
        typer.Argument(
            help="Experiments, or all; list shows them; a script of your own by its path.",
            metavar="NAME…",
            autocompletion=completion.beginning_with(completion.experiments),
        ),
    ],
    options: Reproduce,
    watching: Watching,
) -> None:
    """Reproduce figures and tables of the paper, its numbers beside ours.

    Every cell (method, point, seed) is kept in the folder as soon as it is there. Names: `d2dfl reproduce list`.
    """
    watching.check()
    from d2dfl.cli.reproduce import print_experiments, reproduce_and_print

    alone = next((word for word in ("all", "list") if word in names and len(names) > 1), None)
    if alone:
        raise UserError(f"{alone} stands alone: give it without other experiments")
    if names == ["list"]:
        if (options, watching) != (Reproduce(), Watching()):
            raise UserError("list shows every scale and measures nothing: give it without options")
        print_experiments()
    else:
        reproduce_and_print(names, options, watching)


def replay(
    run: Annotated[Path, typer.Argument(help="Folder that run, compare or discover --out made.", show_default=False)],
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Say the address, open nothing.")] = False,
) -> None:
    """Step through the discoveries of a finished run, on a page of this machine. Ctrl-C ends it."""
    check_live()
    from d2dfl.cli.live.session import replay_folder

    replay_folder(run, no_browser)


def report(
    runs: Annotated[
        list[str],
        typer.Argument(
            help="Folders that run, compare, reproduce, discover or compare-graphs made.", show_default=False
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            help="File of the page.  [default: report.html in the folder; of several, here, with a number]",
            show_default=False,
        ),
    ] = None,
    figures: Annotated[
        bool, typer.Option("--figures", help="Also draw every figure for a paper: PDF, SVG, PNG, one column wide.")
    ] = False,
    title: Annotated[
        str, typer.Option(help="Title of the page.  [default: by what it shows]", show_default=False)
    ] = "",
) -> None:
    """Everything that was found, as one self-contained web page."""
    from d2dfl.cli.report import write_page

    write_page(runs, out, figures, title)
