"""Semi-supervised labels: share of unlabelled datapoints that get their true label, by labeller, components and share.

25 devices with 3 labels each (70/20/10), projections on the common subspace (disPCA), every device labels alone. Mean
over devices, then mean and standard deviation over seeds of allocation and labelled datapoints. A device that gives all
of its datapoints its most frequent label gets 0.70 right.

    python benchmarks/labels.py [--dataset digits] [--devices 25] [--samples 1200] [--seeds 5]
                                [--components 2,4,8,16,32] [--shares 0.02,0.05,0.15,0.3] [--labellers propagation]
    python benchmarks/labels.py --dataset radio --samples 990 --features sorted --set radio.lowest_snr_db=10

Signals: a linear projection of raw samples says little, since carrier phase and symbol times are random in every window.
`--features sorted` has each device sort the magnitudes and the phase steps of a window first, which forgets both.
"""

import argparse
import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from d2dfl.config import Config
from d2dfl.data.allocate import allocate, largest
from d2dfl.data.datasets import Dataset, load
from d2dfl.partition.pca import common_subspace
from d2dfl.partition.propagation import LABELLERS, choose_labelled, pseudo_labels

Results = dict[tuple[float, str, int], NDArray[np.float64]]  # (share, labeller, components) -> accuracy by seed


def sorted_features(inputs: NDArray[np.float32]) -> NDArray[np.float32]:
    """Magnitudes and phase steps of signals [n, 2, time], each sorted; magnitudes relative to the window's power."""
    signal = inputs[:, 0] + 1j * inputs[:, 1]
    signal = signal / np.sqrt((np.abs(signal) ** 2).mean(axis=1, keepdims=True))
    turns = np.angle(signal[:, 1:] * signal[:, :-1].conj())
    values = np.concatenate([np.sort(np.abs(signal), axis=1), np.sort(turns, axis=1)], axis=1)
    return np.asarray((values - values.mean(axis=0)) / values.std(axis=0), dtype=np.float32)


def monotone(results: Results, name: str, counts: list[int], shares: list[float]) -> str:
    """Whether accuracy rises along components and falls along the unlabelled share, up to the spread over seeds."""
    cells = np.array([[results[share, name, count] for count in counts] for share in sorted(shares)])
    texts = []
    for what, axis in (("rises with components", 1), ("falls with the unlabelled share", 0)):
        mean, spread = cells.mean(axis=2), cells.std(axis=2)
        rise = np.diff(mean, axis=axis)
        first, last = (spread.take(range(at, spread.shape[axis] - 1 + at), axis=axis) for at in (0, 1))
        wrong = int((rise < -np.maximum(first, last)).sum())
        whole = float((mean.take(-1, axis=axis) - mean.take(0, axis=axis)).mean())
        texts.append(
            f"{what}: {'yes' if not wrong else f'not in {wrong} of {rise.size} steps'} ({abs(whole):.3f} {'the right way' if whole > 0 else 'the wrong way'} from end to end)"
        )
    return f"{name} {', '.join(texts)}"


def one_system(
    data: Dataset,
    devices: int,
    samples: int,
    seed: int,
    counts: list[int],
    shares: list[float],
    names: Sequence[str],
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
            for name in names:
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
    parser.add_argument("--labellers", default=",".join(LABELLERS))
    parser.add_argument("--features", choices=("raw", "sorted"), default="raw", help="sorted: signals only")
    parser.add_argument("--set", action="append", default=[], help="section.field=value, such as radio.per_cell=200")
    options = parser.parse_args()
    data = load(options.dataset, radio=Config().with_texts(options.set).radio)
    if options.features == "sorted":
        data = replace(data, train_inputs=sorted_features(data.train_inputs))
    names = options.labellers.split(",")
    counts = [int(text) for text in options.components.split(",")]
    shares = [float(text) for text in options.shares.split(",")]
    samples = min(options.samples, largest(data.train_targets, options.devices, "labels:3"))
    spent = dict.fromkeys(names, 0.0)
    systems = [
        one_system(data, options.devices, samples, seed, counts, shares, names, spent) for seed in range(options.seeds)
    ]
    results = {key: np.array([system[key] for system in systems]) for key in systems[0]}
    print(f"{data.name}: {options.devices} devices of {samples:,} with 3 labels each, {options.seeds} seeds\n")
    print(f"| labelled | labeller | {' | '.join(f'{count} components' for count in counts)} |")
    print(f"|---|---|{'---|' * len(counts)}")
    for share in shares:
        for name in names:
            cells = [results[share, name, count] for count in counts]
            print(f"| {share:.0%} | {name} | {' | '.join(f'{c.mean():.3f} ± {c.std():.3f}' for c in cells)} |")
    print()
    for name in names:
        print(monotone(results, name, counts, shares))
    calls = len(systems) * len(counts) * len(shares) * options.devices
    print("\nms a device: " + ", ".join(f"{name} {1000 * seconds / calls:.0f}" for name, seconds in spent.items()))


if __name__ == "__main__":
    main()
