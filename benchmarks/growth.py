"""Growth: cost of one device-step and peak memory from 1,000 to 100,000 devices at 64 slots, 10 partitions, one core.

A device-step is one revision (marginal) or one round of one device (qlearning). Each size runs in a process of its
own, so that its peak memory is its own.

    python benchmarks/growth.py
"""

import argparse
import json
import resource
import subprocess
import sys
import time

from d2dfl import Network, preset
from d2dfl.discovery.methods import marginal, qlearning
from d2dfl.discovery.task import Task

SIZES = (1_000, 10_000, 100_000)
SLOTS, STEPS, MESSAGES = 64, 100, 250


def measure(devices: int) -> dict[str, float]:
    """Seconds per device-step of both learners, and peak memory."""
    config = preset("best").with_(
        **{
            "network.devices": devices,
            "channel.slots": SLOTS,
            "qlearning.steps": STEPS,
            "marginal.messages": MESSAGES,
        }
    )
    warm = config.with_(**{"network.devices": 70, "qlearning.steps": 70, "marginal.messages": 80})
    for find in (marginal.find, qlearning.find):
        find(Task(Network.generate(warm, 0), warm, 0))
    began = time.perf_counter()
    network = Network.generate(config, 0)
    result = {"devices": float(devices), "set-up s": time.perf_counter() - began}
    for name, find in (("marginal", marginal.find), ("qlearning", qlearning.find)):
        began = time.perf_counter()
        found = find(Task(network, config, 0))
        seconds = time.perf_counter() - began
        steps = found.steps * (devices if name == "qlearning" else 1)
        result |= {f"{name} s": seconds, f"{name} us per device-step": 1e6 * seconds / steps}
    result["peak GiB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("devices", nargs="?", type=int, help="one size alone, as JSON")
    given = parser.parse_args()
    if given.devices:
        print(json.dumps(measure(given.devices)))
        return
    print(f"{SLOTS} slots, 10 partitions, one core; qlearning {STEPS} steps, marginal {MESSAGES} messages a device")
    rows = []
    for devices in SIZES:
        output = subprocess.run([sys.executable, __file__, str(devices)], capture_output=True, text=True, check=True)
        rows.append(json.loads(output.stdout))
        print("  ".join(f"{name} {value:,.2f}" for name, value in rows[-1].items()), flush=True)
    for name in ("marginal", "qlearning"):
        key = f"{name} us per device-step"
        print(
            f"{name}: device-step at {SIZES[-1]:,} / at {SIZES[0]:,} devices = {rows[-1][key] / rows[0][key]:.2f} (target < 2)"
        )
    print(f"peak memory at {SIZES[-1]:,} devices: {rows[-1]['peak GiB']:.2f} GiB (target < 4)")


if __name__ == "__main__":
    main()
