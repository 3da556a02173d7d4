"""What all devices agree on before a masked sum: the tree, who masks with whom, the size of a word."""

import math
from dataclasses import dataclass
from functools import cached_property

from d2dfl.errors import UserError
from d2dfl.partition.masked.words import checked_bits
from d2dfl.rng import stream

BAD = 1 / 3  # share of the devices that may collude or be away
FAILURE = 1e-6  # probability that this share, anywhere, cuts the others' mask graph in two
LEAST = 3  # devices in a sum: of two, each would learn the other's numbers
ROOT = -1  # the parent of the root


def mask_degree(devices: int, bad: float = BAD, failure: float = FAILURE) -> int:
    """Neighbours in the mask graph that a device needs, O(log devices).

    Devices stand in a circle in random order, each joined to the h next on either side. Those that are left when bad ones
    are taken out fall apart only if two runs of h bad ones lie between them:

        P(two such runs) <= C(devices, 2) * bad^(2 h) <= failure
    """
    pairs = devices * (devices - 1) / 2
    needed = 2 * math.ceil(max(math.log(max(pairs, 1.0) / failure) / (2 * math.log(1 / bad)), 1.0))
    return min(needed, max(devices - 1, 0))


def mask_graph(devices: int, seed: int, degree: int | None = None) -> tuple[tuple[int, ...], ...]:
    """[device] its neighbours: a circle in random order (Bell et al., 2020), or everybody where devices are few.

    The order must be drawn after everybody's key is fixed, or a coalition could choose its places.
    """
    wanted = mask_degree(devices) if degree is None else degree
    if wanted >= devices - 1:
        return tuple(tuple(other for other in range(devices) if other != device) for device in range(devices))
    if wanted < 2 or wanted % 2:
        raise UserError(f"the degree of a mask graph cannot be {wanted}: give an even number from 2, or all others")
    order = [int(device) for device in stream(seed, "mask-graph").permutation(devices)]
    found: list[tuple[int, ...]] = [()] * devices
    for place, device in enumerate(order):
        steps = [step for step in range(-wanted // 2, wanted // 2 + 1) if step]
        found[device] = tuple(sorted({order[(place + step) % devices] for step in steps}))
    return tuple(found)


def balanced_tree(devices: int, branches: int = 2) -> tuple[int, ...]:
    """[device] its parent in a tree of least depth; device 0 is the root."""
    return tuple((device - 1) // branches if device else ROOT for device in range(devices))


@dataclass(frozen=True)
class SumPlan:
    """Who adds up with whom. All devices hold the same plan."""

    parent: tuple[int, ...]  # [device]; ROOT for the one at the top
    neighbours: tuple[tuple[int, ...], ...]  # [device] with whom it shares masks
    bits: int = 32  # of a word
    least: int = LEAST  # devices, below which nobody opens a sum

    def __post_init__(self) -> None:
        checked_bits(self.bits)
        devices = len(self.parent)
        if sum(parent == ROOT for parent in self.parent) != 1 or len(self.depth) != devices:
            raise UserError("the parents of a masked sum are no tree: give one root, and a way to it from everybody")
        sides = {(one, other) for one, others in enumerate(self.neighbours) for other in others}
        known = all(0 <= other < devices and one != other for one, other in sides)
        if len(self.neighbours) != devices or not known or any((other, one) not in sides for one, other in sides):
            raise UserError("the mask graph is not one of these devices: neighbours are others, and mutual")
        if self.least < 2:
            raise UserError(f"a masked sum cannot be over {self.least} devices: of fewer than 2 it hides nothing")

    @property
    def devices(self) -> int:
        return len(self.parent)

    @cached_property
    def root(self) -> int:
        return self.parent.index(ROOT)

    @cached_property
    def children(self) -> tuple[tuple[int, ...], ...]:
        """[device] who sends to it."""
        found: list[list[int]] = [[] for _ in self.parent]
        for device, parent in enumerate(self.parent):
            if 0 <= parent < len(self.parent):
                found[parent].append(device)
        return tuple(map(tuple, found))

    @cached_property
    def depth(self) -> dict[int, int]:
        """Device -> steps to the root, of those that reach it; from the top down."""
        found = {self.root: 0}
        line = [self.root]
        for device in line:
            for child in self.children[device]:
                found[child] = found[device] + 1
                line.append(child)
        return found

    @cached_property
    def branch(self) -> tuple[frozenset[int], ...]:
        """[device] itself and all below it."""
        found = [frozenset[int]()] * self.devices
        for device in reversed(list(self.depth)):
            found[device] = frozenset({device}).union(*(found[child] for child in self.children[device]))
        return tuple(found)

    @property
    def id_bits(self) -> int:
        """Bits that name a device, or say how many are named."""
        return max(1, math.ceil(math.log2(self.devices + 1)))
