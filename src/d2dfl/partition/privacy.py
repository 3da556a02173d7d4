"""Optional Gaussian noise on what devices tell each other before the exchange, with its privacy loss stated.

Noise is added once, at the source: to a device's counts, to the sums behind its principal components, to the moments of
its data clusters, and by shares to the sum of all sketches. All later messages are computed from noised numbers and reveal nothing more (post-processing).
Another datapoint in place of any one at a device (how many it has is no secret) then changes the odds of anything the
others could see by at most a factor exp(epsilon), but for a probability delta. Each kind of message is one mechanism with (epsilon, delta), and costs add
up: counts alone (supervised, regression), components and counts (semi), components and clusters (unsupervised, own
clusters), components, clusters and counts (unsupervised, shared clusters), and sketches besides where devices hold a single
label (sketches.py).

Two limits, plainly. K-means itself is not noised: for data clusters the guarantee holds for given memberships of the
other datapoints. And noise protects discovery, not the exchange: whoever receives datapoints sees them.
"""

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.stats import norm

from d2dfl.config import PrivacyConfig
from d2dfl.partition.kmeans import DataClusters
from d2dfl.partition.pca import Noise
from d2dfl.partition.sketches import SENSITIVITY
from d2dfl.rng import stream

Array = NDArray[np.float64]


def noise_scale(epsilon: float, delta: float, sensitivity: float = 1.0) -> float:
    """Smallest deviation of Gaussian noise that gives (epsilon, delta) at this L2 sensitivity.

    The exact condition (Balle and Wang, 2018), with s the deviation in units of the sensitivity:

        Phi(1/(2 s) - epsilon s) - exp(epsilon) Phi(-1/(2 s) - epsilon s) <= delta
    """

    def excess(log_scale: float) -> float:
        scale = math.exp(log_scale)
        first = norm.cdf(0.5 / scale - epsilon * scale)
        second = math.exp(epsilon + float(norm.logcdf(-0.5 / scale - epsilon * scale)))
        return float(first - second) - delta

    return sensitivity * math.exp(float(brentq(excess, math.log(1e-6), math.log(1e9))))


def noised_counts(counts: Array, settings: PrivacyConfig, seed: int) -> Array:
    """Counts as devices tell them: another datapoint changes two of them by 1."""
    scale = noise_scale(settings.epsilon, settings.delta, math.sqrt(2.0))
    draws = [
        stream(seed, "privacy-counts", device).normal(0.0, scale, counts.shape[1]) for device in range(len(counts))
    ]
    return np.asarray(np.maximum(counts + np.array(draws), 0.0))


def sketch_noise(settings: PrivacyConfig) -> float:
    """Deviation of the noise on the sum of all devices' sketches, in units of a clipped datapoint; 0: none asked for.

    Divided by the clipped length, sums of a label change by at most 2 with another datapoint of it in place of one, and
    counts not at all; with one of another label two sums and two counts change by at most 1 each, sqrt(4) together.
    """
    return noise_scale(settings.epsilon, settings.delta, SENSITIVITY) if settings.epsilon > 0 else 0.0


def clip_norm(inputs: NDArray[np.float32], bound: float) -> NDArray[np.float32]:
    """Rows [n, value] scaled down to this Euclidean norm where they exceed it, so that no datapoint weighs more."""
    flat = inputs.reshape(len(inputs), -1)
    length = np.linalg.norm(flat, axis=1, keepdims=True)
    return np.asarray(flat * np.minimum(1.0, bound / np.maximum(length, 1e-12)), dtype=np.float32)


def component_noise(settings: PrivacyConfig, seed: int, bound: float) -> Noise:
    """Noise for the scatter matrices (2-D) of datapoints of at most this norm; sums (1-D) are not told at all.

    Inputs are standardised, so their mean is taken for 0. Another datapoint changes a scatter matrix by at most
    sqrt(2) bound^2 (Frobenius norm).
    """
    scale = noise_scale(settings.epsilon, settings.delta, math.sqrt(2.0) * bound**2)

    def noise(values: Array, device: int) -> Array:
        if values.ndim == 1:
            return np.zeros_like(values)
        upper = np.triu(stream(seed, "privacy-components", device).normal(0.0, scale, values.shape))
        return np.asarray(values + upper + np.triu(upper, 1).T)

    return noise


def noised_clusters(found: DataClusters, settings: PrivacyConfig, seed: int, bound: float) -> DataClusters:
    """Data clusters as devices tell them: noised counts, sums and second moments of projections of at most `bound`.

    Scaled by 1, bound and bound squared, all three together change by at most sqrt(8) with another datapoint.
    """
    scale = noise_scale(settings.epsilon, settings.delta, math.sqrt(8.0))
    counts = found.counts.astype(np.float64)
    means, spreads = np.empty_like(found.centroids), np.empty_like(found.covariances)
    for device in range(len(counts)):
        rng = stream(seed, "privacy-clusters", device)
        outer = found.centroids[device][:, :, None] * found.centroids[device][:, None, :]
        first = counts[device][:, None] * found.centroids[device]
        second = counts[device][:, None, None] * (found.covariances[device] + outer)
        counts[device] = np.maximum(counts[device] + rng.normal(0.0, scale, counts.shape[1]), 1.0)
        first += rng.normal(0.0, scale * bound, first.shape)
        upper = np.triu(rng.normal(0.0, scale * bound**2, second.shape))
        second += upper + np.swapaxes(np.triu(upper, 1), 1, 2)
        length = np.linalg.norm(first, axis=1, keepdims=True) / counts[device][:, None]
        means[device] = first / counts[device][:, None] * np.minimum(1.0, bound / np.maximum(length, 1e-12))
        spread = second / counts[device][:, None, None] - means[device][:, :, None] * means[device][:, None, :]
        values, vectors = np.linalg.eigh(spread)
        spreads[device] = (vectors * np.maximum(values, 0.0)[:, None, :]) @ np.swapaxes(vectors, 1, 2)
    return replace(found, counts=np.rint(counts).astype(np.int64), centroids=means, covariances=spreads)
