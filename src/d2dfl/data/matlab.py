"""Arrays of numbers from MATLAB files of version 5, as SVHN comes in: read by ourselves, every length checked first.

A file is a header and elements; an element is a type, a length and bytes, perhaps compressed. An array is an element
that holds others: its class, its shape, its name, its numbers.
"""

import math
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from d2dfl.errors import UserError
from d2dfl.storage import read_bytes

HEADER = 128
DIMENSIONS = 8
ELEMENTS = 1000  # of a file; SVHN's have two
_COMPRESSED, _MATRIX, _INT8, _INT32, _UINT32 = 15, 14, 1, 5, 6
_NUMBERS = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
_CLASSES = range(6, 16)  # numbers; the others are texts, cells, structures, objects
_COMPLEX = 0x08  # a flag


class _DamagedError(Exception):
    """Why a file is not what it should be."""


def read_arrays(path: Path, names: tuple[str, ...], limit: int) -> dict[str, NDArray[Any]]:
    """The arrays of these names. `limit`: bytes that the file may have, and bytes that it may unpack to."""
    content = memoryview(read_bytes(path, "a MATLAB file", limit))
    try:
        order = {b"IM": "<", b"MI": ">"}.get(bytes(content[126:HEADER]))
        if order is None:
            raise _DamagedError("its first bytes are wrong")
        if struct.unpack(order + "H", content[124:126]) != (0x0100,):
            raise _DamagedError("it is of another version than 5")
        found: dict[str, NDArray[Any]] = {}
        for body in _matrices(content[HEADER:], order, limit):
            name, array = _array(body, order, names)
            if array is not None and found.setdefault(name, array) is not array:
                raise _DamagedError(f"it has {name!r} twice")
    except (_DamagedError, zlib.error, struct.error) as error:
        reason = error if isinstance(error, _DamagedError) else "it is damaged or cut short"
        raise UserError(f"{path} cannot be read as a MATLAB file: {reason}") from None
    return found


def _matrices(content: memoryview, order: str, limit: int) -> Iterator[memoryview]:
    """The bodies of all arrays, unpacked one after another."""
    for _ in range(ELEMENTS):
        if not content:
            return
        kind, body, content = _element(content, order)
        if kind == _COMPRESSED:
            unpacking = zlib.decompressobj()
            unpacked = unpacking.decompress(body, limit + 1)
            limit -= len(unpacked)
            if limit < 0:
                raise _DamagedError("it holds more than any such file")
            if not unpacking.eof:
                raise _DamagedError("it is damaged or cut short")
            kind, body, _ = _element(memoryview(unpacked), order)
        if kind == _MATRIX:
            yield body
    raise _DamagedError(f"it has more than {ELEMENTS:,} elements")


def _element(content: memoryview, order: str) -> tuple[int, memoryview, memoryview]:
    """Type and bytes of the first element, and what comes after it."""
    kind, length = struct.unpack(order + "II", content[:8])
    start, end = 8, 8 + length
    if kind >> 16:  # up to four bytes stand in the place of the length
        kind, length = kind & 0xFFFF, kind >> 16
        start, end = 4, 4 + length
        if length > 4:
            raise _DamagedError("it is damaged: a short element is long")
    if end > len(content):
        raise _DamagedError("it is damaged or cut short")
    after = end if kind == _COMPRESSED else -(-end // 8) * 8  # all but packed elements are padded
    return kind, content[start:end], content[after:]


def _array(body: memoryview, order: str, names: tuple[str, ...]) -> tuple[str, NDArray[Any] | None]:
    """Name and numbers of an array; no numbers if it is not among the names."""
    flag_kind, flags, body = _element(body, order)
    shape_kind, sizes, body = _element(body, order)
    name_kind, letters, body = _element(body, order)
    if (flag_kind, shape_kind, name_kind) != (_UINT32, _INT32, _INT8) or len(flags) != 8:
        raise _DamagedError("it is damaged: an array has no class, shape or name")
    name = bytes(letters).decode("latin-1")
    if name not in names:
        return name, None
    (flag,) = struct.unpack(order + "I", flags[:4])
    if flag & 0xFF not in _CLASSES or (flag >> 8) & _COMPLEX:
        raise _DamagedError(f"{name!r} is not an array of numbers")
    if len(sizes) % 4 or not 2 <= len(sizes) // 4 <= DIMENSIONS:
        raise _DamagedError(f"{name!r} has {len(sizes) // 4} dimensions")
    shape = struct.unpack(f"{order}{len(sizes) // 4}i", sizes)
    kind, values, _ = _element(body, order)
    if kind not in _NUMBERS or not all(size > 0 for size in shape):
        raise _DamagedError(f"{name!r} is not an array of numbers")
    # The numbers are stored in a type that they fit into, which need not be that of the array.
    dtype = np.dtype(order + _NUMBERS[kind])
    if math.prod(shape) * dtype.itemsize != len(values):
        raise _DamagedError(f"it is damaged: {name!r} should be {shape} and has {len(values):,} bytes")
    return name, np.frombuffer(values, dtype=dtype).reshape(shape, order="F")
