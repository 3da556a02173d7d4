"""Distributed PCA: a subspace common to all devices, found without moving a datapoint (paper Section V-A, R34).

    1. every device    -> server      the sum of its inputs and how many they are
    2. the server      -> everybody   the mean of all inputs, exactly
    3. every device    -> server      a summary of its inputs around that mean (see common_subspace)
    4. the server      -> everybody   the components

Nothing else crosses the wire, and all of it is in the transcript. What it reveals: a sum is a device's mean input, and
for a device with a single datapoint that is the datapoint; components and scatter matrices tell in which directions a
device's inputs vary, and by how much, but not where any one of them lies. Noise on steps 1 and 3 is the caller's
choice; counts are never noised.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import get_args

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from d2dfl.config.sections.learning import Summary
from d2dfl.errors import UserError
from d2dfl.partition.threads import one_thread

Array = NDArray[np.float64]
Noise = Callable[[Array, int], Array]  # a sum or scatter matrix and its device -> what the device makes of it
SUMMARIES: tuple[Summary, ...] = get_args(Summary)

SERVER, EVERYBODY = -1, -2
ROWS = 4096  # taken at a time, where a whole copy in float64 would be large
# Directions with less than this share of the largest spread are rounding errors, as is spread this small beside the
# mean: inputs are float32, so spread that is real is larger.
NEGLIGIBLE, ROUNDING = 1e-6, 1e-9


@dataclass(frozen=True)
class Message:
    """Something that crossed the wire."""

    sender: int  # a device, or SERVER
    receiver: int  # a device, SERVER or EVERYBODY
    what: str
    values: int  # real numbers in it
    arrays: tuple[Array, ...]


def message(sender: int, receiver: int, what: str, *arrays: Array) -> Message:
    """A message with its size counted."""
    return Message(sender, receiver, what, sum(array.size for array in arrays), arrays)


@dataclass(frozen=True)
class Subspace:
    """What all devices know at the end, and all that was said on the way."""

    mean: Array  # [feature]
    components: Array  # [component, feature] orthonormal rows by falling variance, largest entry of each positive
    messages: tuple[Message, ...]

    @property
    def values(self) -> int:
        """Real numbers sent in all."""
        return sum(item.values for item in self.messages)

    def project(self, inputs: NDArray[np.floating]) -> Array:
        """projections[n, component] of inputs[n, ...]."""
        rows = _flat(inputs)
        result = np.empty((len(rows), len(self.components)))
        with one_thread():
            for start in range(0, len(rows), ROWS):
                result[start : start + ROWS] = (rows[start : start + ROWS] - self.mean) @ self.components.T
        return result


def common_subspace(
    parts: Sequence[NDArray[np.float32]], components: int, method: Summary = "dispca", *, noise: Noise | None = None
) -> Subspace:
    """The subspace in which all devices' inputs vary most; parts[device] are that device's inputs[n, ...].

    `dispca`: devices send their top components scaled by singular values, as many as are asked for, and the server
    takes the SVD of the stack. `projectors`: devices send orthonormal components, the server averages the projections
    that they span, weighted by datapoints. `scatter`: devices send their whole scatter matrix, exact and large.

    A device with fewer independent datapoints than components sends fewer; one with no datapoints sends nothing. Where
    the data has fewer directions of variance than components (all inputs equal, say), the rest is filled up with the
    feature axes that are furthest from what was found: arbitrary, orthonormal, and the same every time.

    With `noise` a device takes its components from noise(scatter matrix, device), made symmetric; its sum becomes
    noise(sum, device). Noise that is to protect a datapoint needs inputs of bounded length: clip them before.
    """
    rows = [_flat(part) for part in parts]
    _check(rows, components, method)
    with one_thread():
        sums = _sums(rows, noise)
        mean = np.sum([item.arrays[0] for item in sums], axis=0) / sum(len(part) for part in rows)
        summaries = [
            _summary(part, mean, components, method, noise, device) for device, part in enumerate(rows) if len(part)
        ]
        floor = ROUNDING * float(np.sqrt(sum(len(part) for part in rows)) * np.linalg.norm(mean))
        if method == "scatter":
            upper = sum((item.arrays[0] for item in summaries[1:]), summaries[0].arrays[0])
            found = _top_of_scatter(_unpacked(upper, len(mean)), components, floor)[1]
        else:
            weights = [1.0 if method == "dispca" else np.sqrt(len(rows[item.sender])) for item in summaries]
            stack = [weight * item.arrays[0] for weight, item in zip(weights, summaries, strict=True)]
            found = _top(np.concatenate(stack), components, 0.0)[1]
    found = _fixed_signs(_filled(found, components))
    told = message(SERVER, EVERYBODY, "mean", mean), message(SERVER, EVERYBODY, "components", found)
    return Subspace(mean, found, (*sums, told[0], *summaries, told[1]))


def _flat(inputs: NDArray[np.floating]) -> NDArray[np.floating]:
    return inputs.reshape(len(inputs), int(np.prod(inputs.shape[1:])))


def _check(rows: Sequence[NDArray[np.floating]], components: int, method: str) -> None:
    points, features = sum(len(part) for part in rows), max((part.shape[1] for part in rows), default=0)
    if method not in SUMMARIES:
        raise UserError(f"partition.pca cannot be {method!r}: give one of {', '.join(SUMMARIES)}")
    if not 1 <= components <= min(features, points):
        raise UserError(
            f"partition.components cannot be {components}: inputs of {features:,} features at {points:,} datapoints "
            f"allow 1 to {min(features, points):,}"
        )
    for device, part in enumerate(rows):
        if not np.isfinite(part).all():
            raise UserError(f"device {device} holds an input that is not a finite number: mend or drop that datapoint")


def _sums(rows: Sequence[NDArray[np.floating]], noise: Noise | None) -> list[Message]:
    sent = []
    for device, part in enumerate(rows):
        if len(part):
            total = part.sum(axis=0, dtype=np.float64)
            total = total if noise is None else noise(total, device)
            sent.append(message(device, SERVER, "sum and count", total, np.array([float(len(part))])))
    return sent


def _summary(
    part: NDArray[np.floating], mean: Array, components: int, method: Summary, noise: Noise | None, device: int
) -> Message:
    """What a device tells the server about its inputs."""
    count, floor = min(components, len(part)), ROUNDING * float(np.sqrt(len(part)) * np.linalg.norm(mean))
    if method == "scatter" or noise is not None:
        scatter = _scatter(part, mean)
        if noise is not None:
            scatter = noise(scatter, device)
            scatter = (scatter + scatter.T) / 2
        if method == "scatter":  # symmetric: the upper half says it all
            return message(device, SERVER, "scatter matrix", scatter[np.triu_indices(len(mean))])
        spread, directions = _top_of_scatter(scatter, count, floor)
    else:
        spread, directions = _top(part - mean, count, floor)
    if method == "dispca":
        return message(device, SERVER, "scaled components", spread[:, None] * directions)
    return message(device, SERVER, "components", directions)


def _scatter(rows: NDArray[np.floating], mean: Array) -> Array:
    total = np.zeros((len(mean), len(mean)))
    for start in range(0, len(rows), ROWS):
        centred = rows[start : start + ROWS] - mean
        total += centred.T @ centred
    return total


def _unpacked(upper: Array, size: int) -> Array:
    matrix = np.zeros((size, size))
    matrix[np.triu_indices(size)] = upper
    return matrix + np.triu(matrix, 1).T


def _top(rows: Array, count: int, floor: float) -> tuple[Array, Array]:
    """The largest singular values [k] and right singular vectors [k, feature] of rows; k <= count, none negligible."""
    if len(rows) >= rows.shape[1]:
        return _top_of_scatter(rows.T @ rows, count, floor)
    if not len(rows):
        return np.empty(0), np.empty((0, rows.shape[1]))
    # Fewer rows than features: the small matrix of inner products has the same spectrum.
    spread, left = _top_of_scatter(rows @ rows.T, count, floor)
    directions = (left @ rows) / spread[:, None]
    # Squaring cost half of the digits of the weakest directions: make them orthogonal to the stronger ones again.
    return spread, _fixed_signs(np.linalg.qr(directions.T)[0].T)


def _top_of_scatter(scatter: Array, count: int, floor: float) -> tuple[Array, Array]:
    """Roots of the largest eigenvalues [k] and eigenvectors [k, size], falling; k <= count, none negligible."""
    size = len(scatter)
    values, vectors = eigh(scatter, subset_by_index=[max(0, size - count), size - 1])
    spread = np.sqrt(np.maximum(values[::-1], 0.0))
    real = spread > max(NEGLIGIBLE * spread[0], floor)
    return spread[real], _fixed_signs(vectors.T[::-1][real])


def _fixed_signs(directions: Array) -> Array:
    """Each row with its largest entry positive; the first of them if several are as large, up to rounding."""
    size = np.abs(directions)
    at = np.argmax(size >= (1 - 1e-6) * size.max(axis=1, keepdims=True), axis=1) if len(size) else np.empty(0, int)
    return np.asarray(directions * np.where(directions[np.arange(len(at)), at] < 0, -1.0, 1.0)[:, None])


def _filled(directions: Array, count: int) -> Array:
    """Orthonormal rows, `count` of them: those given, then feature axes made orthogonal to all before."""
    rows = np.empty((count, directions.shape[1]))
    rows[: len(directions)] = directions
    for number in range(len(directions), count):
        known = rows[:number]
        axis = int(np.argmin(np.sum(known**2, axis=0).round(9)))
        rest = -known.T @ known[:, axis]
        rest[axis] += 1.0
        rest -= known.T @ (known @ rest)  # once more, for the last digits
        rows[number] = rest / np.linalg.norm(rest)
    return rows
