"""Who holds what at the start: no datapoint at two devices, every device with exactly as many as asked for.

A request that cannot be met is an error that says what could be, never a silent deviation (R30).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike, NDArray

from d2dfl.data import labels
from d2dfl.data.shares import label_shares, whole_parts
from d2dfl.errors import UserError
from d2dfl.rng import stream


@dataclass(frozen=True)
class Allocation:
    """Rows of the dataset by device: device i holds order[offsets[i]:offsets[i + 1]], in rising order."""

    order: NDArray[np.int64]
    offsets: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, device: int) -> NDArray[np.int64]:
        if not 0 <= device < len(self):
            raise IndexError(device)
        return self.order[self.offsets[device] : self.offsets[device + 1]]

    def __iter__(self) -> Iterator[NDArray[np.int64]]:
        return (self[device] for device in range(len(self)))

    @property
    def sizes(self) -> NDArray[np.int64]:
        return np.diff(self.offsets)

    def counts(self, targets: ArrayLike, classes: int) -> NDArray[np.int64]:
        """counts[device, class]: datapoints that each device holds of each class."""
        device = np.repeat(np.arange(len(self)), self.sizes)
        cells = device * classes + np.asarray(targets)[self.order]
        return np.bincount(cells, minlength=len(self) * classes).reshape(len(self), classes)


@dataclass(frozen=True)
class AllocationInput:
    """What an allocation rule works on."""

    targets: NDArray[np.int64]
    available: NDArray[np.int64]  # [class]
    sizes: NDArray[np.int64]  # [device]
    seed: int

    def rng(self, what: str) -> np.random.Generator:
        return stream(self.seed, "allocate", what)


def allocate(
    targets: ArrayLike,
    devices: int,
    rule: str = "labels:3",
    *,
    samples: int | Sequence[int],
    seed: int = 0,
    repeat: bool = False,
) -> Allocation:
    """Deal out a dataset. `targets` are classes, or for regression the partition of each datapoint.

    `samples` is the number of datapoints a device, or one number for each device. Rules: labels:K (exactly K
    labels, 70/20/10 for 3), dirichlet:ALPHA, shards:K, iid. With `repeat` a datapoint may be at several devices where there
    are too few, never twice at one.
    """
    apply, argument = _parse(rule)
    values = np.asarray(targets)
    asked = int(np.sum(samples)) * (devices if np.ndim(samples) == 0 else 1)
    if not repeat or asked <= len(values):
        return apply(_request(targets, devices, samples, seed), argument)
    # One copy more than is needed: rules want some of every class.
    request = _request(np.tile(values, -(-asked // max(len(values), 1)) + 1), devices, samples, seed)
    return _each_once(apply(request, argument), values, request.rng("repeated"))


def _each_once(dealt: Allocation, targets: NDArray[np.int64], rng: np.random.Generator) -> Allocation:
    """Rows of several copies of a dataset as rows of the dataset; what is twice at a device becomes another of its class."""
    device = np.repeat(np.arange(len(dealt)), dealt.sizes)
    order = dealt.order % len(targets)
    order = order[np.lexsort((order, device))]
    for place in np.flatnonzero((np.diff(order) == 0) & (np.diff(device) == 0)).tolist():
        held = order[dealt.offsets[device[place]] : dealt.offsets[device[place] + 1]]
        others = np.setdiff1d(np.flatnonzero(targets == targets[order[place]]), held)
        if not len(others):
            raise UserError(f"device {device[place]} would hold a datapoint twice: give fewer datapoints a device")
        order[place] = rng.choice(others)
    return Allocation(order[np.lexsort((order, device))], dealt.offsets)


def largest(targets: ArrayLike, devices: int, rule: str) -> int:
    """The most datapoints a device, the same for all, that a rule is found to allow; 0 if there is none."""
    apply, argument = _parse(rule)
    most, count = len(np.asarray(targets)) // max(devices, 1), int(argument)
    if apply is not _by_labels:
        return most if apply is not _by_shards or most >= count else 0
    # From the smallest size on, more data is harder to fit.
    low = _smallest(count) - 1
    high, first = most + 1, low
    while high - low > 1:
        middle = (low + high) // 2
        fits = _possible(_request(targets, devices, middle, 0), count)
        low, high = (middle, high) if fits else (low, middle)
    return low if low > first else 0


def _smallest(count: int) -> int:
    """Datapoints below which a label of a device would get less than one."""
    return next(size for size in range(count, 10**9) if whole_parts(size, label_shares(count)).min() > 0)


def what_would_fit(targets: ArrayLike, devices: int, rule: str) -> str:
    """Advice where not even one datapoint of every label fits: fewer devices, or fewer labels, as one types them."""
    apply, argument = _parse(rule)
    values, count = np.asarray(targets), int(argument)

    def fits(devices: int, count: int) -> bool:
        if apply is not _by_labels:
            return devices * (count if apply is _by_shards else 1) <= len(values)
        size = _smallest(count)
        return devices * size <= len(values) and _possible(_request(values, devices, size, 0), count)

    kinds = len(np.unique(values))
    if apply is _by_labels and count > kinds:
        return f"--set data.allocation=labels:{kinds} at most"
    few, many = 0, devices  # fits, does not fit
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (middle, many) if fits(middle, count) else (few, middle)
    fewer = next((less for less in range(count - 1, 0, -1) if fits(devices, less)), 0)
    name = rule.partition(":")[0]
    advice = [f"--devices {few} or fewer"] * (few > 0) + [f"--set data.allocation={name}:{fewer}"] * (fewer > 0)
    return ", or ".join(advice) or "another dataset"


def _possible(request: AllocationInput, count: int) -> bool:
    try:
        return _label_plan(request, count) is not None
    except labels.GivenUpError:
        return False


def _request(targets: ArrayLike, devices: int, samples: int | Sequence[int], seed: int) -> AllocationInput:
    values = np.asarray(targets)
    if values.ndim != 1 or values.dtype.kind not in "iu" or (values.size and values.min() < 0):
        raise UserError("allocation needs one class per datapoint, 0 or more; for regression give it the partitions")
    if devices < 1:
        raise UserError(f"cannot allocate data to {devices} devices: give at least 1")
    sizes = np.full(devices, samples) if isinstance(samples, int | np.integer) else np.asarray(samples)
    if sizes.shape != (devices,) or sizes.dtype.kind not in "iu" or sizes.min() < 1:
        raise UserError(
            f"cannot allocate {samples} datapoints to {devices} devices: give each at least 1, a whole number"
        )
    if sizes.sum() > len(values):
        raise UserError(
            f"{devices} devices need {sizes.sum():,} datapoints and there are {len(values):,}: "
            f"give at most {len(values) // devices:,} a device, or let several hold the same with --set data.repeat=true"
        )
    return AllocationInput(values.astype(np.int64), np.bincount(values), sizes.astype(np.int64), seed)


def _by_labels(request: AllocationInput, argument: float) -> Allocation:
    """Exactly K labels a device, in the shares of `label_shares`, rounded to whole datapoints."""
    uses = _label_plan(request, int(argument))
    if uses is None:
        raise UserError(_too_much(request, int(argument)))
    sizes, group = np.unique(request.sizes, return_inverse=True)
    present, rng = np.flatnonzero(request.available), request.rng("deal")
    counts = np.zeros((len(request.sizes), len(request.available)), dtype=np.int64)
    for number, size in enumerate(sizes):
        members = np.flatnonzero(group == number)
        chosen = present[labels.deal(uses[number], rng)]
        counts[members[:, None], chosen] = whole_parts(int(size), label_shares(int(argument)))
    return _hand_out(request, counts)


def _label_plan(request: AllocationInput, count: int) -> NDArray[np.int64] | None:
    """uses[size, rank, class that has data]: devices of a size with the class as first, second, ... label."""
    present = request.available[request.available > 0]
    if count > len(present):
        raise UserError(f"labels:{count} cannot be: the data has {len(present)} classes, so give labels:{len(present)}")
    sizes, devices = np.unique(request.sizes, return_counts=True)
    parts = np.array([whole_parts(int(size), label_shares(count)) for size in sizes])
    if parts.min() < 1:
        return None
    return labels.plan(labels.Demand(devices, parts, present), request.rng("labels"))


def _too_much(request: AllocationInput, count: int) -> str:
    devices, sizes = len(request.sizes), np.unique(request.sizes)
    present = request.available[request.available > 0]
    smallest = whole_parts(int(sizes[0]), label_shares(count))
    each = f"{sizes[0]:,}" if len(sizes) == 1 else f"{sizes[0]:,} to {sizes[-1]:,}"
    most = largest(request.targets, devices, f"labels:{count}")
    fits = f"{most:,} a device would fit" if most else "give fewer labels or fewer devices"
    if smallest.min() < 1:
        shares = "/".join(f"{100 * share:.3g}" for share in label_shares(count))
        return f"{sizes[0]:,} datapoints cannot be split into {count} labels ({shares} %): give more a device"
    return (
        f"labels:{count} with {each} datapoints at each of {devices} devices asks for more of some classes "
        f"than there is (they have {present.min():,} to {present.max():,}): {fits}"
    )


def _by_dirichlet(request: AllocationInput, argument: float) -> Allocation:
    """Class shares drawn for each device from a Dirichlet distribution with `argument` per class.

    Its mean is the share of the class in the data, so a large argument is i.i.d. Devices come in random
    order; one that finds a class empty takes the rest from its other classes, in proportion (Hsu et al.,
    arXiv 1909.06335).
    """
    rng = request.rng("dirichlet")
    present = np.flatnonzero(request.available)
    left = request.available[present].copy()
    shares = rng.dirichlet(argument * len(present) * left / left.sum(), size=len(request.sizes))
    counts = np.zeros((len(request.sizes), len(request.available)), dtype=np.int64)
    for device in rng.permutation(len(request.sizes)):
        size = int(request.sizes[device])
        taken = np.minimum(whole_parts(size, shares[device]), left)
        while (short := size - int(taken.sum())) > 0:
            room = left - taken
            wanted = np.where(room > 0, shares[device], 0.0)
            wanted = wanted if wanted.sum() > 0 else room.astype(np.float64)
            taken += np.minimum(whole_parts(short, wanted / wanted.sum()), room)
        counts[device, present] = taken
        left -= taken
    return _hand_out(request, counts)


def _by_shards(request: AllocationInput, argument: float) -> Allocation:
    """Datapoints sorted by class, cut into K pieces a device, dealt out at random (McMahan et al., 2017)."""
    count = int(argument)
    if count > request.sizes.min():
        raise UserError(f"{request.sizes.min()} datapoints cannot be cut into {count} shards: give fewer shards")
    rng = request.rng("shards")
    pieces = np.concatenate([whole_parts(int(size), np.full(count, 1 / count)) for size in request.sizes])
    shuffled = rng.permutation(len(request.targets))[: pieces.sum()]
    rows = shuffled[np.argsort(request.targets[shuffled], kind="stable")]
    deal = rng.permutation(len(pieces))  # which piece comes next along the sorted rows
    return _allocation(request, rows, np.repeat(deal // count, pieces[deal]))


def _by_chance(request: AllocationInput, argument: float) -> Allocation:
    """Any datapoint at any device: what a shuffle of all data gives."""
    rows = request.rng("iid").permutation(len(request.targets))[: request.sizes.sum()]
    return _allocation(request, rows, np.repeat(np.arange(len(request.sizes)), request.sizes))


def _hand_out(request: AllocationInput, counts: NDArray[np.int64]) -> Allocation:
    """counts[device, class] datapoints to each device, drawn at random within the class."""
    shuffled = request.rng("datapoints").permutation(len(request.targets))
    by_class = shuffled[np.argsort(request.targets[shuffled], kind="stable")]
    starts = np.cumsum(request.available) - request.available
    rows = [by_class[start : start + total] for start, total in zip(starts, counts.sum(axis=0), strict=True)]
    owners = [np.repeat(np.arange(len(counts)), column) for column in counts.T]
    return _allocation(request, np.concatenate(rows), np.concatenate(owners))


def _allocation(request: AllocationInput, rows: NDArray[np.int64], owner: NDArray[np.int64]) -> Allocation:
    offsets = np.concatenate([[0], np.cumsum(request.sizes)])
    return Allocation(rows[np.lexsort((rows, owner))], offsets)


RULES: Mapping[str, Callable[[AllocationInput, float], Allocation]] = MappingProxyType(
    {"labels": _by_labels, "dirichlet": _by_dirichlet, "shards": _by_shards, "iid": _by_chance}
)


def _parse(rule: str) -> tuple[Callable[[AllocationInput, float], Allocation], float]:
    name, _, text = rule.partition(":")
    try:
        argument = 1.0 if name == "iid" and not text else float(text) if name == "dirichlet" else int(text)
    except ValueError:
        argument = 0.0
    if name not in RULES or not 0 < argument <= 1e6 or (name == "iid" and text):
        raise UserError(
            f"data.allocation cannot be {rule!r}: give labels:K or shards:K with a whole number from 1, "
            "dirichlet:ALPHA with a number above 0, or iid"
        )
    return RULES[name], argument
