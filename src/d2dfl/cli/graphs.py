"""What the commands about graphs do: discover, compare-graphs, network."""

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from d2dfl.cli.discoveries import print_comparison, print_side_by_side
from d2dfl.cli.output import announce, bar, check_outputs, check_picture, console, say, say_results
from d2dfl.compiled import COMPILING, telling
from d2dfl.config import Config
from d2dfl.config.sections.learning import SUPERVISED
from d2dfl.discovery.discover import Discovery, discover, warm_up
from d2dfl.discovery.methods import ALL, METHODS, Method, method_named, methods_listed, reference_method
from d2dfl.discovery.needs import discovery_seconds
from d2dfl.discovery.trace import Trace
from d2dfl.errors import UserError
from d2dfl.experiment.findings import summary
from d2dfl.experiment.folder.mark import RunPlan
from d2dfl.experiment.folder.store import run_folder
from d2dfl.experiment.folder.traces import traced
from d2dfl.experiment.graphs import as_dict, compare_graphs, draw_discovery, save_discovery
from d2dfl.network import Network
from d2dfl.network.files import check_network_name, check_replaceable, load_network, save_network
from d2dfl.progress import Share
from d2dfl.storage import write_whole

if TYPE_CHECKING:
    from d2dfl.cli.commands.graphs import Discover, Files
    from d2dfl.cli.commands.options import Generated, Graphs
    from d2dfl.cli.commands.watching import Watching
    from d2dfl.cli.live.session import LiveSession


def discover_and_print(
    options: "Discover",
    files: "Files",
    watching: "Watching",
    method: str | None,
    reference: bool,
    graphml: Path | None,
) -> None:
    """Find a graph, print what it is worth, write what was asked for."""
    config, picture, out = options.config(), files.picture, options.out
    chosen = method_named(config.discovery.method if method is None else method)
    check_picture(picture)
    check_outputs(files.json_file, picture, graphml, inputs=inputs_of(config, options.network, options.config_file))
    plan = RunPlan("graph", config.to_toml(), {"method": chosen.name, "seed": options.seed})
    with run_folder(out, plan) if out else nullcontext(), _live(watching) as session:
        network = _network_for(config, options)
        methods = [chosen, reference_method()] if reference and not chosen.reference else [chosen]
        trace = _trace(session) if traced(network.devices) and (session or out) else None
        results: list[Discovery] = []
        for one in methods:
            with _watched(one, network, config, session) as progress:
                heard = None if results else trace
                found = discover(network, config, seed=options.seed, method=one.name, progress=progress, trace=heard)
                results.append(found)
        best = summary.best_known(results) if methods[-1].reference else None
        if session:
            _show(session, results, trace)
        print_side_by_side(results, best)
        if best is not None:
            console.print(f"{reference_method().name} raises the objective alone: other rows may be better without it")
        for sentence in summary.unlinked_sentences(network, results[0].graph, config.channel):
            console.print(sentence)
        _write_found(results[0], best, files, graphml)
        if out is not None:
            save_discovery(results[0], best, out, trace)
            say_results(out)
        if session:
            session.finish(out)


def _write_found(result: Discovery, best: float | None, files: "Files", graphml: Path | None) -> None:
    """The files that were named."""
    _write_json(json.dumps(as_dict(result, best), allow_nan=False), files.json_file)
    if files.picture is not None:
        draw_discovery(result, files.picture)
        say(f"wrote {files.picture}")
    if graphml is not None:
        result.graph.to_graphml(result.network, graphml)
        say(f"wrote {graphml}")


def _trace(session: "LiveSession | None") -> Trace:
    """Hears how a discovery goes; so does the page, where there is one."""
    trace = Trace(lambda: session.view.negotiate(trace) if session else None)
    return trace


def _show(session: "LiveSession", results: Sequence[Discovery], trace: Trace | None) -> None:
    """What came out, on the page."""
    from d2dfl.live.views import put_findings

    if trace is not None:
        session.view.found(trace)
    found = summary.graph_findings(results, summary.best_known(results))
    put_findings(session.stand, found, [trace.method] if trace is not None else [])


def _live(watching: "Watching") -> "AbstractContextManager[LiveSession | None]":
    if not watching.live:
        return nullcontext()
    from d2dfl.cli.live.session import live_session

    return live_session(watching, "Who should receive from whom", steps=True)


def compare_graphs_and_print(options: "Graphs", files: "Files", methods: str) -> None:
    """Find the graphs of several methods, print them side by side, write what was asked for."""
    config, picture, out = options.config(), files.picture, options.out
    chosen = list(METHODS.values()) if methods == ALL else [METHODS[name] for name in methods_listed(methods)]
    check_picture(picture)
    check_outputs(files.json_file, picture, inputs=inputs_of(config, options.network, options.config_file))
    network = _network(options.network, config, options.seed)
    watch = partial(_watched, network=network, config=config)
    result = compare_graphs(network, config, chosen, options.seed, out, skip=methods == ALL, watch=watch)
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
    say(f"{save}: {summary.described_size(net)}")


def inputs_of(config: Config, *files: Path | None) -> list[Path | str | None]:
    """Files that a command reads."""
    return [*files, config.channel.file, config.channel.trace, config.network.trust]


def _network(file: Path | None, config: Config, seed: int) -> Network:
    return Network.generate(config, seed) if file is None else load_network(file, config.channel)


def _network_for(config: Config, options: "Discover") -> Network:
    """The network that is read or generated, or the one around a dataset's datapoints, which takes PyTorch seconds."""
    if options.dataset is None and config.partition.paradigm == SUPERVISED:
        return _network(options.network, config, options.seed)
    from d2dfl.experiment.inputs import data_set
    from d2dfl.experiment.setting import setting_of

    if options.network is not None:
        raise UserError("--network reads a network and --dataset or --paradigm makes one: give only one of them")
    return setting_of(config, options.seed, data_set(config, seed=0)).reported_network


@contextmanager
def _watched(method: Method, network: Network, config: Config, session: "LiveSession | None" = None) -> Iterator[Share]:
    """What a user sees of a discovery: how long it will take, that it is compiled, a bar; or what a live view shows."""
    if session:
        session.view.begin(config, ())
        session.view.step(f"compile: {method.name}", 0.0)
    elsewhere = session is not None and session.in_terminal
    announce(method.title, discovery_seconds(method.name, config, network.shape))
    line = COMPILING % method.name
    # A terminal shows the status instead.
    with (
        nullcontext() if elsewhere else console.status(f"preparing {method.name} (compiles once per installation)"),
        telling(lambda: None if console.is_terminal else say(line)),
    ):
        warm_up(method.name, config, clustered=network.centroids is not None)
    with bar(method.title, shown=not elsewhere) as tell:

        def progress(share: float) -> None:
            tell(completed=share)
            if session:
                session.view.step(f"discover: {method.title}", share)

        yield progress
