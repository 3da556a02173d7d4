"""What `d2dfl reproduce list` prints."""

import sys

from rich import box
from rich.console import Console
from rich.table import Table

from d2dfl.paper.catalogue import claims_of, experiment_names, load_experiment
from d2dfl.paper.experiment import SCALES
from d2dfl.terminal import in_time


def print_experiments() -> None:
    """All experiments with their cells at every scale, what these take, and the claim."""
    table = Table("experiment", "of the paper", *SCALES, "the paper's claim", box=box.SIMPLE_HEAD, pad_edge=False)
    names = experiment_names()
    for name in names:
        claims, experiment = claims_of(name), load_experiment(name)
        costs = [_cost(experiment.count(scale), claims.cost.get(scale)) for scale in SCALES]
        table.add_row(name, claims.figure, *costs, claims.claim, end_section=name == names[-1])
    known = {scale: [claims_of(name).cost.get(scale) for name in names] for scale in SCALES}
    sums = {scale: sum(cost for cost in costs if cost is not None) for scale, costs in known.items()}
    signs = {scale: "over " if None in costs else "" for scale, costs in known.items()}
    table.add_row("all", "", *(signs[scale] + in_time(sums[scale]) for scale in SCALES), "")
    shown = Console(markup=False) if sys.stdout.isatty() else Console(markup=False, width=150)
    shown.print(table)
    shown.print(
        "cells (methods × points × seeds), and the time of one core where we measured it (paper scale: mostly of an H200)"
    )


def _cost(cells: int, seconds: float | None) -> str:
    return f"{cells}" if seconds is None else f"{cells}, {in_time(seconds)}"
