"""A user's own data in files: .npz with arrays X, y and device, or a table as .csv or .parquet."""

import csv
import hashlib
import importlib
import io
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from d2dfl.config import Config
from d2dfl.data.arrays import read_npz
from d2dfl.data.columns import RowError, listed
from d2dfl.data.own.checked import OwnData, own_data
from d2dfl.data.own.targets import TargetKind
from d2dfl.errors import UserError, install_with
from d2dfl.memory import check_memory
from d2dfl.storage import CHUNK, open_plain, read_text
from d2dfl.words import counted

SUFFIXES = (".npz", ".csv", ".parquet")
ARRAYS = ("X", "y", "device", "X_test", "y_test")
DELIMITERS = ",;\t"
NAMELESS = ("", "Unnamed: 0")  # the first column where pandas wrote the numbers of its rows, too


def is_file(dataset: str) -> bool:
    """Whether the name of a dataset is a file of the user's own."""
    return dataset.lower().endswith(SUFFIXES)


def checksum(path: Path) -> str:
    """SHA-256 of a file."""
    digest = hashlib.sha256()
    with open_plain(path) as file:
        while chunk := file.read(CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def check_same(path: Path, expected: str) -> None:
    """Refuse a file that is not the one that a run was made with; "" expects nothing."""
    if expected and checksum(path) != expected:
        raise UserError(f"{path} is not the file that the run was made with: give it as it was, or run anew with it")


def read_own(config: Config, learning: TargetKind = "classes") -> OwnData:
    """The file that the configuration names as its dataset, checked; `learning` says what its targets are."""
    settings = config.data
    path = Path(settings.dataset)
    check_same(path, settings.sha256)
    table, lines = _read(path)
    label, device = ("y", "device") if path.suffix.lower() == ".npz" else (settings.label, settings.device)
    if label not in table:
        raise UserError(f"{path} has no {label!r}: {_advice(path, '--label-column')}; it has {listed(table)}")
    if label == device and settings.device:
        raise UserError(
            f"{path}: {label!r} is named as the column of labels and of devices: name another with --device-column, "
            f"or deal the rows out with --devices; it has {listed(table)}"
        )
    if settings.device and device not in table:
        way = f"{_advice(path, '--device-column')}, or deal the rows out with --devices"
        raise UserError(f"{path} has no {device!r}, which says who holds what: {way}; it has {listed(table)}")
    if not settings.device and "device" in table:
        raise UserError(f"{path} says who holds what ('device'): leave out --devices")
    note = f"the first column of {path.name} has no name and is left out" if _leave_out_numbers(table) else ""
    owner = table.pop(device) if settings.device else None
    targets = table.pop(label)
    test = (table.pop("X_test"), table.pop("y_test")) if path.suffix.lower() == ".npz" and "X_test" in table else None
    try:
        return own_data(
            table.get("X") if path.suffix.lower() == ".npz" else table,
            targets,
            owner,
            name=path.name,
            devices=config.network.devices if config.network.file else None,  # some may hold nothing
            counted_by=config.network.file,
            learning=learning,
            test=test,
            note=note,
        )
    except RowError as error:
        place = f"line {lines[error.row]:,}" if lines else f"row {error.row:,}"
        raise UserError(f"{path}: {error.said(place)}") from None
    except UserError as error:
        raise UserError(f"{path}: {error}") from None


def _advice(path: Path, option: str) -> str:
    return "give the arrays X, y and device" if path.suffix.lower() == ".npz" else f"name the column with {option}"


def _leave_out_numbers(table: dict[str, Any]) -> bool:
    """Take the numbers of rows that pandas wrote out of a table, where they are its first column."""
    first = next(iter(table))
    return first in NAMELESS and table.pop(first) is not None


def _npz(path: Path) -> dict[str, NDArray[Any]]:
    arrays = read_npz(path, ARRAYS, "set of data", texts=True)
    if "X" not in arrays or ("X_test" in arrays) != ("y_test" in arrays):
        raise UserError(f"{path} has {listed(arrays)}: give X, y and device, and X_test with y_test or neither")
    for name, values in arrays.items():
        try:
            values.tolist()[:1] if values.dtype.kind == "U" else None
        except ValueError:
            raise UserError(f"{path}: {name} holds text that is no text: write it with numpy.savez") from None
    return arrays


def _read(path: Path) -> tuple[dict[str, Any], list[int]]:
    """Arrays or columns by name, and the line of the file in which each row begins, where it has lines."""
    if path.suffix.lower() == ".csv":
        return _csv(path)
    return (_npz(path) if path.suffix.lower() == ".npz" else _parquet(path)), []


def _csv(path: Path) -> tuple[dict[str, Any], list[int]]:
    """Columns by name: whole numbers, numbers, or text where any cell is no number. Empty lines are passed over."""
    text = read_text(path, "a table in CSV with a line of names first")
    check_memory(20.0 * len(text), f"{path} needs", "give it as .npz")
    if "\0" in text:  # NumPy would drop it at the end of a cell, and 1 and 1\0 become one
        where = text.count("\n", 0, text.index("\0")) + 1
        raise UserError(f"{path} holds a zero byte in line {where:,}: give a table in CSV with a line of names first")
    first = text.partition("\n")[0]
    delimiter = max(DELIMITERS, key=first.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    lines, begins, before = [], [], 0
    try:
        for line in reader:
            if line:
                lines.append(line)
                begins.append(before + 1)
            before = reader.line_num  # a cell in quotation marks may go over several lines
    except csv.Error as error:
        raise UserError(f"{path} is not readable as CSV in line {before + 1:,}: {error!s:.120}") from None
    if len(lines) < 2:
        raise UserError(f"{path} has no rows: give a line of names and a line for each datapoint")
    names = [name.strip() for name in lines[0]]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise UserError(f"{path} has two columns {twice!r:.80}: give each a name of its own")
    for number, line in zip(begins, lines, strict=True):
        if len(line) != len(names):
            raise UserError(
                f"{path}: line {number:,} has {counted(len(line), 'cell')} and the first {counted(len(names), 'name')}"
            )
    return {name: _column([line[place] for line in lines[1:]]) for place, name in enumerate(names)}, begins[1:]


def _column(cells: list[str]) -> NDArray[Any]:
    """Cells of a column as numbers, if all of them are; an empty cell is a missing number."""
    for kind in (np.int64, np.float64):
        try:
            filled = cells if kind is np.int64 else [cell if cell.strip() else "nan" for cell in cells]
            return np.array(filled, dtype=np.str_).astype(kind)
        except (ValueError, OverflowError):
            continue
    return np.array([cell if cell.strip() else None for cell in cells], dtype=object)


def _parquet(path: Path) -> dict[str, Any]:
    open_plain(path, "a table in Parquet").close()
    try:
        frame = importlib.import_module("pandas").read_parquet(path)
    except ImportError:
        raise UserError(
            f"{path} needs pandas and pyarrow: install them with {install_with('parquet')}, or give .csv or .npz"
        ) from None
    except Exception as error:  # whatever pyarrow says about a damaged file
        raise UserError(f"{path} is not readable as Parquet: {str(error).splitlines()[0]:.120}") from None
    return {str(name): frame[name].to_numpy() for name in frame.columns}
