"""Beyond total variation: which measure orders graphs by accuracy, and what one link could reach.

    python benchmarks/objectives/run.py graphs --out cells           (an H200 and 16 cores: 8 minutes)
    python benchmarks/objectives/run.py measures --out cells         (no GPU: minutes)
    python benchmarks/objectives/run.py ceiling --out ceiling        (an H200 and 16 cores: 6 minutes)

With --tiny each takes a minute of two cores. `graphs` and `ceiling` write every cell and every generation when it is done, and
go on where they were cut off. Sets come from D2DFL_DATA as everywhere, svhn and cifar10 also as 16 x 16 grey pictures from
--sets FOLDER (svhn16.npz, cifar1016.npz: x_train, y_train, x_test, y_test).
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


def tasks(sets: list[str], seeds: int, folder: str, tiny: bool) -> list[Task]:
    """All cells; whole rounds of seeds that report and that choose by turns, so that a run that is cut has both."""
    skews = SKEWS[:1] + SKEWS[2:3] if tiny else SKEWS
    order = sorted(range(seeds), key=lambda seed: (seed % 2, seed))  # 0, 2, 1, 3: the first two choose
    return [
        Task(name, skew, seed, folder, TINY if tiny else Scale()) for seed in order for skew in skews for name in sets
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
    cells = tasks(given.datasets.split(","), given.seeds or 4, given.sets, given.tiny)
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
    parser.add_argument("--seeds", type=int, default=0, help="networks of each set and skew (4; ceiling 3)")
    parser.add_argument("--sets", default="", help="folder of small sets")
    parser.add_argument(
        "--minutes", type=float, default=8.0, help="graphs: no cell starts later; ceiling: of the search"
    )
    parser.add_argument("--workers", type=int, default=max(1, (os.cpu_count() or 1) - 2), help="processes")
    parser.add_argument("--tiny", action="store_true", help="that all of it runs, not what it finds")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    if given.command == "measures":
        print(report.measure_all(given.out, given.workers))
        return
    for method in ("marginal", "greedy", "closest", "uniform", "most-trusted", "optimum"):
        warm_up(method, Task("digits", "labels:1", 0, "").config())  # compiled once, not in every process
    if given.command == "graphs":
        given.datasets = given.datasets or ",".join(SETS)
        graphs(given)
    else:
        ceiling.search(
            given.out, given.datasets or "fmnist", given.seeds or 3, given.minutes, given.workers, given.tiny
        )


if __name__ == "__main__":
    main()
