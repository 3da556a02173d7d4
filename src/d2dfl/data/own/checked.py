"""What a user brought as arrays, checked: inputs, who holds which row, a test part."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from d2dfl.data.columns import array_of, arrays_from, listed, numbers, text_of
from d2dfl.data.dataset import Dataset, Kind, Owners, standardise
from d2dfl.data.datasets import FEWEST, LARGEST_VALUE, split_rows
from d2dfl.data.own.devices import held_by, owners_of
from d2dfl.data.own.targets import TargetKind, targets_of
from d2dfl.errors import UserError
from d2dfl.memory import check_memory

CHANNELS = (1, 3, 4)  # grey, colours, colours with transparency
MOST_CHANNELS = 8  # of a signal; a first side beyond is the height of an image
KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True)
class OwnData:
    """Checked arrays of a user, one row a datapoint."""

    name: str
    inputs: NDArray[Any]  # [row, ...] channels first, not scaled
    targets: NDArray[Any]  # int64 classes or float32 numbers
    class_names: tuple[str, ...]  # empty for numbers
    kind: Kind
    owners: NDArray[np.int64] | None  # [row] device; None: rows are dealt out
    devices: tuple[str | int, ...]  # their names as they were given, () where rows are dealt out
    test: tuple[NDArray[Any], NDArray[Any]] | None = None  # inputs and targets that no device holds
    note: str = ""  # what the user should know about how the data was read
    labelled: bool = True  # False: all targets are 0, and stand for nothing

    def dataset(self, *, tested: bool = True, seed: int = 0) -> Dataset:
        """Ready to train on. Where no test part was given, a fifth of the rows is kept for tests.

        Without `tested` every row is for the devices, and the test part is what was given, or empty.
        """
        rows = np.arange(len(self.inputs))
        if self.test is not None:
            test_inputs, test_targets = self.test
        else:
            rows, kept = self._split(seed) if tested else (rows, rows[:0])
            test_inputs, test_targets = self.inputs[kept], self.targets[kept]
        train = self.inputs[rows].astype(np.float32)
        test = test_inputs.astype(np.float32)
        standardise(train, test)
        targets, note = self.targets[rows], self.note
        if not self.class_names:  # numbers of any size are learned at the same pace
            mean, deviation = float(targets.mean()), float(targets.std()) or 1.0
            targets, test_targets = (((part - mean) / deviation).astype(np.float32) for part in (targets, test_targets))
            scaled = f"targets are taken minus {mean:.6g}, divided by {deviation:.6g}"
            note = f"{note}; {scaled}" if note else scaled
        return Dataset(
            name=self.name,
            train_inputs=train,
            train_targets=targets,
            test_inputs=test,
            test_targets=test_targets,
            class_names=self.class_names,
            kind=self.kind,
            note=note,
            owners=None
            if self.owners is None
            else Owners(tuple(map(str, self.devices)), held_by(self.owners[rows], len(self.devices))),
            rows=rows,
        )

    def _split(self, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Rows for training and for tests, equally frequent classes in both; the only row of a device stays with it."""
        rows = np.arange(len(self.inputs))
        if self.owners is not None:
            rows = rows[np.bincount(self.owners)[self.owners] > 1]
        if len(rows) < FEWEST:
            others = f", {len(rows):,} of them at devices that hold more than one" if self.owners is not None else ""
            raise UserError(
                f"X has {len(self.inputs):,} rows{others}, too few to keep some for tests: "
                f"give {FEWEST} such rows or more, or a test part"
            )
        strata = self.targets[rows] if self.class_names else np.zeros(len(rows), dtype=np.int64)
        _, tests = split_rows(np.unique(strata, return_inverse=True)[1], seed)
        return np.setdiff1d(np.arange(len(self.inputs)), rows[tests]), rows[tests]


def own_data(
    inputs: Any,
    targets: Any = None,
    device: Any = None,
    *,
    name: str = "own data",
    devices: int | Sequence[Any] | None = None,
    counted_by: str = "",
    learning: TargetKind | None = None,
    kind: Kind | None = None,
    test: Any = None,
    note: str = "",
) -> OwnData:
    """Check what a user brought.

    `devices` are the names of all devices in the order of their links, or how many there are; without it they are those
    that hold data, sorted. `counted_by` is the table that says how many there are, where the user did not. `learning`:
    what targets are; without it, floating-point targets are numbers to predict and all others classes. `test` is a pair
    (inputs, targets).
    """
    given = arrays_from(inputs, targets, device, optional=learning == "any")
    laid, kind = _laid_out("X", given.inputs, kind)
    rows = len(laid)
    check_memory(8.0 * laid.size, f"X with {rows:,} datapoints needs", "give a smaller part of it")
    values, names = targets_of(given, rows, learning)
    owners, devices_named = (None, ()) if given.device is None else owners_of(given.device, rows, devices, counted_by)
    part = None if test is None else _test_part(test, laid.shape[1:], kind, names)
    return OwnData(
        name=name,
        inputs=laid,
        targets=values,
        class_names=names,
        kind=kind,
        owners=owners,
        devices=devices_named,
        test=part,
        note=note,
        labelled=given.targets is not None,
    )


def _laid_out(name: str, values: NDArray[Any], kind: Kind | None) -> tuple[NDArray[Any], Kind]:
    """Inputs with channels first, and what they are.

    Rows of features; grey images [n, height, width], or signals [n, channels, samples] where there are fewer than 8
    channels; colour images with channels last, as files have them, or first.
    """
    if kind is not None and kind not in KINDS:
        raise UserError(f"kind cannot be {kind!r:.40}: give one of {', '.join(KINDS)}")
    array = numbers(name, values)
    if not array.size:
        raise UserError(f"{name} has the shape {array.shape}: give at least one row and one value a row")
    if not -LARGEST_VALUE <= float(array.min()) <= float(array.max()) <= LARGEST_VALUE:
        raise UserError(f"{name} holds values beyond a billion: give them in a larger unit")
    if array.ndim <= 2 or kind == "table":
        return array.reshape(len(array), -1), "table"
    if array.ndim == 3:
        if kind == "signal" or (kind is None and array.dtype != np.uint8 and array.shape[1] < MOST_CHANNELS):
            return array, "signal"
        return array[:, None], "image"
    if array.ndim == 4:
        last, first = array.shape[3] in CHANNELS, array.shape[1] in CHANNELS
        return np.moveaxis(array, 3, 1) if last and (not first or array.dtype == np.uint8) else array, "image"
    raise UserError(f"{name} has the shape {array.shape}: give rows of features, images or signals, up to 4 axes")


def _whole(value: Any) -> Any:
    """A number without a fraction as a whole one; anything else as it is."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _test_part(
    test: Any, shape: tuple[int, ...], kind: Kind, names: tuple[str, ...]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Inputs and targets for tests, laid out and numbered as the training part."""
    if not isinstance(test, list | tuple) or len(test) != 2:
        raise UserError("test is no pair: give (inputs, targets)")
    inputs, _ = _laid_out("test inputs", array_of("test inputs", test[0]), kind)
    values = array_of("test targets", test[1]).reshape(-1)
    if inputs.shape[1:] != shape or len(values) != len(inputs):
        raise UserError(
            f"the test part has inputs of the shape {inputs.shape[1:]} and {len(values):,} targets: "
            f"give the shape {shape} as X has, and one target for each of {len(inputs):,} rows"
        )
    if not names:
        return inputs, numbers("test targets", values).astype(np.float32)
    place = {name: number for number, name in enumerate(names)}
    texts = [str(text_of(_whole(value))) for value in values.tolist()]
    unknown = next((text for text in texts if text not in place), None)
    if unknown is not None:
        raise UserError(f"the test part has the label {unknown!r:.40}, which y does not have: it has {listed(names)}")
    return inputs, np.array([place[text] for text in texts], dtype=np.int64)
