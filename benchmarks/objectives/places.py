"""The networks of the ceiling, and what a graph trains to on them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from d2dfl.config import Config
from d2dfl.data import Dataset
from d2dfl.experiment.measures import final_score
from d2dfl.experiment.pipeline import PreparedCell, factory_of, federated, prepare
from d2dfl.experiment.setting import Setting, setting_of
from d2dfl.federation import train_many
from objectives.cells import dataset_of, of_slots

Links = tuple[int, ...]  # [receiver] its slot, or -1
METHODS = {"ours": "marginal", "ours, no claims": "marginal"}
Graph = str | Links  # a method, "none" and "iid" among them, or links


@dataclass(frozen=True)
class Place:
    """One network, and how much work is spent on it."""

    name: str
    skew: str
    seed: int
    tiny: bool

    def config(self, whole: bool = True) -> Config:
        """Of a training: whole, as in the table, or as long as in the search."""
        return Config().with_(
            data__dataset=self.name,
            data__allocation=self.skew,
            data__samples=40 if self.tiny else 600,
            network__devices=8 if self.tiny else 25,
            discovery__edges=1,
            optimum__starts=4,
            federation__model="mlp",
            federation__interval=5 if self.tiny else 10,
            federation__rounds=4 if self.tiny else 20 if whole else 12,
            federation__evaluate_every=2,
        )

    @property
    def population(self) -> int:
        return 12 if self.tiny else 32

    @property
    def file(self) -> str:
        return f"{self.name}-{self.skew.replace(':', '-')}-{self.seed}.json"


@lru_cache(maxsize=2)
def datasets_of(name: str) -> tuple[Dataset, Dataset]:
    """The same training data, tested on the validation part and on the set's own test part."""
    searched, whole = (dataset_of(name, validation) for validation in (True, False))
    return searched, replace(searched, test_inputs=whole.test_inputs, test_targets=whole.test_targets)


@lru_cache(maxsize=8)
def setting_at(place: Place) -> Setting:
    return setting_of(place.config(), place.seed, datasets_of(place.name)[0])


def item_of(place: Place, graph: Graph) -> PreparedCell:
    """A graph with its datapoints moved; losses are drawn as in every run of this network."""
    if not isinstance(graph, str):
        return of_slots(setting_at(place), np.array(graph, dtype=np.int32)[:, None])
    method, config = METHODS.get(graph, graph), place.config()
    return prepare(
        config.with_(marginal__spread=0.0) if graph == "ours, no claims" else config, setting_at(place), method
    )


def trained(place: Place, graphs: Sequence[Graph], seeds: Sequence[int], test: bool, whole: bool = True) -> list[float]:
    """Final accuracy of each graph, trained with its seed."""
    import torch

    torch.set_num_threads(1)
    config, dataset = place.config(whole), datasets_of(place.name)[test]
    items = {graph: item_of(place, graph) for graph in dict.fromkeys(graphs)}
    data = {graph: federated(config, item, dataset) for graph, item in items.items()}
    runs = [(data[graph], seed) for graph, seed in zip(graphs, seeds, strict=True)]
    return [final_score(curve.scores) for curve in train_many(factory_of(config, dataset), runs, config.federation)]
