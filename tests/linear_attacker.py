"""The strongest attacker on a masked sum: linear algebra on everything that was ever sent.

A masked sum only adds and subtracts, so every message is a linear form of inputs and masks. Run on basis vectors, one for each
input and each mask, the protocol shows these forms itself. A coalition knows its own inputs and all masks that it shares; the
others' are independent and uniform. What it can learn of the others' inputs is then exactly the set of combinations of messages
in which no unknown mask is left.
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import null_space

from d2dfl.partition.masked.messages import Message
from d2dfl.partition.masked.plan import SumPlan
from d2dfl.partition.masked.words import Words

Column = tuple[str, int, int, int]


class BasisPads:
    """Masks and inputs that are basis vectors; sums 0 to `sums` - 1 have masks of their own."""

    def __init__(self, plan: SumPlan, sums: int = 1) -> None:
        pairs = [(one, other) for one, others in enumerate(plan.neighbours) for other in others]
        columns: list[Column] = [("input", device, 0, 0) for device in range(plan.devices)]
        for number in range(sums):
            columns += [("pair", one, other, number) for one, other in pairs if one < other]
            columns += [("own", one, other, number) for one, other in pairs]
        self.index = {column: place for place, column in enumerate(columns)}

    def pair(self, one: int, other: int, number: int, count: int) -> Words:
        return self._basis(("pair", min(one, other), max(one, other), number), count)

    def own(self, owner: int, helper: int, number: int, count: int) -> Words:
        return self._basis(("own", owner, helper, number), count)

    def inputs(self, devices: int) -> list[Words]:
        return [self._basis(("input", device, 0, 0), len(self.index)) for device in range(devices)]

    def _basis(self, column: Column, count: int) -> Words:
        assert count == len(self.index)
        words = np.zeros(count, dtype=np.uint64)
        words[self.index[column]] = 1
        return words


def learned(pads: BasisPads, messages: Iterable[Message], coalition: set[int]) -> NDArray[np.float64]:
    """[combination, device] what a coalition that has overheard everything can compute of the others' inputs."""
    forms = [message.words.view(np.int64) for message in messages if len(message.words)]
    seen = np.array(forms, dtype=np.float64).reshape(-1, len(pads.index))
    secret = [
        place
        for (what, one, other, _), place in pads.index.items()
        if what != "input" and one not in coalition and other not in coalition
    ]
    devices = sum(what == "input" for what, *_ in pads.index)
    inputs = seen[:, :devices].copy()
    inputs[:, sorted(coalition)] = 0.0
    if not secret or not len(seen):
        return inputs
    return np.asarray(null_space(seen[:, secret].T).T @ inputs)


def rank(rows: NDArray[np.float64]) -> int:
    return int(np.linalg.matrix_rank(rows, tol=1e-6)) if rows.size else 0


def honest_groups(plan: SumPlan, honest: set[int]) -> list[set[int]]:
    """Connected parts of the mask graph among honest devices."""
    left, found = set(honest), []
    while left:
        group, line = set[int](), [min(left)]
        for device in line:
            if device not in group:
                group.add(device)
                line += [other for other in plan.neighbours[device] if other in left]
        found.append(group)
        left -= group
    return found


def sums_of(groups: list[set[int]], devices: int) -> NDArray[np.float64]:
    return np.array([[float(device in group) for device in range(devices)] for group in groups]).reshape(-1, devices)
