"""The command line: a thin shell over the package. Bad input ends with one sentence and exit code 2."""

import dataclasses
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import click
import typer
import typer.core
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from d2dfl import summary
from d2dfl.cli_learn import (
    DatasetName,
    LogNames,
    ParadigmName,
    Rounds,
    SchemeName,
    compare_and_print,
    data_app,
    learning_config,
    rerun_and_print,
)
from d2dfl.cli_output import (
    as_dict,
    as_json,
    check_picture,
    console,
    draw_all,
    draw_one,
    make_folder,
    print_comparison,
    print_side_by_side,
    save_all,
)
from d2dfl.cli_report import report_command
from d2dfl.cli_reproduce import reproduce_command
from d2dfl.config import Config
from d2dfl.disk import write_whole
from d2dfl.errors import MissingExtraError, UserError
from d2dfl.methods import METHODS, Discovery, discover, method_named, warm_up
from d2dfl.network import Network
from d2dfl.network.files import load_network, save_network
from d2dfl.plugins import load_file
from d2dfl.presets import preset

# Threads that wait actively fight for busy cores: beside other work a training took more than twice as long.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
REFERENCE_LIMIT = 10_000  # candidate links up to which `discover` also looks for the best known objective

# Typer escapes brackets for rich even where rich's markup is off: plain help would say \\[default: …].
typer.core.HAS_RICH = False
app = typer.Typer(add_completion=False, no_args_is_help=True, rich_markup_mode=None, pretty_exceptions_enable=False)
app.add_typer(data_app, name="data")
app.command("report")(report_command)
app.command("reproduce")(reproduce_command)


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


Devices = Annotated[
    int | None, typer.Option(help="Number of devices.  [default: 25, 10 by paradigm]", show_default=False)
]
Partitions = Annotated[
    int | None, typer.Option(help="Number of data partitions (classes).  [default: 10]", show_default=False)
]
Labels = Annotated[
    int | None,
    typer.Option(
        "--labels-per-device",
        help="Partitions a device holds at the start.  [default: 3]",
        show_default=False,
    ),
]
TrustRule = Annotated[
    str | None,
    typer.Option(
        "--trust",
        help="random:P, block, rows:S, columns:S, full, none, or an .npy file.  [default: random:0.5]",
        show_default=False,
    ),
]
Seed = Annotated[int, typer.Option(help="Same seed, same result.", min=0)]
NetworkFile = Annotated[
    Path | None, typer.Option("--network", help="A network of your own: .npz or .json.", show_default=False)
]
Preset = Annotated[str, typer.Option("--preset", help="Set of readings: best (ours) or paper.")]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", help="section.field=value, as often as needed; see `d2dfl fields`.", show_default=False),
]
ConfigFile = Annotated[Path | None, typer.Option("--config", help="TOML file with settings.", show_default=False)]
Edges = Annotated[
    int | None, typer.Option(help="Incoming links a device may have.  [default: by preset]", show_default=False)
]
Out = Annotated[Path | None, typer.Option("--out", help="Folder for all results.", show_default=False)]


@app.command("discover")
def discover_command(
    devices: Devices = None,
    partitions: Partitions = None,
    labels: Labels = None,
    trust: TrustRule = None,
    seed: Seed = 0,
    network: NetworkFile = None,
    dataset: DatasetName = None,
    paradigm: ParadigmName = "supervised",
    method: Annotated[
        str | None,
        typer.Option(help=f"One of {', '.join(METHODS)}.  [default: by preset]", show_default=False),
    ] = None,
    edges: Edges = None,
    preset_name: Preset = "best",
    settings: Settings = None,
    config_file: ConfigFile = None,
    reference: Annotated[
        bool, typer.Option(help="Also search the best known objective, to give a share of it.")
    ] = True,
    json_file: Annotated[
        str | None,
        typer.Option("--json", help="Write the result as JSON; - for standard output.", show_default=False),
    ] = None,
    picture: Annotated[
        Path | None, typer.Option(help="Draw the graph: .png, .svg, .pdf or .html.", show_default=False)
    ] = None,
    graphml: Annotated[Path | None, typer.Option(help="Write the graph as GraphML.", show_default=False)] = None,
    out: Out = None,
) -> None:
    """Find the D2D graph of a network: who should receive datapoints from whom.

    The network is generated, or read (--network), or laid around the data of a set (--dataset, --paradigm).
    """
    config = _config(preset_name, config_file, settings, devices, partitions, labels, trust, edges, network, paradigm)
    chosen = method_named(method or config.discovery.method)
    check_picture(picture)
    if dataset is None and config.partition.paradigm == "supervised":
        net = _network(network, config, seed)
    else:
        net = _network_of_data(network, learning_config(config, dataset, None, None), seed)
    result = _run(net, config, seed, chosen.name)
    others = []
    if reference and chosen.name not in ("optimum", "none") and net.candidates.size <= REFERENCE_LIMIT:
        others.append(_run(net, config, seed, "optimum"))
    best = summary.best_known([result, *others]) if others or chosen.name == "optimum" else None
    print_side_by_side([result, *others], best)
    for sentence in summary.unlinked_sentences(net, result.graph):
        console.print(sentence, highlight=False)
    if json_file == "-":
        sys.stdout.write(as_json(result, best) + "\n")
    elif json_file is not None:
        write_whole(Path(json_file), as_json(result, best).encode())
    if picture is not None:
        draw_one(result, picture)
    if graphml is not None:
        write_whole(graphml, result.graph.to_graphml(net).encode())
    if out is not None:
        save_all(result, best, out)


@app.command("compare-graphs")
def compare_graphs(
    devices: Devices = None,
    partitions: Partitions = None,
    labels: Labels = None,
    trust: TrustRule = None,
    seed: Seed = 0,
    network: NetworkFile = None,
    methods: Annotated[str, typer.Option(help="Methods, separated by commas, or all.")] = "all",
    edges: Edges = None,
    preset_name: Preset = "best",
    settings: Settings = None,
    config_file: ConfigFile = None,
    json_file: Annotated[
        str | None,
        typer.Option("--json", help="Write the comparison as JSON; - for standard output.", show_default=False),
    ] = None,
    picture: Annotated[
        Path | None,
        typer.Option(help="Draw all graphs in one row: .png, .svg, .pdf or .html.", show_default=False),
    ] = None,
    out: Out = None,
) -> None:
    """Put methods side by side on the same network."""
    config = _config(preset_name, config_file, settings, devices, partitions, labels, trust, edges, network)
    names = list(METHODS) if methods == "all" else [method_named(name.strip()).name for name in methods.split(",")]
    check_picture(picture)
    net = _network(network, config, seed)
    results = []
    for name in names:
        try:
            results.append(_run(net, config, seed, name))
        except MissingExtraError as error:
            if methods != "all":
                raise
            console.print(f"left out: {error}", highlight=False)
    best = summary.best_known(results)
    print_comparison(results, best)
    content = json.dumps([as_dict(item, best) for item in results], allow_nan=False)
    if json_file == "-":
        sys.stdout.write(content + "\n")
    elif json_file is not None:
        write_whole(Path(json_file), content.encode())
    if picture is not None:
        draw_all(results, picture)
    if out is not None:
        make_folder(out)
        write_whole(out / "comparison.json", content.encode())
        save_network(net, out / "network.npz")
        for suffix in ("png", "html"):
            draw_all(results, out / f"graphs.{suffix}")
        console.print(f"results: {out}", highlight=False, soft_wrap=True)


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
    config = _config(preset_name, config_file, settings, devices, None, None, trust, edges, None, paradigm)
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
    config = _config(preset_name, config_file, settings, devices, None, None, trust, edges, None, paradigm)
    config = learning_config(config, dataset, scheme, rounds)
    compare_and_print(config, methods, list(range(seeds)), out, resume, console, log)


@app.command("network")
def network_command(
    save: Annotated[Path, typer.Option(help="File to write: .npz or .json.", show_default=False)],
    devices: Devices = None,
    partitions: Partitions = None,
    labels: Labels = None,
    trust: TrustRule = None,
    seed: Seed = 0,
    preset_name: Preset = "best",
    settings: Settings = None,
    config_file: ConfigFile = None,
) -> None:
    """Generate a network and save it, as a start for one's own."""
    config = _config(preset_name, config_file, settings, devices, partitions, labels, trust, None, None)
    net = Network.generate(config, seed)
    save_network(net, save)
    clusters = len(net.budget)
    console.print(
        f"{save}: {net.devices} devices, {net.partitions} partitions, {clusters} reliable clusters",
        highlight=False,
        soft_wrap=True,
    )


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


def _config(
    name: str,
    file: Path | None,
    settings: list[str] | None,
    devices: int | None,
    partitions: int | None,
    labels: int | None,
    trust: str | None,
    edges: int | None,
    network: Path | None,
    paradigm: str = "supervised",
) -> Config:
    """Preset and paradigm, then file, then --set, then named options: the later wins."""
    config = preset(name, paradigm)
    if file is not None:
        try:
            config = config.with_toml(file.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError):
            raise UserError(f"cannot read {str(file)!r}: give a TOML file") from None
    config = config.with_texts(settings or [])
    generated = {"devices": devices, "partitions": partitions, "labels_per_device": labels, "trust": trust}
    given = {f"network.{field}": value for field, value in generated.items() if value is not None}
    if network is not None and given:
        option = next(iter(given)).removeprefix("network.").replace("_", "-")
        raise UserError(f"--{option} describes a generated network and --network reads one: give only one of them")
    if edges is not None:
        given["discovery.edges"] = edges
    return config.with_(**given)


def _network(file: Path | None, config: Config, seed: int) -> Network:
    return Network.generate(config, seed) if file is None else load_network(file, config.channel)


def _network_of_data(file: Path | None, config: Config, seed: int) -> Network:
    """The network around a dataset's datapoints; imports PyTorch, which takes seconds."""
    from d2dfl.simulate import data_set, setting_of

    if file is not None:
        raise UserError("--network reads a network and --dataset or --paradigm makes one: give only one of them")
    return setting_of(config, seed, data_set(config, seed=0)).told


@contextmanager
def _bar(label: str) -> Iterator[Any]:
    """A progress bar on a terminal; silent elsewhere."""
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(label, total=1.0)
        yield lambda share: progress.update(task, completed=share)


def _run(network: Network, config: Config, seed: int, name: str) -> Discovery:
    with console.status(f"preparing {name} (compiles once per installation)"):
        warm_up(name, config)
    with _bar(METHODS[name].title) as report:
        return discover(network, config, seed=seed, method=name, progress=report)


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
