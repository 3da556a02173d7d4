"""What the commands about graphs do: discover, compare-graphs, network."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from d2dfl.cli.discoveries import print_comparison, print_side_by_side
from d2dfl.cli.output import announce, bar, check_outputs, check_picture, console, say, say_results
from d2dfl.compiled import COMPILING, telling
from d2dfl.config import Config
from d2dfl.discovery.discover import discover, warm_up
from d2dfl.discovery.methods import METHODS, Method, method_named, methods_listed, reference_method
from d2dfl.discovery.needs import discovery_seconds
from d2dfl.errors import UserError
from d2dfl.experiment import summary
from d2dfl.experiment.graphs import as_dict, compare_graphs, draw_discovery, save_discovery
from d2dfl.experiment.mark import Plan
from d2dfl.experiment.store import run_folder
from d2dfl.network import Network
from d2dfl.network.files import check_network_name, check_replaceable, load_network, save_network
from d2dfl.progress import Share
from d2dfl.storage import write_whole

if TYPE_CHECKING:
    from d2dfl.cli.commands.graphs import Discover, Files
    from d2dfl.cli.commands.options import Generated, Graphs


def discover_and_print(
    options: "Discover", files: "Files", method: str | None, reference: bool, graphml: Path | None
) -> None:
    """Find a graph, print what it is worth, write what was asked for."""
    config, picture, out = options.config(), files.picture, options.out
    chosen = method_named(method or config.discovery.method)
    check_picture(picture)
    check_outputs(files.json_file, picture, graphml, inputs=inputs_of(config, options.network, options.config_file))
    plan = Plan("graph", config.to_toml(), {"method": chosen.name, "seed": options.seed})
    with run_folder(out, plan) if out else nullcontext():
        network = _network_for(config, options)
        methods = [chosen, reference_method()] if reference and not chosen.reference else [chosen]
        results = []
        for one in methods:
            with _watched(one, network, config) as progress:
                results.append(discover(network, config, seed=options.seed, method=one.name, progress=progress))
        best = summary.best_known(results) if methods[-1].reference else None
        print_side_by_side(results, best)
        if best is not None:
            console.print(f"{reference_method().name} raises the objective alone: other rows may be better without it")
        result = results[0]
        for sentence in summary.unlinked_sentences(network, result.graph, config.channel):
            console.print(sentence)
        _write_json(json.dumps(as_dict(result, best), allow_nan=False), files.json_file)
        if picture is not None:
            draw_discovery(result, picture)
            say(f"wrote {picture}")
        if graphml is not None:
            result.graph.to_graphml(result.network, graphml)
            say(f"wrote {graphml}")
        if out is not None:
            save_discovery(result, best, out)
            say_results(out)


def compare_graphs_and_print(options: "Graphs", files: "Files", methods: str) -> None:
    """Find the graphs of several methods, print them side by side, write what was asked for."""
    config, picture, out = options.config(), files.picture, options.out
    chosen = list(METHODS.values()) if methods == "all" else [METHODS[name] for name in methods_listed(methods)]
    check_picture(picture)
    check_outputs(files.json_file, picture, inputs=inputs_of(config, options.network, options.config_file))
    network = _network(options.network, config, options.seed)
    watch = partial(_watched, network=network, config=config)
    result = compare_graphs(network, config, chosen, options.seed, out, skip=methods == "all", watch=watch)
    for reason in result.left_out:
        say(f"left out: {reason}")
    print_comparison(result.discoveries, result.best)
    _write_json(result.to_json(), files.json_file)
    if picture is not None:
        result.draw(picture)
        say(f"wrote {picture}")
    if out is not None:
        say_results(out)


def _write_json(content: str, file: str | None) -> None:
    if file == "-":
        sys.stdout.write(content + "\n")
    elif file is not None:
        write_whole(Path(file), content.encode())
        say(f"wrote {file}")


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
    return [*files, config.channel.file, config.channel.trace, config.network.trust]


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


@contextmanager
def _watched(method: Method, network: Network, config: Config) -> Iterator[Share]:
    """What a user sees of a discovery: how long it will take, that it is compiled, a bar."""
    announce(method.title, discovery_seconds(method.name, config, network.shape))
    line = COMPILING % method.name
    # A terminal shows the status instead.
    with (
        console.status(f"preparing {method.name} (compiles once per installation)"),
        telling(lambda: None if console.is_terminal else say(line)),
    ):
        warm_up(method.name, config, clustered=network.centroids is not None)
    with bar(method.title) as tell:
        yield lambda share: tell(completed=share)
