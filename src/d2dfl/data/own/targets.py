"""A user's own labels and numbers to predict, checked."""

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from d2dfl.data.columns import Arrays, RowError, all_whole, first_missing, numbers, text_of
from d2dfl.data.datasets import LARGEST_VALUE
from d2dfl.errors import UserError

MANY_CLASSES = 1000  # from which as many classes as half the rows are no classes
TargetKind = Literal["classes", "numbers", "any"]  # any: classes, or no targets at all


def targets_of(given: Arrays, rows: int, learning: TargetKind | None) -> tuple[NDArray[Any], tuple[str, ...]]:
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
    odd = first_missing(values)
    if odd is not None:
        raise RowError("y holds no label", odd, "give every row one, or drop the row")
    if values.dtype.kind == "f":
        if not all_whole(values):
            raise UserError("y holds numbers with a point, which are no classes: give labels, or --paradigm regression")
        values = values.astype(np.int64)
    if values.dtype.kind not in "biuUSO":
        raise UserError(f"y holds values of the type {values.dtype}: give labels as whole numbers or text")
    if values.dtype.kind in "SO":
        values = np.array([text_of(value) for value in values.tolist()])
    known, classes = np.unique(values, return_inverse=True)
    if len(known) == 1:
        raise UserError(f"y holds one class only, {known[0]!s:.40}: give at least two, or numbers to predict")
    if len(known) > max(MANY_CLASSES, len(values) // 2):
        raise UserError(
            f"y holds {len(known):,} classes in {len(values):,} rows: give labels, or --paradigm regression"
        )
    return tuple(map(str, known.tolist())), classes.reshape(-1).astype(np.int64)
