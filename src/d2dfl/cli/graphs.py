"""What the commands about graphs do: discover, compare-graphs, network."""

import json
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from d2dfl.cli.discoveries import as_dict, as_json, draw_all, draw_one, print_comparison, print_side_by_side, save_all
from d2dfl.cli.output import announce, bar, check_outputs, check_picture, console, say, say_results
from d2dfl.compiled import COMPILING, telling
from d2dfl.config import Config
from d2dfl.discovery.discover import Discovery, discover, warm_up
from d2dfl.discovery.methods import METHODS, Method, method_named, methods_listed, reference_method
from d2dfl.discovery.needs import discovery_seconds
from d2dfl.errors import MissingExtraError, UserError
from d2dfl.experiment import summary
from d2dfl.experiment.store import Plan, run_folder
from d2dfl.network import Network
from d2dfl.network.files import check_network_name, check_replaceable, load_network, save_network
from d2dfl.storage import write_whole

if TYPE_CHECKING:
    from d2dfl.cli.commands.graphs import Discover, Files
    from d2dfl.cli.commands.options import Generated, Graphs


def discover_and_print(
    options: "Discover", files: "Files", method: str | None, reference: bool, graphml: Path | None
) -> None:
    """Find a graph, print what it is worth, write what was asked for."""
    config, json_file, picture, out = options.config(), files.json_file, files.picture, options.out
    chosen = method_named(method or config.discovery.method)
    check_picture(picture)
    check_outputs(json_file, picture, graphml, inputs=inputs_of(config, options.network, options.config_file))
    plan = Plan("graph", config.to_toml(), {"method": chosen.name, "seed": options.seed})
    with run_folder(out, plan) if out else nullcontext():
        result, best = _discovered(config, chosen, options, reference)
        if json_file == "-":
            sys.stdout.write(as_json(result, best) + "\n")
        elif json_file is not None:
            write_whole(Path(json_file), as_json(result, best).encode())
            say(f"wrote {json_file}")
        if picture is not None:
            draw_one(result, picture)
            say(f"wrote {picture}")
        if graphml is not None:
            result.graph.to_graphml(result.network, graphml)
            say(f"wrote {graphml}")
        if out is not None:
            save_all(result, best, out)


def _discovered(config: Config, method: Method, options: "Discover", reference: bool) -> tuple[Discovery, float | None]:
    """Find and print the graph, and the best known objective where it was asked for."""
    net = _network_for(config, options)
    result = _run(net, config, options.seed, method)
    others = []
    if reference and not method.reference:
        others.append(_run(net, config, options.seed, reference_method()))
    best = summary.best_known([result, *others]) if others or method.reference else None
    print_side_by_side([result, *others], best)
    if best is not None:
        console.print(f"{reference_method().name} raises the objective alone: other rows may be better without it")
    for sentence in summary.unlinked_sentences(net, result.graph, config.channel):
        console.print(sentence)
    return result, best


def compare_graphs_and_print(options: "Graphs", files: "Files", methods: str) -> None:
    """Find the graphs of several methods, print them side by side, write what was asked for."""
    config, json_file, picture, out = options.config(), files.json_file, files.picture, options.out
    chosen = list(METHODS.values()) if methods == "all" else [METHODS[name] for name in methods_listed(methods)]
    check_picture(picture)
    check_outputs(json_file, picture, inputs=inputs_of(config, options.network, options.config_file))
    plan = Plan("graphs", config.to_toml(), {"methods": [method.name for method in chosen], "seed": options.seed})
    with run_folder(out, plan) if out else nullcontext():
        results, best = _compared(config, chosen, options, skip=methods == "all")
        content = json.dumps([as_dict(item, best) for item in results], allow_nan=False)
        if json_file == "-":
            sys.stdout.write(content + "\n")
        elif json_file is not None:
            write_whole(Path(json_file), content.encode())
            say(f"wrote {json_file}")
        if picture is not None:
            draw_all(results, picture)
            say(f"wrote {picture}")
        if out is not None:
            write_whole(out / "comparison.json", content.encode())
            save_network(results[0].network, out / "network.npz")
            for suffix in ("png", "html"):
                draw_all(results, out / f"graphs.{suffix}")
            summary.keep(results, best, out)
            say_results(out)


def _compared(config: Config, methods: list[Method], options: "Graphs", skip: bool) -> tuple[list[Discovery], float]:
    """Find and print the graphs of all methods; `skip`: leave out those that lack their package."""
    net = _network(options.network, config, options.seed)
    results = []
    for method in methods:
        try:
            results.append(_run(net, config, options.seed, method))
        except MissingExtraError as error:
            if not skip:
                raise
            say(f"left out: {error}")
    best = summary.best_known(results)
    print_comparison(results, best)
    return results, best


def save_generated(options: "Generated", save: Path) -> None:
    """Generate a network and write it."""
    config = options.config()
    check_network_name(save)
    check_outputs(save, inputs=inputs_of(config, options.config_file))
    check_replaceable(save)
    net = Network.generate(config, options.seed)
    save_network(net, save)
    say(f"{save}: {net.devices} devices, {net.partitions} partitions, {len(net.budget)} reliable clusters")


def inputs_of(config: Config, *files: Path | None) -> list[Path | str | None]:
    """Files that a command reads."""
    return [*files, config.channel.file, config.network.trust]


def _network(file: Path | None, config: Config, seed: int) -> Network:
    return Network.generate(config, seed) if file is None else load_network(file, config.channel)


def _network_for(config: Config, options: "Discover") -> Network:
    """The network that is read or generated, or the one around a dataset's datapoints, which takes PyTorch seconds."""
    if options.dataset is None and config.partition.paradigm == "supervised":
        return _network(options.network, config, options.seed)
    from d2dfl.experiment.inputs import data_set
    from d2dfl.experiment.setting import setting_of

    if options.network is not None:
        raise UserError("--network reads a network and --dataset or --paradigm makes one: give only one of them")
    return setting_of(config, options.seed, data_set(config, seed=0)).reported_network


def _run(network: Network, config: Config, seed: int, method: Method) -> Discovery:
    announce(method.title, discovery_seconds(method.name, config, network.shape))
    line = COMPILING % method.name
    # A terminal shows the status instead.
    with (
        console.status(f"preparing {method.name} (compiles once per installation)"),
        telling(lambda: None if console.is_terminal else say(line)),
    ):
        warm_up(method.name, config, clustered=network.centroids is not None)
    with bar(method.title) as tell:
        return discover(network, config, seed=seed, method=method.name, progress=lambda share: tell(completed=share))
