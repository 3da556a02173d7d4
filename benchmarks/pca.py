"""Distributed PCA: how far the common subspace is from PCA of all data, and what it costs to find.

25 devices, i.i.d. and with 3 labels each (70/20/10), all three methods. `largest sine` is the sine of the largest
principal angle to pooled PCA, `squared sine` the mean of the squared sines, `captured` the variance in the subspace as a
share of what pooled PCA captures; mean and standard deviation over seeds of the allocation. `kB a device` is what one
device sends, at 4 bytes a number.

    python benchmarks/pca.py [--dataset digits] [--devices 25] [--samples 1200] [--seeds 5] [--components 2,4,8,16,32]
"""

import argparse
import time

import numpy as np
from numpy.typing import NDArray

from d2dfl.data.allocate import allocate, largest
from d2dfl.data.datasets import load
from d2dfl.partition.pca import SERVER, SUMMARIES, common_subspace
from subspaces import captured, mean_squared_sine, subspace_error

RULES = {"i.i.d.": "iid", "3 labels a device": "labels:3"}
BYTES = 4


def one_system(parts: list[NDArray[np.float32]], counts: list[int]) -> dict[tuple[str, int], list[float]]:
    """(method, components) -> largest sine, mean squared sine, captured share, kB a device, seconds."""
    rows = np.concatenate([part.reshape(len(part), -1) for part in parts]).astype(np.float64)
    mean = rows.mean(axis=0)
    values, vectors = np.linalg.eigh((rows - mean).T @ (rows - mean))
    # As many rows as features with the scatter of all of them: `captured` sees the same and is quicker.
    root = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
    results = {}
    for method in SUMMARIES:
        for count in counts:
            start = time.perf_counter()
            found = common_subspace(parts, count, method)
            seconds = time.perf_counter() - start
            best = vectors[:, ::-1].T[:count]
            sent = sum(item.values for item in found.messages if item.sender != SERVER)
            results[method, count] = [
                subspace_error(best, found.components),
                mean_squared_sine(best, found.components),
                captured(found.components, root, np.zeros(len(mean))),
                sent * BYTES / 1000 / len(parts),
                seconds,
            ]
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dataset", default="digits")
    parser.add_argument("--devices", type=int, default=25)
    parser.add_argument("--samples", type=int, default=1200, help="datapoints a device, or as many as there are")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--components", default="2,4,8,16,32")
    options = parser.parse_args()
    data = load(options.dataset)
    counts = [int(text) for text in options.components.split(",")]
    # The same size for both rules, so that only the skew differs.
    samples = min(options.samples, *(largest(data.train_targets, options.devices, rule) for rule in RULES.values()))
    print(f"{data.name}: {options.devices} devices of {samples:,}, {options.seeds} seeds\n")
    print("| devices | method | components | largest sine | squared sine | captured | kB a device | s |")
    print("|---|---|---|---|---|---|---|---|")
    for title, rule in RULES.items():
        systems = []
        for seed in range(options.seeds):
            held = allocate(data.train_targets, options.devices, rule, samples=samples, seed=seed)
            systems.append(one_system([data.train_inputs[points] for points in held], counts))
        for (method, count), _ in systems[0].items():
            cells = np.array([system[method, count] for system in systems])
            mean, spread = cells.mean(axis=0), cells.std(axis=0)
            print(
                f"| {title} | {method} | {count} | {mean[0]:.3f} ± {spread[0]:.3f} | {mean[1]:.4f} ± {spread[1]:.4f} "
                f"| {mean[2]:.4f} ± {spread[2]:.4f} | {mean[3]:,.1f} | {mean[4]:.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
