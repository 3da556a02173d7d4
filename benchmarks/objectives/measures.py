"""Candidates: what counts after an exchange, and sketches of the labels, say about a graph before anybody trains.

A measure takes counts[graph, device, label] and what devices may tell, and gives a number a graph; more is better.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Known:
    """What all devices know: of each label its share, and mean and covariance of 32 random projections."""

    population: Array  # [label]
    means: Array  # [label, value]
    covariances: Array  # [label, value, value]

    @cached_property
    def apart(self) -> Array:
        """[label, label] distance of the labels' means, in mean distances."""
        return _in_means(np.linalg.norm(self.means[:, None] - self.means[None], axis=2))

    @cached_property
    def separable(self) -> Array:
        """The same by Bhattacharyya's distance, which also knows how far each label spreads."""
        labels, values = self.means.shape
        ridge = 0.05 * np.trace(self.covariances, axis1=1, axis2=2).mean() / values * np.eye(values)
        spread = self.covariances + ridge
        logs = np.linalg.slogdet(spread)[1]
        found = np.zeros((labels, labels))
        for one in range(labels):
            for other in range(one):
                middle = (spread[one] + spread[other]) / 2
                step = self.means[one] - self.means[other]
                found[one, other] = step @ np.linalg.solve(middle, step) / 8
                found[one, other] += (np.linalg.slogdet(middle)[1] - (logs[one] + logs[other]) / 2) / 2
        return _in_means(np.sqrt(np.maximum(found + found.T, 0.0)))

    @cached_property
    def spread(self) -> Array:
        """[label] how far datapoints lie from their label's mean, in mean distances of labels."""
        between = np.linalg.norm(self.means[:, None] - self.means[None], axis=2)
        return np.sqrt(np.trace(self.covariances, axis1=1, axis2=2)) / between[~np.eye(len(between), dtype=bool)].mean()

    @cached_property
    def moments(self) -> tuple[Array, Array]:
        """Means [label, value + 1] and second moments of the labels, scaled to variance one, with a constant 1 beside."""
        middle = self.population @ self.means
        centred = self.means - middle
        total = np.einsum("l,lij->ij", self.population, self.covariances + centred[:, :, None] * centred[:, None])
        scale = np.sqrt(np.trace(total) / len(total)) or 1.0
        means = np.concatenate([centred / scale, np.ones((len(centred), 1))], axis=1)
        second = means[:, :, None] * means[:, None]
        second[:, :-1, :-1] += self.covariances / scale**2
        return means, second


Measure = Callable[[Array, Known], Array]
ByDevice = Callable[[Array, Known], Array]  # shares[graph, device, label] -> [graph, device]


def _in_means(distance: Array) -> Array:
    return np.asarray(distance / (distance[~np.eye(len(distance), dtype=bool)].mean() or 1.0))


def shares(counts: Array) -> Array:
    """Label distribution of each device; zeros where it holds nothing."""
    return np.asarray(counts / np.maximum(counts.sum(axis=-1, keepdims=True), 1e-9))


def mean(of: ByDevice) -> Measure:
    """All devices count alike."""
    return lambda counts, known: of(shares(counts), known).mean(axis=1)


def by_data(of: ByDevice) -> Measure:
    """Devices count by their datapoints."""

    def measure(counts: Array, known: Known) -> Array:
        held = counts.sum(axis=2)
        return np.asarray((of(shares(counts), known) * held).sum(axis=1) / held.sum(axis=1))

    return measure


def worst(of: ByDevice) -> Measure:
    """The quarter of the devices that is worst off."""

    def measure(counts: Array, known: Known) -> Array:
        values = np.sort(of(shares(counts), known), axis=1)
        return np.asarray(values[:, : max(1, values.shape[1] // 4)].mean(axis=1))

    return measure


# Label space.


def total_variation(share: Array, known: Known) -> Array:
    return -np.abs(share - known.population).sum(axis=2) / 2


def wasserstein(share: Array, known: Known) -> Array:
    return -np.abs(np.cumsum(share - known.population, axis=2)[:, :, :-1]).sum(axis=2)


def divergence(share: Array, known: Known) -> Array:
    """Jensen-Shannon, in bits."""
    middle = (share + known.population) / 2

    def part(of: Array) -> Array:
        logs = np.log2(np.where(of > 0, of, 1.0) / np.where(of > 0, middle, 1.0))
        return np.asarray((of * logs).sum(axis=2))

    return -(part(share) + part(np.broadcast_to(known.population, share.shape))) / 2


def root(of: ByDevice) -> ByDevice:
    """Of a squared distance the distance itself."""
    return lambda share, known: -np.sqrt(np.maximum(-of(share, known), 0.0))


def cross_entropy(floor: float) -> ByDevice:
    """What the population's labels cost a device that believes its own shares, never below a floor."""

    def of(share: Array, known: Known) -> Array:
        believed = (1 - floor) * share + floor * known.population
        return np.asarray((known.population * np.log(np.maximum(believed, 1e-12))).sum(axis=2))

    return of


def chi_squared(share: Array, known: Known) -> Array:
    return -((share - known.population) ** 2 / np.maximum(known.population, 1e-9)).sum(axis=2)


def labels_above(least: float) -> ByDevice:
    """Labels that have at least this part of their i.i.d. share."""
    return lambda share, known: (share >= least * known.population).mean(axis=2)


def coverage(power: float) -> ByDevice:
    """Labels held, with diminishing returns: the sum of share to a power."""
    return lambda share, known: (known.population * (share / np.maximum(known.population, 1e-9)) ** power).sum(axis=2)


def saturating(unit: float) -> ByDevice:
    """The same with returns that end: 1 - exp(-share / unit), in i.i.d. shares."""
    return lambda share, known: (
        -(known.population * np.exp(-share / (unit * np.maximum(known.population, 1e-9)))).sum(axis=2)
    )


# Feature space.


def quadratic(share: Array, known: Known, form: Array) -> Array:
    off = share - known.population
    return -np.einsum("gnl,lm,gnm->gn", off, form, off, optimize=True)


def energy(power: float, spread: bool) -> ByDevice:
    """Energy distance between the device's mixture and the population's, between means or between datapoints."""

    def of(share: Array, known: Known) -> Array:
        extra = known.spread[:, None] ** 2 + known.spread[None] ** 2 if spread else 0.0
        return quadratic(share, known, -(np.sqrt(known.apart**2 + extra) ** power))

    return of


def kernel(width: float) -> ByDevice:
    """Maximum mean discrepancy, Gaussian kernel between labels' means."""
    return lambda share, known: quadratic(share, known, np.exp(-((known.apart / width) ** 2) / 2))


def gradients(width: float) -> ByDevice:
    """Softmax regression: a device's gradient against the population's, where alike labels are confused (inf: all)."""

    def of(share: Array, known: Known) -> Array:
        means, _ = known.moments
        near = np.exp(-((known.apart / width) ** 2))
        off = near / near.sum(axis=1, keepdims=True) - np.eye(len(near))
        return quadratic(share, known, (means @ means.T) * (off @ off.T))

    return of


def alike(known: Known, width: float, distance: str) -> Array:
    """[label, label] weights of pairs, 1 in all; the smaller the width, the more the most alike count."""
    far = known.apart if distance == "means" else known.separable
    weights = np.exp(-far / width) * ~np.eye(len(far), dtype=bool)
    return np.asarray(weights / weights.sum())


def returns(amount: Array, power: float) -> Array:
    """Diminishing: to a power up to 1, or for a negative one 1 - exp(amount / power)."""
    return amount**power if power > 0 else 1.0 - np.exp(amount / power)


def pairs_here(width: float, power: float, distance: str = "means") -> ByDevice:
    """Pairs of labels that a device could learn to tell apart: the smaller share of both, in i.i.d. shares."""

    def of(share: Array, known: Known) -> Array:
        relative = share / np.maximum(known.population, 1e-9)
        both = np.minimum(relative[..., :, None], relative[..., None, :])
        return np.einsum("gnlm,lm->gn", returns(both, power), alike(known, width, distance), optimize=True)

    return of


def pairs_anywhere(width: float, power: float, distance: str = "means") -> Measure:
    """The same with returns that diminish over all devices together: a pair that met elsewhere is worth less."""

    def measure(counts: Array, known: Known) -> Array:
        held = counts.sum(axis=2, keepdims=True)
        relative = shares(counts) / np.maximum(known.population, 1e-9)
        both = np.minimum(relative[..., :, None], relative[..., None, :])
        met = np.einsum("gnlm,gn->glm", both, held[..., 0] / held.sum(axis=1), optimize=True)
        return np.asarray((returns(met, power) * alike(known, width, distance)).sum(axis=(1, 2)))

    return measure


def with_pairs(part: float, width: float) -> Measure:
    """Total variation and, as claims would have it, what pairs met at all, the alike before others."""
    near, met = mean(total_variation), pairs_anywhere(width, -0.1)
    return lambda counts, known: near(counts, known) + part * met(counts, known)


def kept(counts: Array, known: Known) -> Array:
    """Datapoints that were not lost."""
    return np.asarray(counts.sum(axis=(1, 2)))


# A federation imagined: linear models on the sketches, from the labels' moments alone.


def imagined(pull: float, rounds: int) -> Measure:
    """Least squares on one-hot labels: devices solve their own, held by a pull to the mean of all; its loss on everybody's data."""

    def measure(counts: Array, known: Known) -> Array:
        means, second = known.moments
        labels, values = means.shape
        share, held = shares(counts), counts.sum(axis=2)
        weights = held / held.sum(axis=1, keepdims=True)
        own = np.einsum("gnl,lij->gnij", share, second, optimize=True)
        to = np.einsum("gnl,li,lc->gnic", share, means, np.eye(labels), optimize=True)
        solve = np.linalg.inv(own + pull * np.eye(values))
        model = np.zeros((len(counts), values, labels))
        for _ in range(rounds):
            model = np.einsum("gn,gnij,gnjc->gic", weights, solve, to + pull * model[:, None], optimize=True)
        whole = np.einsum("l,lij->ij", known.population, second)
        wanted = (known.population[:, None] * means).T
        return np.asarray(
            2 * (model * wanted).sum(axis=(1, 2)) - np.einsum("gic,ij,gjc->g", model, whole, model, optimize=True)
        )

    return measure


def rehearsed(rate: float, rounds: int, steps: int = 5, points: int = 4) -> Measure:
    """FedAvg of softmax regression on points drawn from the labels' told moments: minus the loss on everybody's data."""

    def measure(counts: Array, known: Known) -> Array:
        means, second = known.moments
        labels, values = means.shape
        spread = second - means[:, :, None] * means[:, None]
        roots = np.linalg.cholesky(spread[:, :-1, :-1] + 1e-6 * np.eye(values - 1))
        noise = np.random.Generator(np.random.PCG64(0)).normal(size=(labels, points, values - 1))
        data = np.concatenate(
            [means[:, None, :-1] + noise @ roots.transpose(0, 2, 1), np.ones((labels, points, 1))], axis=2
        )
        data = data.reshape(-1, values).astype(np.float32)
        truth = np.repeat(np.eye(labels, dtype=np.float32), points, axis=0)
        share = (np.repeat(shares(counts), points, axis=2) / points).astype(np.float32)
        held = counts.sum(axis=2)
        weights = (held / held.sum(axis=1, keepdims=True)).astype(np.float32)
        model = np.zeros((len(counts), values, labels), dtype=np.float32)
        for _ in range(rounds):
            own = np.repeat(model[:, None], counts.shape[1], axis=1)
            for _ in range(steps):
                off = _softmax(data @ own) - truth
                own -= rate * (data.T @ (off * share[..., None]))
            model = np.einsum("gn,gnvl->gvl", weights, own, optimize=True)
        chance = np.maximum((_softmax(data @ model) * truth).sum(axis=2), 1e-9)
        return np.asarray((np.log(chance) * np.repeat(known.population, points) / points).sum(axis=1), dtype=np.float64)

    return measure


def _softmax(logits: NDArray[np.float32]) -> NDArray[np.float32]:
    odds = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.asarray(odds / odds.sum(axis=-1, keepdims=True))
