"""How far apart labels lie, from light messages: random projections of the labels' sums, told as masked sums only.

All devices draw the same projection from the common seed. Each adds up its datapoints of a label, projected on VALUES
directions, and counts them; masked sums (masked/) bring everybody the totals of all, never a device's own, and everybody
divides by the counts. Random projections keep distances (Johnson and Lindenstrauss, 1984): with 32 values a squared
distance is off by a quarter, which is enough to tell which labels are alike.

Who takes part. A device consents to a label's sketch if it trusts at least one other device with datapoints of that label:
what it would let one device see as it is, it lets all see added up. First a masked sum counts a label's contributors;
with fewer than `least` its sketch is not formed, and nobody adds to it. Distances to labels without a sketch count as the
mean of the others, so that they come neither first nor last.

With noise all who consent contribute, also those without a datapoint of the label, so that who contributes tells nothing
of the data. Each adds its share of the noise (privacy.py): nobody sees a device's own sketch, so all together need as
much as one.

Simulations add up the words themselves: masks cancel, and the total is the same bit by bit (tests/partition/test_sketches.py).
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from d2dfl.partition.masked.words import WORD_BITS, FixedPoint, Words
from d2dfl.rng import stream

VALUES = 32  # real numbers that a sketch has, besides its count
LABELS = 3  # with sketches of fewer there is nothing to put in order
MOST = 2**24  # datapoints of a label that a device can count in
LONGEST = 16.0  # times the usual length: no datapoint counts more than one of this length
SENSITIVITY = 2.0  # by how much another datapoint changes all sums, in units of the clipped length, and counts
HONEST = 2 / 3  # share of the contributors whose noise must suffice: others may be away, or tell theirs

Array = NDArray[np.float64]


class SketchPlan(NamedTuple):
    """What everybody knows before any sketch is told: after the masked sum of contributors."""

    takes_part: NDArray[np.bool_]  # [device, partition]; a device knows its own row
    contributors: NDArray[np.int64]  # [partition]
    formed: NDArray[np.bool_]  # [partition] whether its sketch will be told
    projection: Array  # [input value, VALUES]
    bound: float  # length that projections are clipped to
    share: Array  # [partition] deviation of one device's noise, in units of a datapoint
    numbers: FixedPoint

    @property
    def deviation(self) -> Array:
        """[partition] of all devices' noise in a count; in a sum it is this times the bound."""
        return np.asarray(self.share * np.sqrt(self.contributors) * self.formed)


def consenting(candidates: NDArray[np.int32], trust: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """[device, partition] whether a device trusts anybody who hears it with this partition.

    candidates[receiver, slot] and trust[receiver, slot, partition] are those of a network.
    """
    found = np.zeros((len(candidates), trust.shape[2]), dtype=np.bool_)
    receivers, slots = np.nonzero(candidates >= 0)
    np.logical_or.at(found, candidates[receivers, slots], trust[receivers, slots])
    return found


def directions(width: int, seed: int) -> Array:
    """[input value, VALUES] the projection that all devices draw."""
    return stream(seed, "sketch").normal(0.0, 1.0 / np.sqrt(VALUES), (width, VALUES))


def own_sketch(rows: NDArray[np.float32], projection: Array, bound: float) -> Array:
    """[VALUES + 1] what a device adds for its datapoints rows[n, ...] of a label: the sum of projections, and n.

    Projections are clipped, not inputs: a random projection may lengthen a datapoint.
    """
    projected = rows.reshape(len(rows), len(projection)).astype(np.float64) @ projection
    length = np.linalg.norm(projected, axis=1, keepdims=True)
    total = (projected * np.minimum(1.0, bound / np.maximum(length, 1e-12))).sum(axis=0)
    return np.append(total, float(len(rows)))


def plan_sketches(
    held: NDArray[np.int64], width: int, seed: int, *, consent: NDArray[np.bool_], least: int, noise: float = 0.0
) -> SketchPlan:
    """Who takes part, by what devices hold[device, partition] and consent to; noise in units of a datapoint."""
    # Inputs are standardised, so this is their usual length: noise is made for it, and without noise nothing is cut.
    bound = math.sqrt(width) * (1.0 if noise > 0 else LONGEST)
    takes_part = consent if noise > 0 else consent & (held > 0)
    contributors = takes_part.sum(axis=0)
    # Where some are away or tell their noise to others, that of the rest must do.
    share = noise / np.sqrt(np.maximum(np.ceil(HONEST * contributors), 1.0))
    numbers = FixedPoint(len(held), MOST * max(bound, 1.0), WORD_BITS)
    return SketchPlan(takes_part, contributors, contributors >= least, directions(width, seed), bound, share, numbers)


def told_words(plan: SketchPlan, device: int, own: NDArray[np.float32], labels: NDArray[np.int64], seed: int) -> Words:
    """[partition, VALUES + 1] what a device with these datapoints adds to the masked sum; zeros where it takes no part."""
    told = np.zeros((len(plan.formed), VALUES + 1))
    joins = plan.takes_part[device] & plan.formed
    for partition in np.nonzero(joins & (np.bincount(labels, minlength=len(joins)) > 0))[0]:
        told[partition] = own_sketch(own[labels == partition], plan.projection, plan.bound)
    if plan.share.any():
        drawn = stream(seed, "privacy-sketches", device).normal(0.0, 1.0, told.shape)
        drawn[:, :VALUES] *= plan.bound
        limit = plan.numbers.limit
        told = np.clip(told + drawn * (plan.share * joins)[:, None], -limit, limit)
    return plan.numbers.words(told)


def distances_between(total: Words, plan: SketchPlan) -> Array | None:
    """[partition, partition] distance of the labels' means, by the masked sum; None where it tells nothing."""
    found, bound = plan.numbers.numbers(total), plan.bound
    sums, counts = found[:, :VALUES], found[:, VALUES]
    known = counts >= 1.0  # noise can leave less than one
    if known.sum() < LABELS:
        return None
    means = sums / np.maximum(counts, 1.0)[:, None]
    means *= np.minimum(1.0, bound / np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-12))
    apart = ((means[:, None] - means[None]) ** 2).sum(axis=2)
    # Noise moves means apart, those of rare labels most; everybody knows by how much in the mean.
    moved = VALUES * (bound * plan.deviation / np.maximum(counts, 1.0)) ** 2
    distance = np.sqrt(np.maximum(apart - moved[:, None] - moved[None], 0.0))
    others = ~np.eye(len(counts), dtype=np.bool_)
    told = known[:, None] & known[None]
    middle = float(distance[told & others].mean())
    # Where noise is all there is, no distance is left.
    return np.asarray(np.where(told, distance, middle) * others) if middle > 0 else None


def sketched_distances(
    inputs: NDArray[np.float32],
    partition_of: NDArray[np.int64],
    holdings: Sequence[NDArray[np.int64]],
    seed: int,
    *,
    consent: NDArray[np.bool_],
    least: int,
    noise: float = 0.0,
) -> Array | None:
    """How far apart the partitions' means lie, as the sketches of those who consent tell it; None: nobody knows."""
    partitions = consent.shape[1]
    held = np.array([np.bincount(partition_of[own], minlength=partitions) for own in holdings])
    width = int(np.prod(inputs.shape[1:]))
    plan = plan_sketches(held, width, seed, consent=consent, least=least, noise=noise)
    total = np.zeros((partitions, VALUES + 1), dtype=np.uint64)
    for device, own in enumerate(holdings):
        total += told_words(plan, device, inputs[own], partition_of[own], seed)
    return distances_between(total, plan)
