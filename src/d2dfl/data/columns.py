"""What users bring as data: arrays, lists, tensors, frames, datasets. All of it becomes plain NumPy arrays.

Nothing here imports pandas, polars or Hugging Face's datasets: an object is known by what it can do.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from d2dfl.errors import UserError, described
from d2dfl.memory import check_memory
from d2dfl.words import a_kind

KINDS = "an array, a frame, or a dataset with a length"
NAMES = ("y", "device", "devices", "test targets")  # what may hold names

WHOLE = 1 << 53  # from here on a number with a point does not say which whole number is meant


class RowError(UserError):
    """Something wrong in one row; whoever read it from a file says the line instead."""

    def __init__(self, what: str, row: int, advice: str) -> None:
        self.what, self.row, self.advice = what, row, advice
        super().__init__(self.said(f"row {row:,}"))

    def said(self, place: str) -> str:
        """The sentence with the place where it is wrong."""
        return f"{self.what} in {place}: {self.advice}"


class Arrays(NamedTuple):
    """Inputs, targets and devices as arrays, one row a datapoint."""

    inputs: NDArray[Any]
    targets: NDArray[Any] | None  # None: there are none
    device: NDArray[Any] | None
    class_names: tuple[str, ...] = ()  # of whole-numbered targets, where the data tells them


def arrays_from(inputs: Any, targets: Any, device: Any, optional: bool = False) -> Arrays:
    """Arrays from whatever holds them. `targets` and `device` may be names of columns of `inputs`.

    `optional`: there may be no targets.
    """
    for name, value in (("y", targets), ("device", device)):
        _check_index(name, value, inputs)
    if _is_table(inputs):
        return _from_table(inputs, targets, device, optional)
    inputs = _dense("X", inputs)
    dataset = _is_dataset(inputs)
    if dataset and len(inputs) and isinstance(inputs[0], Mapping):
        return _from_table(_by_name(inputs), targets, device, optional)
    for name, value in (("y", targets), ("device", device)):
        if isinstance(value, str):
            raise UserError(
                f"{name} names the column {value!r:.80}, and X has no columns: give an array, or X as a frame"
            )
    owner = None if device is None else array_of("device", device)
    if dataset:
        inputs, found = _items(inputs, targets is None, optional)
        targets = found if targets is None else targets
    if targets is None and not optional:
        raise UserError("y is missing: give a label or a number for every row of X")
    return Arrays(array_of("X", inputs), None if targets is None else array_of("y", targets), owner)


def _check_index(name: str, values: Any, inputs: Any) -> None:
    """Refuse a column of pandas whose index names other rows than X has, or in another order: by place they would be mixed up."""
    own: Any = getattr(values, "index", None)
    other: Any = getattr(inputs, "index", None)
    if not (hasattr(own, "equals") and hasattr(other, "equals")) or len(values) != len(inputs):
        return
    if not own.equals(other):
        raise UserError(
            f"{name} has another index than X: give {name}.loc[X.index], or {name}.to_numpy() if they agree row by row"
        )


def array_of(name: str, values: Any) -> NDArray[Any]:
    """A regular array, or a sentence that names the argument."""
    if name in NAMES:
        _check_one_kind(name, values)
    values = _dense(name, values)
    if isinstance(values, np.ma.MaskedArray) and np.ma.getmaskarray(values).any():
        raise UserError(f"{name} has masked values: fill them or drop their rows")
    try:
        if isinstance(values, list | tuple) and values and not isinstance(values[0], str | bytes | int | float):
            array = np.stack([np.asarray(_plain(value)) for value in values])
        else:
            array = np.asarray(_plain(values))
        if array.dtype == object and array.ndim == 1 and len(array) and _is_regular(array[0]):
            array = np.stack([np.asarray(_plain(value)) for value in array])
    except Exception as error:  # whatever a strange object does when it is asked for its values
        raise UserError(f"{name} is not a regular array: give rows of equal shape ({described(error):.100})") from None
    if array.ndim == 0:
        alone = isinstance(values, np.ndarray | np.generic)
        raise UserError(f"{name} is {'one value alone' if alone else a_kind(values)}: give {KINDS}")
    return array


def _check_one_kind(name: str, values: Any) -> None:
    """Refuse text beside numbers: as names of devices or labels, 1 and "1" would become one."""
    if not isinstance(values, list | tuple):
        if str(getattr(values, "dtype", "")) != "object":
            return
        values = np.asarray(values).ravel().tolist()
    text = next((value for value in values if isinstance(value, str)), None)
    number = next((value for value in values if isinstance(value, int | np.integer)), None)
    if text is not None and number is not None:
        number = int(number)  # not np.int64(0)
        raise UserError(f"{name} holds text and numbers, such as {text!r:.40} and {number!r:.40}: give one kind")


def _dense(name: str, values: Any) -> Any:
    """A sparse matrix of SciPy with all its zeros, where they fit in memory; anything else as it is."""
    if not (hasattr(values, "toarray") and hasattr(values, "nnz")):
        return values
    size = float(np.prod(values.shape)) * values.dtype.itemsize
    check_memory(4 * size, f"{name}, sparse, needs with all its zeros", "give fewer rows or features")
    return values.toarray()


def _plain(values: Any) -> Any:
    """A tensor as an array; anything else as it is."""
    if hasattr(values, "detach") and hasattr(values, "cpu"):
        tensor = values.detach().cpu()
        return (tensor.float() if str(tensor.dtype) == "torch.bfloat16" else tensor).numpy()
    return values


def _is_regular(value: Any) -> bool:
    return isinstance(value, list | tuple | np.ndarray) or hasattr(value, "detach")


def _is_table(values: Any) -> bool:
    return isinstance(values, Mapping) or hasattr(values, "columns") or _is_hugging_face(values)


def _is_hugging_face(values: Any) -> bool:
    return hasattr(values, "column_names") and hasattr(values, "with_format")


def _is_dataset(values: Any) -> bool:
    """Whether it is a map-style dataset: items by number, and no array itself."""
    if isinstance(values, list | tuple | np.ndarray) or hasattr(values, "__array__"):
        return False
    if not hasattr(values, "__len__") or not hasattr(values, "__getitem__") or isinstance(values, str | bytes):
        raise UserError(f"X is {a_kind(values)}: give {KINDS}")
    return True


def _from_table(table: Any, targets: Any, device: Any, optional: bool = False) -> Arrays:
    columns = _columns(table)
    if targets is None and not optional:
        raise UserError(f"y is missing: name the column of the labels; the columns are {listed(columns)}")
    taken = [value for value in (targets, device) if isinstance(value, str)]
    for name, value in (("y", targets), ("device", device)):
        if isinstance(value, str) and value not in columns:
            raise UserError(f"{name} names the column {value!r:.80}, which X does not have: it has {listed(columns)}")
    if len(taken) > len(set(taken)):
        raise UserError(
            f"y and device both name the column {taken[0]!r:.80}: name one for each; X has {listed(columns)}"
        )
    features = {name: column for name, column in columns.items() if name not in taken}
    if not features:
        beside = listed(taken) if taken else "those of labels and devices"
        raise UserError(f"X has no columns beside {beside}: give some to learn from")
    names = _class_names(table, targets) if isinstance(targets, str) else ()
    return Arrays(
        _joined(features),
        None if targets is None else array_of("y", columns[targets] if isinstance(targets, str) else targets),
        None if device is None else array_of("device", columns[device] if isinstance(device, str) else device),
        names,
    )


def _columns(table: Any) -> dict[Any, Any]:
    """The columns of a frame, a dataset or a dictionary, by name."""
    if _is_hugging_face(table):
        splits = table.column_names
        if isinstance(splits, Mapping):
            raise UserError(f"X holds the splits {listed(splits)}: give one of them, such as X[{next(iter(splits))!r}]")
        return dict(table.with_format("numpy")[:])
    names = list(table) if isinstance(table, Mapping) else list(table.columns)
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise UserError(f"X has two columns {twice[0]!r:.80}: give each a name of its own")
    return {name: table[name] for name in names}


def _class_names(table: Any, column: str) -> tuple[str, ...]:
    """What Hugging Face calls the classes of a column."""
    features = getattr(table, "features", None)
    feature = features.get(column) if isinstance(features, Mapping) else None
    return tuple(getattr(feature, "names", None) or ())


def _joined(features: Mapping[Any, Any]) -> NDArray[Any]:
    """One column as it is, or several as features side by side."""
    arrays = {name: array_of(f"X, column {name!r:.80},", column) for name, column in features.items()}
    if len(arrays) == 1:
        return next(iter(arrays.values()))
    for name, column in arrays.items():
        if column.ndim != 1:
            raise UserError(
                f"X has the column {name!r:.80} of shape {column.shape} beside others: "
                "give that column alone, or columns of one number a row"
            )
        numbers(f"X, column {name!r:.80},", column)
    lengths = {len(column) for column in arrays.values()}
    if len(lengths) > 1:
        raise UserError(f"X has columns of {min(lengths):,} to {max(lengths):,} rows: give columns of equal length")
    return np.column_stack([numbers(f"X, column {name!r:.80},", column) for name, column in arrays.items()])


def _by_name(dataset: Any) -> dict[Any, Any]:
    """The columns of a map-style dataset whose items are dictionaries."""
    items = [dataset[place] for place in range(len(dataset))]
    return {name: [item[name] for item in items] for name in items[0]}


def _items(dataset: Any, labelled: bool, optional: bool = False) -> tuple[Any, Any]:
    """All items of a map-style dataset: inputs and targets."""
    number = len(dataset)
    if not number:
        raise UserError("X has no rows: give at least one datapoint a device")
    first = dataset[0]
    paired = isinstance(first, Sequence) and not isinstance(first, str | bytes)
    labelled = labelled and not (optional and not (paired and len(first) == 2))
    if labelled and not (paired and len(first) == 2):
        raise UserError("X is a dataset whose items are not pairs (input, label): give y beside it")
    size = float(np.asarray(_plain(first[0] if paired else first)).nbytes) * number
    check_memory(3 * size, f"X with {number:,} datapoints needs", "give a smaller part of it")
    items = [dataset[place] for place in range(number)]
    return ([item[0] for item in items], [item[1] for item in items] if labelled else None) if paired else (items, None)


def numbers(name: str, array: NDArray[Any]) -> NDArray[Any]:
    """An array of real, finite numbers, or a sentence that says where it is not."""
    if array.dtype.kind == "O":
        array = _from_objects(name, array)
    if array.dtype.kind == "U" and array.ndim == 1 and any(map(_reads_as_number, array.tolist())):
        array = _from_objects(name, array.astype(object))
    if array.dtype.kind not in "biuf":
        what = {"U": "text", "S": "text", "c": "complex numbers", "M": "dates", "m": "spans of time"}
        shown = f", such as {array.flat[0]!s:.40}" if array.dtype.kind in "US" and array.size else ""
        raise UserError(f"{name} holds {what.get(array.dtype.kind, 'no numbers')}{shown}: give numbers")
    if array.dtype.kind == "f" and array.size:
        bad = ~np.isfinite(array).reshape(len(array), -1).all(axis=1)
        if bad.any():
            raise RowError(f"{name} holds NaN or infinity", int(bad.argmax()), "fill such values or drop their rows")
    return array


def _from_objects(name: str, array: NDArray[Any]) -> NDArray[Any]:
    """Numbers out of an array of Python's objects. Among texts, the first that is no number is blamed."""
    kinds = (bool, int, float, np.bool_, np.integer, np.floating)
    odd = [place for place, value in enumerate(array.flat) if not isinstance(value, kinds)]
    if not odd:
        with np.errstate(over="ignore"):  # what is too large becomes infinity, and is refused as such
            return np.array([_float(value) for value in array.flat]).reshape(array.shape)
    place = next((place for place in odd if not _reads_as_number(array.flat[place])), odd[0])
    value = array.flat[place]
    row = place // max(array.size // max(len(array), 1), 1)
    shown = "nothing" if value is None or type(value).__name__ == "NAType" else f"{value!r:.40}"
    raise RowError(f"{name} holds {shown}", row, "give numbers")


def _float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:  # a whole number of Python's beyond 64 bits
        return np.inf


def all_whole(values: NDArray[Any]) -> bool:
    """Whether numbers with a point are whole ones, and small enough to say which."""
    return bool((np.isfinite(values) & (np.abs(values) < WHOLE) & (values == np.round(values))).all())


def _reads_as_number(value: Any) -> bool:
    """Whether a text would be a number without its quotation marks."""
    try:
        return isinstance(value, str) and not np.isnan(float(value))
    except ValueError:
        return False


def listed(names: Any) -> str:
    """The first names, for a sentence."""
    shown = [repr(name) for name in names]
    return ", ".join(shown[:8]) + (", …" if len(shown) > 8 else "")


def text_of(value: Any) -> Any:
    """A name or a label as text; whole numbers stay numbers."""
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return value if isinstance(value, int | np.integer) else str(value)


def first_missing(values: NDArray[Any]) -> int | None:
    """The first row without a value."""
    if values.dtype.kind == "f":
        bad = np.isnan(values)
    elif values.dtype.kind == "O":
        bad = np.array([value is None or type(value).__name__ == "NAType" or value != value for value in values])
    else:
        return None
    return int(bad.argmax()) if bad.any() else None
