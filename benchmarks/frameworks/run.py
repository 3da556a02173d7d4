"""Our federation engine beside other frameworks on a CPU: time, processor time and memory of a round, in one run.

Beside it: the fastest bare PyTorch loop, Flower's simulation (with Ray) and pfl-research. All get the same arrays, the
same first weights, the same minibatches, momentum that starts anew each round, and the same number of cores; each
takes the best of several settings. They take their rounds in turns, so that noise of the machine hits all of them.
What they have learned after the last round stands beside their times. Frameworks are installed into environments
of their own.

    python benchmarks/frameworks/run.py [--quick] [--cycles N] [--cache build/frameworks] [--json OUT]
    python benchmarks/frameworks/run.py --tasks scale     100 to 10,000 devices, 1 to 100 % of them in a round (scale.py)
    python benchmarks/frameworks/run.py --tasks scale --points "alexnet:10000:10;mlp:10000:1000" --json OUT
                        these points alone (model, devices, devices in a round); rows that OUT holds already are kept
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from frameworks.installed import FRAMEWORKS, Missing, machine, prepare, python_of
from frameworks.scale import LONGEST_S, points_named, scale
from frameworks.systems import System, peak_memory
from frameworks.tasks import TASKS, TaskPlan, write_task

CORES = min(2, os.cpu_count() or 1)
Row = dict[str, Any]


@dataclass(frozen=True)
class Setting:
    """A system with one of the settings that are tried."""

    system: str
    name: str
    kind: str = ""
    threads: int = CORES
    processes: int = 1

    @property
    def title(self) -> str:
        return f"{self.system}, {self.name}"


SPREAD = (
    Setting("Flower", "1 actor", threads=CORES),
    Setting("Flower", f"{CORES} actors", threads=1, processes=CORES),
    Setting("pfl", "1 process", threads=CORES),
    Setting("pfl", f"{CORES} processes", threads=1, processes=CORES),
)
BARE = (
    Setting("bare loop", "a model a device", "many"),
    Setting("bare loop", "the same, channels first", "plain"),
    Setting("bare loop", "one model in turn", "one"),
)
SMALL = (
    Setting("ours", f"{CORES} threads"),
    Setting("ours", "1 thread", threads=1),
    Setting("pfl", "1 process, 1 thread", threads=1),
    *SPREAD,
)
SETTINGS: dict[str, tuple[Setting, ...]] = {
    "alexnet": (Setting("ours", f"{CORES} threads"), *BARE, *SPREAD),
    "digits": SMALL,
    "digits, one epoch": SMALL,
}
WITHIN = 1.05  # of the fastest bare loop's time
LEANER = 3.0  # times less memory than Flower
FASTER = 20.0  # times faster than Flower


def measure_memory(plan: TaskPlan, folder: Path, pythons: dict[str, Path]) -> dict[Setting, float]:
    """Peak memory of every setting, one after another, apart from the timing: looking at memory costs time."""
    peaks = {}
    for setting in SETTINGS[plan.name]:
        if setting.system in pythons:
            peaks[setting], processes = peak_memory(pythons[setting.system], setting, folder)
            print(f"  peak of {setting.title:38s} {peaks[setting]:6.2f} GiB in {processes} processes", flush=True)
    return peaks


def choose(systems: dict[Setting, System], trials: int) -> dict[str, Setting]:
    """The fastest setting of each system; the others are stopped."""
    for system in systems.values():
        system.round()
    times: dict[Setting, list[float]] = {setting: [] for setting in systems}
    for _ in range(trials):
        for setting, system in systems.items():
            times[setting].append(system.round()["seconds"])
    best: dict[str, Setting] = {}
    for setting, found in times.items():
        print(f"  tried {setting.title:38s} {statistics.median(found):8.3f} s a round", flush=True)
        known = best.get(setting.system)
        if known is None or statistics.median(found) < statistics.median(times[known]):
            best[setting.system] = setting
    for setting in set(systems) - set(best.values()):
        systems.pop(setting).stop()
    return best


def compare(plan: TaskPlan, folder: Path, pythons: dict[str, Path]) -> dict[str, Any]:
    """Measure one task and print its table."""
    print(f"\n{plan.title}", flush=True)
    peaks = measure_memory(plan, folder, pythons)
    systems = {setting: System(pythons[setting.system], setting, folder, plan.rounds) for setting in peaks}
    try:
        best = choose(systems, plan.trials)
        found: dict[str, list[Row]] = {system: [] for system in best}
        for cycle in range(plan.cycles):
            order = list(best.items())
            for name, setting in order if cycle % 2 == 0 else reversed(order):
                found[name].append(systems[setting].round())
        learned = {}
        for name, setting in best.items():
            systems[setting].round()
            learned[name] = systems[setting].heard()
    finally:
        for system in systems.values():
            system.stop()
    table = {
        name: {
            "title": setting.title,
            "peak GiB": peaks[setting],
            **_summary(found[name], found["ours"]),
            **learned[name],
        }
        for name, setting in best.items()
    }
    _print_table(table, plan.cycles)
    least = min((peak for setting, peak in peaks.items() if setting.system == "Flower"), default=None)
    return {
        "table": table,
        "peaks": {setting.title: peak for setting, peak in peaks.items()},
        "least Flower GiB": least,
    }


def _summary(found: Sequence[Row], ours: Sequence[Row]) -> Row:
    """Medians; the ratio to ours is taken within a cycle."""
    wall = [one["seconds"] for one in found]
    cpu, own_cpu = (sum(one["cpu"] for one in rounds) / len(rounds) for rounds in (found, ours))
    ratios = sorted(one["seconds"] / own["seconds"] for one, own in zip(found, ours, strict=True))
    edge = len(ratios) // 10  # a tenth at either end is left out of the spread
    return {
        "seconds": statistics.median(wall),
        "all seconds": wall,
        "cpu": cpu,
        "ratio": statistics.median(ratios),
        "spread": (ratios[edge], ratios[-1 - edge]),
        "cpu ratio": cpu / own_cpu,
    }


def _print_table(table: dict[str, Row], cycles: int) -> None:
    print(f"  {'':38s}{'s a round':>10s}{'fastest':>9s}{'CPU s':>8s}{'/ ours':>8s}{'(spread)':>15s}", end="")
    print(f"{'CPU / ours':>12s}{'peak GiB':>10s}{'accuracy':>10s}{'test loss':>11s}")
    for row in table.values():
        spread = "({:.2f}–{:.2f})".format(*row["spread"])
        print(
            f"  {row['title']:38s}{row['seconds']:10.3f}{min(row['all seconds']):9.3f}{row['cpu']:8.3f}"
            f"{row['ratio']:8.2f}{spread:>15s}{row['cpu ratio']:12.2f}{row['peak GiB']:10.2f}"
            f"{row['accuracy']:10.4f}{row['loss']:11.5f}"
        )
    print(
        f"  medians of {cycles} rounds each, in turns; memory is PSS, all processes of a system, at its peak",
        flush=True,
    )


def verdicts(name: str, result: dict[str, Any]) -> dict[str, Any]:
    """The targets, each with what was measured."""
    table, found = result["table"], {}
    if name == "alexnet":
        if "bare loop" in table:
            value = 1 / table["bare loop"]["ratio"]
            found[f"time / fastest bare loop (target ≤ {WITHIN})"] = (value, value <= WITHIN)
        if "Flower" in table:
            for title, theirs in (("fastest", table["Flower"]["peak GiB"]), ("leanest", result["least Flower GiB"])):
                value = theirs / table["ours"]["peak GiB"]
                found[f"memory of Flower's {title} setting / ours (target ≥ {LEANER:g})"] = (value, value >= LEANER)
    else:
        if "Flower" in table:
            value = table["Flower"]["ratio"]
            found[f"time of Flower / ours (target ≥ {FASTER:g})"] = (value, value >= FASTER)
        if "pfl" in table:
            value = table["pfl"]["ratio"]
            found["time of pfl / ours (target > 1)"] = (value, value > 1)
    for title, (value, met) in found.items():
        print(f"  {title}: {value:.2f}, {'met' if met else 'NOT MET'}")
    return {title: {"value": value, "met": met} for title, (value, met) in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="few devices and rounds: does it work?")
    parser.add_argument("--cycles", type=int, help="timed rounds of each system")
    parser.add_argument("--cache", type=Path, default=Path("build/frameworks"), help="where they are installed")
    parser.add_argument("--frameworks", default=",".join(one.name for one in FRAMEWORKS), help="which to install")
    parser.add_argument("--tasks", default=";".join(TASKS), help="which, with semicolons between; also: scale")
    parser.add_argument("--points", default="", help="of the scale: model:devices:in a round; with semicolons between")
    parser.add_argument("--longest", type=float, default=LONGEST_S, help="of the scale: seconds a round, as predicted")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    pythons = {"ours": python_of(None), "bare loop": python_of(None)}
    for framework in FRAMEWORKS:
        try:
            if framework.name in options.frameworks.split(","):
                pythons[framework.name] = prepare(framework, options.cache)
        except Missing as reason:
            print(reason, flush=True)
    described = machine(CORES)
    print(described, flush=True)
    collected: dict[str, Any] = {"machine": described}
    for name in options.tasks.split(";"):
        if name == "scale":
            known = json.loads(options.json.read_text()).get(name, []) if options.json and options.json.exists() else []
            points = points_named(options.points)
            collected[name] = scale(pythons, points[:2] if options.quick else points, known, options.longest)
            continue
        plan = TASKS[name].smaller() if options.quick else TASKS[name]
        plan = replace(plan, cycles=options.cycles or plan.cycles)
        with tempfile.TemporaryDirectory() as folder:
            write_task(plan, Path(folder))
            result = compare(plan, Path(folder), pythons)
        collected[name] = {**result, "targets": {} if options.quick else verdicts(name, result)}
        for row in result["table"].values():
            collected.setdefault("versions", {})[row["title"].partition(",")[0]] = row["version"]
    if versions := collected.get("versions"):
        print("\nversions: " + "; ".join(f"{system}: {known}" for system, known in versions.items()))
    if options.json:
        options.json.write_text(json.dumps(collected, indent=1))


if __name__ == "__main__":
    main()
