"""What the first discovery after an installation costs: CPU seconds with an empty folder for compiled code.

Each method runs in a process of its own; several versions of the package take turns when their folders are named.
`--functions N` also lists the N functions that take longest to compile, without those that they call.

    python benchmarks/first.py --source before=../before/src --source after=src --repeat 3
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

METHODS = ("marginal", "qlearning", "bandit", "greedy", "optimum", "closest")
HERE = Path(__file__).resolve().parent.parent / "src"
WORK = """
import sys, time
from numba.core import event

class Watch(event.Listener):
    def __init__(self):
        self.open, self.done = [], []
    def on_start(self, happening):
        self.open.append([happening.data["dispatcher"].py_func, time.process_time(), 0.0])
    def on_end(self, happening):
        function, began, inner = self.open.pop()
        spent = time.process_time() - began
        self.done.append((spent - inner, f"{function.__module__}.{function.__name__}"))
        if self.open:
            self.open[-1][2] += spent

watch = Watch()
event.register("numba:compile", watch)
from d2dfl import Network, discover, preset
config = preset("best").with_(optimum__starts=1, optimum__sweeps=1, optimum__messages=10)
network = Network.generate(config, 0)
began = time.process_time()
discover(network, config, method=sys.argv[1])
print(time.process_time() - began, len(watch.done))
for spent, name in sorted(watch.done, reverse=True)[: int(sys.argv[2])]:
    print(f"{spent:.2f} {name}")
"""


def first(source: Path, method: str, functions: int) -> tuple[float, int, list[str]]:
    """CPU seconds, functions compiled, and the slowest of them."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "PYTHONPATH": str(source.resolve()), "NUMBA_CACHE_DIR": folder}
        command = [sys.executable, "-c", WORK, method, str(functions)]
        lines = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.splitlines()
    seconds, number = lines[0].split()
    return float(seconds), int(number), lines[1:]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", action="append", metavar="NAME=FOLDER", help="where the package is; default: here")
    parser.add_argument("--method", action="append", help="default: all that are compiled")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--functions", type=int, default=0)
    given = parser.parse_args()
    sources = dict(each.split("=", 1) for each in given.source or [f"here={HERE}"])
    print("| CPU seconds (functions) |", " | ".join(sources), "|\n|---|" + "---:|" * len(sources))
    slowest: dict[str, list[str]] = {}
    for method in given.method or METHODS:
        spent: dict[str, list[float]] = {name: [] for name in sources}
        number = dict.fromkeys(sources, 0)
        for _ in range(given.repeat):
            for name, folder in sources.items():
                seconds, number[name], slowest[f"{method}, {name}"] = first(Path(folder), method, given.functions)
                spent[name].append(seconds)
        cells = (f"{statistics.median(spent[name]):.1f} ({number[name]})" for name in sources)
        print(f"| {method} |", " | ".join(cells), "|", flush=True)
    for title, lines in slowest.items():
        if lines:
            print(f"\n{title}\n" + "\n".join(lines))


if __name__ == "__main__":
    main()
