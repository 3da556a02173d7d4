"""Graphs of one network, found, put side by side and kept: nothing is exchanged, nobody trains."""

import json
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from d2dfl.config import Config
from d2dfl.discovery.discover import Discovery, discover
from d2dfl.discovery.evaluation import share_of
from d2dfl.discovery.methods import METHODS, Method
from d2dfl.discovery.trace import Trace
from d2dfl.errors import MissingExtraError
from d2dfl.experiment.findings.summary import best_known, keep
from d2dfl.experiment.findings.takeaways import NETWORK
from d2dfl.experiment.folder.mark import RunPlan
from d2dfl.experiment.folder.store import run_folder
from d2dfl.experiment.folder.traces import save_traces
from d2dfl.network import Network
from d2dfl.network.files import save_network
from d2dfl.progress import Share, silent
from d2dfl.storage import write_whole

Watch = Callable[[Method], AbstractContextManager[Share]]  # around one discovery; gives whom to tell how far it is


def unwatched(_: Method) -> AbstractContextManager[Share]:
    """Nobody is told anything."""
    return nullcontext(silent)


@dataclass(frozen=True)
class GraphComparison:
    """Graphs of several methods in one network."""

    discoveries: tuple[Discovery, ...]
    best: float  # the highest objective of these
    left_out: tuple[str, ...]  # why methods are not among them

    def to_json(self) -> str:
        return json.dumps([as_dict(item, self.best) for item in self.discoveries], allow_nan=False)

    def draw(self, path: Path) -> None:
        """All graphs in a row."""
        from d2dfl.report.drawing.picture import draw_row

        graphs = [(METHODS[item.method].title, item.graph, item.evaluation) for item in self.discoveries]
        draw_row(self.discoveries[0].network, graphs, path)


def compare_graphs(
    network: Network,
    config: Config,
    methods: Sequence[Method],
    seed: int = 0,
    folder: Path | None = None,
    *,
    skip: bool = False,
    watch: Watch = unwatched,
) -> GraphComparison:
    """Find the graphs of all methods in a network, and keep them in a run folder if one is given.

    `skip`: leave out methods that lack their package.
    """
    plan = RunPlan("graphs", config.to_toml(), {"methods": [method.name for method in methods], "seed": seed})
    with nullcontext() if folder is None else run_folder(folder, plan):
        found, left_out = [], []
        for method in methods:
            try:
                with watch(method) as progress:
                    found.append(discover(network, config, seed=seed, method=method.name, progress=progress))
            except MissingExtraError as error:
                if not skip:
                    raise
                left_out.append(str(error))
        result = GraphComparison(tuple(found), best_known(found), tuple(left_out))
        if folder is not None:
            _save(result, folder)
    return result


def _save(result: GraphComparison, folder: Path) -> None:
    """JSON, pictures, the network, cells and findings."""
    write_whole(folder / "comparison.json", result.to_json().encode())
    save_network(result.discoveries[0].network, folder / NETWORK)
    for suffix in ("png", "html"):
        result.draw(folder / f"graphs.{suffix}")
    keep(result.discoveries, result.best, folder)


def as_dict(item: Discovery, best: float | None) -> dict[str, Any]:
    """A discovery as plain values, with what it reached of the best known objective."""
    share = None if best is None else share_of(item.evaluation.objective, best, item.evaluation.no_exchange)
    return {**item.to_dict(), "best_known_objective": best, "share_of_best_known": share}


def draw_discovery(item: Discovery, path: Path) -> None:
    """One graph as a picture."""
    from d2dfl.report.drawing.picture import draw_graph

    draw_graph(item.network, item.graph, item.evaluation, path, title=METHODS[item.method].title)


def save_discovery(item: Discovery, best: float | None, folder: Path, trace: Trace | None = None) -> None:
    """The same of one discovery, and GraphML; and how it went, where somebody heard it."""
    write_whole(folder / "graph.json", json.dumps(as_dict(item, best), allow_nan=False).encode())
    write_whole(folder / "graph.graphml", item.graph.to_graphml(item.network).encode())
    save_network(item.network, folder / NETWORK)
    for suffix in ("png", "html"):
        draw_discovery(item, folder / f"graph.{suffix}")
    keep([item], best, folder)
    if trace is not None:
        save_traces([trace], item.config, folder)
