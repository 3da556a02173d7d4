"""A method of one's own: ask the transmitter that holds most of what the receiver lacks."""

import numpy as np

from d2dfl import METHODS, Network, discover, preset
from d2dfl.discovery.methods import Method
from d2dfl.discovery.task import LinkChoice, Task


def richest(task: Task) -> LinkChoice:
    network = task.network
    lacks = np.maximum(network.threshold - network.counts, 0.0)
    spare = np.maximum(network.counts - network.threshold, 0.0)
    useful = np.minimum(spare[network.candidates] * network.trust, lacks[:, None, :]).sum(axis=2)
    useful[network.candidates < 0] = -1.0
    return LinkChoice(useful.argmax(axis=1).astype(np.int32)[:, None])


METHODS["richest"] = Method("richest", "Richest", richest, False, "the transmitter with most of what is missing")

config = preset("best")
network = Network.generate(config, seed=0)
for name in ("closest", "richest", "marginal"):
    print(f"{name:10s} objective {discover(network, config, method=name).evaluation.objective:.4f}")
