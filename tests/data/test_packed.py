"""Packed files are unpacked up to a limit; tar archives are read member by member."""

import bz2
import gzip
import io
import os
import random
import tarfile
import zlib
from pathlib import Path

import pytest

from d2dfl.data.packed import gunzipped, opened, read_unpacked, tar_members
from d2dfl.errors import UserError

LIMIT = 1 << 20
PACKERS = {".gz": gzip.compress, ".bz2": bz2.compress, "": bytes}


@pytest.mark.parametrize("suffix", PACKERS)
def test_files_come_back_and_bombs_do_not(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a{suffix}"
    path.write_bytes(PACKERS[suffix](bytes(LIMIT)))
    assert read_unpacked(path, "a file", LIMIT) == bytes(LIMIT)
    path.write_bytes(PACKERS[suffix](bytes(50 * LIMIT)))
    with pytest.raises(UserError, match="bytes: a file may"):
        read_unpacked(path, "a file", LIMIT)


@pytest.mark.parametrize("suffix", [".gz", ".bz2"])
def test_damage_is_one_sentence(tmp_path: Path, suffix: str) -> None:
    path, whole = tmp_path / f"a{suffix}", PACKERS[suffix](random.Random(0).randbytes(3000))
    for content in (b"", whole[:5], whole[:-3], whole[:1000], b"nonsense" * 9, whole[:500] + b"xyz" + whole[503:]):
        path.write_bytes(content)
        if content or suffix == ".bz2":
            with pytest.raises(UserError, match=f"a{suffix}': it is damaged or cut short"):
                read_unpacked(path, "a file", LIMIT)


def test_what_is_not_a_plain_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.gz")
    (tmp_path / "folder.gz").mkdir()
    for path, kind in ((tmp_path / "pipe.gz", "a pipe"), (tmp_path / "folder.gz", "a folder")):
        with pytest.raises(UserError, match=f"is {kind}: give an idx file"):
            read_unpacked(path, "an idx file", LIMIT)


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_gunzip_as_it_arrives(size: int) -> None:
    content = random.Random(1).randbytes(3000)
    whole = gzip.compress(content[:1000]) + gzip.compress(content[1000:]) + bytes(9)  # two members and padding

    def pieces(packed: bytes) -> list[bytes]:
        return [packed[start : start + size] for start in range(0, len(packed), size)]

    assert b"".join(gunzipped(pieces(whole), LIMIT)) == content
    for packed in (whole[:-20], whole[:50], b"", whole + b"x", whole[:100] + b"y" + whole[101:]):
        with pytest.raises(zlib.error):
            b"".join(gunzipped(pieces(packed), LIMIT))
    with pytest.raises(zlib.error, match="too much"):
        list(gunzipped([gzip.compress(bytes(50 * LIMIT))], LIMIT))


def tar(members: dict[str, bytes], form: int) -> bytes:
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w", format=form) as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            info.mtime = 1.5  # type: ignore[assignment]  # which the newest format puts into a header of its own
            archive.addfile(info, io.BytesIO(content))
    return target.getvalue()


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_tar_members_of_all_formats(form: int) -> None:
    members = {"./in/a": b"one" * 500, "in/b": b"", "x" * 90 + "/" + "y" * 60: b"3"}
    file = io.BytesIO(tar(members, form))
    found = {name: file.read(size // 2) for name, size in tar_members(file, LIMIT)}  # half read is half skipped
    assert (found["in/a"], found["in/b"]) == (b"one" * 250, b"")
    assert len(found) == 3


def header(name: bytes, size: bytes, kind: bytes = b"0") -> bytes:
    block = bytearray(name.ljust(124, b"\0") + size.ljust(24, b"\0") + b" " * 8 + kind).ljust(512, b"\0")
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (header(b"a", b"77777777777"), ValueError),  # eight gigabytes
        (header(b"a", b"\x80" + b"\xff" * 10), ValueError),  # a number of another base
        (header(b"a", b"-1"), ValueError),
        (header(b"pax", b"77777777777", b"x"), ValueError),  # tarfile would read that into memory
        (header(b"a", b"1000") + bytes(100), EOFError),
        (header(b"a", b"0") * 10_001, ValueError),
        (header(b"a", b"0")[:300], EOFError),
        (header(b"a", b"0").replace(b"a", b"b", 1), ValueError),  # the checksum
        (b"nonsense" * 100, ValueError),
        (b"", EOFError),
    ],
)
def test_damaged_tars(content: bytes, error: type[Exception]) -> None:
    with pytest.raises(error):
        list(tar_members(io.BytesIO(content), 1 << 30))


def test_a_link_or_a_hole_in_a_tar_is_not_a_file() -> None:
    content = header(b"link", b"0", b"1") + header(b"soft", b"0", b"2") + header(b"hole", b"0", b"S") + bytes(512)
    assert list(tar_members(io.BytesIO(content), LIMIT)) == []


def test_an_archive_is_unpacked_as_it_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.tgz").write_bytes(gzip.compress(tar({"a": b"content"}, tarfile.USTAR_FORMAT)))
    with opened(tmp_path / "a.tgz", "an archive", LIMIT) as file:
        assert [(name, file.read(size)) for name, size in tar_members(file, LIMIT)] == [("a", b"content")]
