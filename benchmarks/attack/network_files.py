"""Damaged and odd files about networks: .npz, .npy, .json, .csv and .csv.gz.

Half of them are whole files with odd values; the other half are good or odd files with damaged bytes.
"""

import gzip
import io
import json
import struct
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from d2dfl.network import trust
from d2dfl.network.files import load_network
from d2dfl.network.power_files import read_csv

Reader = Callable[[Path], object]
DEVICES, PARTITIONS = 4, 3
ODD_VALUES: tuple[Any, ...] = (
    *(None, True, "1", "", "nan", [], {}, 0, -1, 0.5, 2, 2**31, 2**63, 2**64, 10**30, 10**400, 1e15, 1e16, 1e308),
    *(5e-324, float("nan"), float("inf"), -float("inf"), "x" * 1000, [[1, 2], [3]], [[]], [[[[[1]]]]]),
)
ODD_TYPES = ("O", "c16", "U4", "S4", "V8", "M8[s]", "m8[s]", "f2", "g", "?", "i1", "u8", ">f8", ">i4")
HEADERS = (
    "{'descr': '<f8', 'fortran_order': False, 'shape': (999999999999999, 999999999999999), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (0, 999999999999999, 999999999999999), }",
    "{'descr': '|O', 'fortran_order': False, 'shape': (4, 3), }",
    "{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (4, 3), }",
    "{'descr': '<f8', 'fortran_order': True, 'shape': (4, 3), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (-4, 3), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (4, 3), 'shape': (4, 3), }",
    "{'shape': (4, 3), 'descr': '<f8', 'fortran_order': False}",
    "__import__('os').getcwd()",
    "(" * 3000,
    "",
)


def good() -> dict[str, Any]:
    """A network that is read without complaint."""
    generator = np.random.default_rng(0)
    return {
        "format": np.array(2),
        "counts": generator.integers(0, 50, (DEVICES, PARTITIONS)).astype(float),
        "threshold": np.full((DEVICES, PARTITIONS), 10.0),
        "trust": generator.integers(0, 2, (DEVICES, DEVICES, PARTITIONS)),
        "drop": generator.uniform(0, 0.5, (DEVICES, DEVICES)),
        "positions": generator.uniform(0, 500, (DEVICES, 2)),
        "cluster": np.array([0, 0, 1, 1]),
        "budget": np.array([20.0, 30.0]),
    }


def mutated(seed: int, count: int, folder: Path) -> Iterator[tuple[str, Path, Reader]]:
    """`count` files, one after another: what was done, the file, and the function that is to read it."""
    kinds: tuple[tuple[str, Callable[[np.random.Generator], tuple[str, bytes]], Reader], ...] = (
        ("npz", _npz, load_network),
        ("npy", _npy, _read_trust),
        ("json", _json, load_network),
        ("csv", _csv, read_csv),
        ("csv.gz", _packed_csv, read_csv),
    )
    for number in range(count):
        generator = np.random.default_rng((seed, number))
        suffix, make, reader = kinds[number % len(kinds)]
        what, content = make(generator)
        if generator.random() < 0.5:
            harm, content = _harmed(content, generator)
            what = f"{what}, {harm}"
        path = folder / f"{number}.{suffix}"
        path.write_bytes(content)
        yield f"{suffix}: {what}", path, reader


def _read_trust(path: Path) -> object:
    others = [[other for other in range(DEVICES) if other != device] for device in range(DEVICES)]
    return trust.make(str(path), np.array(others, dtype=np.int32), PARTITIONS, 0)


def _harmed(content: bytes, generator: np.random.Generator) -> tuple[str, bytes]:
    """Some bytes flipped, cut off, put in, doubled or overwritten."""
    at = int(generator.integers(0, max(len(content), 1)))
    length = int(generator.integers(1, 64))
    kind = int(generator.integers(5))
    if kind == 0 and content:
        flipped = bytearray(content)
        for place in generator.integers(0, len(content), int(generator.integers(1, 9))):
            flipped[place] ^= 1 << int(generator.integers(8))
        return "bits flipped", bytes(flipped)
    if kind == 1:
        return "cut off", content[:at]
    if kind == 2:
        return "bytes put in", content[:at] + generator.bytes(length) + content[at:]
    if kind == 3:
        return "a piece doubled", content[: at + length] + content[at:]
    return "a piece overwritten", content[:at] + bytes([int(generator.choice([0, 255]))]) * length + content[
        at + length :
    ]


def _odd(array: Any, generator: np.random.Generator) -> Any:
    """An array with one odd value, an odd type or an odd shape, or something else in its place."""
    kind = int(generator.integers(4))
    odd = ODD_VALUES[int(generator.integers(len(ODD_VALUES)))]
    if kind == 0:
        rows = np.asarray(array).astype(object)
        rows.flat[int(generator.integers(rows.size))] = odd
        return rows.tolist()
    if kind == 1:
        return odd
    if kind == 2:
        return np.atleast_1d(array)[..., : int(generator.integers(0, 2))].tolist()
    return [np.asarray(array).tolist()]


def _json(generator: np.random.Generator) -> tuple[str, bytes]:
    network = {name: value.tolist() for name, value in good().items()}
    kind = int(generator.integers(5))
    if kind == 0:
        return "nested deeply", b'{"counts":' + b"[" * int(generator.integers(1, 200_000))
    if kind == 1:
        return "a key twice", json.dumps(network)[:-1].encode() + b', "counts": 1}'
    if kind == 2:
        return "a long number", json.dumps(network).replace("[", "[" + "9" * 6000 + ",", 1).encode()
    name = str(generator.choice(list(network)))
    return f"odd {name}", json.dumps({**network, name: _odd(network[name], generator)}).encode()


def _one_npy(array: Any, generator: np.random.Generator) -> tuple[str, bytes]:
    """An array as a file of its own, perhaps of an odd type or with an odd header."""
    buffer = io.BytesIO()
    kind = int(generator.integers(4))
    if kind == 0:
        dtype = str(generator.choice(ODD_TYPES))
        odd = np.zeros(array.shape, dtype) if dtype.startswith(("V", "M", "m")) else array.astype(dtype)
        np.save(buffer, odd, allow_pickle=True)
        return f"type {dtype}", buffer.getvalue()
    if kind == 1:
        header = str(generator.choice(HEADERS)).encode()
        claimed = int(generator.choice([len(header), len(header), 0, 2**16 - 1, 2**32 - 1]))
        version = 1 if claimed < 2**16 and generator.random() < 0.5 else 2
        start = b"\x93NUMPY" + bytes([version, 0]) + struct.pack("<H" if version == 1 else "<I", claimed)
        return "odd header", start + header + array.tobytes()
    if kind == 2:
        value = _odd(array, generator)
        try:
            np.save(buffer, np.asarray(value), allow_pickle=True)
        except (ValueError, OverflowError):
            np.save(buffer, array)
        return "odd values", buffer.getvalue()
    np.save(buffer, array)
    return "good", buffer.getvalue()


def _npy(generator: np.random.Generator) -> tuple[str, bytes]:
    return _one_npy(good()["trust"], generator)


def _npz(generator: np.random.Generator) -> tuple[str, bytes]:
    network = good()
    odd = str(generator.choice(list(network)))
    what, content, buffer = "", b"", io.BytesIO()
    compression = zipfile.ZIP_DEFLATED
    if generator.random() < 0.3:
        compression = int(generator.choice([zipfile.ZIP_STORED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA]))
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, array in network.items():
            one = io.BytesIO()
            np.save(one, array)
            content = one.getvalue()
            if name == odd:
                what, content = _one_npy(array, generator)
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), content, compression)  # no date: a seed is a file
        if generator.random() < 0.2:
            surprise = str(generator.choice(["surprise.npy", "../counts.npy", "counts", "a/.npy"]))
            archive.writestr(zipfile.ZipInfo(surprise), content, compression)
    whole = buffer.getvalue()
    if generator.random() < 0.3:
        return f"{odd} {what}, lying directory", _lying(whole, generator)
    return f"{odd} {what}", whole


def _lying(archive: bytes, generator: np.random.Generator) -> bytes:
    """The first entry of the directory with other flags, method, sizes, sum or name."""
    at = archive.find(b"PK\x01\x02")
    offset, layout = [(8, "<H"), (10, "<H"), (16, "<I"), (20, "<I"), (24, "<I"), (42, "<I")][int(generator.integers(6))]
    value = int(generator.choice([0, 1, 8, 9, 99, 65535] if layout == "<H" else [0, 1, 10**6, 2**31, 2**32 - 1]))
    wrong = bytearray(archive)
    struct.pack_into(layout, wrong, at + offset, value)
    return bytes(wrong)


def _csv(generator: np.random.Generator) -> tuple[str, bytes]:
    table = [[f"{value:.3g}" for value in row] for row in good()["drop"]]
    kind = int(generator.integers(4))
    if kind == 0:
        return "empty", bytes(generator.choice([b"", b"\n\n", b"# nothing", b"   ", b"\xef\xbb\xbf"]))
    if kind == 1:
        table = [
            row[: int(generator.integers(0, DEVICES + 1))] for row in table[: int(generator.integers(1, DEVICES + 1))]
        ]
    else:
        odd = str(ODD_VALUES[int(generator.integers(len(ODD_VALUES)))])
        table[int(generator.integers(DEVICES))][int(generator.integers(DEVICES))] = odd
    return "odd table", "\n".join(",".join(row) for row in table).encode()


def _packed_csv(generator: np.random.Generator) -> tuple[str, bytes]:
    what, content = _csv(generator)
    return what, gzip.compress(content)
