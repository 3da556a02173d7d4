"""How systems grow with the devices. Seconds of a round and peak memory, all systems in turns at every point.
On a machine that others use, processor seconds say more. Points can be asked for one by one, and rows that a file holds already are
kept and counted with them: a machine that is quiet for minutes alone is enough.

Every device holds a few datapoints of a common pool and takes all of them in every minibatch; who takes part in a round each
system draws for itself. What a system would need too long for, by what it took at a smaller point, is left out and said.
"""

import contextlib
import os
import statistics
import tempfile
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from frameworks.systems import System, proportional_bytes
from frameworks.tasks import TaskPlan, write_task

CORES = min(2, os.cpu_count() or 1)
LONGEST_S = 75.0  # of a round, as predicted from the largest smaller point, unless more is asked for
BUSY = 4.0  # the clock may run so many times longer than the work takes, where others use the machine, and say nothing of it
ROUNDS = 9  # timed, where they are short
SPENT_S = 30.0  # on timed rounds of a system at a point, or one round
LOOK_S = 0.2  # between two looks at the memory, in the first round alone
FASTER = {"pfl": 5.0, "Flower": 20.0}  # aims with the MLP at 10,000 devices
FLAT = 1.3  # cost of a device-step at 10,000 devices over that at 100
POINTS = [
    (100, 0.01),
    (100, 1.0),
    (1000, 0.01),
    (1000, 1.0),
    (10_000, 0.001),
    (10_000, 0.01),
    (10_000, 0.1),
    (10_000, 1.0),
]


@dataclass(frozen=True)
class Setting:
    """A system on all cores, as it was fastest in the other tasks."""

    system: str
    threads: int
    processes: int
    kind: str = ""

    @property
    def title(self) -> str:
        return self.system


SETTINGS = (Setting("ours", CORES, 1), Setting("pfl", 1, CORES), Setting("Flower", 1, CORES))
MODELS = {"mlp": (14, 10, 0.01, 1437), "alexnet": (64, 1, 0.001, 6000)}  # datapoints, steps, rate, pool


def points_named(text: str) -> list[tuple[str, int, int]]:
    """Model, devices and devices in a round from "alexnet:10000:10;mlp:1000:10"; nothing: all points."""
    if not text:
        return [(model, devices, max(1, round(share * devices))) for model in MODELS for devices, share in POINTS]
    return [(model, int(all_), int(present)) for model, all_, present in (one.split(":") for one in text.split(";"))]


def scale(
    pythons: dict[str, Path],
    points: Sequence[tuple[str, int, int]],
    before: Sequence[dict[str, Any]] = (),
    longest: float = LONGEST_S,
) -> list[dict[str, Any]]:
    """Measure points, print their table and what became of the aims; `before` are rows that were measured already."""
    asked = set(points)
    rows = [row for row in before if (row["model"], row["devices"], row["present"]) not in asked]
    for model, (samples, steps, rate, pool) in MODELS.items():
        own = [point for point in points if point[0] == model]
        if not own:
            continue
        print(f"\nscale: {model}, {samples} datapoints a device, {steps} steps a round, FedAvg, float32, {CORES} cores")
        print(
            f"  {'devices':>8s}{'in a round':>11s}  "
            + "".join(f"{one.system + ' s':>12s}{'CPU s':>10s}{'GiB':>7s}" for one in SETTINGS)
        )
        for _, devices, present in own:
            name, share = f"{model}, {devices} devices, {present} in a round", present / devices
            plan = TaskPlan(name, model, devices, samples, samples, steps, rate, 0, 1, participation=share, pool=pool)
            row: dict[str, Any] = {"model": model, "devices": devices, "present": present}
            row["load"] = os.getloadavg()[0]
            row["systems"] = _point(plan, pythons, rows, longest)
            rows.append(row)
            _print(row)
    _verdicts(rows)
    return rows


def _point(plan: TaskPlan, pythons: dict[str, Path], before: list[dict[str, Any]], longest: float) -> dict[str, Any]:
    """Every system at one point: memory in the first round, then timed rounds in turns."""
    found: dict[str, Any] = {}
    present = max(1, round(plan.participation * plan.devices))
    with tempfile.TemporaryDirectory() as text, contextlib.ExitStack() as opened:
        folder = Path(text)
        write_task(plan, folder)
        systems: dict[str, System] = {}
        for setting in (one for one in SETTINGS if one.system in pythons):
            predicted = _predicted(setting.system, plan.model, before, present)
            if predicted > longest:
                found[setting.system] = {"left out": f"about {predicted:.0f} s a round"}
                continue
            if present < setting.processes:  # a process without a device could do nothing
                setting = replace(setting, processes=1, threads=CORES)
            system = System(pythons[setting.system], setting, folder, rounds=1000)
            opened.callback(system.stop)
            with _peak(system) as peak:
                first = system.round()["seconds"]
            systems[setting.system] = system
            found[setting.system] = {"GiB": peak[0] / 2**30, "first": first, "seconds": [], "cpu": []}
        for cycle in range(ROUNDS):
            order = list(systems) if cycle % 2 == 0 else list(reversed(systems))
            for name in order:
                if cycle == 0 or found[name]["first"] * (cycle + 1) < SPENT_S:
                    heard = systems[name].round()
                    for what in ("seconds", "cpu"):
                        found[name][what].append(heard[what])
    for held in found.values():
        if "seconds" in held:
            held["seconds"], held["cpu"] = statistics.median(held["seconds"]), statistics.mean(held["cpu"])
    return found


def _predicted(system: str, model: str, before: list[dict[str, Any]], present: int) -> float:
    """Seconds of a round, from the largest point so far, by how many devices take part."""
    known = [
        (row["present"], max(row["systems"][system]["cpu"] / CORES, row["systems"][system]["seconds"] / BUSY))
        for row in before
        if row["model"] == model and "seconds" in row["systems"].get(system, {})
    ]
    most, seconds = max(known, default=(1, 0.0))
    return float(seconds) * present / most


@contextlib.contextmanager
def _peak(system: System) -> Iterator[list[float]]:
    """The most memory that a system takes meanwhile, in bytes; a page that n processes share counts 1/n in each."""
    peak, over = [0.0], threading.Event()

    def watch() -> None:
        while not over.wait(LOOK_S):
            peak[0] = max(peak[0], float(proportional_bytes(system.process.pid)[0]))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield peak
    finally:
        peak[0] = max(peak[0], float(proportional_bytes(system.process.pid)[0]))
        over.set()
        watcher.join()


def _print(row: dict[str, Any]) -> None:
    ours = row["systems"]["ours"]
    text = f"  {row['devices']:8d}{row['present']:11d}  "
    for setting in SETTINGS:
        held = row["systems"].get(setting.system)
        if held is None or "seconds" not in held:
            text += f"{'left out' if held else 'missing':>12s}{'':>17s}"
        elif setting.system == "ours" or "seconds" not in ours:
            text += f"{held['seconds']:12.3f}{held['cpu']:10.2f}{held['GiB']:7.2f}"
        else:
            # The kernel counts hundredths of a second.
            worked = f"{held['cpu'] / ours['cpu']:.1f} ×" if ours["cpu"] >= 0.05 else "—"
            text += f"{held['seconds'] / ours['seconds']:10.1f} ×{worked:>10s}{held['GiB']:7.2f}"
    print(text, flush=True)


def _verdicts(rows: list[dict[str, Any]]) -> None:
    """The aims, each with what was measured."""

    def say(what: str, value: float, met: bool) -> None:
        print(f"  {what}: {value:.2f}, {'met' if met else 'NOT MET'}")

    print("\naims")
    for row in rows:
        ours, where = row["systems"]["ours"], f"{row['model']}, {row['present']:,} of {row['devices']:,} devices"
        others = {name: held for name, held in row["systems"].items() if name != "ours" and "seconds" in held}
        for name, held in others.items():
            aim = FASTER[name] if row["model"] == "mlp" else 1.0
            if row["devices"] == 10_000 and "seconds" in ours:
                ratio = held["seconds"] / ours["seconds"]
                say(f"{where}: time of {name} / ours (aim ≥ {aim:g})", ratio, ratio >= aim)
                if ours["cpu"] >= 0.05:
                    worked = held["cpu"] / ours["cpu"]
                    say(f"{where}: processor time of {name} / ours (aim ≥ {aim:g})", worked, worked >= aim)
        if others and "GiB" in ours:
            ratio = min(held["GiB"] for held in others.values()) / ours["GiB"]
            say(f"{where}: memory of the leaner / ours (aim ≥ 1)", ratio, ratio >= 1)
    for model in MODELS:
        cost = {
            row["devices"]: row["systems"]["ours"]["cpu"] / row["present"]
            for row in rows
            if row["model"] == model and row["present"] == row["devices"] and "seconds" in row["systems"]["ours"]
        }
        if 100 in cost and len(cost) > 1:
            ratio = cost[max(cost)] / cost[100]
            say(
                f"{model}: processor time of a device-step at {max(cost):,} devices / at 100 (aim ≤ {FLAT})",
                ratio,
                ratio <= FLAT,
            )
