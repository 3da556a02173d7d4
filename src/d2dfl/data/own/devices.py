"""Which device of a user holds which row, by numbers or by names."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from d2dfl.data.columns import RowError, all_whole, array_of, first_missing, listed, text_of
from d2dfl.errors import UserError
from d2dfl.words import a_kind


def owners_of(
    device: NDArray[Any], rows: int, devices: int | Sequence[Any] | None, counted_by: str
) -> tuple[NDArray[np.int64], tuple[str | int, ...]]:
    """[row] number of its device, and the names of all devices."""
    if device.ndim == 2 and device.shape[1] == 1:
        device = device[:, 0]
    if device.shape != (rows,):
        raise UserError(f"device has the shape {device.shape} and X {rows:,} rows: give one device for each row")
    odd = first_missing(device)
    if odd is not None:
        raise RowError("device names nobody", odd, "give every row a device, or drop the row")
    if device.dtype.kind == "f":
        if not all_whole(device):
            raise UserError("device holds numbers with a point: give whole numbers or names")
        device = device.astype(np.int64)
    if device.dtype.kind not in "biuUSO":
        raise UserError(f"device holds values of the type {device.dtype}: give whole numbers or names")
    if devices is None or isinstance(devices, int | np.integer):
        return _numbered(device, None if devices is None else int(devices), counted_by)
    return _named(device, devices)


def _numbered(
    device: NDArray[Any], number: int | None, counted_by: str
) -> tuple[NDArray[np.int64], tuple[str | int, ...]]:
    """Devices by their sorted names; where it is known how many there are, numbers below that are taken as they are."""
    if number is not None and number < 1:
        raise UserError(f"devices cannot be {number}: give at least 1")
    values = device if device.dtype.kind in "biuU" else np.array([text_of(value) for value in device.tolist()])
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


def _named(device: NDArray[Any], names: Any) -> tuple[NDArray[np.int64], tuple[str | int, ...]]:
    """Devices by a list of their names, in its order."""
    given = names_of(names)
    texts = list(map(str, given))
    place = {text: number for number, text in enumerate(texts)}
    held = [text_of(value) for value in device.tolist()]
    unknown = next((name for name in held if str(name) not in place), None)
    if unknown is not None:
        raise UserError(f"device names {unknown!r:.40}, which devices does not have: it has {listed(given)}")
    return np.array([place[str(name)] for name in held], dtype=np.int64), tuple(given)


def names_of(devices: Any) -> list[str | int]:
    """The names in a list of devices, each once."""
    if isinstance(devices, str | bytes | Mapping) or not hasattr(devices, "__len__") or np.ndim(devices) != 1:
        raise UserError(f"devices is {a_kind(devices)}: give how many there are, or a list of their names")
    given = [text_of(name) for name in array_of("devices", devices).tolist()]
    texts = list(map(str, given))
    if len(set(texts)) < len(texts):
        twice = next(name for name, text in zip(given, texts, strict=True) if texts.count(text) > 1)
        raise UserError(f"devices names {twice!r:.40} twice: name each once")
    return given


def held_by(owners: NDArray[np.int64], devices: int) -> tuple[NDArray[np.int64], ...]:
    """Per device, the numbers of its datapoints, rising."""
    order = np.argsort(owners, kind="stable")
    return tuple(np.split(order, np.cumsum(np.bincount(owners, minlength=devices))[:-1]))
