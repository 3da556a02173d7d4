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
from d2dfl.data.datasets import load
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
PHOTOS = ("svhn", "cifar10")  # a dense network learns them slowly
SIDE = 16  # larger pictures are halved
MOST, MOST_TESTS = 30_000, 4_000  # datapoints that are used of a set
CHOOSING = ("digits", "fmnist")  # sets that choose; all others report
SKEWS = ("labels:1", "labels:2", "labels:3", "dirichlet:0.3")
LINKS = (1, 2, 3, 5)
TOGETHER = 32  # trainings at once
AGAIN = 1000  # added to a seed for another training of the same graph
RULES = ("closest", "most-trusted", "uniform", "greedy")
OURS: dict[str, dict[str, Any]] = {
    "ours": {},
    "ours, no claims": {"marginal.spread": 0.0},
    "ours, Jensen-Shannon": {"reward.metric": "jensen-shannon"},
}


@dataclass(frozen=True)
class Scale:
    """How much work a cell is."""

    devices: int = 25
    samples: int = 600
    rounds: int = 12
    interval: int = 10
    graphs: int = 24  # for each number of links
    trainings: int = 1  # of each graph; with two the tables also say what is reachable
    moves: int = MOVES
    links: tuple[int, ...] = LINKS


TINY = Scale(devices=8, samples=60, rounds=4, interval=5, graphs=20, trainings=2, moves=20)


@dataclass(frozen=True)
class Task:
    """One cell."""

    name: str  # of the data set
    skew: str
    seed: int
    scale: Scale = Scale()

    @property
    def chooses(self) -> bool:
        """Whether measures are chosen by it; then it trains and tests inside the training part."""
        return self.name in CHOOSING

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
            federation__learning_rate=0.03 if self.name in PHOTOS else 0.01,
            federation__rounds=scale.rounds,
            federation__interval=scale.interval,
            federation__evaluate_every=2,
            **changes,
        )


@lru_cache(maxsize=len(SETS))
def dataset_of(name: str, validation: bool) -> Dataset:
    """A set as it is trained on here: small, grey, and no more of it than a cell needs."""
    whole = load(name, split="validation" if validation else "own", verify=False, download=False)
    parts = [_small(inputs[:most]) for inputs, most in ((whole.train_inputs, MOST), (whole.test_inputs, MOST_TESTS))]
    if name in PHOTOS:
        parts = [_even(part) for part in parts]
    standardise(*parts)
    targets = whole.train_targets[:MOST], whole.test_targets[:MOST_TESTS]
    return Dataset(name, parts[0], targets[0], parts[1], targets[1], whole.class_names, "image", "small and grey")


def _small(pictures: NDArray[np.float32]) -> NDArray[np.float32]:
    """Grey, and halved by the mean of four pixels where a side is longer than SIDE."""
    grey = pictures.mean(axis=1, keepdims=True)
    count, _, high, wide = grey.shape
    if max(high, wide) <= SIDE:
        return grey
    return np.asarray(grey.reshape(count, 1, high // 2, 2, wide // 2, 2).mean(axis=(3, 5)))


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
        item = prepare(task.config(edges, **changes), setting, method)
        assert item.discovery is not None
        found[name] = item, item.discovery.graph.slots
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
        best, _ = annealed(network, known, measure, sign, starts, rng, task.scale.moves)
        pool.append(best[0])
        graphs.append((f"best {name}", of_slots(setting, best[0])))
    while len(graphs) < task.scale.graphs:
        one, other = (pool[place] for place in rng.integers(len(pool), size=2))
        rate = float(rng.choice([0.0, 0.1, 0.3, 1.0]))
        mixed = changed(crossed(one, other, rng)[None], allowed, rate, rng)[0]
        graphs.append((f"mixed, {rate:g} changed", of_slots(setting, mixed)))
    return graphs


def run_cell(task: Task, out: Path) -> str:
    """All graphs of a cell, trained and written; a line to show."""
    dataset = dataset_of(task.name, task.chooses)
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
