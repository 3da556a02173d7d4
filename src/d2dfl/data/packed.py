"""Packed files of datasets: unpacked up to a limit, so that a small file cannot fill memory or disk."""

import bz2
import gzip
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

from d2dfl.errors import UserError
from d2dfl.storage import CHUNK, open_plain

BLOCK = 512  # bytes of a tar archive's header; contents are padded to a multiple of it
MEMBERS = 10_000
_NOT_WHOLE = (EOFError, zlib.error, OSError)  # what decompressors raise; OSError also for a disk that fails


def read_unpacked(path: Path, wanted: str, limit: int) -> bytes:
    """The content of a file, unpacked if its name ends in .gz or .bz2."""
    with opened(path, wanted, limit) as file:
        parts, total = [], 0
        while part := file.read(CHUNK):
            parts.append(part)
            total += len(part)
            if total > limit:
                raise UserError(f"{path} holds more than {limit:,} bytes: {wanted} may not")
    return b"".join(parts)


@contextmanager
def opened(path: Path, wanted: str, limit: int) -> Iterator[IO[bytes]]:
    """A plain file of at most `limit` bytes, unpacked as it is read."""
    with open_plain(path, wanted, limit) as plain:
        try:
            if path.suffix in (".gz", ".tgz"):
                with gzip.GzipFile(fileobj=plain) as unpacked:
                    yield cast("IO[bytes]", unpacked)  # it reads as any other file
            elif path.suffix == ".bz2":
                with bz2.BZ2File(plain) as file:
                    yield file
            else:
                yield plain
        except _NOT_WHOLE as error:
            reason = getattr(error, "strerror", None) or "it is damaged or cut short, it does not unpack"
            raise UserError(f"cannot read {str(path)!r}: {reason}") from None


def gunzipped(chunks: Iterable[bytes], limit: int) -> Iterator[bytes]:
    """What gzipped bytes hold, as they arrive. Raises zlib.error when they are damaged, end early or hold too much."""
    unpacking = zlib.decompressobj(wbits=31)
    for chunk in chunks:
        while chunk:
            if unpacking.eof:  # another member, or padding
                if not chunk.strip(b"\0"):
                    break
                unpacking = zlib.decompressobj(wbits=31)
            part = unpacking.decompress(chunk, CHUNK)
            limit -= len(part)
            if limit < 0:
                raise zlib.error("it holds too much")
            yield part
            chunk = unpacking.unused_data if unpacking.eof else unpacking.unconsumed_tail
    if not unpacking.eof:
        raise zlib.error("it ends early")


def tar_members(file: IO[bytes], limit: int) -> Iterator[tuple[str, int]]:
    """Name and size of every plain file in a tar archive; the caller may then read the content, or a part of it.

    No link is followed, no hole is filled and no long header is kept, unlike with `tarfile`, which does all of these
    for any claimed size. Raises EOFError where the archive ends early, ValueError where it is none or is too large.
    """
    for _ in range(MEMBERS):
        header = file.read(BLOCK)
        if header == bytes(BLOCK):
            return
        if len(header) < BLOCK:
            raise EOFError
        size = _octal(header[124:136])
        if _octal(header[148:156]) != sum(header[:148]) + 8 * ord(" ") + sum(header[156:]):
            raise ValueError("it is not a tar archive")
        limit -= BLOCK + size
        if limit < 0:
            raise ValueError("it holds too much")
        end = file.tell() + -(-size // BLOCK) * BLOCK
        if header[156:157] in (b"0", b"\0"):
            yield _name(header), size
        if file.tell() > end:
            raise ValueError("a reader has read too much")
        _skip(file, end - file.tell())
    raise ValueError("it has too many members")


def _octal(field: bytes) -> int:
    digits = field.strip(b" \0")
    if not digits or digits.strip(b"01234567"):
        raise ValueError("it is not a tar archive")
    return int(digits, 8)


def _name(header: bytes) -> str:
    name = header[:100].partition(b"\0")[0]
    folder = header[345:500].partition(b"\0")[0] if header[257:263] == b"ustar\0" else b""
    return (folder + b"/" + name if folder else name).decode("utf-8", "replace").removeprefix("./")


def _skip(file: IO[bytes], count: int) -> None:
    while count:
        part = file.read(min(count, CHUNK))
        if not part:
            raise EOFError
        count -= len(part)


def skip_to_end(file: IO[bytes], limit: int) -> None:
    """Read what is left: a packed file says only at its end whether it is whole."""
    while part := file.read(CHUNK):
        limit -= len(part)
        if limit < 0:
            raise ValueError("it holds too much")
