"""Commands that train: run, compare, data. Heavy imports wait until a command needs them."""

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich import box
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from d2dfl.cli.output import Watch, announce, console, say
from d2dfl.config import Config
from d2dfl.errors import UserError
from d2dfl.needs import Shape, discovery_seconds
from d2dfl.report.findings import counted, span
from d2dfl.storage import read_text

if TYPE_CHECKING:
    from d2dfl.experiment.compare import Comparison
    from d2dfl.experiment.store import Again

data_app = typer.Typer(help="Datasets: what is there, what is missing, how to get it.", no_args_is_help=True)


def learning_config(config: Config, dataset: str | None, scheme: str | None, rounds: int | None) -> Config:
    """Named options win over settings."""
    given = {"data.dataset": dataset, "federation.scheme": scheme, "federation.rounds": rounds}
    return config.with_(**{path: value for path, value in given.items() if value is not None})


def compare_and_print(
    config: Config,
    methods: Sequence[str],
    seeds: Sequence[int],
    out: Path | None,
    default: Path,
    resume: bool,
    logs: Sequence[str] = (),
) -> None:
    """Run a comparison with a progress bar, print its table, write its files.

    Without `out` the run gets the default folder, or one with a number where that is taken.
    """
    from d2dfl.experiment.compare import compare, plan_of
    from d2dfl.experiment.findings import write_all
    from d2dfl.experiment.store import folder_to_resume, new_run_folder, run_folder
    from d2dfl.federation.schemes import scheme_named

    scheme_named(config.federation.scheme)
    plan = plan_of(config, methods, seeds)
    given = out or (folder_to_resume(default, plan) if resume else None)
    again: Again = "resume" if resume else "refuse"
    with run_folder(given, plan, again) if given else new_run_folder(default, plan) as record:
        where = record.path
        if record.finished:
            record.finish()  # it may have been cut while it removed its checkpoint
            _show_finished(where)
            return
        shape = Shape.planned(config)
        predicted = sum(discovery_seconds(name, config, shape) for name in methods)
        announce(f"the discovery of {counted(len(methods), 'method')}", len(seeds) * predicted)
        columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
        with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
            task = progress.add_task("prepare", total=1.0)
            watch = Watch("the training")

            def tell(what: str, share: float) -> None:
                progress.update(task, description=what, completed=share)
                if what == "train":
                    watch(share)

            try:
                result = compare(config, methods, seeds, record, tell, logs)
            except KeyboardInterrupt:
                if record.checkpoints.there:
                    say(f"stopped; to go on: the same command with --resume --out {where}")
                raise
            progress.update(task, description="draw", completed=1.0)
            write_all(result, where)
        record.finish()
    _print_comparison(config, result)
    say(f"results: {where}; a page of them: d2dfl report {where}")


def _print_comparison(config: Config, result: "Comparison") -> None:
    from d2dfl.experiment.findings import COLUMNS, cells

    setting = result.prepared[0].setting
    sizes = [len(held) for held in setting.holdings]
    seeds = len(result.results.seeds)
    console.print(
        f"{result.dataset.name}: {counted(len(sizes), 'device')} with {span(sizes)} datapoints, {config.federation.scheme}, "
        f"{counted(config.federation.rounds, 'round')}, {counted(seeds, 'seed')}{'; ' + result.dataset.note if result.dataset.note else ''}"
    )
    for name, value in setting.partitioning.measures.items():
        console.print(f"{name}: {value:.3f} (seed {setting.seed}, mean over devices)")
    table = Table(*COLUMNS, box=box.SIMPLE_HEAD, pad_edge=False)
    for column in table.columns[1:]:
        column.justify = "right"
    for row in result.rows:
        table.add_row(*cells(row))
    console.print(table)
    console.print(
        f"score: {result.score_name}, mean of the last fifth of the curve ± deviation over seeds; gap closed: share of the "
        "way from none to iid; rounds: until the score that no exchange ends with on the same seed"
    )


def _show_finished(folder: Path) -> None:
    """A run that has nothing left to do: its table as it was written."""
    with suppress(UserError):
        console.print(read_text(folder / "table.md"))
    say(f"results: {folder}, which was finished before; nothing was run")


def rerun_and_print(folder: Path, out: Path | None, default: Path, resume: bool, logs: Sequence[str] = ()) -> None:
    """Run what a run folder holds once more, into another folder."""
    from d2dfl.discovery.discover import method_named
    from d2dfl.experiment.cell import IID
    from d2dfl.experiment.store import comparison_in

    if out is not None and os.path.realpath(out) == os.path.realpath(folder) and not resume:
        raise UserError(f"--from and --out are the same folder, {folder}: give another --out")
    config, methods, seeds = comparison_in(folder)
    names = [method_named(name).name for name in methods if name != IID]
    compare_and_print(config, names, seeds, out, default, resume, logs)


@data_app.command("list")
def data_list() -> None:
    """All datasets and whether they are on this machine."""
    from d2dfl.data import datasets

    table = Table("dataset", "here", "what it is", box=box.SIMPLE_HEAD, pad_edge=False)
    for name in datasets.names():
        table.add_row(name, "yes" if datasets.status(name).ready else "no", datasets.describe(name).title)
    Console(markup=False).print(table)


@data_app.command("info")
def data_info(name: str) -> None:
    """One dataset: what it is, where it was found, what is missing."""
    from d2dfl.data import datasets

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


@data_app.command("fetch")
def data_fetch(name: str) -> None:
    """Download a dataset from its public home into the user cache."""
    from d2dfl.data import datasets

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(name)
        datasets.fetch(
            name, lambda what, done, total: progress.update(task, description=what, completed=done, total=total or None)
        )
    sys.stdout.write(f"{datasets.path(name)}\n")


@data_app.command("path")
def data_path(name: str) -> None:
    """Where the files of a dataset are."""
    from d2dfl.data import datasets

    sys.stdout.write(f"{datasets.path(name)}\n")
