"""Datasets that come as pickles, read without running anything that is in them.

A plain unpickler calls whatever the file names. Ours knows four names, all harmless, and refuses the rest.
"""

import io
import math
import pickle
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from d2dfl.errors import UserError


def _encode(text: str, encoding: str) -> bytes:
    """How Python 3 writes bytes into an old pickle; the real `codecs.encode` would also run decompressors."""
    if encoding != "latin1":
        raise pickle.UnpicklingError(f"the text encoding {encoding!r} is not allowed")
    return text.encode("latin1")


# What NumPy itself rebuilds an array with; asked of an array, because its module has moved between versions.
_RECONSTRUCT = np.zeros(0).__reduce__()[0]
_ALLOWED: Mapping[tuple[str, str], Any] = {
    ("numpy.core.multiarray", "_reconstruct"): _RECONSTRUCT,
    ("numpy._core.multiarray", "_reconstruct"): _RECONSTRUCT,
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
    ("_codecs", "encode"): _encode,
}


class _PlainUnpickler(pickle.Unpickler):
    """Numbers, texts, containers and arrays; any other name in the file is refused."""

    def __init__(self, file: BinaryIO, extra: Mapping[tuple[str, str], Any] | None = None) -> None:
        # Python 2 wrote the original sets: its byte strings become texts, byte by byte.
        super().__init__(file, encoding="latin1")
        self._allowed = {**_ALLOWED, **(extra or {})}

    def find_class(self, module: str, name: str) -> Any:
        try:
            return self._allowed[module, name]
        except KeyError:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}") from None


def load_pickle(path: Path) -> Any:
    """The content of a pickle of plain values and arrays."""
    try:
        with path.open("rb") as file:
            return _PlainUnpickler(file).load()
    except OSError as error:
        raise UserError(f"cannot read {str(path)!r}: {error.strerror}") from None
    except Exception as error:  # a damaged pickle can fail in any way that its opcodes allow
        raise _unreadable(path, error) from None


def load_joblib_table(path: Path) -> NDArray[np.float64]:
    """The one table of numbers in a compressed joblib file, such as scikit-learn's cache of a dataset.

    joblib leaves a small record in the pickle, with the array's bytes behind it. We put a record of our own
    in its place, since joblib's would hand an array of objects to a plain unpickler.
    """
    try:
        content = zlib.decompress(path.read_bytes())
        file = io.BytesIO(content)
        record = type("_Record", (_ArrayRecord,), {"file": file})
        loaded = _PlainUnpickler(file, {("joblib.numpy_pickle", "NumpyArrayWrapper"): record}).load()
        if not isinstance(loaded, _ArrayRecord):
            raise pickle.UnpicklingError("it does not hold one array")
        return loaded.table
    except OSError as error:
        raise UserError(f"cannot read {str(path)!r}: {error.strerror}") from None
    except Exception as error:  # as above
        raise _unreadable(path, error) from None


class _ArrayRecord:
    """Stands in for joblib's record. An unpickler reads no further than it must: the bytes come next."""

    file: BinaryIO
    table: NDArray[np.float64]

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        shape, dtype = tuple(state["shape"]), np.dtype(state["dtype"])
        if dtype != np.float64 or state["order"] not in ("C", "F"):
            raise pickle.UnpicklingError("it holds something other than a table of numbers")
        if state.get("numpy_array_alignment_bytes") is not None:
            self.file.read(self.file.read(1)[0])  # a length, then that much padding
        length = math.prod(shape) * dtype.itemsize
        values = np.frombuffer(self.file.read(length), dtype=dtype)
        self.table = values.reshape(shape, order=state["order"]).astype(np.float64)


def _unreadable(path: Path, error: Exception) -> UserError:
    reason = str(error) if isinstance(error, pickle.UnpicklingError) else "it is damaged or cut short"
    return UserError(f"{path} is not the dataset it should be: {reason}")
