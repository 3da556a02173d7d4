"""Semi-supervised labels: share of unlabelled datapoints that get their true label, by labeller, components and share.

25 devices with 3 labels each (70/20/10), projections on the common subspace (disPCA), every device labels alone. Mean
over devices, then mean and standard deviation over seeds of allocation and labelled datapoints.

    python benchmarks/labels.py [--dataset digits] [--devices 25] [--samples 1200] [--seeds 5]
                                [--components 2,4,8,16,32] [--shares 0.02,0.05,0.15,0.3]
"""

import argparse
import time

import numpy as np

from d2dfl.data.allocate import allocate, largest
from d2dfl.data.datasets import Dataset, load
from d2dfl.partition.pca import common_subspace
from d2dfl.partition.propagation import LABELLERS, choose_labelled, pseudo_labels


def one_system(
    data: Dataset,
    devices: int,
    samples: int,
    seed: int,
    counts: list[int],
    shares: list[float],
    spent: dict[str, float],
) -> dict[tuple[float, str, int], float]:
    """(share, labeller, components) -> accuracy; adds to spent[labeller] the seconds that it took."""
    held = list(allocate(data.train_targets, devices, "labels:3", samples=samples, seed=seed))
    parts = [data.train_inputs[points] for points in held]
    results = {}
    for count in counts:
        subspace = common_subspace(parts, count)
        projections = [subspace.project(part) for part in parts]
        for share in shares:
            labelled = choose_labelled(data.train_targets, held, share, seed)
            for name in LABELLERS:
                start = time.perf_counter()
                found = pseudo_labels(
                    projections, data.train_targets, held, data.classes, labelled=labelled, labeller=name, seed=seed
                )
                spent[name] += time.perf_counter() - start
                results[share, name, count] = float(np.nanmean(found.accuracy))
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dataset", default="digits")
    parser.add_argument("--devices", type=int, default=25)
    parser.add_argument("--samples", type=int, default=1200, help="datapoints a device, or as many as there are")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--components", default="2,4,8,16,32")
    parser.add_argument("--shares", default="0.02,0.05,0.15,0.3")
    options = parser.parse_args()
    data = load(options.dataset)
    counts = [int(text) for text in options.components.split(",")]
    shares = [float(text) for text in options.shares.split(",")]
    samples = min(options.samples, largest(data.train_targets, options.devices, "labels:3"))
    spent = dict.fromkeys(LABELLERS, 0.0)
    systems = [one_system(data, options.devices, samples, seed, counts, shares, spent) for seed in range(options.seeds)]
    print(f"{data.name}: {options.devices} devices of {samples:,} with 3 labels each, {options.seeds} seeds\n")
    print(f"| labelled | labeller | {' | '.join(f'{count} components' for count in counts)} |")
    print(f"|---|---|{'---|' * len(counts)}")
    for share in shares:
        for name in LABELLERS:
            cells = np.array([[system[share, name, count] for count in counts] for system in systems])
            texts = [f"{m:.3f} ± {s:.3f}" for m, s in zip(cells.mean(axis=0), cells.std(axis=0), strict=True)]
            print(f"| {share:.0%} | {name} | {' | '.join(texts)} |")
    calls = len(systems) * len(counts) * len(shares) * options.devices
    print("\nms a device: " + ", ".join(f"{name} {1000 * seconds / calls:.0f}" for name, seconds in spent.items()))


if __name__ == "__main__":
    main()
