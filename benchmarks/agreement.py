"""System agreement between label mixes of Dirichlet(alpha) before and after (paper Appendix B, Table III), and its speed.

Before and after are two independent systems of 10 devices; alpha says how even each device's mix of 10 labels is. A
device's datapoints lie in 8 dimensions: 10 Gaussian classes, drawn anew for each seed, with as much variance between
classes as real sets have (1.3 times that within), or a real set on its common subspace. Labels only decide who holds
what: as the paper says, the reward does not see them, so a device's data clusters are its own K-means (7). All readings
of R11, other ridges and other clusters stand below the main table: how many of the 12 signs off the diagonal, of the 12
steps along rows (rise to the right) and of the 12 down columns (fall) are the paper's, in the mean over seeds.

--speed: rounds of the learners on data clusters, and one changed link by sums against all pairs anew.

    python benchmarks/agreement.py [--datasets synthetic,digits,fmnist] [--samples 600] [--seeds 10]
    python benchmarks/agreement.py --speed
"""

import argparse
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from numba import njit
from numpy.typing import NDArray

from d2dfl.config import RewardConfig
from d2dfl.config.presets import preset
from d2dfl.data.datasets import load
from d2dfl.discovery.discover import discover
from d2dfl.discovery.equations.gaussian import KINDS, pair_divergences
from d2dfl.discovery.equations.worth import agreement_between, clustered_worth
from d2dfl.discovery.evaluation import evaluate, graph_of
from d2dfl.discovery.game.state import change_link, set_link, start, taken, total
from d2dfl.discovery.task import Task
from d2dfl.experiment.inputs import data_set
from d2dfl.experiment.setting import setting_of
from d2dfl.partition.kmeans import moments, own_clusters
from d2dfl.partition.pca import common_subspace
from d2dfl.rng import stream

Array = NDArray[np.float64]
ALPHAS = (0.01, 0.1, 1.0, 10.0)
PAPER = np.array(
    [
        [-0.0369, 0.100, 1.906, 4.515],
        [-0.3019, -0.1008, 1.016, 3.984],
        [-0.9432, -0.8208, 0.2300, 3.452],
        [-0.9999, -0.9999, -0.9736, 0.385],
    ]
)
DEVICES, CLASSES, COMPONENTS, CLUSTERS = 10, 10, 8, 7
BETWEEN = 1.3  # variance between classes over variance within, as on 8 components of digits (1.4) and FMNIST (1.3)
RIDGE = RewardConfig().ridge
THIN = 1e-3  # a ridge under which clusters of a few datapoints, all but flat, outweigh all others
LINKS, CHANGES, REPEATS = 2, 200, 6


class Mix(NamedTuple):
    """Data clusters of all devices. A device that has fewer than others has rows of weight 0."""

    means: Array  # [device, cluster, component]
    spreads: Array  # [device, cluster, component, component]
    shares: Array  # [device, cluster] of the device's datapoints


class Reading(NamedTuple):
    """One way to a number."""

    title: str
    clusters: str  # a number for K-means, or "labels": one for each label held
    ridge: float
    measure: Callable[[Array, Array, Mix, Mix], float]  # divergences [i, j, l, m] before, after


def plain(before: Array, after: Array, one: Mix, two: Mix, kind: str) -> float:
    """The package's readings of R11."""
    return agreement_between(before, after, kind)


def weighted(before: Array, after: Array, one: Mix, two: Mix, even: bool) -> float:
    """The default reading with each cluster weighted by its datapoints, or evenly over those that are not empty."""
    values = []
    for table, mix in ((before, one), (after, two)):
        weights = mix.shares > 0 if even else mix.shares
        values.append(np.einsum("ijlm,il,jm->", table, weights, weights))
        if even:
            held = weights.sum(axis=1)
            values[-1] /= held.sum() ** 2 - (held**2).sum()
    return float(values[0] / values[1] - 1.0)


def nearest(before: Array, after: Array, one: Mix, two: Mix) -> float:
    """Each cluster against the nearest cluster of the other device only, weighted by datapoints."""
    found = [np.einsum("ijl,il->", table.min(axis=3), mix.shares) for table, mix in ((before, one), (after, two))]
    return float(found[0] / found[1] - 1.0)


def readings() -> list[Reading]:
    """The default first."""
    ratio, seven = partial(plain, kind="ratio"), str(CLUSTERS)
    return [
        *(
            Reading(f"{kind}, 7 clusters, ridge {ridge:g}", seven, ridge, partial(plain, kind=kind))
            for ridge in (RIDGE, THIN)
            for kind in KINDS
        ),
        *(
            Reading(f"ratio, 7 clusters by datapoints, ridge {ridge:g}", seven, ridge, partial(weighted, even=False))
            for ridge in (RIDGE, THIN)
        ),
        Reading(f"ratio, 7 clusters, nearest only, ridge {THIN:g}", seven, THIN, nearest),
        Reading(f"ratio, 4 clusters, ridge {RIDGE:g}", "4", RIDGE, ratio),
        Reading(f"ratio, 1 cluster, ridge {THIN:g}", "1", THIN, ratio),
        Reading(f"ratio, a cluster a label, ridge {RIDGE:g}", "labels", RIDGE, partial(weighted, even=True)),
    ]


def synthetic(seed: int) -> list[Array]:
    """pool[class][n, component]: Gaussian classes around random centres."""
    rng = stream(seed, "agreement-classes")
    centres = rng.normal(0.0, np.sqrt(BETWEEN), (CLASSES, COMPONENTS))
    return [centre + rng.normal(size=(4000, COMPONENTS)) for centre in centres]


def real(name: str) -> list[Array]:
    """pool[class][n, component]: a set on the common subspace of devices that hold all of it, i.i.d."""
    data = load(name)
    subspace = common_subspace([data.train_inputs[start::DEVICES] for start in range(DEVICES)], COMPONENTS)
    places = subspace.project(data.train_inputs)
    return [places[data.train_targets == label] for label in range(data.classes)]


def drawn(pool: Sequence[Array], alpha: float, samples: int, rng: np.random.Generator) -> list[list[Array]]:
    """points[device][label]: each device draws its label mix, then datapoints of each label.

    Devices draw from one pool each for itself, so that a small set does not run dry: two may hold the same datapoint.
    """
    system = []
    for _ in range(DEVICES):
        counts = rng.multinomial(samples, rng.dirichlet(np.full(len(pool), alpha)))
        pairs = zip(pool, counts, strict=True)
        system.append([part[rng.choice(len(part), count, replace=count > len(part))] for part, count in pairs])
    return system


def clustered(system: list[list[Array]], clusters: str, seed: int) -> Mix:
    """Data clusters by K-means at each device, or by label."""
    points = [np.concatenate(device) for device in system]
    sizes = [len(device) for device in points]
    if clusters == "labels":
        labels = [np.repeat(np.arange(len(device)), [len(part) for part in device]) for device in system]
        centres = np.zeros((len(system[0]), COMPONENTS))
        found = [moments(held, label, centres) for held, label in zip(points, labels, strict=True)]
        counts, means, spreads = (np.stack(arrays) for arrays in zip(*found, strict=True))
    else:
        holdings = np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1])
        own = own_clusters(points, holdings, sum(sizes), int(clusters), seed)
        counts, means, spreads = own.counts, own.centroids, own.covariances
    return Mix(means, spreads, counts / np.array(sizes)[:, None])


def one_cell(pool: Sequence[Array], alphas: tuple[float, float], samples: int, seed: int) -> list[float]:
    """Agreement between two independent systems, by reading. The ridge is a share of the variance before, as in a game."""
    rng = stream(seed, "agreement", *(f"{alpha:g}" for alpha in alphas))
    systems = [drawn(pool, alpha, samples, rng) for alpha in alphas]
    variance = np.concatenate([part for device in systems[0] for part in device]).var(axis=0).mean()
    chosen = readings()
    mixes = {
        name: (clustered(systems[0], name, seed), clustered(systems[1], name, seed))
        for name in {r.clusters for r in chosen}
    }
    tables = {
        (name, ridge): [pair_divergences(m.means, m.spreads + ridge * variance * np.eye(COMPONENTS)) for m in pair]
        for name, pair in mixes.items()
        for ridge in {r.ridge for r in chosen if r.clusters == name}
    }
    found = []
    for reading in chosen:
        before, after = tables[reading.clusters, reading.ridge]
        found.append(reading.measure(before, after, *mixes[reading.clusters]))
    return found


def one_seed(samples: int, seed: int, pool: Sequence[Array] | None) -> Array:
    """values[before, after, reading]; without a pool the classes are drawn too."""
    pool = synthetic(seed) if pool is None else pool
    cells = [one_cell(pool, pair, samples, seed) for pair in product(ALPHAS, ALPHAS)]
    return np.array(cells).reshape(len(ALPHAS), len(ALPHAS), -1)


def in_words(values: Array) -> str:
    """Signs, rows, columns and diagonal of values[seed, before, after], as cells of a table."""
    mean = values.mean(axis=0)
    off = ~np.eye(len(ALPHAS), dtype=bool)
    signs = int((np.sign(mean) == np.sign(PAPER))[off].sum())
    rows, columns = int((np.diff(mean, axis=1) > 0).sum()), int((np.diff(mean, axis=0) < 0).sum())
    # A step of more than two standard errors is no accident of the draw.
    error = values.std(axis=0, ddof=1) / np.sqrt(len(values))
    across = np.diff(mean, axis=1) / np.hypot(error[:, 1:], error[:, :-1])
    down = -np.diff(mean, axis=0) / np.hypot(error[1:], error[:-1])
    steps = np.concatenate([across.ravel(), down.ravel()])
    clear = f"{int((steps > 2).sum())} / {int((steps < -2).sum())}"
    diagonal = " ".join(f"{value:+.2f}" for value in np.diag(mean))
    return f"{signs}/12 | {rows}/12 | {columns}/12 | {clear} | {diagonal}"


def table_three(source: str, samples: int, seeds: range, jobs: int, shown: Sequence[int]) -> None:
    """The paper's table by one source of data."""
    pool = None if source == "synthetic" else real(source)
    runs = (delayed(one_seed)(samples, seed, pool) for seed in seeds)
    values = np.array(Parallel(n_jobs=jobs)(runs))
    print(
        f"## {source}: {DEVICES} devices of {samples:,} in {COMPONENTS} dimensions, seeds {seeds[0]} to {seeds[-1]}\n"
    )
    chosen = readings()
    for at in shown:
        print(f"{chosen[at].title}: ours, mean ± standard deviation (paper)\n")
        print(f"| before \\ after | {' | '.join(f'{alpha:g}' for alpha in ALPHAS)} |\n|---|{'---:|' * len(ALPHAS)}")
        mean, spread = values[..., at].mean(axis=0), values[..., at].std(axis=0)
        for row, alpha in enumerate(ALPHAS):
            cells = [f"{mean[row, c]:+.3f} ± {spread[row, c]:.3f} ({PAPER[row, c]:+.3f})" for c in range(len(ALPHAS))]
            print(f"| {alpha:g} | {' | '.join(cells)} |")
        print()
    print(
        "| reading | signs | rows | columns | steps > 2 standard errors: right / wrong | diagonal |\n|---|---:|---:|---:|---:|---|"
    )
    for at, reading in enumerate(chosen):
        print(f"| {reading.title} | {in_words(values[..., at])} |")
    print(flush=True)


@njit(cache=True)
def play_all(board: Any, terms: Any, play: Any, changes: Any) -> None:
    """All changes (receiver, edge, slot) in turn."""
    for at in range(len(changes)):
        set_link(board, terms, play, changes[at, 0], changes[at, 1], changes[at, 2])


def links_speed(devices: int) -> None:
    """One changed link: seconds by sums and by all pairs, and the largest difference between the two."""
    config = preset("paper", "unsupervised").with_(**{"network.devices": devices, "discovery.edges": LINKS})
    network = setting_of(config, 0, data_set(config, 0)).network
    task = Task(network, config, 0, edges=LINKS)
    board, terms, rng = task.board(), task.terms, stream(0, "agreement-links")
    play = start(board, terms, LINKS)
    changes: list[NDArray[np.int64]] = []
    apart, slow = np.zeros(2), 0.0
    while len(changes) < CHANGES:
        change = rng.integers(0, (devices, LINKS, network.slots))
        if taken(play.slots, *change) or play.slots[change[0], change[1]] == change[2]:
            continue
        changes.append(change)
        change_link(board, terms, play, *change)
        graph = graph_of(network, play.slots, task.over_ask)
        began = time.perf_counter()
        worth = clustered_worth(network, graph, config.reward)
        slow += time.perf_counter() - began
        whole = evaluate(network, graph, config.reward).objective
        found = abs(play.shape.agreement[0] - worth.agreement), abs(total(board, terms, play) / devices - whole)
        apart = np.maximum(apart, found)
    order, fast = np.array(changes), np.inf
    for _ in range(REPEATS):  # the first one compiles
        play, began = start(board, terms, LINKS), time.perf_counter()
        play_all(board, terms, play, order)
        fast = min(fast, time.perf_counter() - began)
    print(
        f"| {devices} | {1e6 * fast / CHANGES:,.0f} µs | {1e6 * slow / CHANGES:,.0f} µs | {slow / fast:,.0f} | "
        f"{apart[0]:.1e} | {apart[1]:.1e} |",
        flush=True,
    )


def speed() -> None:
    """Learners on data clusters, then one changed link."""
    config = preset("paper", "unsupervised").with_(**{"discovery.edges": 1})
    network = setting_of(config, 0, data_set(config, 0)).network
    assert network.centroids is not None
    print(f"## Speed, one core: N, L, d = {network.centroids.shape}\n")
    print("| learner | rounds | messages a device | seconds | objective |\n|---|---:|---:|---:|---:|")
    for method in ("qlearning", "marginal"):
        discover(network, config, method=method)  # compiles
        found = discover(network, config, method=method)
        print(
            f"| {method} | {found.steps:,} | {found.messages / network.devices:,.0f} | {found.seconds:.2f} "
            f"| {found.evaluation.objective:.3f} |",
            flush=True,
        )
    print(f"\nOne changed link of {LINKS} a device, mean of {CHANGES} random changes:\n")
    print("| devices | by sums | all pairs (NumPy) | ratio | largest difference: agreement | objective |")
    print("|---:|---:|---:|---:|---:|---:|")
    for devices in (10, 20, 40):
        links_speed(devices)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--datasets", default="synthetic,digits", help="synthetic, or names of sets with 10 classes")
    parser.add_argument("--samples", type=int, default=600, help="datapoints a device; 100 at most for digits")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--shown", default="0,4", help="readings, by place in the last table, shown in full")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--speed", action="store_true", help="speed alone")
    options = parser.parse_args()
    if options.speed:
        speed()
        return
    for source in options.datasets.split(","):
        samples = min(options.samples, 100) if source == "digits" else options.samples
        seeds = range(options.first, options.first + options.seeds)
        table_three(source, samples, seeds, options.jobs, [int(at) for at in options.shown.split(",")])


if __name__ == "__main__":
    main()
