"""What a worker of a cluster does: it trains its portion of the devices, and sends arrays back."""

from typing import Any, NamedTuple

import numpy as np
import torch

import d2dfl
from d2dfl.config import FederationConfig
from d2dfl.experiment.grid.engines import limit_threads
from d2dfl.federation.executors.choice import processor
from d2dfl.federation.portions import Bounds
from d2dfl.federation.workplace import MODEL, Order, Outcome, Place

Arrays = dict[str, Any]  # NumPy arrays by name


class Answer(NamedTuple):
    """What a worker returns: an `Outcome` in arrays, and the changed rows of optimisers where there is one a device."""

    losses: Any
    sums: list[dict[str, list[tuple[int, Any]]]]
    memory: Arrays


class Worker:
    """What runs in a Ray actor: one a GPU, or one a machine."""

    def __init__(self, threads: int) -> None:
        limit_threads(threads)
        self.training, self.settings = 0, FederationConfig()
        self.places: dict[Bounds, Place] = {}

    def versions(self) -> dict[str, str]:
        """What bits depend on."""
        return versions()

    def train(self, training: int, portion: list[Any], shared: Arrays, own: Arrays, order: Order) -> Answer:
        """A round of a portion, which is fetched once in a training; `own` are rows of its devices."""
        import ray

        if training != self.training:  # what is over takes room
            self.training, self.places = training, {}
        if order.bounds not in self.places:
            fetched = ray.get(portion[0])
            self.settings, self.places[order.bounds] = fetched.settings, fetched.workplace()
        place, where = self.places[order.bounds], processor(self.settings)
        held = {name: torch.from_numpy(array.copy()).to(where) for name, array in {**shared, **own}.items()}
        models = held.pop(MODEL)
        (outcome,) = place.train(models, held, order)
        sums = [
            {name: [(piece, total.cpu().numpy()) for piece, total in nodes] for name, nodes in one.items()}
            for one in outcome.sums
        ]
        return Answer(outcome.losses, sums, {name: held[name].cpu().numpy() for name in own})


def versions() -> dict[str, str]:
    """The versions of what computes."""
    return {"d2dfl": d2dfl.__version__, "torch": torch.__version__, "numpy": np.__version__}


def outcome_of(answer: Answer) -> Outcome:
    """An answer as what the driver adds up."""
    # Arrays in the object store cannot be written, and sums are added to.
    sums = [
        {name: [(piece, torch.from_numpy(total.copy())) for piece, total in nodes] for name, nodes in one.items()}
        for one in answer.sums
    ]
    return Outcome(answer.losses, sums)
