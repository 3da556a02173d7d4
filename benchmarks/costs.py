"""What each experiment costs at a scale, without running it: seconds of one core, for `cost` in src/d2dfl/paper/experiments/expected.toml.

    python benchmarks/costs.py --scale small                  (every experiment: an hour of one core)
    python benchmarks/costs.py --scale small size skew

Training takes the same time whatever graph came before it. So of an experiment that trains one cell of each point is
measured, and counts for all cells of that point but those of the GCN, which trains a net first: of these one is measured, too. Of
experiments that train nobody every cell of the first seed counts for all seeds.
"""

import argparse
import time
from collections import Counter

import torch

from d2dfl.experiment.cells.steps import run_cells
from d2dfl.paper.catalogue import experiment_names, load_experiment
from d2dfl.paper.experiment import SCALES, Cell, Experiment

TRAINED = "marginal"  # the contender that is measured, where there is one
NET = "gcn"  # the method that trains a net of its own


def chosen(experiment: Experiment, cells: list[Cell]) -> dict[Cell, int]:
    """Cells to measure, and for how many cells each counts."""
    if experiment.measure is not None:
        seeds = len({cell.seed for cell in cells})
        return {cell: seeds for cell in cells if cell.seed == 0}
    found = {}
    for (point, net), number in Counter((cell.point, cell.method == NET) for cell in cells).items():
        own = [cell for cell in cells if cell.point == point and cell.seed == 0 and (cell.method == NET) == net]
        found[next((cell for cell in own if cell.contender == TRAINED), own[0])] = number
    return found


def seconds(experiment: Experiment, cell: Cell) -> float:
    began = time.perf_counter()
    (experiment.measure or run_cells)([cell])
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="experiments; all, if none is named")
    parser.add_argument("--scale", choices=SCALES, default="small")
    given = parser.parse_args()
    unknown = set(given.names) - set(experiment_names())
    if unknown:
        parser.error(f"there is no experiment {', '.join(sorted(unknown))}; d2dfl reproduce list names all")
    torch.set_num_threads(1)
    for name in given.names or experiment_names():
        experiment = load_experiment(name)
        for cell in chosen(experiment, experiment.cells("tiny")):
            seconds(experiment, cell)  # what is compiled on first use is not counted
        cells = experiment.cells(given.scale)
        total = sum(number * seconds(experiment, cell) for cell, number in chosen(experiment, cells).items())
        print(f"{name}: {given.scale} = {total:.0f}  # {len(cells)} cells", flush=True)


if __name__ == "__main__":
    main()
