"""NumPy's files, .npy and .npz, read by hand.

Nothing is unpickled, only plain numbers are read, and no room is made for what a header merely claims: what a file says
about itself must agree with its size first.
"""

import os
import re
import struct
import zipfile
import zlib
from collections.abc import Collection
from math import prod
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from d2dfl.errors import UserError
from d2dfl.memory import check_memory
from d2dfl.storage import CHUNK, LARGEST, open_plain

MAGIC = b"\x93NUMPY"
LONGEST_HEADER = 4096
MOST_AXES = 8
DEFLATE_RATIO = 1032  # no deflated byte stands for more
END_RECORD, DIRECTORY = 22, 1 << 16  # bytes of an archive's end record; at most of its directory
COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
DAMAGE = (OSError, ValueError, EOFError, RuntimeError, OverflowError, struct.error, zipfile.BadZipFile, zlib.error)
ITEM = re.compile(
    r"\s*'(?:(descr)'\s*:\s*'([<>|=]?[a-zA-Z]\d{0,3}[^']{0,40})'"
    r"|(fortran_order)'\s*:\s*(True|False)"
    r"|(shape)'\s*:\s*(\([\dL,\s]{0,400}\)))\s*(?:,|(?=\}))"
)


class Header(NamedTuple):
    """What an .npy file says about its data."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    fortran: bool

    @property
    def size(self) -> int:
        return prod(self.shape) * self.dtype.itemsize


def read_npy(path: Path, wanted: str = "an .npy file of numbers") -> NDArray[Any]:
    """The array in an .npy file."""
    with open_plain(path, wanted) as file:
        try:
            size = os.fstat(file.fileno()).st_size
            check_memory(2.0 * size, f"{path} needs", "give a smaller array")
            return _array(file, size, str(path))
        except UserError:
            raise
        except DAMAGE as error:
            raise UserError(f"cannot read {str(path)!r}: {_said(error)}") from None


def read_npz(path: Path, names: Collection[str], what: str = "network", texts: bool = False) -> dict[str, NDArray[Any]]:
    """The arrays in an .npz archive of `what`, by name; only those `names` may be there. `texts`: also arrays of text."""
    with open_plain(path, "an .npz archive of arrays") as file:
        try:
            _check_directory(file, path)
            with zipfile.ZipFile(file) as archive:
                members = _members(path, archive.infolist(), names, what)
                return {name: _member(archive, info, f"{path}: {name}", texts) for name, info in members.items()}
        except UserError:  # which is a ValueError too
            raise
        except DAMAGE as error:
            raise UserError(f"{path} is not a whole .npz archive of arrays: {_said(error)}") from None


def _check_directory(file: IO[bytes], path: Path) -> None:
    """Refuse a directory that is too long for a dozen arrays, before it is read: its end record tells its length."""
    length = file.seek(0, 2)
    file.seek(max(0, length - END_RECORD - (1 << 16)))  # a comment may follow
    tail = file.read()
    file.seek(0)
    at = tail.rfind(b"PK\x05\x06")
    if at >= 0 and int.from_bytes(tail[at + 12 : at + 16], "little") > DIRECTORY:
        raise UserError(f"{path} has a directory of too many members: there may be a dozen arrays")


def _members(path: Path, infos: list[zipfile.ZipInfo], names: Collection[str], what: str) -> dict[str, zipfile.ZipInfo]:
    """What an archive holds, as far as its directory tells."""
    members: dict[str, zipfile.ZipInfo] = {}
    for info in infos:
        name = info.filename.removesuffix(".npy")
        if name not in names or not info.filename.endswith(".npy"):
            raise UserError(
                f"{path} holds {info.filename.removesuffix('.npy')!r:.80}, which no {what} has: the arrays are {', '.join(names)}"
            )
        if name in members:
            raise UserError(f"{path} holds {name} twice: give it once")
        if info.flag_bits & 0x1:
            raise UserError(f"{path}: {name} is encrypted: give arrays that are not")
        if info.compress_type not in COMPRESSIONS:
            raise UserError(f"{path}: {name} is compressed in another way than deflate: write it with numpy.savez")
        if info.file_size > DEFLATE_RATIO * (info.compress_size + 1):
            raise UserError(f"{path}: {name} claims {info.file_size:,} bytes, more than it can hold: it is damaged")
        members[name] = info
    total = sum(info.file_size for info in members.values())
    if total > LARGEST:
        raise UserError(f"{path} holds {total:,} bytes of arrays: it may hold {LARGEST:,}")
    check_memory(2.0 * total, f"the arrays of {path} need", f"give a smaller {what}")
    return members


def _member(archive: zipfile.ZipFile, info: zipfile.ZipInfo, label: str, texts: bool) -> NDArray[Any]:
    with archive.open(info) as file:
        return _array(file, info.file_size, label, texts)


def _array(file: IO[bytes], size: int, label: str, texts: bool = False) -> NDArray[Any]:
    """An array from a stream that holds nothing else in `size` bytes."""
    header, begins = _header(file, label, texts)
    if begins + header.size != size:
        raise UserError(f"{label} has {size - begins:,} bytes of data where its header says {header.size:,}")
    content = np.empty(header.size, dtype=np.uint8)
    at = 0
    while at < header.size:
        chunk = file.read(min(CHUNK, header.size - at))
        if not chunk:
            raise EOFError("it ends too early")
        content[at : at + len(chunk)] = np.frombuffer(chunk, dtype=np.uint8)
        at += len(chunk)
    if file.read(1):  # also has the archive check the sum of an empty array
        raise ValueError("it goes on after its end")
    values = content != 0 if header.dtype == np.bool_ else content.view(header.dtype)  # a byte of 2 is no truth value
    return values.reshape(header.shape, order="F" if header.fortran else "C")


def _header(file: IO[bytes], label: str, texts: bool) -> tuple[Header, int]:
    """The header of an .npy stream, and where its data begins."""
    start = file.read(8)
    if len(start) < 8 or start[:6] != MAGIC or start[6] not in (1, 2, 3):
        raise UserError(f"{label} is not an .npy file: write it with numpy.save")
    width = 2 if start[6] == 1 else 4
    length = int.from_bytes(file.read(width), "little")
    if length > LONGEST_HEADER:
        raise UserError(f"{label} has a header of {length:,} bytes: an array of numbers has at most {LONGEST_HEADER:,}")
    text = file.read(length)
    if len(text) < length:
        raise EOFError("it ends too early")
    return _understood(text.decode("latin-1"), label, texts), 8 + width + length


def _understood(text: str, label: str, texts: bool) -> Header:
    inside = text.strip()
    found: dict[str, str] = {}
    at = 1
    while inside[:1] == "{" and (match := ITEM.match(inside, at)):
        key, value = (group for group in match.groups() if group is not None)
        if key in found:
            break
        found[key] = value
        at = match.end()
    if len(found) < 3 or inside[at:].strip() != "}":
        raise UserError(f"{label} does not hold one array of plain numbers: write it with numpy.save")
    sides = [side.strip().removesuffix("L") for side in found["shape"][1:-1].rstrip().removesuffix(",").split(",")]
    if sides == [""]:
        sides = []
    if not all(re.fullmatch(r"[0-9]{1,15}", side) for side in sides):
        raise UserError(f"{label} has no shape of whole numbers: write it with numpy.save")
    shape = tuple(map(int, sides))
    if len(shape) > MOST_AXES:
        raise UserError(f"{label} has {len(shape)} axes: an array here has at most {MOST_AXES}")
    known = r"[<>|=]?(b1|[iu][1248]|f[248]|[US][0-9]{1,3})" if texts else r"[<>|=]?(b1|[iu][1248]|f[248])"
    if not re.fullmatch(known, found["descr"]) or np.dtype(found["descr"]).itemsize == 0:
        short = ", or texts of up to 999 characters" if texts else ""
        raise UserError(f"{label} holds values of the type {found['descr']!r}: give numbers of up to 64 bits{short}")
    return Header(np.dtype(found["descr"]), shape, found["fortran_order"] == "True")


def _said(error: Exception) -> str:
    return (str(error).split("\n")[0] or type(error).__name__)[:120]
