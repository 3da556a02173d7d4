"""Training on a model small enough to write its gradient down: softmax regression, every minibatch a device's whole data.

Schemes: FedAvg and FedProx (Section VI-D, R32), FedSGD (R41), decentralised and semi-decentralised (Section VI-E, R33).
A model is a matrix W[class, feature] and a vector c[class], in one vector of parameters: W row by row, then c.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass
class Federated:
    """Devices' data and the local optimiser. `momentum_rule`: what devices do with their momentum at an aggregation."""

    data: list[tuple[Array, NDArray[np.int64]]]
    classes: int
    start: Array
    rate: float
    momentum: float
    interval: int
    rounds: int
    mu: float = 0.0
    optimiser: str = "sgd"
    equal: bool = False  # models are averaged equally, not by datapoints
    stragglers: tuple[int, ...] = ()
    momentum_rule: str = "keep"
    weight_decay: float = 0.0

    @property
    def devices(self) -> range:
        return range(len(self.data))


def gradient(case: Federated, parameters: Array, i: int) -> Array:
    """Of the mean cross entropy over the data of device i."""
    x, y = case.data[i]
    features = x.shape[1]
    W = parameters[: case.classes * features].reshape(case.classes, features)
    c = parameters[case.classes * features :]
    dW, dc = np.zeros_like(W), np.zeros_like(c)
    for row, label in zip(x, y, strict=True):
        score = W @ row + c
        chance = np.exp(score - score.max())
        chance = chance / chance.sum()
        chance[label] -= 1.0
        dW += np.outer(chance, row) / len(y)
        dc += chance / len(y)
    return np.concatenate([dW.ravel(), dc])


@dataclass
class Optimiser:
    """SGD with momentum, or Adam as its authors wrote it (beta 0.9, 0.999, epsilon 1e-8), for one vector."""

    kind: str
    rate: float
    momentum: float
    weight_decay: float = 0.0
    steps: int = 0
    first: Array | None = None
    second: Array | None = None

    def step(self, parameters: Array, slope: Array) -> Array:
        slope = slope + self.weight_decay * parameters
        first = np.zeros_like(slope) if self.first is None else self.first
        if self.kind == "sgd":
            self.first = self.momentum * first + slope
            return parameters - self.rate * self.first
        second = np.zeros_like(slope) if self.second is None else self.second
        self.steps += 1
        self.first = 0.9 * first + 0.1 * slope
        self.second = 0.999 * second + 0.001 * slope**2
        mean = self.first / (1.0 - 0.9**self.steps)
        square = self.second / (1.0 - 0.999**self.steps)
        return parameters - self.rate * mean / (np.sqrt(square) + 1e-8)

    def forget(self) -> None:
        self.steps, self.first, self.second = 0, None, None


def optimisers(case: Federated) -> list[Optimiser]:
    return [Optimiser(case.optimiser, case.rate, case.momentum, case.weight_decay) for _ in case.devices]


def share(case: Federated, who: list[int]) -> dict[int, float]:
    """R32: weights in proportion to |D_i| after the exchange, over those whose models are averaged."""
    size = {i: 1.0 if case.equal else float(len(case.data[i][1])) for i in who}
    return {i: size[i] / sum(size.values()) for i in who}


def mean_of(models: list[Array], weights: dict[int, float]) -> Array:
    return sum((weight * models[i] for i, weight in weights.items()), np.zeros_like(models[0]))


def at_aggregation(case: Federated, memory: list[Optimiser]) -> None:
    if case.momentum_rule == "reset":
        for each in memory:
            each.forget()


def fedavg(case: Federated) -> list[Array]:
    """The global model after each round. With mu > 0 it is FedProx: (mu/2) |w - w_t|^2 is added to the loss."""
    model, history, memory = case.start, [], optimisers(case)
    present = [i for i in case.devices if i not in case.stragglers]
    for _ in range(case.rounds):
        local = []
        for i in case.devices:
            w = model
            for _ in range(case.interval):
                w = memory[i].step(w, gradient(case, w, i) + case.mu * (w - model))
            local.append(w)
        model = mean_of(local, share(case, present))
        at_aggregation(case, memory)
        history.append(model)
    return history


def fedsgd(case: Federated) -> list[Array]:
    """R41: a round is one step along the mean of the full local gradients; the optimiser is the server's."""
    model, history = case.start, []
    server = Optimiser(case.optimiser, case.rate, case.momentum, case.weight_decay)
    present = [i for i in case.devices if i not in case.stragglers]
    for _ in range(case.rounds):
        slopes = [gradient(case, model, i) for i in case.devices]
        model = server.step(model, mean_of(slopes, share(case, present)))
        history.append(model)
    return history


def mixing_matrix(case: Federated, groups: list[list[int]]) -> Array:
    """Row i: how much of every device's model is in device i's after it has averaged those in groups[i]."""
    matrix = np.zeros((len(case.data), len(case.data)))
    for i, group in enumerate(groups):
        for j, weight in share(case, group).items():
            matrix[i, j] = weight
    return matrix


def decentralised(case: Federated, drawn: list[list[list[int]]]) -> list[list[Array]]:
    """R33: in round t device i averages itself and the others drawn[t][i]; the models of all devices after each round."""
    models, history, memory = [case.start for _ in case.devices], [], optimisers(case)
    for draw in drawn:
        models = list(models)
        for i in case.devices:
            for _ in range(case.interval):
                models[i] = memory[i].step(models[i], gradient(case, models[i], i))
        models = [mean_of(models, share(case, [i, *draw[i]])) for i in case.devices]
        at_aggregation(case, memory)
        history.append(models)
    return history


def semi_decentralised(
    case: Federated, subsets: list[list[int]], heads: list[list[int]], every: int, all_every: int
) -> list[list[Array]]:
    """R33: subsets mix every `every` minibatches; every `all_every` the server averages one head of each and broadcasts.

    heads[t] are the devices, one of each subset, that the server hears in round t. A head speaks for its whole subset.
    Where both fall together the subsets mix first.
    """
    models, history, memory = [case.start for _ in case.devices], [], optimisers(case)
    for minibatch in range(1, len(heads) * all_every + 1):
        models = [memory[i].step(models[i], gradient(case, models[i], i)) for i in case.devices]
        if minibatch % every == 0:
            mixed = list(models)
            for subset in subsets:
                for i in subset:
                    mixed[i] = mean_of(models, share(case, subset))
            models = mixed
        if minibatch % all_every == 0:
            sizes = [sum(1.0 if case.equal else float(len(case.data[i][1])) for i in subset) for subset in subsets]
            chosen = heads[minibatch // all_every - 1]
            weights = {head: size / sum(sizes) for head, size in zip(chosen, sizes, strict=True)}
            models = [mean_of(models, weights) for _ in case.devices]
            history.append(models)
        if minibatch % every == 0 or minibatch % all_every == 0:
            at_aggregation(case, memory)
    return history
