"""Configuration of the training."""

from dataclasses import dataclass
from typing import Literal

from d2dfl.config import Section, option


@dataclass(frozen=True)
class FederationConfig(Section):
    """How the devices train and whose models are averaged when (R29, R31 to R33)."""

    scheme: str = option("fedavg", "who averages with whom: fedavg, fedprox, fedsgd, decentralised, semi-decentralised")
    model: str = option("auto", "model that every device trains; auto: one that suits the dataset")
    rounds: int = option(20, "rounds", low=1)
    interval: int = option(10, "minibatches between aggregations, which is one round (tau_a)", low=1)
    batch: int = option(64, "datapoints in a minibatch; a device that holds fewer takes all it has", low=1)
    optimiser: Literal["sgd", "adam"] = option("sgd", "local optimiser")
    learning_rate: float = option(0.01, "learning rate (1e-3 suits adam)", low=0)
    momentum: float = option(0.9, "sgd: momentum", low=0, high=1)
    momentum_rule: Literal["keep", "reset", "mix"] = option(
        "keep", "at an aggregation devices keep their momentum, forget it (as stateless clients), or it is averaged too"
    )
    weight_decay: float = option(0.0, "weight decay (added to the gradient)", low=0)
    mu: float = option(0.01, "fedprox: weight of the pull to the last global model", low=0)
    weighting: Literal["data", "equal"] = option(
        "data", "models are averaged by datapoints after the exchange, or equally"
    )
    neighbours: int = option(7, "decentralised: models that a device draws each round", low=1)
    subset: int = option(5, "semi-decentralised: devices in a subset", low=1)
    subset_every: int = option(2, "semi-decentralised: minibatches between averages inside a subset", low=1)
    global_every: int = option(8, "semi-decentralised: minibatches between global averages, which is one round", low=1)
    heads: Literal["mixed", "raw"] = option(
        "mixed",
        "semi-decentralised, when both fall together: the sampled device sends its subset's average, or its own model",
    )
    stragglers: int = option(0, "devices whose model never arrives; they still receive", low=0)
    straggler_rule: Literal["fixed", "redrawn"] = option("fixed", "stragglers are the same in all rounds, or redrawn")
    participation: float = option(1.0, "share of the devices that train and send in a round", low=0, high=1)
    executor: Literal["auto", "loop", "stack"] = option("auto", "devices train one by one, all at once, or the faster")
    device: Literal["auto", "cpu", "cuda"] = option("auto", "processor; auto: cuda where there is one")
    evaluate_every: int = option(1, "rounds between evaluations on the test set; the last round always has one", low=1)
