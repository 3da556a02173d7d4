"""What it costs to ask for something small: CPU seconds of short commands, user and system together, of all their processes.

Commands run as processes of their own, in turns, `--repeat` times after one run that is not counted (it fills caches of
compiled code, and of bytecode, whatever the environment says); the median is printed, and the lowest in brackets. Several
versions stand side by side when their source folders are named, and then take turns too:

    python benchmarks/start.py --source before=../before/src --source after=src --repeat 5
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
from pathlib import Path

COMMANDS = (
    "--help",
    "--version",
    "methods",
    "fields",
    "discover --help",
    "reproduce list",
    "discover --devices 25",
    "discover --devices 100",
)
HERE = Path(__file__).resolve().parent.parent / "src"


def cpu_seconds(source: Path, command: str) -> float:
    """User and system seconds of one command and of the processes that it starts; not a number where it fails."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-m", "d2dfl", *command.split()],
        env={**kept, "PYTHONPATH": str(source.resolve())},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return spent if done.returncode == 0 else float("nan")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", action="append", metavar="NAME=FOLDER", help="where the package is; default: here")
    parser.add_argument("--command", action="append", help="default: all of them")
    parser.add_argument("--repeat", type=int, default=3)
    given = parser.parse_args()
    sources = dict(each.split("=", 1) for each in given.source or [f"here={HERE}"])
    commands = given.command or COMMANDS
    print("| CPU seconds |", " | ".join(sources), "|\n|---|" + "---:|" * len(sources))
    for command in commands:
        spent: dict[str, list[float]] = {name: [] for name in sources}
        for turn in range(given.repeat + 1):
            for name, folder in sources.items():
                seconds = cpu_seconds(Path(folder), command)
                if turn:
                    spent[name].append(seconds)
        cells = (f"{statistics.median(times):.2f} ({min(times):.2f})" for times in spent.values())
        print(f"| `d2dfl {command}` |", " | ".join(cells), "|", flush=True)


if __name__ == "__main__":
    main()
