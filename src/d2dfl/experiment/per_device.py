"""What belongs to devices, by the names that the user gave them."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, TypeVar

import numpy as np

from d2dfl.data.columns import listed
from d2dfl.errors import UserError
from d2dfl.words import counted

Value = TypeVar("Value")
Name = str | int
SHOWN = 25  # devices in a line


class UnknownDeviceError(UserError, KeyError):
    """There is no device of this name."""

    __str__ = Exception.__str__  # a KeyError shows its text in quotation marks


class PerDevice(Mapping[Name, Value]):
    """A value for each device: `rows["kitchen"]`, or `rows[5]` where devices are numbers; `rows.items()` for all of them.

    Names are as they were given. A number may also be asked for as text, or as a float without a fraction.
    """

    def __init__(self, names: Iterable[Name], values: Iterable[Value]) -> None:
        self._values = dict(zip(names, values, strict=True))
        self._names = {str(name): name for name in self._values}

    def __getitem__(self, device: Any) -> Value:
        text = str(int(device)) if isinstance(device, float) and device.is_integer() else str(device)
        if text not in self._names:
            raise UnknownDeviceError(f"there is no device {device!r:.40} here: there are {listed(self) or 'none'}")
        return self._values[self._names[text]]

    def __iter__(self) -> Iterator[Name]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        shown = [f"{name!r}: {_short(value)}" for name, value in islice(self._values.items(), SHOWN)]
        return "{" + ", ".join([*shown, *["…"] * (len(self) > SHOWN)]) + "}"


def _short(value: object) -> str:
    """How many rows there are, where they are rows: nobody reads hundreds of numbers."""
    return counted(len(value), "row") if isinstance(value, np.ndarray) else repr(value)
