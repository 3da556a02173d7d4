"""The command line: a thin shell over the package. Bad input ends with one sentence and exit code 2."""

import dataclasses
import os
import sys
from pathlib import Path
from typing import Annotated

import click
import typer
import typer.core
from rich.console import Console
from rich.table import Table

from d2dfl.cli_graphs import compare_graphs_command, discover_command, network_command
from d2dfl.cli_learn import compare_and_print, data_app, learning_config, rerun_and_print
from d2dfl.cli_options import (
    ConfigFile,
    DatasetName,
    Devices,
    Edges,
    LogNames,
    ParadigmName,
    Preset,
    Rounds,
    SchemeName,
    Seed,
    Settings,
    TrustRule,
    config_of,
)
from d2dfl.cli_output import console
from d2dfl.cli_report import report_command
from d2dfl.cli_reproduce import reproduce_command
from d2dfl.errors import UserError
from d2dfl.methods import METHODS, method_named
from d2dfl.plugins import load_file
from d2dfl.presets import preset

# Threads that wait actively fight for busy cores: beside other work a training took more than twice as long.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

# Typer escapes brackets for rich even where rich's markup is off: plain help would say \\[default: …].
typer.core.HAS_RICH = False
app = typer.Typer(add_completion=False, no_args_is_help=True, rich_markup_mode=None, pretty_exceptions_enable=False)
app.command("discover")(discover_command)
app.command("compare-graphs")(compare_graphs_command)


@app.callback()
def prepare_plugins(
    plugin: Annotated[
        list[Path] | None,
        typer.Option(
            "--plugin", help="Python file that registers datasets, models, schemes or methods.", show_default=False
        ),
    ] = None,
) -> None:
    """Who should receive datapoints from whom, before federated learning starts."""
    for path in plugin or []:
        load_file(path)


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
    out: Annotated[Path, typer.Option("--out", help="Run folder.")] = Path("runs/run"),
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
        rerun_and_print(again, out, resume, console, log)
        return
    config = config_of(preset_name, config_file, settings, devices, None, None, trust, edges, None, paradigm)
    config = learning_config(config, dataset, scheme, rounds)
    chosen = method_named(method or config.discovery.method).name
    compare_and_print(config, chosen, [seed], out, resume, console, log)


@app.command("compare")
def compare_command(
    methods: Annotated[
        str, typer.Option(help="Methods, separated by commas, or all (ours, the paper's and its baselines).")
    ] = "all",
    seeds: Annotated[int, typer.Option(help="Number of seeds.", min=1)] = 3,
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
    out: Annotated[Path, typer.Option("--out", help="Run folder.")] = Path("runs/compare"),
    resume: Annotated[bool, typer.Option("--resume", help="Go on where a cut run stopped.")] = False,
    log: LogNames = None,
) -> None:
    """All methods side by side on the same data, over several seeds: accuracy, datapoints, joules, gap closed."""
    config = config_of(preset_name, config_file, settings, devices, None, None, trust, edges, None, paradigm)
    config = learning_config(config, dataset, scheme, rounds)
    compare_and_print(config, methods, list(range(seeds)), out, resume, console, log)


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
    Console().print(table)


@app.command("fields")
def fields_command(preset_name: Preset = "best") -> None:
    """List every setting with its value in a preset."""
    table = Table("setting", "value", "what it is")
    config = preset(preset_name)
    for section in dataclasses.fields(config):
        part = getattr(config, section.name)
        for field in dataclasses.fields(part):
            table.add_row(f"{section.name}.{field.name}", str(getattr(part, field.name)), field.metadata["help"])
    Console().print(table)


def main() -> None:
    """Entry point: any bad input ends with one sentence and exit code 2."""
    try:
        # Without standalone mode, usage errors arrive here as exceptions and `--help` returns.
        code = app(standalone_mode=False)
        sys.exit(code if isinstance(code, int) else 0)
    except UserError as error:
        _fail(str(error))
    except click.exceptions.NoArgsIsHelpError as error:
        sys.stdout.write(error.format_message() + "\n")
        sys.exit(2)
    except click.ClickException as error:
        _fail(error.format_message().rstrip("."))
    except click.Abort:
        sys.exit(130)
    except OSError as error:  # a full disk, a folder that may not be written
        where = f" ({error.filename})" if error.filename else ""
        _fail(f"the system refused: {error.strerror or error}{where}")
    except MemoryError as error:
        _fail(
            f"this network does not fit in memory ({error}): take fewer devices, or fewer slots with --set channel.slots=64"
        )


def _fail(sentence: str) -> None:
    sys.stderr.write(f"d2dfl: {sentence}\n")
    sys.exit(2)


if __name__ == "__main__":
    main()
