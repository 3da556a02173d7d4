"""Sums over devices that have the same bits whoever adds them: in one process block after block, or by parts on many machines.

Devices are cut into pieces, by their number alone. Inside a piece rows are added one after the other; pieces are added along a
binary tree over their numbers. Whoever holds neighbouring pieces adds up the branches that are wholly its own.
"""

from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

PIECES = 64  # of a federation at most; a power of two, so that pieces of several federations can be numbered on

COLUMNS = 1 << 14  # added at a time on a CPU: what is scaled stays in its cache

Node = tuple[int, Tensor]  # a piece of a branch, and the sum of the branch


def pieces_of(groups: NDArray[np.int64]) -> NDArray[np.int64]:
    """[device] number of its piece, from 0 on, rising with the numbers of groups [device]; a group is never cut."""
    order = np.argsort(groups, kind="stable")
    begins = np.searchsorted(groups[order], groups)  # where the group of a device begins among all devices
    return np.asarray(begins * PIECES // max(len(groups), PIECES), dtype=np.int64)


@dataclass
class TreeSum:
    """What pieces bring, in the order of their numbers. Pieces from `first` to before `last` come here, the others elsewhere."""

    first: int
    last: int
    nodes: list[Node] = field(default_factory=list)

    def add(self, piece: int, total: Tensor) -> None:
        """A branch that begins with a piece; `total` is kept and changed."""
        while len(self.nodes) > 1 and _meet(self.nodes[-2], self.nodes[-1]) < _meet(self.nodes[-1], (piece, total)):
            if not self._joined(len(self.nodes) - 1):
                break
        self.nodes.append((piece, total))

    def add_rows(self, rows: Tensor, shares: NDArray[np.float64], pieces: NDArray[np.int64]) -> None:
        """shares[n] * rows[n] in double precision, row after row; rows of a piece may come in several calls."""
        for row, share, piece in zip(rows, shares.tolist(), pieces.tolist(), strict=True):
            if not share:
                continue
            if not self.nodes or self.nodes[-1][0] != piece:
                self.add(piece, _zeros(row))
            _add(self.nodes[-1][1], row, share)

    def finish(self) -> list[Node]:
        """The branches that others have no part in; where all pieces came here, one, or none."""
        for number in range(len(self.nodes) - 1, 0, -1):
            self._joined(number)
        return self.nodes

    def _joined(self, number: int) -> bool:
        """Add a node to the one before, unless there are pieces elsewhere between them in the tree."""
        (before, total), (_, more) = self.nodes[number - 1 : number + 1]
        height = _meet(self.nodes[number - 1], self.nodes[number])
        begin = before >> height << height
        if begin < self.first or begin + (1 << height) > self.last:
            return False
        _add(total, more)
        del self.nodes[number]
        return True


def _zeros(row: Tensor) -> Tensor:
    if row.is_cuda:
        return torch.zeros_like(row, dtype=torch.float64)
    return torch.from_numpy(np.zeros(row.shape))


def _add(total: Tensor, row: Tensor, share: float = 1.0) -> None:
    """total += share * row. On a CPU by NumPy, with one thread: PyTorch's wait for each other in every row, and on busy cores long."""
    if total.is_cuda:
        total.add_(row, alpha=share)
        return
    into, values = total.numpy(), row.numpy()
    for first in range(0, len(into), COLUMNS):
        part = slice(first, first + COLUMNS)
        into[part] += values[part] if share == 1.0 else np.multiply(values[part], share, dtype=into.dtype)


def _meet(one: Node, other: Node) -> int:
    """The height at which the branches of two pieces meet."""
    return (one[0] ^ other[0]).bit_length()
