"""Networks that several tests share."""

from dataclasses import replace

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
