"""One federation on a Ray cluster of two nodes on this machine: start-up, seconds of a round, and bytes that cross between nodes.

Bytes are counted by the kernel on the loopback of a network that belongs to this script alone, where such a one can be made
(`unshare`); what a node's own processes share goes through memory and does not count. Both nodes share the cores of this
machine: seconds say what the cluster adds, not what it gains.

    python benchmarks/cluster.py [--devices 1000] [--rounds 4]
"""

import argparse
import os
import shutil
import subprocess
import sys
import time
import warnings
from itertools import pairwise
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "experiment" / "grid"))

APART = ["unshare", "--map-root-user", "--net", "--pid", "--fork", "--mount-proc", "--kill-child"]


def crossed() -> int:
    """Bytes that loopback has carried."""
    line = next(line for line in Path("/proc/net/dev").read_text().splitlines() if line.strip().startswith("lo:"))
    return int(line.split(":")[1].split()[0])


def federation(devices: int, model: str) -> Any:
    """Random data, 20 datapoints a device."""
    import numpy as np

    from d2dfl.federation import Federated

    draws = np.random.default_rng(0)
    inputs = draws.normal(size=(20 * devices, *((784,) if model == "mlp" else (1, 28, 28)))).astype(np.float32)
    targets = draws.integers(10, size=len(inputs))
    members = np.split(np.arange(len(inputs)), devices)
    return Federated(inputs, targets, members, inputs[:100], targets[:100], 10)


def trained(model: str, data: Any, place: Any, changes: dict[str, Any]) -> tuple[list[float], list[int], Any]:
    """Seconds and bytes until the end of each round, from before the workers start, and the model."""
    from d2dfl.federation import MODELS, FederationConfig, start, train_many

    settings = FederationConfig(interval=5, batch=16, **changes)
    state = start(MODELS[model], data, settings)
    times, counts = [time.perf_counter()], [crossed()]

    def note(_: int, __: object) -> None:
        times.append(time.perf_counter())
        counts.append(crossed())

    train_many(MODELS[model], [(data, 0)], settings, states=[state], on_round=note, cluster=place)
    spent = [later - before for before, later in pairwise(times)]
    return spent, [later - before for before, later in pairwise(counts)], state.params


def measure(devices: int, rounds: int) -> None:
    import torch
    from two_nodes import cluster

    from d2dfl.config import FederationConfig
    from d2dfl.experiment.grid.cluster import cluster_for

    torch.set_num_threads(1)
    began = time.perf_counter()
    with cluster():
        print(f"two nodes, 1 CPU each, start in {time.perf_counter() - began:.1f} s; medians of rounds after the first")
        print(
            f"{'':34s}{'parameters':>11s}{'s, here':>9s}{'s, Ray':>8s}{'1st':>7s}{'MB a round':>12s}{'MB, 1st':>9s}  bits"
        )
        for model, scheme, rule, share in (
            ("mlp", "fedavg", "reset", 1.0),
            ("mlp", "fedavg", "reset", 0.1),
            ("mlp", "fedavg", "mix", 0.1),
            ("mlp", "fedavg", "keep", 0.1),
            ("mlp", "semi-decentralised", "reset", 0.1),
            ("mlp", "fedsgd", "reset", 0.1),
            ("cnn", "fedavg", "reset", 0.1),
        ):
            changes = {"scheme": scheme, "momentum_rule": rule, "participation": share, "rounds": rounds}
            data = federation(devices, model)
            near, _, here = trained(model, data, None, {**changes, "evaluate_every": rounds})
            with cluster_for("ray", FederationConfig()) as place:
                far, sent, there = trained(model, data, place, {**changes, "evaluate_every": rounds})
            middle = sorted(sent[1:])[len(sent[1:]) // 2]
            print(
                f"{f'{model}, {scheme}, {rule}, {share:.0%}':34s}{here.shape[1]:11,d}{sorted(near[1:])[len(near) // 2 - 1]:9.2f}"
                f"{sorted(far[1:])[len(far) // 2 - 1]:8.2f}{far[0]:7.1f}{middle / 1e6:12.1f}{sent[0] / 1e6:9.1f}"
                f"  {'the same' if torch.equal(here, there) else 'OTHERS'}",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--devices", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=4)
    options = parser.parse_args()
    alone = (
        shutil.which("unshare") and not subprocess.run([*APART, "true"], capture_output=True, check=False).returncode
    )
    if alone and "D2DFL_APART" not in os.environ:
        os.environ["D2DFL_APART"] = "1"
        os.execvp(APART[0], [*APART, sys.executable, *sys.argv])
    if not alone:
        print("no network of its own can be made here: bytes of others on loopback are counted, too")
    warnings.simplefilter("ignore")
    os.environ |= {"RAY_worker_niceness": "0"}  # Ray's own 15 would let everyone else on the machine go first
    measure(options.devices, options.rounds)


if __name__ == "__main__":
    main()
