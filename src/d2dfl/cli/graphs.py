"""Commands about graphs: discover, compare-graphs, network."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from d2dfl.cli import summary
from d2dfl.cli.learn import learning_config
from d2dfl.cli.options import (
    ConfigFile,
    DatasetName,
    Devices,
    Edges,
    Labels,
    NetworkFile,
    Out,
    ParadigmName,
    Partitions,
    Preset,
    Seed,
    Settings,
    TrustRule,
    config_of,
)
from d2dfl.cli.output import (
    announce,
    as_dict,
    as_json,
    check_outputs,
    check_picture,
    console,
    draw_all,
    draw_one,
    print_comparison,
    print_side_by_side,
    save_all,
    say,
)
from d2dfl.compiled import telling
from d2dfl.config import Config
from d2dfl.discovery.discover import METHODS, Discovery, discover, method_named, methods_listed, warm_up
from d2dfl.errors import MissingExtraError, UserError
from d2dfl.experiment.store import Plan, run_folder
from d2dfl.needs import discovery_seconds
from d2dfl.network import Network
from d2dfl.network.files import check_network_name, load_network, save_network
from d2dfl.storage import write_whole

REFERENCE_LIMIT = 10_000  # candidate links up to which `discover` also looks for the best known objective


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
    config = config_of(preset_name, config_file, settings, devices, partitions, labels, trust, edges, network, paradigm)
    chosen = method_named(method or config.discovery.method)
    check_picture(picture)
    check_outputs(json_file, picture, graphml, inputs=inputs_of(config, network, config_file))
    plan = Plan("graph", config.to_toml(), {"method": chosen.name, "seed": seed})
    with run_folder(out, plan) if out else nullcontext():
        result, best = _discovered(config, chosen.name, seed, network, dataset, reference)
        if json_file == "-":
            sys.stdout.write(as_json(result, best) + "\n")
        elif json_file is not None:
            write_whole(Path(json_file), as_json(result, best).encode())
        if picture is not None:
            draw_one(result, picture)
        if graphml is not None:
            write_whole(graphml, result.graph.to_graphml(result.network).encode())
        if out is not None:
            save_all(result, best, out)


def _discovered(
    config: Config, method: str, seed: int, network: Path | None, dataset: str | None, reference: bool
) -> tuple[Discovery, float | None]:
    """Find and print the graph, and the best known objective where it was asked for."""
    if dataset is None and config.partition.paradigm == "supervised":
        net = _network(network, config, seed)
    else:
        net = _network_of_data(network, learning_config(config, dataset, None, None), seed)
    result = _run(net, config, seed, method)
    others = []
    if reference and method not in ("optimum", "none") and net.candidates.size <= REFERENCE_LIMIT:
        others.append(_run(net, config, seed, "optimum"))
    best = summary.best_known([result, *others]) if others or method == "optimum" else None
    print_side_by_side([result, *others], best)
    for sentence in summary.unlinked_sentences(net, result.graph):
        console.print(sentence)
    return result, best


def compare_graphs_command(
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
    config = config_of(preset_name, config_file, settings, devices, partitions, labels, trust, edges, network)
    names = list(METHODS) if methods == "all" else methods_listed(methods)
    check_picture(picture)
    check_outputs(json_file, picture, inputs=inputs_of(config, network, config_file))
    plan = Plan("graphs", config.to_toml(), {"methods": names, "seed": seed})
    with run_folder(out, plan) if out else nullcontext():
        results, best = _compared(config, names, seed, network, skip=methods == "all")
        content = json.dumps([as_dict(item, best) for item in results], allow_nan=False)
        if json_file == "-":
            sys.stdout.write(content + "\n")
        elif json_file is not None:
            write_whole(Path(json_file), content.encode())
        if picture is not None:
            draw_all(results, picture)
        if out is not None:
            write_whole(out / "comparison.json", content.encode())
            save_network(results[0].network, out / "network.npz")
            for suffix in ("png", "html"):
                draw_all(results, out / f"graphs.{suffix}")
            say(f"results: {out}")


def _compared(
    config: Config, names: list[str], seed: int, network: Path | None, skip: bool
) -> tuple[list[Discovery], float]:
    """Find and print the graphs of all methods; `skip`: leave out those that lack their package."""
    net = _network(network, config, seed)
    results = []
    for name in names:
        try:
            results.append(_run(net, config, seed, name))
        except MissingExtraError as error:
            if not skip:
                raise
            say(f"left out: {error}")
    best = summary.best_known(results)
    print_comparison(results, best)
    return results, best


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
    config = config_of(preset_name, config_file, settings, devices, partitions, labels, trust, None, None)
    check_network_name(save)
    check_outputs(save, inputs=inputs_of(config, None, config_file))
    net = Network.generate(config, seed)
    save_network(net, save)
    say(f"{save}: {net.devices} devices, {net.partitions} partitions, {len(net.budget)} reliable clusters")


def inputs_of(config: Config, *files: Path | None) -> list[Path | str | None]:
    """Files that a command reads."""
    return [*files, config.channel.file, config.network.trust]


def _network(file: Path | None, config: Config, seed: int) -> Network:
    return Network.generate(config, seed) if file is None else load_network(file, config.channel)


def _network_of_data(file: Path | None, config: Config, seed: int) -> Network:
    """The network around a dataset's datapoints; imports PyTorch, which takes seconds."""
    from d2dfl.experiment.setting import data_set, setting_of

    if file is not None:
        raise UserError("--network reads a network and --dataset or --paradigm makes one: give only one of them")
    return setting_of(config, seed, data_set(config, seed=0)).reported_network


@contextmanager
def _bar(label: str) -> Iterator[Any]:
    """A progress bar on a terminal; silent elsewhere."""
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(label, total=1.0)
        yield lambda share: progress.update(task, completed=share)


def _run(network: Network, config: Config, seed: int, name: str) -> Discovery:
    announce(METHODS[name].title, discovery_seconds(name, config, network.shape))
    line = f"compiling {name}: about 20 s of work, once per installation"
    # A terminal shows the status instead.
    with (
        console.status(f"preparing {name} (compiles once per installation)"),
        telling(lambda: None if console.is_terminal else say(line)),
    ):
        warm_up(name, config, clustered=network.centroids is not None)
    with _bar(METHODS[name].title) as report:
        return discover(network, config, seed=seed, method=name, progress=report)
