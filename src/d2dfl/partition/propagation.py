"""Semi-supervised labels: each device spreads the few labels that it has over its own projections (Section V-A, R35).

Nothing is sent: the common subspace is all that devices share. R22: the labels made here then stand in for the true
ones in partitions, trust and training.
"""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from sklearn.exceptions import ConvergenceWarning
from sklearn.neighbors import NearestNeighbors, kneighbors_graph
from sklearn.neural_network import MLPClassifier

from d2dfl.errors import UserError
from d2dfl.partition.threads import one_thread
from d2dfl.registry import entry_named
from d2dfl.rng import stream

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
Mask = NDArray[np.bool_]
# projections[n, component], labels[n] with UNKNOWN, classes, neighbours, generator -> labels[n], all known. At least
# one label is known; a known label never changes.
Labeller = Callable[[Array, Indices, int, int, np.random.Generator], Indices]

UNKNOWN = -1
TOLERANCE, STEPS = 1e-9, 10_000  # of the propagation; image data settles in 100 to 500 steps
TIE = 1e-6  # shares that differ by less are the same
HIDDEN, PENALTY, ITERATIONS = 64, 0.1, 200  # of the network


@dataclass(frozen=True)
class PseudoLabels:
    """Labels to work with, of the whole dataset."""

    labels: Indices  # [datapoint] true where labelled or held by nobody, else the labeller's
    labelled: Mask  # [datapoint]
    accuracy: Array  # [device] share of its unlabelled datapoints that got their true label; nan if it has none
    balanced: Array  # [device] mean of that share over the labels that it holds, each counting the same


def choose_labelled(targets: Indices, holdings: Sequence[Indices], share: float, seed: int) -> Mask:
    """labelled[datapoint]: `share` of each device's datapoints, rounded up, at least one of each label that it holds.

    One of each label is drawn first, the rest uniformly from what remains.
    """
    if not 0 <= share <= 1:
        raise UserError(f"partition.labelled cannot be {share:g}: give a share from 0 to 1")
    labelled = np.zeros(len(targets), dtype=np.bool_)
    for device, points in enumerate(holdings):
        order = stream(seed, "labelled", device).permutation(points)
        first = np.unique(targets[order], return_index=True)[1]
        rest = np.delete(order, first)
        # A product such as 0.07 * 100 lies a rounding error above the whole number.
        wanted = ceil(share * len(points) - 1e-9)
        labelled[order[first]] = True
        labelled[rest[: max(0, wanted - len(first))]] = True
    return labelled


def pseudo_labels(
    projections: Sequence[Array],
    targets: Indices,
    holdings: Sequence[Indices],
    classes: int,
    *,
    labelled: Mask,
    labeller: str = "propagation",
    neighbours: int = 7,
    seed: int = 0,
) -> PseudoLabels:
    """Every device labels its own datapoints; projections[device][n] belongs to datapoint holdings[device][n].

    A device sees the targets of its labelled datapoints only; the others serve to count how many it got right.
    """
    apply = labeller_named(labeller)
    labels = targets.astype(np.int64)
    accuracy, balanced = np.full(len(holdings), np.nan), np.full(len(holdings), np.nan)
    for device, points in enumerate(holdings):
        known = labelled[points]
        if len(points) and not known.any():
            raise UserError(
                f"device {device} holds {len(points):,} datapoints and none has a label: "
                "label at least one of each label that it holds"
            )
        if known.all():
            continue
        seen = np.where(known, targets[points], UNKNOWN)
        with one_thread():
            given = apply(projections[device], seen, classes, neighbours, stream(seed, "labeller", device))
        labels[points] = given
        right, truth = given[~known] == targets[points][~known], targets[points][~known]
        accuracy[device] = np.mean(right)
        balanced[device] = np.mean([np.mean(right[truth == label]) for label in np.unique(truth)])
    return PseudoLabels(labels, labelled, accuracy, balanced)


def propagate(
    projections: Array, labels: Indices, classes: int, neighbours: int, rng: np.random.Generator | None = None
) -> Indices:
    """Label propagation with the labelled datapoints clamped, over the graph of nearest neighbours.

        F_u <- P_uu F_u + P_ul Y,   P = W / row sums,   W[a, b] = 1 if a is a neighbour of b or b of a

    until nothing changes. It starts from the nearest labelled datapoint's label, which also decides ties and is what a
    component of the graph without any label keeps (R35).
    """
    start = nearest(projections, labels, classes, neighbours)
    count = min(neighbours, len(labels) - 1)
    if count < 1:
        return start
    one_way = kneighbors_graph(projections, count, mode="connectivity")
    graph = one_way.maximum(one_way.T).tocsr()
    known = labels != UNKNOWN
    component = connected_components(graph, directed=False)[1]
    reached = np.isin(component, component[known])
    unknown = np.flatnonzero(reached & ~known)
    if not len(unknown):
        return start
    weights = sparse.diags(1.0 / np.diff(graph.indptr)[unknown])  # every neighbour counts the same
    step = (weights @ graph[unknown]).tocsr()
    clamped = step[:, known] @ _one_hot(labels[known], classes)
    between = step[:, unknown]
    shares = _one_hot(start[unknown], classes)
    for _ in range(STEPS):
        before, shares = shares, between @ shares + clamped
        if np.abs(shares - before).max() < TOLERANCE:
            break
    result = start.copy()
    result[unknown] = np.argmax(shares + TIE * _one_hot(start[unknown], classes), axis=1)
    return result


def nearest(
    projections: Array, labels: Indices, classes: int, neighbours: int, rng: np.random.Generator | None = None
) -> Indices:
    """The label of the nearest labelled datapoint."""
    known = labels != UNKNOWN
    result = labels.copy()
    if not known.all():
        index = NearestNeighbors(n_neighbors=1).fit(projections[known])
        result[~known] = labels[known][index.kneighbors(projections[~known], return_distance=False)[:, 0]]
    return result


def perceptron(projections: Array, labels: Indices, classes: int, neighbours: int, rng: np.random.Generator) -> Indices:
    """What a network of one hidden layer, trained on the labelled projections alone, says (R35, Appendix D)."""
    known = labels != UNKNOWN
    result = labels.copy()
    if known.all():
        return result
    if len(np.unique(labels[known])) == 1:
        result[~known] = labels[known][0]
        return result
    spread = np.sqrt(np.mean((projections - projections.mean(axis=0)) ** 2))  # one scale: components keep their weights
    inputs = (projections - projections.mean(axis=0)) / (spread if spread > 0 else 1.0)
    network = MLPClassifier(
        (HIDDEN,), solver="lbfgs", alpha=PENALTY, max_iter=ITERATIONS, random_state=int(rng.integers(2**31))
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # stopping early is meant: it guards against overfitting
        network.fit(inputs[known], labels[known])
    result[~known] = network.predict(inputs[~known])
    return result


LABELLERS: dict[str, Labeller] = {
    "propagation": propagate,
    "nearest": nearest,
    "mlp": perceptron,
}


def labeller_named(name: str) -> Labeller:
    """The labeller of this name, or a UserError that lists the names."""
    return entry_named("labeller", name, LABELLERS)


def _one_hot(labels: Indices, classes: int) -> Array:
    return np.asarray(labels[:, None] == np.arange(classes), dtype=np.float64)
