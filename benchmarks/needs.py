"""The constants of src/d2dfl/config/needs.py and discovery/methods/costs.py: what networks take in memory, and what discoveries take in time.

Memory: peak resident memory of a process that generates a network and discovers a graph in it, less that of one that did
both for a tiny network, beside what is predicted. Time: processor time of discoveries over
a grid of shapes and settings, once everything is compiled, and non-negative costs for each kind of work
(discovery_work) that come nearest to it in ratio.

    python benchmarks/needs.py [memory] [time] [METHOD ...]
"""

import subprocess
import sys
import time
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.optimize import nnls

from d2dfl import METHODS, Config, Network, discover, preset
from d2dfl.config.needs import network_bytes
from d2dfl.discovery.needs import OVERHEAD_S, discovery_seconds, discovery_work

MEMORY = [
    (devices, slots, parts) for devices in (10_000, 30_000, 100_000) for slots in (8, 64) for parts in (2, 10, 40)
]
LARGEST = 2_000_000_000  # bytes: larger cases are left out
PEAK = """
import resource, sys
from d2dfl import Network, discover, preset
def run(devices, slots, partitions):
    config = preset("best").with_(**{"network.devices": devices, "channel.slots": slots, "network.partitions": partitions,
        "network.labels_per_device": 2, "marginal.messages": 5})
    discover(Network.generate(config, 0), config)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
before = run(30, 4, 3)
print(run(*map(int, sys.argv[1:])) - before)
"""


def memory() -> None:
    """Print peaks beside what is predicted: constants were chosen so that no peak over 50 MiB is above."""
    for devices, slots, partitions in MEMORY:
        predicted = network_bytes(devices, slots, partitions)
        if predicted > LARGEST:
            continue
        arguments = [sys.executable, "-c", PEAK, *map(str, (devices, slots, partitions))]
        peak = float(subprocess.run(arguments, capture_output=True, text=True, check=True).stdout)
        said = f"predicted {predicted / peak:.2f} of it"
        print(f"{devices:8,} x {slots:3} x {partitions:3}: {peak / 2**20:8,.0f} MiB, {said}", flush=True)


def clustered(config: Config, devices: int, partitions: int, components: int) -> Network:
    """A generated network whose partitions are data clusters."""
    generator = np.random.default_rng(0)
    network = Network.generate(config, 0)
    root = generator.normal(size=(devices, partitions, components, components))
    return replace(
        network,
        centroids=generator.normal(size=(devices, partitions, components)) * 3,
        covariances=root @ np.swapaxes(root, 2, 3),
        request=np.full(devices, 50.0),
    )


def cases(method: str) -> list[tuple[dict[str, Any], int]]:
    """Settings to time a method with, and components of data clusters."""
    effort = {
        "marginal": ("marginal.messages", (30, 300, 1500)),
        "qlearning": ("qlearning.steps", (300, 3000)),
        "bandit": ("bandit.steps", (200, 1500)),
        "optimum": ("optimum.messages", (50, 500)),
        "gcn": ("gcn.epochs", (10, 60)),
    }
    name, amounts = effort.get(method, ("bandit.steps", (1,)))
    found: list[tuple[dict[str, Any], int]] = []
    small = method in ("optimum", "greedy")
    for devices, slots, partitions in ((25, 0, 10), (100, 0, 3), (300, 16, 40)) if small else (
        (25, 0, 10), (200, 0, 4), (2000, 64, 10), (1000, 8, 40)
    ):  # fmt: skip
        shape = {"network.devices": devices, "channel.slots": slots, "network.partitions": partitions}
        for amount in amounts:
            for edges in (1, 5):
                settings = {**shape, name: amount, "discovery.edges": edges}
                if method == "optimum":
                    settings |= {"optimum.starts": 4, "optimum.sweeps": 20 if amount == 50 else 200}
                if method == "gcn":
                    settings |= {"gcn.systems": 8 * edges, "discovery.edges": 1}
                found.append((settings, 0))
    if method == "optimum":
        for nodes in (10_000, 300_000):
            found.append(
                ({"network.devices": 12, "discovery.edges": 1, "optimum.nodes": nodes, "optimum.starts": 1}, 0)
            )
    if method in ("marginal", "qlearning", "bandit", "greedy", "optimum"):
        for devices, partitions, components in ((10, 4, 3), (10, 10, 8), (20, 7, 8)):
            shape = {"network.devices": devices, "network.partitions": partitions, "discovery.edges": 2}
            cheap = {"optimum.starts": 2, "optimum.sweeps": 20}
            found.append(({**shape, **cheap, name: amounts[0]}, components))
    return found


def spent(method: str) -> tuple[list[tuple[float, ...]], list[float]]:
    """Work and seconds of a method in each of its cases."""
    rows: list[tuple[float, ...]] = []
    took: list[float] = []
    compiled: set[bool] = set()
    for settings, components in cases(method):
        config = preset("best").with_(**{"network.labels_per_device": 2, **settings})
        devices, partitions = config.network.devices, config.network.partitions
        network = clustered(config, devices, partitions, components) if components else Network.generate(config, 0)
        if bool(components) not in compiled:
            discover(network, config, method=method)
            compiled.add(bool(components))
        began = time.process_time()
        discover(network, config, seed=1, method=method)
        took.append(time.process_time() - began)
        rows.append(discovery_work(METHODS[method], config, network.shape))
        ratio = discovery_seconds(method, config, network.shape) / took[-1]
        print(f"{method:12} {network.shape} {took[-1]:8.3f} s, predicted {ratio:5.2f} of it", flush=True)
    return rows, took


def seconds() -> None:
    """Print the costs of every method, fitted to all cases that take long enough to be measured."""
    for method in [name for name in sys.argv[1:] if name in METHODS] or list(METHODS):
        rows, took = spent(method)
        long = np.array(took) > (0.02 if sum(value > 0.02 for value in took) > 4 else 0.0)
        work, times = np.array(rows)[long], np.array(took)[long]
        fit = nnls(work / times[:, None], np.ones(len(times)))[0]
        ratios = (work @ fit + OVERHEAD_S) / times
        costs = ", ".join(f"{value:.2g}" for value in fit)
        print(f'    "{method}": ({costs}),  # {ratios.min():.2f} to {ratios.max():.2f}', flush=True)


if __name__ == "__main__":
    if "memory" in sys.argv:
        memory()
    if "time" in sys.argv:
        seconds()
