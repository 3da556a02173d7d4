"""A user's own numbers: what is not a regular array of real numbers, or beyond what can be computed with, is refused."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from d2dfl.errors import UserError

MOST = 1e15  # of anything that is counted, and of a received power: sums and ratios of such numbers stay exact enough
FARTHEST_M = 1e9
LINEAR = "give received power in a linear unit, 10 ** (dBm / 10) in mW, and channel.noise_power in the same unit"
_TRUTHS = (bool, np.bool_)
_ODD: dict[type, str] = {
    **dict.fromkeys(_TRUTHS, "true or false"),
    **dict.fromkeys((str, bytes), "a text"),
    complex: "a complex number",
    type(None): "nothing",
}
_KINDS = {"b": "true or false", "c": "complex numbers", "U": "texts", "S": "texts", "M": "dates", "m": "spans of time"}


def real(name: str, values: Any, low: float, high: float) -> NDArray[np.float64]:
    """An array of finite numbers from `low` to `high`."""
    return within(name, floats(name, values), low, high)


def floats(name: str, values: Any) -> NDArray[np.float64]:
    """A regular array of real numbers, NaN and infinities among them; laid out as compiled code wants it."""
    with np.errstate(over="ignore"):  # what is too large for 64 bits becomes infinity, and is refused as such
        array = np.asarray(regular(name, values), dtype=np.float64)
    return np.require(array, requirements=("C", "W"))


def regular(name: str, values: Any, truths: bool = False) -> NDArray[Any]:
    """A regular array of real numbers of whatever width; with `truths`, booleans are numbers too."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.getmaskarray(values).any():
        raise UserError(f"{name} has masked values: fill them")
    try:
        array = np.asarray(values)
    except (TypeError, ValueError, OverflowError, RecursionError):
        raise UserError(f"{name} is not a regular array of numbers: give equally long rows of numbers") from None
    odd = _odd(values, truths)
    if odd is not None:
        raise UserError(f"{name} holds {odd[0]!r:.80}, which is {odd[1]}: give numbers")
    if array.dtype.kind in ("biuf" if truths else "iuf"):
        return array
    if array.dtype.kind == "O" and array.size and all(isinstance(value, int) for value in array.flat):
        largest = max(array.flat, key=abs)
        raise UserError(f"{name} holds a whole number of {largest.bit_length()} bits: give numbers of up to 64")
    what = _KINDS.get(array.dtype.kind, "something other than numbers")
    raise UserError(f"{name} holds {what}: give numbers")


def _odd(values: Any, truths: bool) -> tuple[Any, str] | None:
    """A value inside rows that NumPy would turn into a number silently, and what it is."""
    if isinstance(values, list | tuple):
        # Rows of plain numbers are most of all, and are looked at by their types alone.
        if not any(issubclass(kind, (list, tuple, *_ODD)) for kind in set(map(type, values))):
            return None
        for value in values:
            found = _odd(value, truths)
            if found is not None:
                return found
        return None
    if truths and isinstance(values, _TRUTHS):
        return None
    return next(((values, what) for kind, what in _ODD.items() if isinstance(values, kind)), None)


def within(name: str, array: NDArray[np.float64], low: float, high: float) -> NDArray[np.float64]:
    """The same array, if all of it is finite and from `low` to `high`."""
    if not np.isfinite(array).all():
        raise UserError(f"{name} holds NaN or infinity: give finite numbers")
    wrong = array[(array < low) | (array > high)]
    if wrong.size:
        raise UserError(f"{name} holds {wrong.flat[0]:g}: give numbers from {low:g} to {high:g}")
    return array


def shaped(name: str, array: NDArray[Any], shape: tuple[int, ...], axes: str) -> NDArray[Any]:
    """The same array, if it has this shape."""
    if array.shape != shape:
        raise UserError(f"{name} has shape {array.shape}: it must be {axes} = {shape}, as counts says")
    return array


def whole(name: str, values: Any, low: int, high: int, wanted: str) -> NDArray[np.int32]:
    """An array of whole numbers from `low` to `high`; `wanted` says what would be right."""
    array = floats(name, values)
    wrong = array[~((array >= low) & (array <= high) & (array == np.round(array)))]
    if wrong.size:
        raise UserError(f"{name} holds {wrong.flat[0]:g}: give {wanted}")
    return array.astype(np.int32)
