"""Beyond total variation: which measure orders graphs by accuracy, and what one link could reach.

    python benchmarks/objectives/run.py graphs --out cells           (two shared cores: 40 cells, 2 to 4 minutes each)
    python benchmarks/objectives/run.py measures --out cells         (minutes)
    python benchmarks/objectives/run.py ceiling --out ceiling        (as long as --minutes)

With --tiny each takes a minute of two cores. `graphs` and `ceiling` write every cell and every generation when it is done, and
go on where they were cut off. Sets come from D2DFL_DATA as everywhere, and are made grey and at most 16 pixels wide. Those that
choose and those that report also have other seeds.
"""

import argparse
import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import joblib

from d2dfl.discovery.discover import warm_up
from objectives import ceiling, report
from objectives.cells import CHOOSING, SETS, SKEWS, TINY, Scale, Task, run_cell


def tasks(sets: list[str], seeds: int, tiny: bool) -> list[Task]:
    """All cells, one seed of every set and skew after the other, so that a run that is cut has all of them."""
    skews = SKEWS[:1] + SKEWS[2:3] if tiny else SKEWS
    scale = TINY if tiny else Scale()
    return [
        Task(name, skew, seed if name in CHOOSING else seed + seeds, scale)
        for seed in range(seeds)
        for skew in skews
        for name in sets
    ]


def one(task: Task, out: Path, until: float) -> str:
    """A cell, unless it is there or the time is over; what went wrong is told and stops nobody else."""
    if (out / task.file).exists() or time.time() > until:
        return ""
    import torch

    torch.set_num_threads(1)
    try:
        began = time.time()
        return f"{run_cell(task, out)}, {time.time() - began:.0f} s"
    except Exception as error:
        return f"{task.file}: {type(error).__name__}: {error}"


def graphs(given: argparse.Namespace) -> None:
    """Every cell into its file."""
    cells = tasks(given.datasets.split(","), given.seeds or 2, given.tiny)
    until = time.time() + 60 * given.minutes
    work = joblib.Parallel(n_jobs=given.workers, return_as="generator_unordered", batch_size=1, inner_max_num_threads=1)
    for text in work(joblib.delayed(one)(task, given.out, until) for task in cells):
        if text:
            print(text, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("graphs", "measures", "ceiling"))
    parser.add_argument("--out", type=Path, required=True, help="the folder of this study's files")
    parser.add_argument(
        "--datasets", default=None, help=f"graphs: of {','.join(SETS)}; {','.join(CHOOSING)} choose; ceiling: one"
    )
    parser.add_argument("--seeds", type=int, default=0, help="networks of each set and skew (2; ceiling 2)")
    parser.add_argument(
        "--minutes", type=float, default=30.0, help="graphs: no cell starts later; ceiling: of the search"
    )
    parser.add_argument("--workers", type=int, default=min(2, os.cpu_count() or 1), help="processes")
    parser.add_argument("--tiny", action="store_true", help="that all of it runs, not what it finds")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    if given.command == "measures":
        print(report.measure_all(given.out, given.workers))
        return
    for method in ("marginal", "greedy", "closest", "uniform", "most-trusted", "optimum"):
        warm_up(method, Task("digits", "labels:1", 0).config())  # compiled once, not in every process
    if given.command == "graphs":
        given.datasets = given.datasets or ",".join(SETS)
        graphs(given)
    else:
        ceiling.search(
            given.out, given.datasets or "fmnist", given.seeds or 2, given.minutes, given.workers, given.tiny
        )


if __name__ == "__main__":
    main()
