"""Memory: what one more device costs our engine, for each executor, beside what it predicts before it begins.

Peak resident memory of a training of two steps and one average, each number of devices in a process of its own; a
straight line through the peaks, its slope in bytes a device, and how straight it is. All devices hold the same 64
datapoints, so that data does not grow with them.

    python benchmarks/memory.py [--devices 10,20,40,80] [--json OUT]
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Literal

import numpy as np

Executor = Literal["loop", "stack", "auto"]
# auto is the loop for convolutions, and for small dense networks the executor `dense`.
CHOICES: dict[str, tuple[Executor, ...]] = {"alexnet": ("loop", "stack"), "mlp": ("loop", "stack", "auto")}
SHAPES = {"alexnet": (3, 32, 32), "mlp": (1, 8, 8)}
# The mlp takes a thousandth of AlexNet's memory: with so few devices its growth would drown in the allocator's.
FACTOR = {"alexnet": 1, "mlp": 50}
DATAPOINTS, MIB = 64, 2**20


def measure(name: str, executor: Executor, devices: int) -> dict[str, int]:
    """Bytes at the peak of a training, and predicted for each device."""
    import torch

    from d2dfl.config import FederationConfig
    from d2dfl.federation import MODELS, Federated, start
    from d2dfl.federation.executors.capacity import bytes_per_device
    from d2dfl.federation.training import _prepare

    torch.set_num_threads(1)
    generator = np.random.default_rng(0)
    inputs = generator.standard_normal((DATAPOINTS, *SHAPES[name]), dtype=np.float32)
    targets = generator.integers(0, 10, DATAPOINTS)
    data = Federated(inputs, targets, [np.arange(DATAPOINTS)] * devices, inputs, targets, 10)
    settings = FederationConfig(rounds=1, interval=2, batch=DATAPOINTS, executor=executor, device="cpu")
    training = _prepare(MODELS[name], [(data, 0)], settings, [start(MODELS[name], data, settings)], print)
    predicted = bytes_per_device(training.executor.job, stacked=executor == "stack")
    training.round()
    return {"devices": devices, "peak": peak_bytes(), "predicted": predicted}


def peak_bytes() -> int:
    """Of this process alone: getrusage would count what its parent held when it began."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM:"))
    return 1024 * int(line.split()[1])


def straight(devices: list[int], peaks: list[int]) -> tuple[float, float, float]:
    """Slope, intercept and R² of the straight line through the peaks."""
    slope, intercept = np.polyfit(devices, peaks, 1)
    left = np.array(peaks) - (slope * np.array(devices) + intercept)
    return float(slope), float(intercept), float(1 - left @ left / (np.var(peaks) * len(peaks)))


def line_of(name: str, executor: Executor, sizes: list[int]) -> dict[str, Any]:
    """Measure a model with an executor, and print its line of the table."""
    rows = []
    for size in sizes:
        command = [sys.executable, __file__, "--one", name, executor, str(size * FACTOR[name])]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"{' '.join(command[2:])} failed:\n{done.stderr[-2000:]}")
        rows.append(json.loads(done.stdout.splitlines()[-1]))
    devices, peaks = [row["devices"] for row in rows], [row["peak"] for row in rows]
    slope, intercept, straightness = straight(devices, peaks)
    predicted = rows[0]["predicted"]
    shown = "  ".join(f"{count:,}: {peak / MIB:,.0f}" for count, peak in zip(devices, peaks, strict=True))
    print(
        f"{name:8s} {executor:8s} {slope:14,.0f} {predicted:14,.0f} {predicted / slope:6.2f} {straightness:7.4f} "
        f"{intercept / MIB:10,.0f}   {shown}",
        flush=True,
    )
    return {"rows": rows, "slope": slope, "predicted": predicted, "r2": straightness, "base": intercept}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--devices", default="10,20,40,80", help="times 50 for the mlp")
    parser.add_argument("--models", default=",".join(SHAPES))
    parser.add_argument("--json", type=Path)
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        name, executor, devices = options.one
        print(json.dumps(measure(name, executor, int(devices))))
        return
    sizes = [int(size) for size in options.devices.split(",")]
    print(f"{'model':8s} {'executor':8s} {'bytes a device':>14s} {'predicted':>14s} {'ratio':>6s} {'R²':>7s} ", end="")
    print(f"{'at 0, MiB':>10s}   devices: peak MiB")
    found = {
        f"{name}, {executor}": line_of(name, executor, sizes)
        for name in options.models.split(",")
        for executor in CHOICES[name]
    }
    if options.json:
        options.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
