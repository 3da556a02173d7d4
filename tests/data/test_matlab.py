"""MATLAB files: what SciPy writes comes back, whatever a file claims is checked first."""

import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat

from d2dfl.data.matlab import read_arrays
from d2dfl.errors import UserError

LIMIT = 1 << 20


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("kind", ["u1", "i1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8"])
def test_what_scipy_writes_comes_back(tmp_path: Path, kind: str, packed: bool) -> None:
    rng = np.random.default_rng(0)
    arrays = {"X": rng.integers(0, 100, (3, 2, 4, 5)).astype(kind), "y": rng.integers(0, 9, (3, 1)).astype(kind)}
    other = {"text": "words", "cells": np.array([1, "a"], dtype=object), "z": np.eye(3)}
    savemat(tmp_path / "a.mat", {**other, **arrays}, do_compression=packed)
    found = read_arrays(tmp_path / "a.mat", ("X", "y"), LIMIT)
    assert set(found) == {"X", "y"}
    for name, array in arrays.items():
        np.testing.assert_array_equal(found[name], array)
        assert found[name].dtype == array.dtype


def element(kind: int, content: bytes, order: str = "<") -> bytes:
    return struct.pack(order + "II", kind, len(content)) + content + bytes(-len(content) % 8)


def matrix(name: bytes, shape: tuple[int, ...], kind: int, content: bytes, flags: int = 9, order: str = "<") -> bytes:
    return element(
        14,
        element(6, struct.pack(order + "II", flags, 0), order)
        + element(5, struct.pack(f"{order}{len(shape)}i", *shape), order)
        + element(1, name, order)
        + element(kind, content, order),
        order,
    )


def mat(*elements: bytes, order: str = "<") -> bytes:
    end = b"\x00\x01IM" if order == "<" else b"\x01\x00MI"
    return b"MATLAB 5.0 MAT-file".ljust(124) + end + b"".join(elements)


def packed(content: bytes) -> bytes:
    squeezed = zlib.compress(content)
    return struct.pack("<II", 15, len(squeezed)) + squeezed


def test_big_endian_and_numbers_in_a_smaller_type(tmp_path: Path) -> None:
    content = matrix(b"y", (2, 1), 4, struct.pack(">2H", 1, 300), flags=6, order=">")
    (tmp_path / "a.mat").write_bytes(mat(content, order=">"))
    np.testing.assert_array_equal(read_arrays(tmp_path / "a.mat", ("y",), LIMIT)["y"], [[1], [300]])


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (mat(matrix(b"X", (2**31 - 1, 2**31 - 1), 2, b"12")), "should be .* and has 2 bytes"),
        (
            mat(matrix(b"X", (2**16, 2**16, 2**16, 2**16), 2, b"")),
            "should be .* and has 0 bytes",
        ),  # 2^64 is 0 in 64 bits
        (mat(matrix(b"X", (2**31 - 1, 0), 2, b"")), "not an array of numbers"),
        (mat(matrix(b"X", (-1, -2), 2, b"12")), "not an array of numbers"),
        (mat(matrix(b"X", (1,) * 9, 2, b"1")), "9 dimensions"),
        (mat(matrix(b"X", (1, 2), 14, b"12")), "not an array of numbers"),
        (mat(matrix(b"X", (1, 2), 2, b"12", flags=1)), "not an array of numbers"),  # a cell array
        (mat(matrix(b"X", (1, 2), 2, b"12", flags=0x0809)), "not an array of numbers"),  # complex
        (mat(matrix(b"X", (1, 2), 2, b"12"), matrix(b"X", (1, 2), 2, b"12")), "'X' twice"),
        (mat(struct.pack("<II", 14, 2**32 - 1)), "damaged or cut short"),
        (mat(struct.pack("<II", 15, 8) + b"nonsense"), "damaged or cut short"),
        (mat(packed(bytes(LIMIT + 1))), "more than any such file"),
        (mat(*[packed(matrix(b"z", (1, 400_000), 2, bytes(400_000)))] * 3), "more than any such file"),
        (mat(packed(packed(matrix(b"X", (1, 1), 2, b"1")) * 2)), ""),  # packed twice: not looked into
        (mat(struct.pack("<II", 1, 0) * 1001), "more than 1,000 elements"),
        (mat()[:-4] + b"\x00\x02IM", "another version"),
        (b"\x89HDF\r\n", "first bytes"),
        (b"", "first bytes"),
    ],
)
def test_claims_are_checked_first(tmp_path: Path, content: bytes, reason: str) -> None:
    (tmp_path / "a.mat").write_bytes(content)
    if not reason:
        assert read_arrays(tmp_path / "a.mat", ("X",), LIMIT) == {}
        return
    with pytest.raises(UserError, match=rf"a\.mat cannot be read as a MATLAB file: .*{reason}"):
        read_arrays(tmp_path / "a.mat", ("X",), LIMIT)


def test_nesting_is_not_followed(tmp_path: Path) -> None:
    deep = b""
    for _ in range(5000):
        deep = element(14, deep)
    (tmp_path / "a.mat").write_bytes(mat(deep))
    with pytest.raises(UserError, match="damaged"):
        read_arrays(tmp_path / "a.mat", ("X",), LIMIT)
