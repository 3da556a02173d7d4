"""Datasets that come as pickles, read without running anything that is in them.

An unpickler calls whatever the file names; even one that knows only NumPy's names lets a crafted file write into
memory that is not its own. Here an array is made from bytes whose number was checked against the shape, with one of
a few element types; `opcodes` reads the rest.
"""

import io
import math
import os
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from d2dfl.data.machine import DamagedError, Inert, Machine, Source
from d2dfl.data.opcodes import run
from d2dfl.errors import UserError
from d2dfl.storage import open_plain, read_bytes

LARGEST = 1 << 30  # bytes; RadioML 2016.10a has 641 million
LARGEST_TABLE = 1 << 24  # bytes of a joblib file, packed or not; California Housing has 1.5 million
DIMENSIONS = 8
_KINDS = ("b1", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8")
_TYPES: dict[tuple[str, str], np.dtype[Any]] = {
    (kind, order): np.dtype(order + kind) for kind in _KINDS for order in ("|" if kind.endswith("1") else "<>")
}


@dataclass(frozen=True)
class _Name(Inert):
    """A name in the file. Nothing is imported or called for it."""

    name: str


@dataclass
class _Kind(Inert):
    """The type of an array's elements; the order of their bytes comes later in the file."""

    code: str
    dtype: np.dtype[Any] | None = None


class _Blank:
    """An array that has no content yet."""


class _Record:
    """joblib's word for an array whose bytes come next."""


_NDARRAY, _DTYPE, _BLANK, _BUFFER = (_Name(name) for name in ("ndarray", "dtype", "_reconstruct", "_frombuffer"))
_ENCODE, _BYTES, _RECORD = _Name("encode"), _Name("bytes"), _Name("NumpyArrayWrapper")
_KNOWN = {
    ("numpy", "ndarray"): _NDARRAY,
    ("numpy", "dtype"): _DTYPE,
    ("numpy.core.multiarray", "_reconstruct"): _BLANK,  # NumPy 1
    ("numpy._core.multiarray", "_reconstruct"): _BLANK,  # NumPy 2
    ("numpy.core.numeric", "_frombuffer"): _BUFFER,
    ("numpy._core.numeric", "_frombuffer"): _BUFFER,
    ("_codecs", "encode"): _ENCODE,  # how Python 3 writes bytes into old protocols
    ("__builtin__", "bytes"): _BYTES,  # no bytes at all
}


class _ArrayMachine(Machine):
    """A pickle of plain values and arrays."""

    names: ClassVar[Mapping[tuple[str, str], _Name]] = _KNOWN

    def known(self, module: str, name: str) -> Inert:
        if (found := self.names.get((module, name))) is None:
            return super().known(module, name)
        return found

    def reduced(self, name: Any, arguments: Any) -> Any:
        if not isinstance(name, _Name) or not isinstance(arguments, tuple):
            return super().reduced(name, arguments)
        match name, arguments:
            case _Name("_reconstruct"), (_Name("ndarray"), (0,), "b" | b"b"):
                return _Blank()
            case _Name("dtype"), (str(code), 0, 1) if code in _KINDS:
                return _Kind(code)
            case _Name("_frombuffer"), (bytes(content), _Kind() as kind, tuple(shape), "C" | "F" as order):
                return _array(shape, kind, order, content)
            case _Name("encode"), (str(text), "latin1"):
                return _bytes(text)
            case _Name("encode"), (str(), str(encoding)):
                raise DamagedError(f"it is damaged: the text encoding {encoding!r:.40} is not allowed")
            case _Name("bytes"), ():
                return b""
            case _Name("NumpyArrayWrapper"), ():
                return _Record()
            case _Name("dtype"), _:
                raise DamagedError("it holds something other than numbers in an array")
        return super().reduced(name, arguments)

    def built(self, value: Any, state: Any) -> Any:
        match value, state:
            case _Kind(code, None), (3, str(order), None, None, None, -1, -1, 0) if (code, order) in _TYPES:
                value.dtype = _TYPES[code, order]
                return value
            case _Blank(), (1, tuple(shape), _Kind() as kind, bool() | 0 | 1 as fortran, str() | bytes() as content):
                content = _bytes(content) if isinstance(content, str) else content
                return _array(shape, kind, "F" if fortran else "C", content)
            case _Record(), dict():
                return self._following(state)
            case ((_Kind() | _Blank()), _):
                raise DamagedError("it holds something other than numbers in an array")
        return super().built(value, state)

    def _following(self, state: dict[Any, Any]) -> NDArray[Any]:
        """The array that a record announces: its bytes stand right behind the record."""
        shape, kind, order = (state.get(key) for key in ("shape", "dtype", "order"))
        if state.get("subclass") != _NDARRAY or not isinstance(kind, _Kind) or order not in ("C", "F"):
            raise DamagedError("it holds something other than a table of numbers")
        if state.get("numpy_array_alignment_bytes") is not None:
            self.source.take(self.source.number(1))  # a length, then so much padding
        return _array(shape, kind, order, self.source.take(_length(shape, kind)))


class _RecordMachine(_ArrayMachine):
    """The same, with joblib's records."""

    names: ClassVar[Mapping[tuple[str, str], _Name]] = {**_KNOWN, ("joblib.numpy_pickle", "NumpyArrayWrapper"): _RECORD}


def _bytes(text: str) -> bytes:
    """Python 2 wrote bytes as texts, a character a byte."""
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError:
        raise DamagedError("it is damaged: it has bytes beyond 255") from None


def _length(shape: Any, kind: _Kind) -> int:
    """How many bytes an array has, if it is one that a dataset can have."""
    if kind.dtype is None:
        raise DamagedError("it is damaged: an array's elements have no type")
    if not isinstance(shape, tuple) or len(shape) > DIMENSIONS or not all(type(size) is int for size in shape):
        raise DamagedError(f"it is damaged: an array's shape is not {DIMENSIONS} whole numbers at most")
    if not all(size > 0 for size in shape):
        raise DamagedError(f"it has an array of the shape {shape}, which holds nothing")
    return math.prod(shape) * kind.dtype.itemsize


def _array(shape: Any, kind: _Kind, order: str, content: bytes) -> NDArray[Any]:
    length = _length(shape, kind)
    if length != len(content) or kind.dtype is None:
        raise DamagedError(f"it is damaged: an array of the shape {shape} has {len(content):,} bytes")
    return np.frombuffer(content, dtype=kind.dtype).reshape(shape, order="F" if order == "F" else "C")


def load_pickle(path: Path, limit: int = LARGEST) -> Any:
    """The content of a pickle of plain values and arrays."""
    with open_plain(path, "a pickle", limit) as file:
        return _load(path, _ArrayMachine, file, os.fstat(file.fileno()).st_size)


def load_joblib_table(path: Path, limit: int = LARGEST_TABLE) -> NDArray[np.float64]:
    """The one table of numbers in a compressed joblib file, such as scikit-learn's cache of a dataset.

    joblib leaves a small record in the pickle, with the array's bytes behind it.
    """
    packed = read_bytes(path, "a compressed joblib file", limit)
    unpacking = zlib.decompressobj()
    try:
        content = unpacking.decompress(packed, limit + 1)
    except zlib.error:
        raise _unreadable(path, "it is damaged or cut short") from None
    if len(content) > limit:
        raise _unreadable(path, f"it holds more than {limit:,} bytes")
    if not unpacking.eof:
        raise _unreadable(path, "it is damaged or cut short")
    table = _load(path, _RecordMachine, io.BytesIO(content), len(content))
    if not isinstance(table, np.ndarray):
        raise _unreadable(path, "it does not hold one array")
    if table.dtype != np.float64:
        raise _unreadable(path, "it holds something other than a table of numbers")
    return table.astype(np.float64)


def _load(path: Path, machine: type[Machine], file: IO[bytes], size: int) -> Any:
    try:
        return run(machine(Source(file, size)))
    except DamagedError as error:
        raise _unreadable(path, str(error)) from None
    except OSError as error:
        raise UserError(f"cannot read {str(path)!r}: {error.strerror}") from None


def _unreadable(path: Path, reason: str) -> UserError:
    return UserError(f"{path} is not the dataset it should be: {reason}")
