"""Sums along a tree: the bits of a plain recursion, however pieces are shared out."""

from itertools import pairwise

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from d2dfl.federation.sums import PIECES, TreeSum, pieces_of

# Numbers of very different sizes: in another order they round otherwise.
NUMBERS = st.floats(-1e8, 1e8, allow_nan=False).map(lambda value: torch.tensor([value, value / 3], dtype=torch.float64))
BROUGHT = st.dictionaries(st.integers(0, PIECES - 1), NUMBERS, min_size=1, max_size=PIECES)


def recursion(brought: dict[int, Tensor], first: int = 0, last: int = PIECES) -> Tensor | None:
    """The sum of a branch is that of its halves; empty ones do not count."""
    if last - first == 1:
        return brought.get(first)
    middle = (first + last) // 2
    one, other = recursion(brought, first, middle), recursion(brought, middle, last)
    if one is None or other is None:
        return other if one is None else one
    return one + other


@given(brought=BROUGHT, cuts=st.sets(st.integers(1, PIECES - 1), max_size=9))
def test_shared_out_sums_have_the_bits_of_the_whole_tree(brought: dict[int, Tensor], cuts: set[int]) -> None:
    ends = [0, *sorted(cuts), PIECES]
    whole = TreeSum(0, PIECES)
    for first, last in pairwise(ends):
        part = TreeSum(first, last)
        for piece in sorted(brought):
            if first <= piece < last:
                part.add(piece, brought[piece].clone())
        nodes = part.finish()
        assert len(nodes) <= 2 * PIECES.bit_length()
        for piece, total in nodes:
            whole.add(piece, total)
    ((_, added),) = whole.finish()
    wanted = recursion(brought)
    assert wanted is not None
    assert torch.equal(added, wanted)


@given(groups=st.lists(st.integers(0, 200), min_size=1, max_size=300))
def test_pieces_follow_groups_and_cut_none(groups: list[int]) -> None:
    numbers = np.array(groups)
    pieces = pieces_of(numbers)
    order = np.argsort(numbers, kind="stable")
    assert (np.diff(pieces[order]) >= 0).all()
    assert 0 <= pieces.min() <= pieces.max() < PIECES
    for group in set(groups):
        assert len(set(pieces[numbers == group].tolist())) == 1
    if len(set(groups)) == len(groups) <= PIECES:
        assert sorted(pieces.tolist()) == list(range(len(groups))), "few devices are pieces of their own"


def test_rows_of_a_piece_may_come_in_several_calls() -> None:
    rows = torch.from_numpy(np.random.default_rng(0).normal(size=(30, 7)).astype(np.float32))
    shares, pieces = np.random.default_rng(1).random(30), np.repeat(np.arange(0, 12, 2), 5)
    found = []
    for width in (30, 4, 1):
        total = TreeSum(0, PIECES)
        for first in range(0, 30, width):
            block = slice(first, first + width)
            total.add_rows(rows[block], shares[block], pieces[block])
        ((_, added),) = total.finish()
        found.append(added)
    assert torch.equal(found[0], found[1])
    assert torch.equal(found[0], found[2])
    assert torch.allclose(found[0], torch.from_numpy(shares) @ rows.double())
