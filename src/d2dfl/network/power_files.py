"""Tables of received power: .csv, or .csv.gz."""

import gzip
import io
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from d2dfl.errors import UserError
from d2dfl.memory import check_memory
from d2dfl.network.values import MOST
from d2dfl.storage import LARGEST_TEXT, open_plain, read_text

WANTED = "a CSV table of received power"


def read_csv(path: Path) -> NDArray[np.float64]:
    """A square table of received power, row = receiver, column = transmitter; the diagonal is ignored."""
    text = _unpacked(path) if path.suffix == ".gz" else read_text(path, WANTED)
    text = text.removeprefix("\ufeff")  # which spreadsheets write
    if not any(line.partition("#")[0].strip() for line in text.splitlines()):
        raise UserError(f"{path} is empty: give {WANTED}")
    check_memory(8.0 * len(text), f"{path} needs", "give a smaller table")
    try:
        table = np.loadtxt(io.StringIO(text), delimiter=",", ndmin=2, dtype=np.float64)
    except ValueError as error:
        reason = str(error).split("\n")[0]
        raise UserError(f"{path} is not a table of numbers separated by commas: {reason:.120}") from None
    rows, columns = table.shape
    if rows != columns:
        raise UserError(f"{path} has {rows} rows and {columns} columns: a table of received power is square")
    np.fill_diagonal(table, 0.0)
    if not ((table >= 0) & (table <= MOST)).all():
        wrong = table[~((table >= 0) & (table <= MOST))].flat[0]
        raise UserError(f"{path} holds {wrong:g}: give received power from 0 to {MOST:g}")
    return table


def _unpacked(path: Path) -> str:
    with open_plain(path, WANTED, LARGEST_TEXT) as file:
        try:
            content = gzip.GzipFile(fileobj=file).read(LARGEST_TEXT + 1)
        except (OSError, EOFError, ValueError, zlib.error) as error:
            reason = str(error).split("\n")[0]
            raise UserError(f"{path} is not a whole .gz file: {reason:.120}") from None
    if len(content) > LARGEST_TEXT:
        raise UserError(f"{path} unpacks to more than {LARGEST_TEXT:,} bytes: {WANTED} may not")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        raise UserError(f"{path} is not text in UTF-8: give {WANTED}") from None
