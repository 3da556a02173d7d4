"""Which of a triplet are transformed (R42): linear evaluation without exchange, with ours, and with i.i.d. data.

literal: anchor d, positive F(d), negative d' (the text). all: all three transformed, with random light too. Digits and
Fashion-MNIST, 10 devices with 3 labels each, preset `best`. Nothing of the test part is seen: the score is that of a
part of the training data which no device holds, another one for each seed. Seeds are paired: the same network, data
and exchange for both losses. The way is from no exchange to i.i.d. data, mean of the last fifth of the curve.

Rule for the default of `best`, fixed before it was run: the loss with the higher score with our exchange, mean over both
sets; literal, the simpler, where the interval of the paired difference has 0 in it.

    python benchmarks/views.py [--datasets digits,fmnist] [--seeds 5] [--rounds 30] [--model encoder-mlp]
"""

import argparse
import time
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from d2dfl import preset
from d2dfl.config import Config
from d2dfl.data import Dataset
from d2dfl.data.datasets import load
from d2dfl.discovery.methods import IID, NO_EXCHANGE
from d2dfl.experiment.cells.values import training_values
from d2dfl.experiment.measures import final, interval
from d2dfl.experiment.pipeline import federations_of, prepare
from d2dfl.experiment.setting import setting_of
from d2dfl.federation import train_many
from d2dfl.rng import stream

VIEWS = ("literal", "all")
METHODS = (NO_EXCHANGE, "marginal", IID)
SAMPLES = {"digits": 100, "fmnist": 600}
VALIDATION = {"digits": 300, "fmnist": 5000}
Scores = dict[tuple[str, str, str], NDArray[np.float64]]  # dataset, views, method -> by seed


def held_out(dataset: Dataset, number: int, seed: int) -> Dataset:
    """The training part alone, `number` of its datapoints in the place of the test part."""
    order = stream(seed, "validation").permutation(len(dataset.train_inputs))
    test, left = order[:number], order[number:]
    return replace(
        dataset,
        train_inputs=dataset.train_inputs[left],
        train_targets=dataset.train_targets[left],
        test_inputs=dataset.train_inputs[test],
        test_targets=dataset.train_targets[test],
    )


def scores_of(config: Config, dataset: Dataset, seed: int) -> dict[tuple[str, str], float]:
    """(views, method) -> score of one seed."""
    setting = setting_of(config, seed, dataset)
    items = [prepare(config, setting, method) for method in METHODS]
    found = {}
    for views in VIEWS:
        changed = config.with_(federation__views=views)
        ready = federations_of(changed, items, dataset)
        curves = train_many(ready.factory, ready.runs, changed.federation, states=ready.starts)
        for method, done in zip(METHODS, ready.trained(curves), strict=True):
            found[views, method] = final(training_values(done))
    return found


def measure(name: str, seeds: int, rounds: int, model: str) -> Scores:
    """All scores of a dataset."""
    config = preset("best", "unsupervised").with_(
        data__dataset=name,
        data__samples=SAMPLES[name],
        federation__model=model,
        federation__rounds=rounds,
        federation__batch=32,
        federation__evaluate_every=max(1, rounds // 10),
    )
    whole, began = load(name, download=False), time.perf_counter()
    rows = []
    for seed in range(seeds):
        rows.append(scores_of(config, held_out(whole, VALIDATION[name], seed), seed))
        print(f"  {name}, seed {seed}: {time.perf_counter() - began:.0f} s", flush=True)
    return {(name, *key): np.array([row[key] for row in rows]) for key in rows[0]}


def text(values: NDArray[np.float64]) -> str:
    mean, low, high = interval(values)
    return f"{mean:.3f} [{low:.3f}, {high:.3f}]"


def show(scores: Scores) -> None:
    """Tables, and what the rule says."""
    names = list(dict.fromkeys(name for name, _, _ in scores))
    print("\n| data | views | no exchange | ours | i.i.d. | way | ours minus none |\n|---|---|---|---|---|---|---|")
    for name in names:
        for views in VIEWS:
            none, ours, iid = (scores[name, views, method] for method in METHODS)
            cells = [f"{part.mean():.3f}" for part in (none, ours, iid)]
            print(f"| {name} | {views} | {' | '.join(cells)} | {text(iid - none)} | {text(ours - none)} |")
    gains = {name: scores[name, "all", "marginal"] - scores[name, "literal", "marginal"] for name in names}
    for name, gain in gains.items():
        print(f"{name}: all minus literal, with our exchange: {text(gain)}")
    mean, low, _ = interval(np.mean(list(gains.values()), axis=0))
    print(f"mean over sets {mean:+.3f}, at least {low:+.3f}: {'all' if low > 0 else 'literal'}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--datasets", default="digits,fmnist")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--model", default="encoder-mlp")
    given = parser.parse_args()
    scores: Scores = {}
    for name in given.datasets.split(","):
        scores |= measure(name, given.seeds, given.rounds, given.model)
    show(scores)


if __name__ == "__main__":
    main()
