"""A user's own data on own devices: whatever they bring, checked, becomes a Dataset that says who holds what."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from d2dfl.data.columns import Arrays, RowError, array_of, arrays_from, listed, numbers
from d2dfl.data.dataset import Dataset, Kind, Owners, standardise
from d2dfl.data.datasets import FEWEST, LARGEST_VALUE, split_rows
from d2dfl.errors import UserError
from d2dfl.memory import check_memory

CHANNELS = (1, 3, 4)  # grey, colours, colours with transparency
MOST_CHANNELS = 8  # of a signal; a first side beyond is the height of an image
MANY_CLASSES = 1000  # from which as many classes as half the rows are no classes
KINDS: tuple[Kind, ...] = get_args(Kind)
TargetKind = Literal["classes", "numbers", "any"]  # any: classes, or no targets at all


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
            else Owners(tuple(map(str, self.devices)), _held(self.owners[rows], len(self.devices))),
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
    values, names = _targets(given, rows, learning)
    owners, devices_named = (None, ()) if given.device is None else _owners(given.device, rows, devices, counted_by)
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


def _targets(given: Arrays, rows: int, learning: TargetKind | None) -> tuple[NDArray[Any], tuple[str, ...]]:
    values = given.targets
    if values is None:
        return np.zeros(rows, dtype=np.int64), ("unlabelled",)
    if len(values) != rows:
        raise UserError(f"y has {len(values):,} values and X {rows:,} rows: give one for each row")
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise UserError(f"y has the shape {values.shape}: give one label or number a row")
    if learning == "numbers" or (learning is None and _is_floating(values)):
        found = numbers("y", values).astype(np.float64)
        if np.abs(found).max() > LARGEST_VALUE:
            raise UserError("y holds numbers beyond a billion: give them in a larger unit")
        if found.min() == found.max():
            raise UserError(f"y holds one number only, {found[0]:g}: there is nothing to learn from it")
        return found.astype(np.float32), ()
    names, classes = _classes(values)
    if given.class_names and names and all(name.isdigit() and int(name) < len(given.class_names) for name in names):
        return values.astype(np.int64), given.class_names
    return classes, names


def _is_floating(values: NDArray[Any]) -> bool:
    """Whether these are numbers with a point; objects are looked at one by one."""
    if values.dtype.kind == "O":
        return len(values) > 0 and all(isinstance(value, float | np.floating) for value in values)
    return values.dtype.kind == "f"


def _classes(values: NDArray[Any]) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    """Names of the classes, sorted as numbers or as text, and the class of every row."""
    odd = _missing(values)
    if odd is not None:
        raise RowError("y holds no label", odd, "give every row one, or drop the row")
    if values.dtype.kind == "f":
        if not np.array_equal(values, np.round(values)):
            raise UserError(
                "y holds numbers with a point, which are no classes: give labels, or take the paradigm regression"
            )
        values = values.astype(np.int64)
    if values.dtype.kind not in "biuUSO":
        raise UserError(f"y holds values of the type {values.dtype}: give labels as whole numbers or text")
    if values.dtype.kind in "SO":
        values = np.array([_text(value) for value in values.tolist()])
    known, classes = np.unique(values, return_inverse=True)
    if len(known) == 1:
        raise UserError(f"y holds one class only, {known[0]!s:.40}: give at least two, or numbers to predict")
    if len(known) > max(MANY_CLASSES, len(values) // 2):
        raise UserError(
            f"y holds {len(known):,} classes in {len(values):,} rows: give labels, or take the paradigm regression"
        )
    return tuple(map(str, known.tolist())), classes.reshape(-1).astype(np.int64)


def _text(value: Any) -> Any:
    """A name or a label as text; whole numbers stay numbers."""
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return value if isinstance(value, int | np.integer) else str(value)


def _whole(value: Any) -> Any:
    """A number without a fraction as a whole one; anything else as it is."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _missing(values: NDArray[Any]) -> int | None:
    """The first row without a value."""
    if values.dtype.kind == "f":
        bad = np.isnan(values)
    elif values.dtype.kind == "O":
        bad = np.array([value is None or type(value).__name__ == "NAType" or value != value for value in values])
    else:
        return None
    return int(bad.argmax()) if bad.any() else None


def _owners(
    device: NDArray[Any], rows: int, devices: int | Sequence[Any] | None, counted_by: str
) -> tuple[NDArray[np.int64], tuple[str | int, ...]]:
    """[row] number of its device, and the names of all devices."""
    if device.ndim == 2 and device.shape[1] == 1:
        device = device[:, 0]
    if device.shape != (rows,):
        raise UserError(f"device has the shape {device.shape} and X {rows:,} rows: give one device for each row")
    odd = _missing(device)
    if odd is not None:
        raise RowError("device names nobody", odd, "give every row a device, or drop the row")
    if device.dtype.kind == "f":
        if not np.array_equal(device, np.round(device)):
            raise UserError("device holds numbers with a point: give whole numbers or names")
        device = device.astype(np.int64)
    if device.dtype.kind not in "biuUSO":
        raise UserError(f"device holds values of the type {device.dtype}: give whole numbers or names")
    if devices is None or isinstance(devices, int | np.integer):
        return _numbered(device, None if devices is None else int(devices), counted_by)
    return _named(device, list(devices))


def _numbered(
    device: NDArray[Any], number: int | None, counted_by: str
) -> tuple[NDArray[np.int64], tuple[str | int, ...]]:
    """Devices by their sorted names; where it is known how many there are, numbers below that are taken as they are."""
    if number is not None and number < 1:
        raise UserError(f"devices cannot be {number}: give at least 1")
    values = device if device.dtype.kind in "biuU" else np.array([_text(value) for value in device.tolist()])
    known, places = np.unique(values, return_inverse=True)
    if number is not None and values.dtype.kind in "iu" and known[0] >= 0 and known[-1] < number:
        return values.astype(np.int64), tuple(range(number))
    if number is not None and number != len(known):
        named = f"device names {len(known):,}, such as {known[-1]!s:.40}"
        if counted_by:
            raise UserError(f"{counted_by} has {number:,} devices and {named}: they must be the same")
        raise UserError(
            f"{named}, and devices says {number:,}: give numbers from 0 to {number - 1}, or the names of all in devices"
        )
    return places.reshape(-1).astype(np.int64), tuple(known.tolist())


def _named(device: NDArray[Any], names: list[Any]) -> tuple[NDArray[np.int64], tuple[str | int, ...]]:
    """Devices by a list of their names, in its order."""
    given = [_text(name) for name in array_of("devices", names).tolist()]
    texts = list(map(str, given))
    if len(set(texts)) < len(texts):
        twice = next(name for name, text in zip(given, texts, strict=True) if texts.count(text) > 1)
        raise UserError(f"devices names {twice!r:.40} twice: name each once")
    place = {text: number for number, text in enumerate(texts)}
    held = [_text(value) for value in device.tolist()]
    unknown = next((name for name in held if str(name) not in place), None)
    if unknown is not None:
        raise UserError(f"device names {unknown!r:.40}, which devices does not have: it has {listed(given)}")
    return np.array([place[str(name)] for name in held], dtype=np.int64), tuple(given)


def _held(owners: NDArray[np.int64], devices: int) -> tuple[NDArray[np.int64], ...]:
    """Per device, the numbers of its datapoints, rising."""
    order = np.argsort(owners, kind="stable")
    return tuple(np.split(order, np.cumsum(np.bincount(owners, minlength=devices))[:-1]))


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
    texts = [str(_text(_whole(value))) for value in values.tolist()]
    unknown = next((text for text in texts if text not in place), None)
    if unknown is not None:
        raise UserError(f"the test part has the label {unknown!r:.40}, which y does not have: it has {listed(names)}")
    return inputs, np.array([place[text] for text in texts], dtype=np.int64)
