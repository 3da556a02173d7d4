"""What the commands that train do: run, compare."""

import os
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from d2dfl.cli.output import (
    Watch,
    announce,
    bar,
    console,
    nothing_to_resume,
    numbers_table,
    say,
    say_results,
    to_resume,
)
from d2dfl.config import Config
from d2dfl.config.needs import NetworkShape
from d2dfl.discovery.needs import discovery_seconds
from d2dfl.errors import UnknownNameError, UserError
from d2dfl.experiment.folder.logs import check_logs
from d2dfl.experiment.observer import NOBODY, Observer
from d2dfl.progress import Step
from d2dfl.words import counted

if TYPE_CHECKING:
    from d2dfl.cli.commands.learn import RunPlace
    from d2dfl.cli.commands.watching import Watching
    from d2dfl.cli.live.session import LiveSession
    from d2dfl.experiment.comparison import Comparison
    from d2dfl.experiment.folder.mark import RunPlan
    from d2dfl.experiment.folder.store import Again, RunFolder
    from d2dfl.report.findings import Table


SHOWN = 2  # tables on a terminal; that of every device is for the page


def compare_and_print(config: Config, methods: Sequence[str], seeds: Sequence[int], place: "RunPlace") -> None:
    """Run a comparison with a progress bar, print its table, write its files."""
    check_logs(place.logs)  # before PyTorch is loaded and a folder made
    from d2dfl.experiment.compare import compare, plan_of
    from d2dfl.experiment.findings.comparison import write_all
    from d2dfl.experiment.folder.store import check_results
    from d2dfl.experiment.grid.cluster import check_engine

    check_engine(place.engine, config.federation)  # and the scheme
    plan = plan_of(config, methods, seeds)
    with _folder_for(plan, place) as record:
        where = record.path
        if record.finished:
            check_results(where)
            record.finish()  # it may have been cut while it removed its checkpoint
            _show_finished(where)
            return
        with _watched(place.watching, config) as session:
            observer = session.view if session else NOBODY
            needed = partial(_announce, config, methods, seeds)
            with _bar(record, observer, needed, session is not None and session.in_terminal) as tell:
                result = compare(
                    config,
                    methods,
                    seeds,
                    record,
                    progress=tell,
                    logs=place.logs,
                    notice=say,
                    engine=place.engine,
                    observer=observer,
                )
                tell("draw", 1.0)
                write_all(result, where)
            record.finish()
            _print_comparison(config, result)
            say_results(where)
            if session:
                session.finish(where)


def _folder_for(plan: "RunPlan", place: "RunPlace") -> AbstractContextManager["RunFolder"]:
    """Where a run goes: the folder that was named, the one to go on in, or a new one; says what a user may not expect."""
    from d2dfl.experiment.folder.store import folder_to_resume, is_free, new_run_folder, run_folder, unfinished

    out, default, resume = place.out, place.default, place.resume
    last = folder_to_resume(default, plan) if out is None or (resume and is_free(out)) else None
    given = out or (last if resume else None)
    again: Again = "resume" if resume else "refuse"
    if resume and out is not None and last is not None:
        raise UserError(f"there is nothing to resume in {out}, but in {last}: {to_resume(last)}")
    if resume and (given is None or is_free(given)):
        say(nothing_to_resume(given or default))
    elif not resume and last is not None and unfinished(last):
        say(f"{last} holds this run, unfinished; a new one begins. To go on with it instead: {to_resume(last)}")
    return run_folder(given, plan, again) if given else new_run_folder(default, plan)


def _watched(watching: "Watching", config: Config) -> "AbstractContextManager[LiveSession | None]":
    if not watching.live:
        return nullcontext()
    from d2dfl.cli.live.session import live_session
    from d2dfl.live.records import RunView

    title = f"{Path(config.data.dataset).name}, {config.partition.paradigm}, {config.federation.scheme}"
    return live_session(watching, title, RunView)


def _announce(config: Config, methods: Sequence[str], seeds: Sequence[int]) -> None:
    """Say how long discovery takes, where that is long."""
    shape = NetworkShape.planned(config)
    predicted = sum(discovery_seconds(name, config, shape) for name in methods)
    announce(f"the discovery of {counted(len(methods), 'method')}", len(seeds) * predicted)


@contextmanager
def _bar(
    record: "RunFolder", observer: Observer, announce_discovery: Callable[[], None], elsewhere: bool
) -> Iterator[Step]:
    """A progress bar for a comparison, unless it is shown otherwise; a stop says what was kept."""
    from d2dfl.experiment.compare import PAUSE_S
    from d2dfl.experiment.pace import FINDING

    with bar("prepare", shown=not elsewhere) as show:
        watch, announced = Watch("the training"), False

        def tell(what: str, share: float) -> None:
            nonlocal announced
            show(description=what, completed=share)
            observer.step(what, share)
            if what.startswith(FINDING) and not announced:  # by now data and settings fit together
                announced = True
                announce_discovery()
            if what == "train":
                watch(share)

        try:
            yield tell
        except KeyboardInterrupt:
            if not record.checkpoints.there:
                raise KeyboardInterrupt("nothing was kept: no round of training was finished") from None
            kept = f"finished rounds are kept, but for the last {PAUSE_S:.0f} s"
            raise KeyboardInterrupt(f"{kept}; to go on: {to_resume(record.path)}") from None


def _print_comparison(config: Config, result: "Comparison") -> None:
    from d2dfl.experiment.findings.comparison import against_table, table_of, used

    setting = result.prepared[0].setting
    seeds = len(result.results.seeds)
    note = f"; {result.dataset.note}" if result.dataset.note else ""
    console.print(
        f"{used(result)}, {config.federation.scheme}, {counted(config.federation.rounds, 'round')}, "
        f"{counted(seeds, 'seed')}{note}"
    )
    for name, value in setting.partitioning.measures.items():
        console.print(f"{name}: {value:.3f} (seed {setting.seed}, mean over devices)")
    _print_tables((table_of(result), against_table(result)))


def _print_tables(tables: "Sequence[Table]") -> None:
    """Tables as the terminal shows them, each with its notes."""
    for found in tables:
        table = numbers_table(*found.columns)
        for row in found.rows:
            table.add_row(*row)
        console.print(table)
        for line in filter(None, found.words.split("; ")):
            console.print(line)


def _show_finished(folder: Path) -> None:
    """A run that has nothing left to do: its tables, as it printed them."""
    from d2dfl.report.findings import Findings

    with suppress(UserError):
        _print_tables(Findings.load(folder).tables[:SHOWN])
    say(f"results: {folder}, which was finished before; nothing was run")


def rerun_and_print(folder: Path, place: "RunPlace") -> None:
    """Run what a run folder holds once more, into another folder."""
    from d2dfl.discovery.methods import IID, method_named
    from d2dfl.experiment.folder.mark import comparison_in, plugins_of

    same = place.out is not None and os.path.realpath(place.out) == os.path.realpath(folder)
    if same and not place.resume:
        raise UserError(f"--from and --out are the same folder, {folder}: give another --out")
    try:
        config, methods, seeds = comparison_in(folder)
        names = [method_named(name).name for name in methods if name != IID]
        compare_and_print(config, names, seeds, place)
    except UserError as error:
        absent = plugins_of(folder) if isinstance(error, UnknownNameError) else []
        if not absent:
            raise
        options = shlex.join(word for file in absent for word in ("--plugin", file))
        raise UserError(f"{error}; {folder} was made with a plug-in: give it with {options}") from None
