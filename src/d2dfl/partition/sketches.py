"""How far apart labels lie, from light messages: every device tells a few random projections of its labels' sums.

All devices draw the same projection from the common seed. Each adds up its datapoints of a label, projects the sum on
VALUES directions and sends it up the tree that adds up the population's counts; the sums of all come down again, and
everybody divides by the counts. Random projections keep distances (Johnson and Lindenstrauss, 1984): with 32 values a
squared distance is off by a quarter, which is enough to tell which labels are alike.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from d2dfl.rng import stream

VALUES = 32  # real numbers that a device tells of a label


def sketched_distances(
    inputs: NDArray[np.float32],
    partition_of: NDArray[np.int64],
    holdings: Sequence[NDArray[np.int64]],
    partitions: int,
    seed: int,
) -> NDArray[np.float64]:
    """[partition, partition] distance of the partitions' means, as the sketches tell it; 0 to one without datapoints."""
    width = int(np.prod(inputs.shape[1:]))
    directions = stream(seed, "sketch").normal(0.0, 1.0 / np.sqrt(VALUES), (width, VALUES))
    sums, counts = np.zeros((partitions, VALUES)), np.zeros(partitions)
    for held in holdings:  # one device after the other, as the tree would add them up
        for partition in np.unique(partition_of[held]):
            own = held[partition_of[held] == partition]
            sums[partition] += inputs[own].reshape(len(own), -1).sum(axis=0, dtype=np.float64) @ directions
            counts[partition] += len(own)
    means = sums / np.maximum(counts, 1.0)[:, None]
    apart = np.linalg.norm(means[:, None] - means[None], axis=2)
    there = counts > 0
    return np.asarray(apart * (there[:, None] & there[None]))
