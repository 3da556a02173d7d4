"""What the main job costs on a fresh clone, without pip: CPU seconds of the command of `make run`, with no cache of any kind.

A copy of the package's source, without bytecode and compiled code, is run once; user and system seconds of all processes are
taken together. Several versions take turns when their source folders are named. Prints every time, and the medians.

    python benchmarks/fresh_run.py --source before=../before/src --source after=src --repeat 3
"""

import argparse
import os
import resource
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent


def main_job() -> list[str]:
    """What `make run` calls, behind the command's own name."""
    (line,) = [
        line for line in (HERE / "Makefile").read_text().splitlines() if line.startswith("\t$(BIN)/d2dfl compare")
    ]
    return shlex.split(line)[1:]


def cpu_seconds(source: Path) -> float:
    """User and system seconds of the job with a copy of the source."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "src"
        shutil.copytree(source, copy, ignore=shutil.ignore_patterns("__pycache__"))
        kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            [sys.executable, "-m", "d2dfl", *main_job()],
            cwd=folder,
            env={**kept, "PYTHONPATH": str(copy), "NUMBA_CACHE_DIR": str(Path(folder) / "kernels")},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=True,
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", action="append", metavar="NAME=FOLDER", help="where the package is; default: here")
    parser.add_argument("--repeat", type=int, default=3)
    given = parser.parse_args()
    sources = dict(each.split("=", 1) for each in given.source or [f"here={HERE / 'src'}"])
    spent: dict[str, list[float]] = {name: [] for name in sources}
    for _ in range(given.repeat):
        for name, folder in sources.items():
            spent[name].append(cpu_seconds(Path(folder)))
    print("| CPU seconds | median | all |\n|---|---:|---|")
    for name, times in spent.items():
        print(f"| {name} | {statistics.median(times):.1f} | {', '.join(f'{one:.1f}' for one in times)} |")


if __name__ == "__main__":
    main()
