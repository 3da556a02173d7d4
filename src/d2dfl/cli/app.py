"""The command line put together, and how it ends: bad input with one sentence and exit code 2."""

import os
import sys
import warnings
from contextlib import suppress
from difflib import get_close_matches
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import click
import typer
import typer.core

from d2dfl import __version__
from d2dfl.cli.commands import graphs, learn, lists, results
from d2dfl.cli.commands.command import Plugins, command, load_plugins, swallowed
from d2dfl.cli.commands.data import data_app
from d2dfl.cli.commands.fleet import fleet_app
from d2dfl.cli.commands.peer import peer_app
from d2dfl.errors import UserError, described
from d2dfl.terminal import plain, speakable

BAD_INPUT, FAULT, STOPPED = 2, 3, 130  # exit codes
LONGEST = 800  # characters of a sentence
NAME = "d2dfl"
PACKAGE = Path(__file__).parents[1]
AS_USUAL = warnings.formatwarning
COMPLETE = "_D2DFL_COMPLETE"  # what a shell sets when it asks how a line could go on

# Threads that wait actively fight for busy cores: beside other work a training took more than twice as long.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
# NumPy's do so for 2^28 ticks of the clock from when it is loaded: a tenth of a second of every short command. 2^20 will do.
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "20")

# Typer escapes brackets for rich even where rich's markup is off: plain help would say \\[default: …].
typer.core.HAS_RICH = False


class EndedError(Exception):
    """The end of a command before its time, as its cause says: a stop, or the end of a file or of the program."""


class Commands(typer.core.TyperGroup):
    """The commands. click would take the end of a file for a user's wish to stop, and Typer ends at a stop in silence."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            result = super().invoke(ctx)
        except (EOFError, SystemExit, KeyboardInterrupt) as error:
            raise EndedError from error
        _say_what_was_not_kept()
        return result


def _say_what_was_not_kept() -> None:
    """Say that code was compiled that could not be kept for the next time, where that is so."""
    if "d2dfl.compiled" in sys.modules:
        from d2dfl.compiled import not_kept

        line = not_kept()
        if line is not None:
            sys.stderr.write(f"{line}\n")


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("discover")(command(graphs.discover))
app.command("compare-graphs")(command(graphs.compare_graphs))
app.command("run")(command(learn.run))
app.command("compare")(command(learn.compare))
app.add_typer(data_app, name="data")
app.command("reproduce")(command(results.reproduce))
app.command("report")(command(results.report))
app.command("replay")(command(results.replay))
app.add_typer(peer_app, name="peer")
app.add_typer(fleet_app, name="fleet")
app.command("network")(command(graphs.network))
app.command("methods")(command(lists.methods))
app.command("fields")(command(lists.fields))


def _version(asked: bool) -> None:
    if asked:
        sys.stdout.write(f"{NAME} {__version__}\n")
        raise typer.Exit


@app.callback()
def begin(
    plugin: Plugins = None,
    version: Annotated[
        bool, typer.Option("--version", help="Say the version and end.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Who should receive datapoints from whom, before federated learning starts."""
    load_plugins(plugin or [])


def _noted(message: Warning | str, category: type[Warning], filename: str, lineno: int, line: str | None = None) -> str:
    """A warning of ours as a sentence; others as Python shows them."""
    if Path(filename).is_relative_to(PACKAGE):
        return f"{NAME}: {plain(str(message))}\n"
    return AS_USUAL(message, category, filename, lineno, line)


def main() -> None:
    """Entry point. 0: done; 1: a reproduction misses cells; 2: bad input; 3: a fault of ours; 130: stopped."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # it was closed, as by >&-
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115  # open until the process ends
    speakable(sys.stdout)
    speakable(sys.stderr)
    # Pictures are files here; a notebook tells its children a backend that they may lack.
    os.environ["MPLBACKEND"] = "agg"
    warnings.formatwarning = _noted
    if COMPLETE in os.environ:
        app(prog_name=NAME)  # click answers the shell, and ends
    try:
        # Without standalone mode, usage errors arrive here as exceptions and `--help` returns.
        code = app(prog_name=NAME, standalone_mode=False)
        sys.stdout.flush()
    except BaseException as error:
        if _seen_enough(error):
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            code = 0
        elif isinstance(error, SystemExit):  # of options that install completion: commands end with an EndedError
            code = error.code
        else:
            code = _answer(error)
    sys.exit(code if isinstance(code, int) else 0)


def _seen_enough(error: BaseException | None) -> bool:
    """Whether the reader of our output has closed it, as in `d2dfl methods | head -1`: rich and click then end the program."""
    while isinstance(error, EndedError | SystemExit):
        error = error.__cause__ or error.__context__
    return isinstance(error, BrokenPipeError)


def _answer(error: BaseException) -> int:
    """Say in one sentence what went wrong, and give the exit code."""
    asked_nothing = getattr(click.exceptions, "NoArgsIsHelpError", ())  # older versions of click have none
    if isinstance(error, click.ClickException) and isinstance(error, asked_nothing):
        sys.stdout.write(f"{error.format_message()}\n")
        return BAD_INPUT
    if isinstance(error, click.Abort | KeyboardInterrupt):
        return _stopped(error)
    if isinstance(error, EndedError) and error.__cause__ is not None:
        return _answer(error.__cause__)
    if isinstance(error, UserError):
        return _fail(str(error))
    if isinstance(error, click.NoSuchOption):
        return _fail(_unknown(error))
    if isinstance(error, click.ClickException):
        return _fail(_usage(error))
    if isinstance(error, MemoryError):
        return _fail(
            f"this does not fit in memory ({str(error) or 'it is full'}): take fewer devices, or fewer candidates "
            "with --set channel.slots=16"
        )
    from d2dfl.plugins import place_in_user_file

    theirs = place_in_user_file(error)
    if theirs is not None:
        return _fail(f"{theirs} fails with {described(error)}")
    if isinstance(error, OSError) and error.strerror:  # a full disk, a folder that may not be written
        where = f" ({error.filename})" if error.filename else ""
        return _fail(f"the system refused: {error.strerror}{where}")
    return _fault(error)


def _usage(error: click.ClickException) -> str:
    """What click says, or the reason behind it: `--json --devices 5` leaves a 5 over, for --json took the option after it."""
    context = getattr(error, "ctx", None)
    options = [one for one in context.command.params if isinstance(one, click.Option)] if context else []
    names = {name for one in options for name in one.opts}
    valued = {name for one in options if not one.is_flag for name in one.opts}
    for word, after in pairwise(sys.argv[1:]):
        if word in valued and after in names:
            return swallowed(after)
    return error.format_message().rstrip(".")


def _unknown(error: click.NoSuchOption) -> str:
    """An option that is not there, and those that are spelled nearly so, the nearest first."""
    if error.option_name == "--seeds" and "--seed" in (error.possibilities or []):
        return "there is no option --seeds: this command takes one --seed; compare takes several seeds"
    near = get_close_matches(error.option_name, error.possibilities or [], n=2, cutoff=0.75)
    return f"there is no option {error.option_name}{': did you mean ' + ' or '.join(near) + '?' if near else ''}"


def _stopped(stop: BaseException) -> int:
    """Say what was kept, which the command wrote into the stop where there is anything."""
    kept = str(stop) if isinstance(stop, KeyboardInterrupt) else ""
    _write(f"stopped; {kept or 'nothing was kept'}")
    return STOPPED


def _fail(sentence: str) -> int:
    text = " ".join(sentence.split())
    if len(text) > LONGEST:  # somebody's value of 5,000 digits
        text = f"{text[: LONGEST - 200]} … {text[-200:]}"
    _write(text)
    return BAD_INPUT


def _write(sentence: str) -> None:
    with suppress(OSError):  # standard error may be full, too
        sys.stderr.write(f"{NAME}: {plain(sentence)}\n")
        sys.stderr.flush()


def _fault(error: BaseException) -> int:
    """Our fault: keep the traceback for whoever mends it."""
    import tempfile
    import traceback

    trace = "".join(traceback.format_exception(error))
    try:
        number, path = tempfile.mkstemp(prefix="d2dfl-fault-", suffix=".txt")
        with os.fdopen(number, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(f"{NAME} {__version__}: {sys.argv[1:]}\n{trace}")
        where = f"the traceback is in {path}"
    except OSError:
        sys.stderr.write(trace)
        where = "the traceback stands above"
    what = plain(described(error))
    sys.stderr.write(f"{NAME}: this is a fault of d2dfl, not yours ({what}): {where}, please report it\n")
    return FAULT


if __name__ == "__main__":
    main()
