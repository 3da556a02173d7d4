"""Which labels each device holds: exactly K each, in exact amounts, within what the data has.

Devices of one size are alike, so the plan is first made in whole numbers of devices: uses[group, rank,
class] devices of a group (one size) have the class as their first, second, ... label. Such a table can be
dealt out to devices, each with K different labels, if and only if no class is used more often in a group
than the group has devices (König: a bipartite multigraph of degree n is the union of n matchings). So the
plan is a small integer programme whose size does not grow with the number of devices, and if it has no
solution, there is none.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, linear_sum_assignment, milp

from d2dfl.errors import UserError

NODES = 20_000  # branch-and-bound nodes before the exact search gives up; a count, so that every machine agrees


class GivenUpError(UserError):
    """Neither a solution nor a proof that there is none."""


@dataclass(frozen=True)
class Demand:
    """What is asked for: groups of devices of one size, and what the data has."""

    devices: NDArray[np.int64]  # [group] number of devices
    parts: NDArray[np.int64]  # [group, rank] datapoints of the first, second, ... label
    available: NDArray[np.int64]  # [class] datapoints there are

    def fits(self, uses: NDArray[np.int64]) -> bool:
        """Whether a plan uses[group, rank, class] stays within the data and can be dealt out."""
        return bool(
            np.all(self.load(uses) <= self.available)
            and np.all(uses.sum(axis=1) <= self.devices[:, None])
            and np.all(uses.sum(axis=2) == self.devices[:, None])
        )

    def load(self, uses: NDArray[np.int64]) -> NDArray[np.int64]:
        """Datapoints that a plan takes from each class."""
        return np.asarray(np.einsum("gkc,gk->c", uses, self.parts))


def plan(demand: Demand, rng: np.random.Generator) -> NDArray[np.int64] | None:
    """How often each class is used, as evenly as the data allows; None if the request cannot be met."""
    draft = _rotate(demand, rng)
    return draft if draft is not None and demand.fits(draft) else _solve(demand, rng)


def _rotate(demand: Demand, rng: np.random.Generator) -> NDArray[np.int64] | None:
    """Give every class its turn: the least used class of a rank first, of equals the one with most left."""
    groups, ranks, classes = len(demand.devices), demand.parts.shape[1], len(demand.available)
    uses = np.zeros((groups, ranks, classes), dtype=np.int64)
    turns = np.zeros((ranks, classes), dtype=np.int64)
    left = demand.available.astype(np.float64) + rng.random(classes) / 2  # the fraction breaks ties
    order = sorted(np.ndindex(groups, ranks), key=lambda at: (-demand.parts[at], at))
    for group, rank in order:
        part = demand.parts[group, rank]
        for _ in range(demand.devices[group]):
            open_ = (left >= part) & (uses[group].sum(axis=0) < demand.devices[group])
            if not open_.any():
                return None
            least = open_ & (turns[rank] == turns[rank][open_].min())
            best = int(np.flatnonzero(least)[np.argmax(left[least])])
            uses[group, rank, best] += 1
            turns[rank, best] += 1
            left[best] -= part
    return uses


def _solve(demand: Demand, rng: np.random.Generator) -> NDArray[np.int64] | None:
    """The exact search: an integer programme that also keeps the classes of a rank close to equally used.

    Variables: uses[group, rank, class], and for each rank and class how far its uses are from an even share.
    """
    groups, ranks, classes = len(demand.devices), demand.parts.shape[1], len(demand.available)
    cells, pairs = groups * ranks * classes, ranks * classes
    each_rank = sparse.kron(sparse.eye(groups * ranks), np.ones((1, classes)))
    each_class = sparse.kron(sparse.eye(groups), sparse.kron(np.ones((1, ranks)), sparse.eye(classes)))
    load = sparse.kron(demand.parts.reshape(1, -1), sparse.eye(classes))
    turns, far = sparse.kron(np.ones((1, groups)), sparse.eye(pairs)), sparse.eye(pairs)
    rows = sparse.bmat([[each_rank, None], [each_class, None], [load, None], [turns, -far], [turns, far]], format="csc")
    exactly, at_most = np.repeat(demand.devices, ranks), np.repeat(demand.devices, classes)
    even, free = np.full(pairs, demand.devices.sum() / classes), np.full(pairs, np.inf)
    low = np.concatenate([exactly, np.zeros(groups * classes + classes), -free, even])
    high = np.concatenate([exactly, at_most, demand.available, even, free])
    answer = milp(
        np.concatenate([rng.random(cells) * 1e-3, np.ones(pairs)]),  # random costs choose among equals
        integrality=np.concatenate([np.ones(cells), np.zeros(pairs)]),
        bounds=Bounds(0, np.inf),
        constraints=LinearConstraint(rows, low, high),
        options={"node_limit": NODES, "mip_rel_gap": 0.05},
    )
    if answer.status == 2:  # proven infeasible
        return None
    if answer.x is not None:
        uses: NDArray[np.int64] = np.rint(answer.x[:cells]).astype(np.int64).reshape(groups, ranks, classes)
        if demand.fits(uses):
            return uses
    raise GivenUpError("no choice of labels was found in time: ask for fewer different sizes, or less data")


def deal(uses: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    """labels[device, rank] for the devices of one group, at random, so that uses[rank, class] comes out.

    One device after another takes a matching of ranks to classes. A class that every remaining device needs
    must be in it; such a matching always exists, and what is left is again a table that can be dealt out.
    """
    left, devices = uses.copy(), int(uses[0].sum())
    ranks = np.arange(len(uses))
    labels = np.empty((devices, len(uses)), dtype=np.int64)
    for device in range(devices):
        urgent = left.sum(axis=0) == devices - device
        # The least of exponential times with rates `left` falls on each entry in proportion to it.
        cost = rng.exponential(size=left.shape) / np.maximum(left, 1e-9) - 1e3 * urgent
        labels[device] = linear_sum_assignment(np.where(left > 0, cost, 1e12))[1]
        left[ranks, labels[device]] -= 1
    rng.shuffle(labels)
    return labels
