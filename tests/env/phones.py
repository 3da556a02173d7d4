"""A network of three phones, and what links in a network are worth."""

import numpy as np

from d2dfl.config import Config
from d2dfl.discovery.evaluation import Evaluation, evaluate, graph_of
from d2dfl.network import Network


def worth(network: Network, links: np.ndarray, config: Config) -> Evaluation:
    over_ask = config.reward.threshold_rule == "over-ask"
    return evaluate(network, graph_of(network, links, over_ask), config.reward)


def three_phones() -> Network:
    """Device 0 lacks 20 of partition 1 and hears 1 and 2; device 2 hears only 1, over a lossless link."""
    trust = np.ones((3, 3, 2))
    trust[0, 2] = [1, 0]
    drop = np.array([[0.0, 0.5, 0.2], [1.0, 0.0, 0.3], [1.0, 0.0, 0.0]])
    counts = np.array([[70, 10], [10, 54], [40, 10]])
    return Network.from_arrays(counts=counts, threshold=np.full((3, 2), 30), trust=trust, drop=drop)
