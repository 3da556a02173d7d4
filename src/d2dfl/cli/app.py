"""The command line: a thin shell over the package. Bad input ends with one sentence and exit code 2."""

import dataclasses
import os
import sys
import tempfile
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import click
import typer
import typer.core
from rich.console import Console
from rich.table import Table

from d2dfl import __version__
from d2dfl.cli.graphs import compare_graphs_command, discover_command, network_command
from d2dfl.cli.learn import compare_and_print, data_app, learning_config, rerun_and_print
from d2dfl.cli.options import (
    ConfigFile,
    DatasetName,
    Devices,
    Edges,
    LogNames,
    ParadigmName,
    Preset,
    Rounds,
    RunOut,
    SchemeName,
    Seed,
    Settings,
    TrustRule,
    config_of,
)
from d2dfl.cli.output import say
from d2dfl.cli.report import report_command
from d2dfl.cli.reproduce import reproduce_command
from d2dfl.compiled import not_kept
from d2dfl.config.presets import preset
from d2dfl.config.section import allowed
from d2dfl.discovery.discover import METHODS, Method, method_named
from d2dfl.errors import UserError, described
from d2dfl.experiment.store import MOST_SEEDS
from d2dfl.plugins import load_file, place_in_user_file
from d2dfl.terminal import plain, speakable

RUNS = Path("runs")
BAD_INPUT, FAULT, STOPPED = 2, 3, 130  # exit codes
LONGEST = 800  # characters of a sentence

# Threads that wait actively fight for busy cores: beside other work a training took more than twice as long.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

# Typer escapes brackets for rich even where rich's markup is off: plain help would say \\[default: …].
typer.core.HAS_RICH = False


class UnexpectedEndError(Exception):
    """The end of a file, met by code that did not expect it."""


class Commands(typer.core.TyperGroup):
    """The commands. click would take the end of a file, wherever it is met, for a user's wish to stop."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except EOFError as error:
            raise UnexpectedEndError from error


app = typer.Typer(
    cls=Commands,
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.command("discover")(discover_command)
app.command("compare-graphs")(compare_graphs_command)


@app.callback()
def prepare_plugins(
    plugin: Annotated[
        list[Path] | None,
        typer.Option(
            "--plugin",
            help="Python file that registers datasets, models, schemes, methods or metrics.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Who should receive datapoints from whom, before federated learning starts."""
    for path in plugin or []:
        load_file(path)
        if sys.stdout.closed:
            raise UserError(f"{path} closes standard output: leave it open")
        odd = [name for name, method in METHODS.items() if not isinstance(method, Method) or method.name != name]
        if odd:
            raise UserError(f"{path} registers {odd[0]!r:.80} as a method: give a Method of this name")
    line = not_kept()
    if line is not None:
        say(line)


@app.command("run")
def run_command(
    method: Annotated[
        str | None, typer.Option(help="How the graph is found.  [default: by preset]", show_default=False)
    ] = None,
    dataset: DatasetName = None,
    paradigm: ParadigmName = "supervised",
    scheme: SchemeName = None,
    rounds: Rounds = None,
    devices: Devices = None,
    trust: TrustRule = None,
    edges: Edges = None,
    seed: Seed = 0,
    preset_name: Preset = "best",
    settings: Settings = None,
    config_file: ConfigFile = None,
    out: RunOut = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on where a cut run stopped.")] = False,
    again: Annotated[
        Path | None,
        typer.Option(
            "--from", help="Run again what this folder holds; its settings, methods and seeds.", show_default=False
        ),
    ] = None,
    log: LogNames = None,
) -> None:
    """One run: discover the graph, move the datapoints, train; beside no exchange and the i.i.d. yardstick."""
    if again is not None:
        given = (method, dataset, scheme, rounds, devices, trust, edges, settings, config_file)
        if any(option is not None for option in given) or (paradigm, seed, preset_name) != ("supervised", 0, "best"):
            raise UserError("--from takes settings, methods and seeds from the folder: give no others beside it")
        rerun_and_print(again, out, RUNS / "run", resume, log or [])
        return
    config = config_of(preset_name, config_file, settings, devices, None, None, trust, edges, None, paradigm)
    config = learning_config(config, dataset, scheme, rounds)
    chosen = method_named(method or config.discovery.method).name
    compare_and_print(config, [chosen], [seed], out, RUNS / "run", resume, log or [])


@app.command("compare")
def compare_command(
    methods: Annotated[
        str, typer.Option(help="Methods, separated by commas, or all (ours, the paper's and its baselines).")
    ] = "all",
    seeds: Annotated[int, typer.Option(help="Number of seeds.", min=1, max=MOST_SEEDS)] = 3,
    dataset: DatasetName = None,
    paradigm: ParadigmName = "supervised",
    scheme: SchemeName = None,
    rounds: Rounds = None,
    devices: Devices = None,
    trust: TrustRule = None,
    edges: Edges = None,
    preset_name: Preset = "best",
    settings: Settings = None,
    config_file: ConfigFile = None,
    out: RunOut = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on where a cut run stopped.")] = False,
    log: LogNames = None,
) -> None:
    """All methods side by side on the same data, over several seeds: accuracy, datapoints, joules, gap closed."""
    config = config_of(preset_name, config_file, settings, devices, None, None, trust, edges, None, paradigm)
    config = learning_config(config, dataset, scheme, rounds)
    from d2dfl.experiment.setting import methods_named  # imports PyTorch

    names = methods_named(methods)
    compare_and_print(config, names, list(range(seeds)), out, RUNS / "compare", resume, log or [])


app.add_typer(data_app, name="data")
app.command("reproduce")(reproduce_command)
app.command("report")(report_command)
app.command("network")(network_command)


@app.command("methods")
def methods_command() -> None:
    """List the methods."""
    table = Table("method", "what it does")
    for method in METHODS.values():
        table.add_row(method.name, method.summary)
    Console(markup=False).print(table)


@app.command("fields")
def fields_command(preset_name: Preset = "best") -> None:
    """List every setting with its value in a preset, and what it may be."""
    table = Table("setting", "value", "may be", "what it is")
    config = preset(preset_name)
    for section in dataclasses.fields(config):
        part = getattr(config, section.name)
        hints = get_type_hints(type(part))
        for field in dataclasses.fields(part):
            value, bounds = str(getattr(part, field.name)), allowed(field, hints[field.name])
            table.add_row(f"{section.name}.{field.name}", value, bounds, field.metadata["help"])
    Console(markup=False).print(table)


def main() -> None:
    """Entry point. 0: done; 1: a reproduction misses cells; 2: bad input; 3: a fault of ours; 130: stopped."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # it was closed, as by >&-
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115  # open until the process ends
    speakable(sys.stdout)
    speakable(sys.stderr)
    try:
        # Without standalone mode, usage errors arrive here as exceptions and `--help` returns.
        code = app(standalone_mode=False)
        sys.stdout.flush()
    except KeyboardInterrupt:
        code = STOPPED
    except BaseException as error:  # SystemExit among them: nothing of ours calls it below this line
        if isinstance(error, BrokenPipeError) or isinstance(error.__context__, BrokenPipeError):
            os.dup2(
                os.open(os.devnull, os.O_WRONLY), 1
            )  # whoever read has seen enough, as in `d2dfl methods | head -1`
            code = 0
        else:
            code = _answer(error)
    sys.exit(code if isinstance(code, int) else 0)


def _answer(error: BaseException) -> int:
    """Say in one sentence what went wrong, and give the exit code."""
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        sys.stdout.write(error.format_message() + "\n")
        return BAD_INPUT
    if isinstance(error, click.Abort):
        return STOPPED
    if isinstance(error, UnexpectedEndError) and error.__cause__ is not None:
        return _answer(error.__cause__)
    if isinstance(error, UserError):
        return _fail(str(error))
    if isinstance(error, click.ClickException):
        return _fail(error.format_message().rstrip("."))
    if isinstance(error, MemoryError):
        return _fail(
            f"this does not fit in memory ({str(error) or 'it is full'}): take fewer devices, or fewer candidates "
            "with --set channel.slots=16"
        )
    theirs = place_in_user_file(error)
    if theirs is not None:
        return _fail(f"{theirs} fails with {described(error)}")
    if isinstance(error, OSError) and error.strerror:  # a full disk, a folder that may not be written
        where = f" ({error.filename})" if error.filename else ""
        return _fail(f"the system refused: {error.strerror}{where}")
    return _fault(error)


def _fail(sentence: str) -> int:
    text = plain(" ".join(sentence.split()))
    if len(text) > LONGEST:  # somebody's value of 5,000 digits
        text = f"{text[: LONGEST - 200]} … {text[-200:]}"
    with suppress(OSError):  # standard error may be full, too
        sys.stderr.write(f"d2dfl: {text}\n")
        sys.stderr.flush()
    return BAD_INPUT


def _fault(error: BaseException) -> int:
    """Our fault: keep the traceback for whoever mends it."""
    trace = "".join(traceback.format_exception(error))
    try:
        number, path = tempfile.mkstemp(prefix="d2dfl-fault-", suffix=".txt")
        with os.fdopen(number, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(f"d2dfl {__version__}: {sys.argv[1:]}\n{trace}")
        where = f"the traceback is in {path}"
    except OSError:
        sys.stderr.write(trace)
        where = "the traceback stands above"
    what = plain(described(error))
    sys.stderr.write(f"d2dfl: this is a fault of d2dfl, not yours ({what}): {where}, please report it\n")
    return FAULT


if __name__ == "__main__":
    main()
