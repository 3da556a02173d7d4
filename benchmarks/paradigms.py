"""All methods in every paradigm, with the share of the i.i.d. gap that each closes, at a scale for two cores.

python benchmarks/paradigms.py [--paradigm semi] [--seeds 3] [--out FOLDER]

Supervised and semi-supervised: digits. Unsupervised and, where D2DFL_DATA has the files, the larger settings: Fashion-MNIST
with dense models. Regression: California Housing, or diabetes where it is not there.
"""

import argparse
import tempfile
from pathlib import Path
from typing import Any

from d2dfl.config import Config
from d2dfl.config.presets import preset
from d2dfl.config.sections.learning import PARADIGMS
from d2dfl.data.datasets import status
from d2dfl.discovery.discover import discover
from d2dfl.discovery.methods import methods_named
from d2dfl.errors import UserError
from d2dfl.experiment.compare import compare, plan_of
from d2dfl.experiment.findings.comparison import markdown, write_all
from d2dfl.experiment.folder.store import run_folder
from d2dfl.experiment.inputs import data_set
from d2dfl.experiment.setting import setting_of

# name -> (paradigm, settings)
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "supervised, digits": ("supervised", {"data.samples": 50}),
    "supervised, fmnist": (
        "supervised",
        {"data.dataset": "fmnist", "data.samples": 600, "federation.model": "mlp", "federation.interval": 20},
    ),
    "semi, digits": ("semi", {"data.samples": 50}),
    "semi, fmnist": (
        "semi",
        {"data.dataset": "fmnist", "data.samples": 600, "federation.model": "mlp", "federation.interval": 20},
    ),
    "unsupervised, digits": ("unsupervised", {"data.samples": 120}),
    "unsupervised, fmnist": (
        "unsupervised",
        {"data.dataset": "fmnist", "data.samples": 600, "federation.model": "encoder-mlp", "federation.rounds": 15},
    ),
    "regression, diabetes": ("regression", {"data.samples": 30, "federation.rounds": 10}),
    "regression, california": (
        "regression",
        {"data.dataset": "california", "data.samples": 600, "federation.rounds": 40},
    ),
}


def shares(config: Config, seeds: int) -> str:
    """Share of the best known objective of our learner and the paper's, mean over seeds."""
    found: dict[str, list[float]] = {"marginal": [], "qlearning": []}
    dataset = data_set(config, 0)
    for seed in range(seeds):
        network = setting_of(config, seed, dataset).reported_network
        worth = {name: discover(network, config, seed=seed, method=name).evaluation for name in (*found, "optimum")}
        best = max(item.objective for item in worth.values())
        for name in found:
            gained = worth[name].objective - worth[name].no_exchange
            found[name].append(gained / (best - worth[name].no_exchange))
    parts = [f"`{name}` {sum(values) / seeds:.3f} (lowest {min(values):.3f})" for name, values in found.items()]
    return "share of the best known objective: " + ", ".join(parts)


def main() -> None:
    """One table a case."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--paradigm", choices=PARADIGMS)
    parser.add_argument("--case", help="only cases whose name contains this")
    parser.add_argument("--methods", default="all")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path, help="keep tables, curves and pictures here")
    given = parser.parse_args()
    for name, (paradigm, settings) in CASES.items():
        if (given.paradigm and given.paradigm != paradigm) or (given.case and given.case not in name):
            continue
        config = preset("best", paradigm).with_(**settings)
        if not status(config.data.dataset).ready:
            print(f"\n### {name}: left out, the files are not here", flush=True)
            continue
        with tempfile.TemporaryDirectory() as scratch:
            folder = (given.out or Path(scratch)) / name.replace(", ", "-")
            try:
                methods = methods_named(given.methods)
                seeds = range(given.seeds)
                with run_folder(folder, plan_of(config, methods, seeds)) as record:
                    result = compare(config, methods, seeds, record)
                    write_all(result, folder)
                    record.finish()
            except UserError as error:
                print(f"\n### {name}: {error}", flush=True)
                continue
            print(f"\n### {name}\n\n{markdown(result)}\n{shares(config, given.seeds)}", flush=True)


if __name__ == "__main__":
    main()
