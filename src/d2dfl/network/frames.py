"""Tables whose rows and columns have names: read by the names of the devices, never by their places.

Nothing here imports pandas or polars: a frame is known by what it can do.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from d2dfl.errors import UserError

Name = str | int


def is_frame(values: Any) -> bool:
    """Whether it is a frame: it has columns, and is no dictionary."""
    return hasattr(values, "columns") and not isinstance(values, Mapping)


def named(values: Any, axis: str = "index") -> list[Name] | None:
    """The devices that the rows of a frame name (or its columns); None where they name none, or it is no frame."""
    found = _names(values, axis) if is_frame(values) else None
    return None if found is None or _counted(found) else found


def by_device(name: str, values: Any, devices: Sequence[Name]) -> Any:
    """A table [receiver, transmitter]; of a frame the values, both axes in the order of the devices.

    A frame without names, those that pandas and polars count up from 0, is read by place.
    """
    if not is_frame(values):
        return values
    rows, columns = _names(values, "index"), _names(values, "columns")
    places = [str(device) for device in devices]
    if (rows is None or _counted(rows, places)) and (columns is None or _counted(columns, places)):
        return np.asarray(values)
    if rows is None or columns is None or _counted(rows, places) or _counted(columns, places):
        side = "columns" if rows is None or _counted(rows, places) else "rows"
        raise UserError(f"{name} names only its {side}: name rows (receivers) and columns (transmitters), or neither")
    order = [_order(name, side, given, places) for side, given in (("row", rows), ("column", columns))]
    return np.asarray(values)[np.ix_(*order)]


def check_same_order(devices: Mapping[str, Any], pairs: Mapping[str, Any]) -> None:
    """Refuse frames that name devices in different orders, where no list of devices says which one counts.

    `devices` have one in each row, `pairs` also in each column.
    """
    given = [(f"the rows of {name}", named(values)) for name, values in (*devices.items(), *pairs.items())]
    given += [(f"the columns of {name}", named(values, "columns")) for name, values in pairs.items()]
    orders = [(what, list(map(str, names))) for what, names in given if names is not None]
    for what, names in orders[1:]:
        if names != orders[0][1]:
            raise UserError(f"{orders[0][0]} and {what} name devices in different orders: give all in one order")


def by_class(name: str, values: Mapping[Any, Any], devices: Sequence[Name], classes: Sequence[str]) -> NDArray[Any]:
    """A table [receiver, transmitter, class] from one table for each class, by its name."""
    if not classes:
        raise UserError(f"{name} is given by class, and the data has no classes: give [receiver, transmitter]")
    given = list(values)
    order = _order(name, "class", given, classes)
    tables = [
        np.asarray(by_device(f"{name} of {given[place]!r:.40}", values[given[place]], devices)) for place in order
    ]
    if len({table.shape for table in tables}) > 1 or tables[0].ndim != 2:
        shapes = sorted({str(table.shape) for table in tables})
        raise UserError(f"{name} has tables of the shape {' and '.join(shapes)}: give [receiver, transmitter] for each")
    return np.stack(tables, axis=2)


def _names(values: Any, axis: str) -> list[Name] | None:
    """What a frame calls its rows or columns; None where it has no such names, as rows of polars."""
    found = getattr(values, axis, None)
    if found is None or callable(found):
        return None
    return [item.item() if isinstance(item, np.generic) else item for item in found]


def _counted(names: list[Name], devices: Sequence[str] = ()) -> bool:
    """Whether these are no names of devices but numbers that a library put there."""
    texts = [str(name) for name in names]
    by_library = texts == [str(place) for place in range(len(texts))] or all(
        re.fullmatch(r"column_\d+", text) for text in texts
    )
    return by_library and set(texts) != set(devices)


def _order(name: str, side: str, given: Sequence[Any], wanted: Sequence[str]) -> list[int]:
    """Where each of the wanted names stands among those that are given."""
    texts = [str(item) for item in given]
    what = "class" if side == "class" else "device"
    twice = next((item for item, text in zip(given, texts, strict=True) if texts.count(text) > 1), None)
    if twice is not None:
        raise UserError(f"{name} has two of the {side} {twice!r:.40}: give each {what} once")
    strange = next((item for item, text in zip(given, texts, strict=True) if text not in wanted), None)
    if strange is not None:
        known = ", ".join(wanted[:8]) + ", …" * (len(wanted) > 8)
        raise UserError(f"{name} has the {side} {strange!r:.40}, which is no {what} of the data: there are {known}")
    missing = next((text for text in wanted if text not in texts), None)
    if missing is not None:
        thing = "table" if side == "class" else side
        raise UserError(f"{name} has no {thing} for the {what} {missing:.40}: give one for each")
    place = {text: number for number, text in enumerate(texts)}
    return [place[text] for text in wanted]
