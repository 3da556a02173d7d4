"""Which settings are the defaults, chosen where nobody reports: by rules fixed before anything was measured.

temperature   R3, of the paper's learner: for the paper's objective and for ours, by the share of the best known objective
              on networks 5000 to 5019. Rule: the highest mean. Reported on networks 0 to 19, which the choice never saw.
settings      of our learner and its objective, by the share of the gap between no exchange and i.i.d. data that accuracy
              closes on the validation part of the training data (data.split = validation) of digits and Fashion-MNIST, with
              3 labels and 1 label a device. Networks 5000 and up. Rule: values are listed from cheap or simple to dear; the
              first one whose share, paired over cases and seeds, is not surely below the best one's (95 % interval).

CIFAR-10, SVHN, USPS, California Housing and radio signals take no part.

    python benchmarks/choose.py temperature --networks 20 --json temperature.json        (minutes on 2 cores)
    python benchmarks/choose.py settings --seeds 5 --json settings.json                  (minutes on a GPU)
    python benchmarks/choose.py settings --datasets digits --seeds 3                     (minutes on 2 cores)
    python benchmarks/choose.py settings --families reliability,metric --seeds 20        (hours of 2 cores; digits minutes)
"""

import argparse
import itertools
import json
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from d2dfl import Config, Network, discover, preset
from d2dfl.data import Dataset
from d2dfl.data.datasets import load
from d2dfl.discovery.evaluation import share_of
from d2dfl.experiment.measures import final_score, interval
from d2dfl.experiment.pipeline import PreparedCell, factory_of, federated, prepare
from d2dfl.experiment.setting import setting_of
from d2dfl.federation import train_many

FIRST = 5000  # network and seed: everything reported has seeds from 0 on
SPLIT = 0  # of a set without a test part of its own, as all that is reported splits it: another one would show its test rows
Settings = Mapping[str, Any]
Families = Mapping[str, Mapping[str, Settings]]

# The paper's learner: temperature at the start and at the end.
TEMPERATURES = tuple(
    (start, start * share) for start, share in itertools.product((3.0, 1.0, 0.5, 0.2, 0.1, 0.05), (1.0, 0.1, 0.01))
)
WORLDS: Mapping[str, tuple[str, Settings]] = {
    "paper's settings, 1 link": ("paper", {}),
    "our settings, 1 link": ("best", {"discovery.edges": 1}),
    "our settings, 5 links": ("best", {"discovery.edges": 5}),
}

# Ours: what is varied, from cheap or simple to dear; the rest stays at its default.
CASES = (("digits", 3), ("digits", 1), ("fmnist", 3), ("fmnist", 1))
SAMPLES = {"digits": 36, "fmnist": 1200}
FAMILIES: Families = {
    "discovery.edges": {f"{edges}": {"discovery.edges": edges} for edges in (1, 2, 3, 5, 8, 12)},
    "reward.reliability_weight, 1 link": {
        f"{weight:g}": {"reward.reliability_weight": weight, "discovery.edges": 1} for weight in (1.0, 0.5, 0.2, 0.0)
    },
    "reward.reliability_weight, 5 links": {
        f"{weight:g}": {"reward.reliability_weight": weight} for weight in (1.0, 0.5, 0.2, 0.0)
    },
    "reward.budget_weight, 5 links": {f"{weight:g}": {"reward.budget_weight": weight} for weight in (1.0, 0.0)},
    "channel.budget_share, 5 links": {f"{share:g}": {"channel.budget_share": share} for share in (0.1, 0.5, 1.0)},
    "network.threshold, 5 links": {"0.05": {"network.threshold": "0.05"}, "iid": {}},
    "reward.metric, 5 links": {
        "wasserstein": {"reward.metric": "wasserstein"},
        "total-variation": {},
        "jensen-shannon": {"reward.metric": "jensen-shannon"},
    },
    "marginal.spread, 1 link": {
        f"{spread:g}": {"marginal.spread": spread, "discovery.edges": 1} for spread in (0.0, 0.02, 0.05, 0.1, 0.2)
    },
    "marginal.spread, 5 links": {f"{spread:g}": {"marginal.spread": spread} for spread in (0.0, 0.02, 0.05, 0.1, 0.2)},
}


def shares(world: str, seed: int, grid: Sequence[tuple[float, float]]) -> list[float]:
    """Of the best known objective on one network, at each pair of temperatures."""
    name, changes = WORLDS[world]
    config = preset(name).with_(**changes)
    network = Network.generate(config, seed)
    best = discover(network, config.with_(**{"marginal.messages": 5000}), seed=seed, method="marginal").evaluation
    found = [
        discover(
            network,
            config.with_(**{"qlearning.temperature": start, "qlearning.temperature_end": end}),
            seed=seed,
            method="qlearning",
        ).evaluation.objective
        for start, end in grid
    ]
    top = max(best.objective, *found)
    return [share_of(value, top, best.no_exchange) for value in found]


def temperature(networks: int) -> dict[str, Any]:
    """The table of each world, and what the choice reaches on networks that it never saw."""
    answer: dict[str, Any] = {}
    for world in WORLDS:
        rows = np.array(Parallel(n_jobs=-1)(delayed(shares)(world, FIRST + n, TEMPERATURES) for n in range(networks)))
        means = rows.mean(axis=0)
        start, end = TEMPERATURES[int(np.argmax(means))]
        given = preset(WORLDS[world][0]).qlearning
        shown = ((start, end), (1.0, 1.0), (given.temperature, given.temperature_end))
        fresh = np.array(Parallel(n_jobs=-1)(delayed(shares)(world, n, shown) for n in range(networks)))
        print(f"\n{world}: share of the best known objective, {networks} networks")
        for (first, last), mean in sorted(zip(TEMPERATURES, means, strict=True), key=lambda item: -item[1])[:6]:
            print(f"  {first:g} to {last:g}: {mean:.3f}")
        for title, (first, last), column in zip(("chosen", "literal", "the preset's"), shown, fresh.T, strict=True):
            mean, low, high = interval(column)
            print(f"  fresh networks, {title}, {first:g} to {last:g}: {mean:.3f} [{low:.3f}, {high:.3f}]", flush=True)
        answer[world] = {
            "chosen": [start, end],
            "grid": [[*pair, float(mean)] for pair, mean in zip(TEMPERATURES, means, strict=True)],
            "fresh": {f"{a:g} to {b:g}": interval(column) for (a, b), column in zip(shown, fresh.T, strict=True)},
        }
    return answer


def task(dataset: str, labels: int, rounds: int) -> Config:
    """Training with the defaults: FedAvg, a round is 10 minibatches."""
    return Config().with_(
        **{
            "data.dataset": dataset,
            "data.samples": SAMPLES[dataset],
            "data.allocation": f"labels:{labels}",
            "federation.rounds": rounds,
            "federation.evaluate_every": 2,
        }
    )


def families_of(words: str) -> Families:
    """Those with one of these words in their name, all if there is none."""
    return {name: FAMILIES[name] for name in FAMILIES if any(word in name for word in words.split(","))}


def variants(families: Families) -> dict[str, tuple[str, Settings]]:
    """Method and settings of every graph, by name; one that two families share stands once."""
    found: dict[str, tuple[str, Settings]] = {"none": ("none", {}), "iid": ("iid", {})}
    for values in families.values():
        found |= {_name(settings): ("marginal", settings) for settings in values.values()}
    return found


def _name(settings: Settings) -> str:
    default = Config()
    changed = {path: value for path, value in settings.items() if default.with_(**{path: value}) != default}
    return json.dumps(changed, sort_keys=True)


def validation(name: str) -> Dataset:
    """Training data of what is reported, a fifth of it kept back to choose by."""
    return load(name, seed=SPLIT, split="validation")


def prepared(config: Config, seed: int, families: Families) -> list[PreparedCell]:
    """All graphs of one network."""
    dataset = validation(config.data.dataset)
    found = []
    for method, settings in variants(families).values():
        mine = config.with_(**settings)
        found.append(prepare(mine, setting_of(mine, seed, dataset), method))
    return found


def gaps(
    dataset: str, labels: int, seeds: Sequence[int], rounds: int, families: Families
) -> dict[str, NDArray[np.float64]]:
    """Share of the gap by seed of every graph of one case."""
    config = task(dataset, labels, rounds)
    began = time.perf_counter()
    everything = Parallel(n_jobs=-1)(delayed(prepared)(config, seed, families) for seed in seeds)
    ready = time.perf_counter()
    scores = []
    for seed, items in zip(seeds, everything, strict=True):
        data = validation(dataset)
        runs = [(federated(config, item, data), seed) for item in items]
        curves = train_many(factory_of(config, data), runs, config.federation)
        scores.append([final_score(curve.scores) for curve in curves])
    print(
        f"{dataset}, {labels} label(s): {ready - began:.0f} s for graphs, {time.perf_counter() - ready:.0f} s of training",
        file=sys.stderr,
        flush=True,
    )
    table = np.array(scores)
    none, iid = table[:, 0], table[:, 1]
    way = (iid - none).mean()  # by case: that of a single seed may be small
    return {name: (column - none) / way for name, column in zip(variants(families), table.T, strict=True)}


def settings(datasets: Sequence[str], seeds: int, rounds: int, kept: Path | None, families: Families) -> dict[str, Any]:
    """The table of every family, and the choice by the rule; what was measured is kept case by case."""
    numbers = range(FIRST, FIRST + seeds)
    known = json.loads(kept.read_text())["measured"] if kept and kept.exists() else {}
    found = {case: {name: np.array(column) for name, column in columns.items()} for case, columns in known.items()}
    for dataset, labels in (case for case in CASES if case[0] in datasets and f"{case[0]}, {case[1]}" not in found):
        found[f"{dataset}, {labels}"] = gaps(dataset, labels, numbers, rounds, families)
        if kept:
            kept.write_text(json.dumps({"measured": plain(found)}))
    return {"chosen": chosen_of(found, families), "measured": plain(found)}


def plain(found: Mapping[str, Mapping[str, NDArray[np.float64]]]) -> dict[str, Any]:
    """For JSON."""
    return {case: {name: column.tolist() for name, column in columns.items()} for case, columns in found.items()}


def chosen_of(found: Mapping[str, Mapping[str, NDArray[np.float64]]], families: Families) -> dict[str, Any]:
    """By the rule, family by family."""
    answer: dict[str, Any] = {}
    for family, values in families.items():
        columns = {
            value: np.concatenate([case[_name(changes)] for case in found.values()])
            for value, changes in values.items()
        }
        top = max(columns, key=lambda value: columns[value].mean())
        behind = {value: interval(column - columns[top]) for value, column in columns.items()}
        chosen = next(value for value in columns if value == top or behind[value][2] >= 0)
        print(f"\n{family}: chosen {chosen}")
        print(f"  {'value':>16s}  " + "  ".join(f"{case:>10s}" for case in found) + "       mean  behind the best")
        for value, changes in values.items():
            by_case = "  ".join(f"{case[_name(changes)].mean():10.3f}" for case in found.values())
            mean, low, high = behind[value]
            print(f"  {value:>16s}  {by_case} {columns[value].mean():10.3f}  {mean:.3f} [{low:.3f}, {high:.3f}]")
        sys.stdout.flush()
        answer[family] = {
            "chosen": chosen,
            "values": {
                value: {
                    "mean": float(columns[value].mean()),
                    "behind": behind[value],
                    "cases": {name: float(case[_name(changes)].mean()) for name, case in found.items()},
                }
                for value, changes in values.items()
            },
        }
    return answer


def main() -> None:
    """One of the two."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("temperature", "settings"))
    parser.add_argument("--networks", type=int, default=20)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--datasets", default="digits,fmnist")
    parser.add_argument("--families", default="", help="settings: only those with one of these words in their name")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    if given.what == "temperature":
        answer = temperature(given.networks)
    else:
        answer = settings(given.datasets.split(","), given.seeds, given.rounds, given.json, families_of(given.families))
    if given.json:
        given.json.write_text(json.dumps(answer, indent=1))


if __name__ == "__main__":
    main()
