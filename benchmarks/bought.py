"""What the exchange buys, and which objective, threshold and number of links predict it best.

Fashion-MNIST, supervised, 25 devices with 1,200 datapoints each, FedAvg with 40 minibatches a round, 20 rounds, a small
CNN unless said: final test accuracy, as every table gives it, of many graphs, from no exchange to the i.i.d. shuffle, and how
well each measure of a graph that is known before training orders them (Spearman's rank correlation).

python benchmarks/bought.py --seeds 3 --json bought.json        (a GPU trains all graphs at once: minutes)
python benchmarks/bought.py --dataset digits --samples 40 --graphs few       (any machine)
python benchmarks/bought.py --labels 1 --graphs claims --model mlp --samples 600 --seeds 12       (minutes on 2 cores)
"""

import argparse
import itertools
import json
import sys
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from d2dfl.config import Config
from d2dfl.data.datasets import load
from d2dfl.discovery.equations.diversity import BUILT_IN, distances_to
from d2dfl.experiment.findings.charts import text
from d2dfl.experiment.measures import final_score, share_of_gap, spread
from d2dfl.experiment.pipeline import PreparedCell, factory_of, federated, prepare
from d2dfl.experiment.setting import setting_of
from d2dfl.federation import train_many
from d2dfl.terminal import number
from d2dfl.transfer import held_counts

EDGES = (1, 2, 3, 5)
THRESHOLDS = ("iid", "0.05")
WEIGHTS = ((1.0, 1.0), (0.2, 1.0), (0.2, 0.0))  # of reliability and budget
BLIND = "blind"  # devices do not know how alike labels are
NAMES = (*BUILT_IN, "labels", "kept", "evenness")


@dataclass(frozen=True)
class Cell:
    """One graph on one network."""

    variant: str
    labels: int
    seed: int
    edges: int
    accuracy: float  # final score
    last: float  # after the last round
    moved: int
    lost: int
    measures: dict[str, float]


def variants(which: str) -> dict[str, tuple[str, int, dict[str, Any]]]:
    """name -> (method, edges, settings).

    default: our learner as it is; claims: what those of devices with one label buy; few: a smoke test; core: what the
    choice of defaults is between; all: every reading.
    """
    found: dict[str, tuple[str, int, dict[str, Any]]] = {"none": ("none", 1, {}), "iid": ("iid", 1, {})}
    if which == "claims":
        ways: dict[str, dict[str, Any]] = {"no claims": {"marginal.spread": 0.0}, "in turn": {BLIND: True}, "alike": {}}
        return found | {f"{way}, {edges}": ("marginal", edges, how) for edges in EDGES for way, how in ways.items()}
    if which == "default":
        found["closest, 1"] = ("closest", 1, {})
        return found | {f"marginal, {edges}": ("marginal", edges, {}) for edges in EDGES}
    for edges in {"few": (1, 3), "core": (1, 3, 5), "all": EDGES}[which]:
        for method in ("closest", "uniform"):
            found[f"{method}, {edges}"] = (method, edges, {})
        for metric, weights in itertools.product(("total-variation", "jensen-shannon"), WEIGHTS):
            name = f"gain {metric} iid, weights {weights[0]:g} {weights[1]:g}, {edges}"
            found[name] = ("marginal", edges, {"reward.metric": metric, **weighted(weights)})
        for keep in ("acknowledged", "copy"):
            settings = {**weighted((0.2, 0.0)), "exchange.keep": keep}
            found[f"gain total-variation iid, weights 0.2 0, {keep}, {edges}"] = ("marginal", edges, settings)
        paper = {"reward.kind": "change", "reward.metric": "wasserstein", "network.threshold": "0.05", "reward.gate": 5}
        found[f"change wasserstein 0.05, weights 1 1, {edges}"] = ("marginal", edges, paper)
        if which != "all":
            continue
        for kind, metric, threshold in itertools.product(("gain", "change"), BUILT_IN, THRESHOLDS):
            settings = {
                **weighted((0.0, 0.0)),
                "reward.kind": kind,
                "reward.metric": metric,
                "network.threshold": threshold,
                "reward.gate": 5 if threshold != "iid" else 0,
            }
            found[f"{kind} {metric} {threshold}, weights 0 0, {edges}"] = ("marginal", edges, settings)
    return found


def weighted(weights: tuple[float, float]) -> dict[str, Any]:
    """Settings of alpha_2 and alpha_3."""
    return {"reward.reliability_weight": weights[0], "reward.budget_weight": weights[1]}


def measures(item: PreparedCell) -> dict[str, float]:
    """What is known about who holds what before training starts."""
    network = item.setting.network
    counts = held_counts(item.holdings, item.setting.truth, network.partitions)
    population, held = network.population, counts.sum(axis=1)
    return {
        **{metric: -float(distances_to(counts, population, metric).mean()) for metric in BUILT_IN},
        "labels": float((counts >= 0.05 * held[:, None]).sum(axis=1).mean()),
        "kept": float(held.sum()),
        "evenness": -float(held.std()),
    }


def explore(
    config: Config, labels: int, seeds: range, chosen: dict[str, tuple[str, int, dict[str, Any]]]
) -> list[Cell]:
    """Prepare all graphs, train all of them, measure."""
    dataset = load(config.data.dataset, verify=config.data.verify)
    prepared = []
    for seed in seeds:
        for name, (method, edges, settings) in chosen.items():
            given = {path: value for path, value in settings.items() if path != BLIND}
            mine = config.with_(**given, **{"discovery.edges": edges, "data.allocation": f"labels:{labels}"})
            setting = setting_of(mine, seed, dataset)
            if settings.get(BLIND):
                setting = replace(setting, reported_network=replace(setting.reported_network, label_distance=None))
                setting = replace(setting, network=setting.reported_network)
            prepared.append((name, edges, prepare(mine, setting, method)))
    print(f"{len(prepared)} graphs with {labels} labels a device", file=sys.stderr, flush=True)
    runs = [(federated(config, item, dataset), item.setting.seed) for _, _, item in prepared]
    began = time.perf_counter()
    curves = train_many(factory_of(config, dataset), runs, config.federation)
    print(f"trained in {time.perf_counter() - began:.0f} s", file=sys.stderr, flush=True)
    return [
        Cell(
            name,
            labels,
            item.setting.seed,
            edges,
            final_score(curve.scores),
            curve.last_score,
            item.exchanged.moved if item.exchanged else 0,
            item.exchanged.dropped if item.exchanged else 0,
            measures(item),
        )
        for (name, edges, item), curve in zip(prepared, curves, strict=True)
    ]


def table(cells: list[Cell]) -> str:
    """Mean and spread over seeds of every variant, best first."""
    lines = [
        "| graph | accuracy | gap closed | after the last round | moved / lost | TV to i.i.d. |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    scores = {
        name: [c.accuracy for c in cells if c.variant == name] for name in dict.fromkeys(c.variant for c in cells)
    }
    none, iid = (np.array(scores.get(name, [])) for name in ("none", "iid"))
    for name in sorted(scores, key=lambda name: -np.mean(scores[name])):
        mine = [c for c in cells if c.variant == name]
        distance = -np.mean([c.measures["total-variation"] for c in mine])
        moved, lost = np.mean([c.moved for c in mine]), np.mean([c.lost for c in mine])
        share = share_of_gap(np.array(scores[name]), none, iid, True) if len(none) and len(iid) else None
        lines.append(
            f"| {name} | {text(np.array(scores[name]))} | {number(share, 2)} "
            f"| {np.mean([c.last for c in mine]):.3f} | {moved:,.0f} / {lost:,.0f} | {distance:.3f} |"
        )
    return "\n".join(lines)


def predictors(cells: list[Cell]) -> str:
    """Rank correlation of each measure with accuracy within a seed, mean and lowest over seeds."""
    lines = ["| measure | rank correlation with accuracy (lowest) |", "|---|---:|"]
    for name in NAMES:
        found = []
        for seed in sorted({cell.seed for cell in cells}):
            mine = [cell for cell in cells if cell.seed == seed]
            rank = spearmanr([c.measures[name] for c in mine], [c.accuracy for c in mine]).statistic
            found.append(float(rank))
        lines.append(f"| {name} | {np.mean(found):.3f} ({min(found):.3f}) |")
    return "\n".join(lines)


def beside(cells: list[Cell]) -> str:
    """What claims change against claims in turn, on the same networks."""
    lines = ["| graph | accuracy minus in turn | standard error |", "|---|---:|---:|"]
    scores = {(cell.variant, cell.seed): cell.accuracy for cell in cells}
    seeds = sorted({cell.seed for cell in cells})
    for name in dict.fromkeys(cell.variant for cell in cells):
        way, _, edges = name.partition(", ")
        if way == "in turn" or (f"in turn, {edges}", seeds[0]) not in scores:
            continue
        gains = [scores[name, seed] - scores[f"in turn, {edges}", seed] for seed in seeds]
        found = spread(gains)
        error = "one seed" if found is None else f"{found / len(gains) ** 0.5:.4f}"
        lines.append(f"| {name} | {np.mean(gains):+.4f} | {error} |")
    return "\n".join(lines)


def main() -> None:
    """Both skews, two tables each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dataset", default="fmnist")
    parser.add_argument("--samples", type=int, default=1200)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--only", help="only the graphs with this in their names")
    parser.add_argument("--labels", default="3,1", help="labels a device, separated by commas")
    parser.add_argument(
        "--graphs", choices=("default", "claims", "few", "core", "all"), default="core", help="few also trains shorter"
    )
    parser.add_argument("--model", default="auto", help="what every device trains")
    parser.add_argument("--json", type=Path, help="write all cells here")
    given = parser.parse_args()
    config = Config().with_(
        data__dataset=given.dataset,
        data__samples=given.samples,
        federation__model=given.model,
        federation__interval=10 if given.graphs == "few" else 40,
        federation__rounds=20,
        federation__evaluate_every=2,
    )
    chosen = {name: what for name, what in variants(given.graphs).items() if not given.only or given.only in name}
    if not chosen:
        parser.error(f"no graph has {given.only!r} in its name: {', '.join(variants(given.graphs))}")
    seeds = range(given.first, given.first + given.seeds)
    cells: list[Cell] = []
    for labels in map(int, given.labels.split(",")):
        cells += explore(config, labels, seeds, chosen)
        mine = [cell for cell in cells if cell.labels == labels]
        orders = predictors(mine) if len(chosen) > 2 else ""
        print(f"\n### {labels} label(s) a device\n\n{table(mine)}\n\n{orders}", flush=True)
        if given.graphs == "claims":
            print(beside(mine))
        if given.json:
            given.json.write_text(json.dumps([asdict(cell) for cell in cells]))


if __name__ == "__main__":
    main()
