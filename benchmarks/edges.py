"""Unsupervised exchange by number of links (paper Fig. 8d), and what noise on messages costs.

10 devices with 3 labels each (70/20/10), nobody knows a label. Mean 1-Wasserstein distance (labels on a line) of the
devices' true labels to the population's, and total variation, after 1 to 3 links a device; each relative to no
exchange, mean and standard deviation over seeds. The paper: -17 % with the first link, -5 % with the next.

With --privacy instead: links chosen from messages noised for (epsilon, 1e-5). `share` is the objective of the exchange
as it happened, in the partitions that the devices would have had without noise, between no exchange (0) and the same
learner without noise (1).

    python benchmarks/edges.py [--dataset digits] [--samples 1200] [--seeds 5] [--links 1,2,3] [--set reward.ridge=0.1]
    python benchmarks/edges.py --privacy [--dataset digits] [--epsilons 0.5,1,2,4,8]
"""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed

from d2dfl.config import Config
from d2dfl.config.presets import preset
from d2dfl.data import Dataset
from d2dfl.data.allocate import largest
from d2dfl.discovery.equations.diversity import distances_to
from d2dfl.discovery.evaluation import evaluate, share_of
from d2dfl.experiment.inputs import data_set
from d2dfl.experiment.measures import spread
from d2dfl.experiment.pipeline import PreparedCell, prepare
from d2dfl.experiment.setting import Setting, setting_of
from d2dfl.transfer import held_counts

METRICS = {"W1": "wasserstein", "TV": "total-variation"}
OWN = {"partition.clustering": "own", "partition.clusters": 7, "partition.components": 8}  # Algorithm 2
RULES = ("closest", "most-trusted", "uniform")
DELTA = 1e-5


class Variant(NamedTuple):
    """A method and what it knows."""

    title: str
    method: str
    config: Config


class Cell(NamedTuple):
    """One exchange."""

    before: tuple[float, ...]  # by METRICS, of true labels to the population's
    after: tuple[float, ...]
    moved: int
    lost: int
    gain: float  # objective over that of no exchange


def variants(dataset: str, samples: int, changes: Sequence[str]) -> list[Variant]:
    """Ours with clusters common to all and with each device's own, the paper's learner, the baselines."""
    data = {"data.dataset": dataset, "data.samples": samples}
    best = preset("best", "unsupervised").with_(**data).with_texts(changes)
    own = preset("best", "unsupervised").with_(**data, **OWN).with_texts(changes)
    paper = preset("paper", "unsupervised").with_(**data).with_texts(changes)
    return [
        Variant("marginal, shared clusters", "marginal", best),
        Variant("marginal, own clusters", "marginal", own),
        Variant("qlearning, own clusters (paper)", "qlearning", paper),
        Variant("greedy, shared clusters (central)", "greedy", best),
        *(Variant(f"{name}, shared clusters", name, best) for name in RULES),
        *(Variant(f"{name}, own clusters", name, own) for name in RULES),
    ]


def gain_of(item: PreparedCell, clean: Setting, config: Config) -> float:
    """What the exchange as it happened is worth in the partitions of a setting without noise."""
    assert item.discovery is not None
    assert item.exchanged is not None
    graph, network = item.discovery.graph, clean.network
    allocated = np.zeros((*graph.slots.shape, network.partitions))
    for transfer in item.exchanged.transfers:
        edge = int(np.flatnonzero(graph.transmitter[transfer.receiver] == transfer.transmitter)[0])
        sent = clean.partitioning.partition_of[transfer.sent]
        allocated[transfer.receiver, edge] += np.bincount(sent, minlength=network.partitions)
    worth = evaluate(network, replace(graph, allocated=allocated), config.reward)
    return worth.objective - worth.no_exchange


def measured(config: Config, method: str, setting: Setting, clean: Setting) -> Cell:
    """Discover, exchange, measure."""
    item = prepare(config, setting, method)
    assert item.exchanged is not None
    classes = int(setting.truth.max()) + 1
    held = [held_counts(members, setting.truth, classes) for members in (setting.holdings, item.holdings)]
    before, after = (
        tuple(float(distances_to(counts, held[0].sum(axis=0), metric).mean()) for metric in METRICS.values())
        for counts in held
    )
    return Cell(before, after, item.exchanged.moved, item.exchanged.dropped, gain_of(item, clean, config))


def links_of_seed(chosen: list[Variant], links: list[int], seed: int, dataset: Dataset) -> dict[tuple[str, int], Cell]:
    """(title, links) -> exchange. Methods with the same configuration share one setting."""
    settings = {config: setting_of(config, seed, dataset) for config in {variant.config for variant in chosen}}
    return {
        (title, n): measured(config.with_(**{"discovery.edges": n}), method, settings[config], settings[config])
        for title, method, config in chosen
        for n in links
    }


def noise_of_seed(
    chosen: list[Variant], epsilons: list[float], seed: int, dataset: Dataset
) -> dict[tuple[str, float], Cell]:
    """(title, epsilon) -> exchange; epsilon 0 is without noise."""
    found = {}
    for title, method, config in chosen:
        clean = setting_of(config, seed, dataset)
        for epsilon in epsilons:
            noised = config.with_(**{"privacy.epsilon": epsilon, "privacy.delta": DELTA})
            setting = setting_of(noised, seed, dataset) if epsilon > 0 else clean
            found[title, epsilon] = measured(noised, method, setting, clean)
    return found


def counted(number: int) -> str:
    return f"{number} link{'s' * (number > 1)}"


def print_links(chosen: list[Variant], links: list[int], seeds: list[dict[tuple[str, int], Cell]]) -> None:
    """Fig. 8d and who is ahead."""
    print(f"| method | {' | '.join(f'{name}, {counted(n)}' for name in METRICS for n in links)} | moved (lost) |")
    print(f"|---|{'---:|' * (len(METRICS) * len(links) + 1)}")
    keys = [(metric, n) for metric in range(len(METRICS)) for n in links]
    falls = {
        title: {(m, n): np.array([c[title, n].after[m] / c[title, n].before[m] - 1 for c in seeds]) for m, n in keys}
        for title, _, _ in chosen
    }
    for title, row in falls.items():
        texts = [f"{100 * values.mean():+.1f} ± {100 * (spread(values) or 0):.1f} %" for values in row.values()]
        moved = [
            f"{np.mean([c[title, n].moved for c in seeds]):,.0f} ({np.mean([c[title, n].lost for c in seeds]):,.0f})"
            for n in links
        ]
        print(f"| {title} | {' | '.join(texts)} | {', '.join(moved)} |")
    start = np.mean([c[chosen[0].title, links[0]].before for c in seeds], axis=0)
    print(f"\nno exchange: {', '.join(f'{name} {value:.3f}' for name, value in zip(METRICS, start, strict=True))}")
    print("paper, W1, its own method: 1 link -17 %, 2 links another -5 %\n")
    for metric, name in enumerate(METRICS):
        for n in links:
            order = sorted(falls, key=lambda title: falls[title][metric, n].mean())
            won = [sum(falls[order[0]][metric, n] < falls[other][metric, n]) for other in order[1:3]]
            print(
                f"{name}, {counted(n)}: falls most with {order[0]}; ahead of {order[1]} in {won[0]} of {len(seeds)} "
                f"seeds, of {order[2]} in {won[1]}"
            )


def print_noise(chosen: list[Variant], epsilons: list[float], seeds: list[dict[tuple[str, float], Cell]]) -> None:
    """Share of the objective that is left with noise, and how far from i.i.d. the devices end up."""
    heads = [f"epsilon {epsilon:g}" if epsilon else "no noise" for epsilon in epsilons]
    print(f"| paradigm | measure | no exchange | {' | '.join(heads)} |\n|---|---|{'---:|' * (len(heads) + 1)}")
    for title, _, _ in chosen:
        rows = {"share": [[share_of(c[title, e].gain, c[title, 0.0].gain, 0.0) for c in seeds] for e in epsilons]}
        first = {"share": 0.0}
        for metric, name in enumerate(METRICS):
            rows[name] = [[c[title, e].after[metric] for c in seeds] for e in epsilons]
            first[name] = float(np.mean([c[title, 0.0].before[metric] for c in seeds]))
        for name, row in rows.items():
            texts = [f"{np.mean(values):.3f} ± {spread(values) or 0:.3f}" for values in row]
            print(f"| {title} | {name} | {first[name]:.3f} | {' | '.join(texts)} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dataset", default="fmnist")
    parser.add_argument("--samples", type=int, default=1200, help="datapoints a device, or as many as there are")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--links", default="1,2,3")
    parser.add_argument("--set", action="append", default=[], help="section.field=value, for all methods")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--privacy", action="store_true", help="the cost of noise instead")
    parser.add_argument("--epsilons", default="0.5,1,2,4,8")
    options = parser.parse_args()
    base = preset("best", "unsupervised").with_(**{"data.dataset": options.dataset}).with_texts(options.set)
    dataset, devices = data_set(base, 0), base.network.devices
    samples = min(options.samples, largest(dataset.train_targets, devices, base.data.allocation))
    chosen = variants(options.dataset, samples, options.set)
    pool = Parallel(n_jobs=options.jobs)
    print(f"{dataset.name}: {devices} devices of {samples:,}, {options.seeds} seeds\n")
    if options.privacy:
        data = {"data.dataset": options.dataset, "data.samples": samples, "network.devices": devices}
        supervised = Variant("supervised", "marginal", preset("best").with_(**data).with_texts(options.set))
        chosen, epsilons = [supervised, *chosen[:2]], [*map(float, options.epsilons.split(",")), 0.0]
        noised = pool(delayed(noise_of_seed)(chosen, epsilons, seed, dataset) for seed in range(options.seeds))
        print_noise(chosen, epsilons, noised)
        return
    links = [int(part) for part in options.links.split(",")]
    found = pool(delayed(links_of_seed)(chosen, links, seed, dataset) for seed in range(options.seeds))
    print_links(chosen, links, found)


if __name__ == "__main__":
    main()
