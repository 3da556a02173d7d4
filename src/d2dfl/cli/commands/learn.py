"""Commands that train: run, compare."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from d2dfl.cli.commands import completion
from d2dfl.cli.commands.options import Learning, Seed
from d2dfl.cli.commands.watching import Watching
from d2dfl.config.seeds import MOST_SEEDS, checked_seeds
from d2dfl.discovery.methods import ALL, method_named, methods_named
from d2dfl.errors import UserError
from d2dfl.experiment.folder.mark import read_mark

RUNS = Path("runs")
SEEDS = 5  # of a comparison, unless said


@dataclass(frozen=True)
class RunPlace:
    """Where a run is kept, logged and computed, and who watches."""

    out: Path | None
    default: Path  # without `out`; with a number where one of that name holds a run
    resume: bool
    logs: tuple[str, ...]
    engine: str
    watching: Watching


def run(
    options: Learning,
    watching: Watching,
    method: Annotated[
        str | None,
        typer.Option(
            help="How the graph is found.  [default: by preset]",
            show_default=False,
            autocompletion=completion.beginning_with(completion.method_names),
        ),
    ] = None,
    seed: Seed = 0,
    again: Annotated[
        Path | None,
        typer.Option(
            "--from", help="Run again what this folder holds; its settings, methods and seeds.", show_default=False
        ),
    ] = None,
) -> None:
    """One run: discover the graph, move the datapoints, train; beside no exchange and the i.i.d. yardstick."""
    watching.check()
    unsaid = options.unsaid and (method, seed) == (None, 0)
    if again is not None and not unsaid:
        raise UserError("--from takes settings, methods and seeds from the folder: give no others beside it")
    if again is None and unsaid:
        again = _begun(options)
    if again is not None:
        from d2dfl.cli.learn import rerun_and_print

        rerun_and_print(again, _place(options, watching, RUNS / "run"))
        return
    config = options.config()
    chosen = method_named(config.discovery.method if method is None else method).name
    from d2dfl.cli.learn import compare_and_print

    compare_and_print(config, [chosen], [seed], _place(options, watching, RUNS / "run"))


def compare(
    options: Learning,
    watching: Watching,
    methods: Annotated[
        str,
        typer.Option(
            help="Methods, separated by commas, or all (ours, the paper's and its baselines).",
            autocompletion=completion.many_methods,
        ),
    ] = ALL,
    seeds: Annotated[int, typer.Option(help="Number of seeds.", min=1, max=MOST_SEEDS)] = SEEDS,
) -> None:
    """All methods side by side on the same data, over several seeds: accuracy, datapoints, joules, gap closed."""
    watching.check()
    begun = _begun(options) if options.unsaid and (methods, seeds) == (ALL, SEEDS) else None
    if begun is not None:
        from d2dfl.cli.learn import rerun_and_print

        rerun_and_print(begun, _place(options, watching, RUNS / "compare"))
        return
    config, names = options.config(), methods_named(methods)
    from d2dfl.cli.learn import compare_and_print

    compare_and_print(config, names, checked_seeds(seeds), _place(options, watching, RUNS / "compare"))


def _begun(options: Learning) -> Path | None:
    """The folder of --resume --out, which knows its own settings: nobody has to type them again."""
    if not options.resume or options.out is None:
        return None
    try:
        kind = read_mark(options.out).get("kind")
    except UserError:  # told in words where the folder is opened
        return None
    return options.out if kind == "comparison" else None


def _place(options: Learning, watching: Watching, default: Path) -> RunPlace:
    return RunPlace(options.out, default, options.resume, tuple(options.log or ()), options.engine, watching)
