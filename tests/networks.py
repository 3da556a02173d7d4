"""Networks that several tests share."""

from dataclasses import replace
from itertools import permutations

import numpy as np

from d2dfl import Config, Network


def clustered(
    devices: int = 6, clusters: int = 3, components: int = 2, seed: int = 0, trust: str = "random:0.7"
) -> Network:
    """Devices whose data clusters lie around different places."""
    rng = np.random.default_rng(seed)
    config = Config().with_(network__devices=devices, network__trust=trust)
    counts = rng.integers(20, 60, (devices, clusters)).astype(np.float64)
    network = Network.around(counts, config, seed)
    root = rng.normal(size=(devices, clusters, components, components)) * 0.4
    return replace(
        network,
        threshold=0.5 * counts,
        centroids=rng.normal(size=(devices, clusters, components)) * 2,
        covariances=root @ np.swapaxes(root, 2, 3) + 0.05 * np.eye(components),
        request=0.2 * counts.sum(axis=1),
    )


def unreliable_pair(network: Network, cluster: np.ndarray, reliability: float) -> tuple[int, int] | None:
    """A pair inside one cluster that does not meet alpha_D, or None if every pair does."""
    heard = [
        dict(zip(*pair, strict=True)) for pair in zip(network.candidates.tolist(), network.drop.tolist(), strict=True)
    ]
    members: dict[int, list[int]] = {}
    for device, number in enumerate(cluster.tolist()):
        members.setdefault(number, []).append(device)
    pairs = (pair for group in members.values() for pair in permutations(group, 2))
    return next(((one, two) for one, two in pairs if heard[one].get(two, 2.0) > reliability), None)
