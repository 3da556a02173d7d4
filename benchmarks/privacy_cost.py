"""What privacy costs in objective and accuracy.

The same learner on the same networks, with

- a plain tree, as it was: everybody's sketches are added up, readable for whoever adds;
- masked sums: sketches need consent and contributors;
- noise besides, at several epsilon (counts, and sketches by shares).

The learner pays for keys and masked sums in all of these, also where the table shows what a plain tree would have taken.
`objective` is what the exchange gains over none, relative to the plain tree on the same seed; accuracy is the mean of the last
fifth of the rounds. Three settings: three labels a device and five links (the default; nobody tells sketches), and one label
a device and one link, where sketches say which labels should meet, with each label at two or three of 25 devices and at five of 50.

    python benchmarks/privacy_cost.py [--dataset digits] [--seeds 5] [--rounds 20] [--epsilons 8,4,2,1] [--contributors 3,2]
                                       [--settings 0,1,2]
    python benchmarks/privacy_cost.py --bills
"""

import argparse
import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from d2dfl.config import Config
from d2dfl.config.presets import preset
from d2dfl.data import Dataset
from d2dfl.discovery.methods.agreed import GAINS, sums_cost
from d2dfl.experiment.inputs import data_set
from d2dfl.experiment.measures import final_score, spread
from d2dfl.experiment.pipeline import PreparedCell, federations_of, prepare
from d2dfl.experiment.setting import Setting, setting_of
from d2dfl.federation import train_many
from d2dfl.partition.masked.bill import SumCost, masked_sum_cost
from d2dfl.partition.masked.plan import mask_degree
from d2dfl.partition.masked.words import WORD_BITS
from d2dfl.partition.sketches import VALUES, sketched_distances

PLAIN_MESSAGES = 2.0  # a device, which the learner counts itself
SETTINGS = (("labels:3", 25, 5), ("labels:1", 25, 1), ("labels:1", 50, 1))  # labels a device, devices, links


class Mode(NamedTuple):
    """One way to tell."""

    name: str
    masked: bool = True
    contributors: int = 3
    epsilon: float = 0.0
    sketches: bool = True
    claims: bool = True  # whether devices with a single label claim pairs of labels


def modes(epsilons: list[float], contributors: list[int], sketched: bool) -> list[Mode]:
    """All ways; where nobody tells sketches, those that differ without."""
    plain = Mode("plain tree", masked=False)
    noised = [Mode(f"masked and noised, ε = {epsilon:g}", epsilon=epsilon) for epsilon in epsilons]
    if not sketched:
        return [plain, Mode("masked"), *noised]
    masked = [Mode(f"masked, {least} contributors", contributors=least) for least in contributors]
    blind = [mode._replace(name=f"{mode.name}, no sketches", sketches=False) for mode in (Mode("masked"), *noised)]
    # Noise also keeps devices from seeing that they hold a single label: without claims, what else it does is left.
    silent = [
        mode._replace(name=f"{mode.name}, no claims", claims=False, sketches=False)
        for mode in (Mode("masked"), *noised)
    ]
    return [plain, *masked, *noised, *blind, *silent]


def bill(setting: Setting, mode: Mode) -> SumCost:
    """What the learner is charged for keys and masked sums. A plain tree carries all of it in two messages a device, in
    numbers of 32 bits."""
    network = setting.reported_network
    sketched = network.label_distance is not None
    devices, partitions = network.devices, network.partitions
    if not mode.masked:
        numbers = partitions + GAINS + sketched * partitions * VALUES
        return SumCost(PLAIN_MESSAGES * devices, PLAIN_MESSAGES * devices * numbers * 32)
    return sums_cost(devices, partitions, [partitions, partitions * (VALUES + 1)] if sketched else [])


def with_mode(config: Config, mode: Mode, seed: int, dataset: Dataset) -> tuple[Config, Setting]:
    """The setting as devices tell of it. The learner pays for masked sums in every mode."""
    asked = {"privacy.epsilon": mode.epsilon, "privacy.contributors": mode.contributors}
    if not mode.claims:
        asked["marginal.spread"] = 0.0
    setting = setting_of(config.with_(**asked), seed, dataset)
    told = setting.reported_network
    if not mode.masked and told.label_distance is not None:
        everybody = np.ones(told.counts.shape, dtype=np.bool_)
        parts, inputs = setting.partitioning.partition_of, dataset.train_inputs
        apart = sketched_distances(inputs, parts, setting.holdings, seed, consent=everybody, least=1)
        told = replace(told, label_distance=apart)
    elif not mode.sketches:
        told = replace(told, label_distance=None)
    network = told if mode.epsilon == 0 else setting.network
    return config.with_(**asked), replace(setting, network=network, reported_network=told)


def gain(item: PreparedCell) -> float:
    assert item.discovery is not None
    found = item.discovery.evaluation
    return found.objective - found.no_exchange


def show(config: Config, chosen: list[Mode], seeds: int, dataset: Dataset) -> None:
    """One table row for each mode."""
    prepared: dict[Mode, list[PreparedCell]] = {mode: [] for mode in chosen}
    costs: dict[Mode, list[SumCost]] = {mode: [] for mode in chosen}
    for mode in chosen:
        for seed in range(seeds):
            mine, setting = with_mode(config, mode, seed, dataset)
            prepared[mode].append(prepare(mine, setting, "marginal"))
            costs[mode].append(bill(setting, mode))
    none = [prepare(config, setting_of(config, seed, dataset), "none") for seed in range(seeds)]
    everything = [*none, *(item for mode in chosen for item in prepared[mode])]
    ready = federations_of(config, everything, dataset)
    curves = train_many(ready.factory, ready.runs, config.federation, states=ready.starts)
    scores = np.array([final_score(curve.scores) for curve in curves]).reshape(-1, seeds)
    plain = np.array([gain(item) for item in prepared[chosen[0]]])
    print(f"| no exchange | | | | 0.000 | {scores[0].mean():.3f} ± {spread(scores[0]) or 0:.3f} | |")
    for mode, score in zip(chosen, scores[1:], strict=True):
        share = np.array([gain(item) for item in prepared[mode]]) / plain
        devices = prepared[mode][0].setting.network.devices
        spent = np.mean(np.array(costs[mode]), axis=0) / devices
        sketched = sum(item.setting.reported_network.label_distance is not None for item in prepared[mode])
        less = score - scores[1]
        error = (spread(less) if seeds > 1 else math.nan) / math.sqrt(seeds)
        print(
            f"| {mode.name} | {spent[0]:.0f} | {spent[1] / 1000:.1f} | {sketched} of {seeds} | {share.mean():.3f} "
            f"| {score.mean():.3f} ± {spread(score) or 0:.3f} | {less.mean():+.3f} ± {error:.3f} |",
            flush=True,
        )


def show_bills() -> None:
    """What our learner's masked sums cost a device, with 10 labels."""
    sums = {"counts": [10], "gains": [GAINS], "contributors, then sketches": [10, 10 * (VALUES + 1)]}
    print(f"| devices | neighbours | keys, once: messages, kbit | {' | '.join(sums)} |")
    print("|---:|---:|---:|" + "---:|" * len(sums))
    for devices in (10, 25, 100, 1000, 100_000):
        costs = [masked_sum_cost(devices, [])]
        costs += [masked_sum_cost(devices, numbers, keys=False, word_bits=WORD_BITS) for numbers in sums.values()]
        texts = [f"{cost.messages / devices:.1f}, {cost.bits / devices / 1000:.1f}" for cost in costs]
        print(f"| {devices:,} | {mask_degree(devices)} | {' | '.join(texts)} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dataset", default="digits")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--epsilons", default="8,4,2,1")
    parser.add_argument("--contributors", default="3,2")
    parser.add_argument("--set", action="append", default=[], help="section.field=value, for all modes")
    parser.add_argument("--settings", default="0,1,2", help="which of the three, from 0")
    parser.add_argument("--bills", action="store_true", help="what masked sums cost, and nothing else")
    options = parser.parse_args()
    if options.bills:
        show_bills()
        return
    epsilons = [float(part) for part in options.epsilons.split(",")]
    contributors = [int(part) for part in options.contributors.split(",")]
    for allocation, devices, edges in (SETTINGS[int(place)] for place in options.settings.split(",")):
        given = {"data.allocation": allocation, "network.devices": devices, "discovery.edges": edges}
        given |= {"data.dataset": options.dataset, "federation.rounds": options.rounds}
        config = preset("best").with_(**given).with_texts(options.set)
        dataset = data_set(config, 0)
        print(
            f"\n{dataset.name}, {allocation}, {devices} devices, links: {edges}, {options.seeds} seeds, {options.rounds} rounds\n"
        )
        print("| mode | messages of sums a device | kbit a device | sketches | objective | accuracy | minus plain |")
        print("|---|---:|---:|---:|---:|---:|---:|", flush=True)
        show(config, modes(epsilons, contributors, allocation == "labels:1"), options.seeds, dataset)


if __name__ == "__main__":
    main()
