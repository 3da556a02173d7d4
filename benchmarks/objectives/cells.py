"""A cell: one data set, skew and seed; its network, its graphs, and how accurate each of them trains."""

import io
import json
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from d2dfl.config import Config
from d2dfl.data import Dataset
from d2dfl.data.dataset import standardise
from d2dfl.data.datasets import load, split_rows
from d2dfl.discovery.discover import discover
from d2dfl.discovery.evaluation import graph_of
from d2dfl.experiment.measures import final_score
from d2dfl.experiment.pipeline import PreparedCell, factory_of, federated, prepare
from d2dfl.experiment.setting import Setting, setting_of
from d2dfl.federation import train_many
from d2dfl.network.graph import Graph
from d2dfl.partition.sketches import VALUES
from d2dfl.rng import stream
from d2dfl.storage import write_whole
from d2dfl.transfer import exchange, held_counts
from objectives.families import optimised
from objectives.measures import Known
from objectives.wiring import CHAINS, MOVES, Slots, annealed, changed, crossed, drawn, each_once, useful

SETS = ("digits", "fmnist", "usps", "svhn", "cifar10")
SMALL = ("svhn", "cifar10")  # as 16 x 16 grey pictures, which learn slowly
CHOOSING = ("digits", "fmnist")  # sets whose first seeds choose; all other cells report
CHOOSING_SEEDS = 2
SKEWS = ("labels:1", "labels:2", "labels:3", "labels:5", "dirichlet:0.3")
LINKS = (1, 2, 5)
TOGETHER = 64  # trainings at once: more are no faster, and several processes share a GPU
AGAIN = 1000  # added to a seed for another training of the same graph
RULES = ("closest", "most-trusted", "uniform", "greedy")
OURS: dict[str, dict[str, Any]] = {
    "ours": {},
    "ours, no claims": {"marginal.spread": 0.0},
    "ours, strong claims": {"marginal.spread": 0.2},
    "ours, Jensen-Shannon": {"reward.metric": "jensen-shannon"},
    "ours, Wasserstein": {"reward.metric": "wasserstein"},
    "ours, no costs": {"reward.reliability_weight": 0.0, "reward.budget_weight": 0.0},
    "ours, threshold 0.05": {"network.threshold": "0.05"},
}


@dataclass(frozen=True)
class Scale:
    """How much work a cell is."""

    devices: int = 25
    samples: int = 600
    rounds: int = 20
    interval: int = 10
    graphs: int = 60  # for each number of links
    trainings: int = 2  # of each graph
    moves: int = MOVES
    links: tuple[int, ...] = LINKS


TINY = Scale(devices=8, samples=60, rounds=4, interval=5, graphs=40, trainings=2, moves=20)


@dataclass(frozen=True)
class Task:
    """One cell."""

    name: str  # of the data set
    skew: str
    seed: int
    folder: str  # of small sets; empty: the package's own only
    scale: Scale = Scale()

    @property
    def chooses(self) -> bool:
        """Whether measures are chosen by it; then it trains and tests inside the training part."""
        return self.name in CHOOSING and self.seed < CHOOSING_SEEDS

    @property
    def file(self) -> str:
        return f"{self.name}-{self.skew.replace(':', '-')}-{self.seed}.npz"

    def config(self, edges: int = 1, **changes: Any) -> Config:
        scale = self.scale
        return Config().with_(
            data__dataset=self.name,
            data__allocation=self.skew,
            network__devices=scale.devices,
            network__samples_per_device=scale.samples,
            discovery__edges=edges,
            federation__model="mlp",
            federation__learning_rate=0.03 if self.name in SMALL else 0.01,
            federation__rounds=scale.rounds,
            federation__interval=scale.interval,
            federation__evaluate_every=2,
            **changes,
        )


@lru_cache(maxsize=2)
def dataset_of(name: str, validation: bool, folder: str) -> Dataset:
    """A set from FOLDER/NAME16.npz (x_train, y_train, x_test, y_test: small grey pictures), or the package's own."""
    path = Path(folder) / f"{name}16.npz"
    if not folder or not path.exists():
        return load(name, split="validation" if validation else "own", verify=False, download=False)
    with np.load(path) as file:
        parts = [file[part] for part in ("x_train", "y_train", "x_test", "y_test")]
    x, y, x_test, y_test = (
        part[:, None].astype(np.float32) / 255 if part.ndim > 1 else part.astype(np.int64) for part in parts
    )
    if validation:
        rows, others = split_rows(y, 0, "validation")
        x, y, x_test, y_test = x[rows], y[rows], x[others], y[others]
    x, x_test = (_even(part) for part in (x, x_test))
    standardise(x, x_test)
    return Dataset(name, x, y, x_test, y_test, tuple(map(str, range(10))), "image", "16 x 16, grey")


def _even(pictures: NDArray[np.float32]) -> NDArray[np.float32]:
    """Each picture with the same light and contrast: a dense network hardly learns house numbers without."""
    mean, deviation = (of(pictures, axis=(2, 3), keepdims=True) for of in (np.mean, np.std))
    return np.asarray((pictures - mean) / (deviation + 1e-3), dtype=np.float32)


def known_of(setting: Setting, dataset: Dataset) -> Known:
    """Means and covariances of all labels' sketches, as the devices would add them up."""
    labels, width = setting.network.partitions, int(np.prod(dataset.shape))
    directions = stream(setting.seed, "sketch").normal(0.0, 1.0 / np.sqrt(VALUES), (width, VALUES))
    held = np.concatenate(setting.holdings)
    values = dataset.train_inputs[held].reshape(len(held), -1) @ directions
    own = setting.partitioning.partition_of[held]
    means, spreads = np.zeros((labels, VALUES)), np.zeros((labels, VALUES, VALUES))
    for label in np.unique(own):
        mine = values[own == label]
        means[label] = mine.mean(axis=0)
        spreads[label] = np.cov(mine.T) if len(mine) > 1 else 0.0
    return Known(setting.network.population, means, spreads)


def exchanged(setting: Setting, graph: Graph) -> PreparedCell:
    """A graph that no method of the package found, with its datapoints moved as `prepare` moves them."""
    network = setting.network
    moved = exchange(
        graph, setting.holdings, setting.partitioning.partition_of, network.threshold, seed=setting.seed, within=network
    )
    return PreparedCell("own", setting, None, moved, moved.holdings)


def of_slots(setting: Setting, slots: NDArray[np.int32]) -> PreparedCell:
    return exchanged(setting, graph_of(setting.network, each_once(slots), over_ask=True))


def found_by_methods(task: Task, setting: Setting, edges: int) -> dict[str, tuple[PreparedCell, Slots]]:
    """The package's methods and our learner's variants, by name, with their links."""
    found: dict[str, tuple[PreparedCell, Slots]] = {}
    ways = {name: (name, {}) for name in RULES} | {name: ("marginal", changes) for name, changes in OURS.items()}
    for name, (method, changes) in ways.items():
        config = task.config(edges, **changes)
        mine = setting
        if "network.threshold" in changes:
            network = replace(
                setting.network,
                threshold=0.05 * setting.network.counts.sum(axis=1, keepdims=True) + 0 * setting.network.counts,
            )
            mine = replace(setting, network=network, reported_network=network)
        item = prepare(config, mine, method)
        assert item.discovery is not None
        found[name] = item, item.discovery.graph.slots
    blind = replace(setting, reported_network=replace(setting.network, label_distance=None))
    graph = discover(blind.reported_network, task.config(edges), seed=task.seed, method="marginal").graph
    found["ours, blind claims"] = exchanged(setting, graph), graph.slots
    return found


def graphs_of(task: Task, setting: Setting, known: Known, edges: int) -> list[tuple[str, PreparedCell]]:
    """As many graphs as asked for, with names: methods, those optimised for a candidate, and changes of these."""
    network, rng = setting.network, stream(task.seed, "objectives", edges)
    allowed = useful(network)
    found = found_by_methods(task, setting, edges)
    pool = [slots for _, slots in found.values() if slots.shape[1] == edges]
    graphs = [(name, item) for name, (item, _) in found.items()]
    starts = drawn(allowed, (CHAINS, network.devices, edges), rng)
    starts[: CHAINS // 2] = found["ours"][1]
    for name, (measure, sign) in optimised().items():
        best, early = annealed(network, known, measure, sign, starts, rng, task.scale.moves)
        pool += [best[0], early[0]]
        graphs += [
            (
                f"best {name}",
                of_slots(
                    setting,
                    best[0],
                ),
            ),
            (
                f"early {name}",
                of_slots(
                    setting,
                    early[-1],
                ),
            ),
        ]
    while len(graphs) < task.scale.graphs:
        one, other = (pool[place] for place in rng.integers(len(pool), size=2))
        rate = float(rng.choice([0.0, 0.1, 0.3, 1.0]))
        mixed = changed(crossed(one, other, rng)[None], allowed, rate, rng)[0]
        graphs.append((f"mixed, {rate:g} changed", of_slots(setting, mixed)))
    return graphs


def run_cell(task: Task, out: Path) -> str:
    """All graphs of a cell, trained and written; a line to show."""
    dataset = dataset_of(task.name, task.chooses, task.folder)
    setting = setting_of(task.config(), task.seed, dataset)
    known = known_of(setting, dataset)
    setting = replace(setting, network=replace(setting.network, label_distance=known.apart))
    setting = replace(setting, reported_network=setting.network)
    graphs = [(name, 0, prepare(task.config(), setting, name)) for name in ("none", "iid")]
    graphs += [
        (name, edges, item) for edges in task.scale.links for name, item in graphs_of(task, setting, known, edges)
    ]
    config = task.config()
    data = [federated(config, item, dataset) for _, _, item in graphs]
    runs = [(one, task.seed + AGAIN * again) for again in range(task.scale.trainings) for one in data]
    scores: list[float] = []
    for first in range(0, len(runs), TOGETHER):
        curves = train_many(factory_of(config, dataset), runs[first : first + TOGETHER], config.federation)
        scores += [final_score(curve.scores) for curve in curves]
    accuracy = np.array(scores).reshape(task.scale.trainings, len(graphs)).T
    counts = np.array([held_counts(item.holdings, setting.truth, setting.network.partitions) for *_, item in graphs])
    about = {
        "set": task.name,
        "skew": task.skew,
        "seed": task.seed,
        "chooses": task.chooses,
        "names": [g[0] for g in graphs],
    }
    write_arrays(
        out / task.file,
        about=np.array(json.dumps(about)),
        links=np.array([edges for _, edges, _ in graphs]),
        counts=counts.astype(np.uint16),
        accuracy=accuracy,
        start=setting.network.counts,
        population=known.population,
        means=known.means,
        covariances=known.covariances.astype(np.float32),
    )
    none, iid = accuracy[:2].mean(axis=1)
    return f"{task.file}: {len(graphs)} graphs, no exchange {none:.3f}, i.i.d. {iid:.3f}, best {accuracy[2:].mean(axis=1).max():.3f}"


def write_arrays(path: Path, **arrays: NDArray[Any]) -> None:
    """Whole or not at all: a call may be cut off."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    write_whole(path, buffer.getvalue())
