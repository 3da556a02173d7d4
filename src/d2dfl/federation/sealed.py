"""Arrays and plain values in one file with a checksum: whatever was damaged, cut or exchanged is found before use.

    8 bytes    MAGIC
    32 bytes   SHA-256 of all that follows
    8 bytes    length of the header, little-endian
    header     JSON: {"values": …, "arrays": [{"name", "dtype", "shape"}, …]}
    arrays     their bytes, one after the other

Nothing in such a file is ever executed, and no array is made before its size was found in the file.
"""

import hashlib
import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from d2dfl.errors import UserError
from d2dfl.storage import open_plain, written_whole

MAGIC = b"d2dfl\x00\x01\n"
DTYPES = ("<f4", "<f8", "<i8")
Rows = Callable[[int, int], NDArray[Any]]  # a table of so many rows and columns
PIECE = 1 << 24  # bytes that are hashed at a time


def write_sealed(path: Path, values: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> str:
    """Write the file whole or not at all, and give its checksum."""
    held = {name: np.ascontiguousarray(array, dtype=_dtype(array)) for name, array in arrays.items()}
    described = [{"name": name, "dtype": array.dtype.str, "shape": array.shape} for name, array in held.items()]
    header = json.dumps({"values": values, "arrays": described}).encode()
    checksum = hashlib.sha256()
    with written_whole(path) as file:
        file.write(MAGIC + bytes(checksum.digest_size))
        parts: list[bytes | memoryview] = [len(header).to_bytes(8, "little"), header, *map(_bytes, held.values())]
        for part in parts:
            checksum.update(part)
            file.write(part)
        file.seek(len(MAGIC))
        file.write(checksum.digest())
    return checksum.hexdigest()


def read_sealed(path: Path, rows: Rows | None = None) -> tuple[dict[str, Any], dict[str, NDArray[Any]], str]:
    """Values, arrays and checksum of a file; a `UserError` unless it is whole. `rows` makes tables of numbers to read into."""
    try:
        with open_plain(path, "a saved state") as file:
            return _read(file, rows)
    except UserError:
        raise
    except (OSError, ValueError, RecursionError) as error:
        reason = str(error) if isinstance(error, _DamagedError) else "it cannot be read"
        raise UserError(f"{path} is damaged: {reason}") from None


class _DamagedError(ValueError):
    """What is wrong with a file."""


def _read(file: IO[bytes], rows: Rows | None) -> tuple[dict[str, Any], dict[str, NDArray[Any]], str]:
    size = file.seek(0, 2)
    file.seek(0)
    start = file.read(len(MAGIC) + 32 + 8)
    if len(start) < len(MAGIC) + 40 or not start.startswith(MAGIC):
        raise _DamagedError("its first bytes are wrong")
    told, length = start[len(MAGIC) : -8], int.from_bytes(start[-8:], "little")
    if length > size - len(start):
        raise _DamagedError("it is cut short")
    checksum = hashlib.sha256(start[-8:])
    header = file.read(length)
    checksum.update(header)
    described, values = _described(header)
    sizes = [math.prod(shape) * np.dtype(dtype).itemsize for _, dtype, shape in described]
    if sum(sizes) != size - len(start) - length:
        raise _DamagedError("it holds more or less than it says")
    arrays = {}
    for name, dtype, shape in described:
        tabled = rows is not None and dtype == "<f4" and len(shape) == 2 and math.prod(shape) > 0
        arrays[name] = rows(*shape) if rows is not None and tabled else np.empty(shape, dtype=dtype)
        _fill(file, arrays[name], checksum)
    if checksum.digest() != told:
        raise _DamagedError("its checksum is wrong")
    return values, arrays, checksum.hexdigest()


def _described(header: bytes) -> tuple[list[tuple[str, str, tuple[int, ...]]], dict[str, Any]]:
    """Name, dtype and shape of every array, and the plain values."""
    content = json.loads(header)
    try:
        arrays = [(item["name"], item["dtype"], tuple(item["shape"])) for item in content["arrays"]]
        values = content["values"]
    except (TypeError, KeyError):
        raise _DamagedError("its header is not ours") from None
    for name, dtype, shape in arrays:
        whole = all(type(side) is int and 0 <= side < 1 << 48 for side in shape)
        if not isinstance(name, str) or dtype not in DTYPES or not whole:
            raise _DamagedError("its header is not ours")
    if not isinstance(values, dict):
        raise _DamagedError("its header is not ours")
    return arrays, values


def _fill(file: IO[bytes], array: NDArray[Any], checksum: Any) -> None:
    view = _bytes(array)
    for start in range(0, len(view), PIECE):
        piece = view[start : start + PIECE]
        if file.readinto(piece) != len(piece):  # type: ignore[attr-defined]  # every binary file has it
            raise _DamagedError("it is cut short")
        checksum.update(piece)


def _bytes(array: NDArray[Any]) -> memoryview:
    """The bytes of a contiguous array, without a copy."""
    return array.reshape(-1).view(np.uint8).data


def _dtype(array: NDArray[Any]) -> str:
    found = array.dtype.newbyteorder("<").str
    if found not in DTYPES:
        raise ValueError(f"arrays of {array.dtype} are not kept: {', '.join(DTYPES)} are")
    return found
