"""The whole road, data to trained models, at several sizes: processor seconds of each part, peak memory, and how they grow.

The settings are those of the first command of docs/scale.md; one process for each size, nothing is written.

    python benchmarks/road.py [--sizes 1000,3000,10000] [--rounds 20]
"""

import argparse
import json
import math
import resource
import subprocess
import sys
import time
from itertools import pairwise

SETTINGS = {
    "data.dataset": "fmnist",
    "data.samples": 20,
    "data.repeat": True,
    "channel.slots": 64,
    "federation.participation": 0.01,
    "federation.model": "mlp",
    "federation.momentum_rule": "reset",
    "federation.evaluate_every": 5,
    "marginal.messages": 50,
}


def one(devices: int, rounds: int) -> None:
    """Measure one size, in this process."""
    from d2dfl import preset
    from d2dfl.experiment.compare import compare

    spent: dict[str, float] = {}
    now = ["load", time.process_time()]

    def tell(what: str, _: float) -> None:
        part = what.partition(",")[0]
        if part != now[0]:
            began = time.process_time()
            spent[str(now[0])] = spent.get(str(now[0]), 0.0) + began - float(now[1])
            now[:] = [part, began]

    settings = {**SETTINGS, "network.devices": devices, "federation.rounds": rounds}
    compare(preset("best").with_(**settings), ["marginal"], [0], progress=tell)
    tell("end", 1.0)
    spent["all"] = time.process_time()
    spent["GiB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(json.dumps(spent))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--sizes", default="1000,3000,10000")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--one", type=int, help="measure this size in this process")
    options = parser.parse_args()
    if options.one:
        one(options.one, options.rounds)
        return
    rows: dict[int, dict[str, float]] = {}
    for size in map(int, options.sizes.split(",")):
        command = [sys.executable, __file__, "--one", str(size), "--rounds", str(options.rounds)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        rows[size] = json.loads(done.stdout.splitlines()[-1])
        print(
            f"{size:8,d} devices: " + ", ".join(f"{part} {value:.2f}" for part, value in rows[size].items()), flush=True
        )
    for small, large in pairwise(rows):
        grown = {
            part: math.log(rows[large][part] / rows[small][part]) / math.log(large / small)
            for part in rows[large]
            if rows[small].get(part, 0) > 0.05
        }
        print(f"exponents {small:,} to {large:,}: " + ", ".join(f"{part} {value:.2f}" for part, value in grown.items()))


if __name__ == "__main__":
    main()
