"""Commands about graphs: discover, compare-graphs, network."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from d2dfl.cli.commands import completion
from d2dfl.cli.commands.options import DatasetName, Generated, Graphs, ParadigmName
from d2dfl.cli.commands.watching import Watching
from d2dfl.config import Config
from d2dfl.config.sections.learning import SUPERVISED
from d2dfl.discovery.methods import METHODS

DRAWN = ", ".join(method.name for method in METHODS.values() if method.drawn)


@dataclass(frozen=True)
class Discover(Graphs):
    """One graph, also around the data of a set."""

    dataset: DatasetName = None
    paradigm: ParadigmName = SUPERVISED


@dataclass(frozen=True)
class CompareGraphs(Graphs):
    """Several graphs, with one link a device unless said: that is what the paper draws, and what can be seen."""

    edges: Annotated[
        int | None, typer.Option(help="Incoming links a device may have.  [default: 1]", show_default=False)
    ] = None

    def _begin(self) -> Config:
        return super()._begin().with_(**{"discovery.edges": 1})


@dataclass(frozen=True)
class Files:
    """What is written beside the table."""

    json_file: Annotated[
        str | None, typer.Option("--json", help="Write the result as JSON; - for standard output.", show_default=False)
    ] = None
    picture: Annotated[
        Path | None, typer.Option(help="Draw the graphs: .png, .svg, .pdf or .html.", show_default=False)
    ] = None


def discover(
    options: Discover,
    files: Files,
    watching: Watching,
    method: Annotated[
        str | None,
        typer.Option(
            help=f"One of {', '.join(METHODS)}.  [default: by preset]",
            show_default=False,
            autocompletion=completion.beginning_with(completion.method_names),
        ),
    ] = None,
    reference: Annotated[
        bool, typer.Option(help="Also search the best known objective, to give a share of it; takes much longer.")
    ] = False,
    graphml: Annotated[Path | None, typer.Option(help="Write the graph as GraphML.", show_default=False)] = None,
) -> None:
    """Find the D2D graph of a network: who should receive datapoints from whom.

    The network is generated, or read (--network), or laid around the data of a set (--dataset, --paradigm).
    """
    watching.check()
    from d2dfl.cli.graphs import discover_and_print

    discover_and_print(options, files, watching, method, reference, graphml)


def compare_graphs(
    options: CompareGraphs,
    files: Files,
    methods: Annotated[
        str,
        typer.Option(
            help=f"Methods, separated by commas, or all.  [default: {DRAWN}]",
            show_default=False,
            autocompletion=completion.many_methods,
        ),
    ] = DRAWN,
) -> None:
    """Put methods side by side on the same network."""
    from d2dfl.cli.graphs import compare_graphs_and_print

    compare_graphs_and_print(options, files, methods)


def network(
    options: Generated,
    save: Annotated[Path, typer.Option(help="File to write: .npz or .json.", show_default=False)],
) -> None:
    """Generate a network and save it, as a start for one's own."""
    from d2dfl.cli.graphs import save_generated

    save_generated(options, save)
