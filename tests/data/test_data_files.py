"""Files of a dataset: found in the right order, verified, downloaded whole or not at all."""

import gzip
import hashlib
import http.client
import os
import random
from contextlib import ExitStack
from io import BytesIO
from pathlib import Path
from typing import ClassVar

import pytest
from originals import pack

from d2dfl.data import files
from d2dfl.data.files import File, Form
from d2dfl.errors import UserError
from d2dfl.storage import locked


def md5(content: bytes) -> str:
    return f"md5:{hashlib.md5(content).hexdigest()}"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user who has nothing yet."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("D2DFL_DATA", raising=False)
    return tmp_path


def put(path: Path, content: bytes = b"x") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def test_search_goes_from_the_users_own_folder_to_the_system(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("D2DFL_DATA", str(home / "own"))
    monkeypatch.setenv("SOME_HOME", str(home / "variable"))
    form = Form((File("a"), File("b")), folders=("sub",))
    folders = files.search_folders("set", ("$SOME_HOME", "$NOT_SET", str(home / "system")))
    cache = home / "cache" / "d2dfl" / "set"
    assert folders == [home / "own", home / "own" / "set", cache, home / "variable", home / "system"]
    put(home / "own" / "a")  # half of it is not enough
    assert files.find([form], folders) is None
    assert files.partly([form], folders) == [home / "own" / "a"]
    for place in [home / "system", home / "variable", cache / "sub", home / "own" / "set", home / "own"]:
        put(place / "a")
        put(place / "b")
        found = files.find([form], folders)
        assert found is not None
        assert found[1] == {"a": place / "a", "b": place / "b"}


def test_the_cache_follows_the_xdg_rule(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert files.cache_folder("x") == home / "cache" / "d2dfl" / "x"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(home))
    assert files.cache_folder("x") == home / ".cache" / "d2dfl" / "x"


def test_a_file_that_is_not_the_published_one_is_refused(tmp_path: Path) -> None:
    path = put(tmp_path / "a.bin", b"published")
    files.verify(File("a.bin", size=9, digest=md5(b"published")), path)
    path.write_bytes(b"publishes")
    with pytest.raises(UserError, match=r"a.bin is not the published file.*data.verify=false"):
        files.verify(File("a.bin", size=9, digest=md5(b"published")), path)
    with pytest.raises(UserError, match="has 9 bytes and not the published 10"):
        files.verify(File("a.bin", size=10), path)
    with pytest.raises(UserError, match="there is no file"):
        files.verify(File("b.bin", size=10), tmp_path / "b.bin")


def test_the_same_bytes_compressed_anew_are_the_published_ones(tmp_path: Path) -> None:
    file = File("a.gz", digest=md5(b"content" * 50), digest_of_content=True)
    for level in (1, 9):
        files.verify(file, put(tmp_path / "a.gz", gzip.compress(b"content" * 50, level)))
    with pytest.raises(UserError, match="not the published"):
        files.verify(file, put(tmp_path / "a.gz", gzip.compress(b"Content" * 50)))
    with pytest.raises(UserError, match=r"a\.gz"):
        files.verify(file, put(tmp_path / "a.gz", gzip.compress(b"content" * 50)[:-5]))


def test_download_verifies_before_the_file_gets_its_name(tmp_path: Path) -> None:
    source = put(tmp_path / "server" / "a.gz", gzip.compress(b"content"))
    good = File("a.gz", source.as_uri(), digest=md5(b"content"), digest_of_content=True)
    seen: list[tuple[str, int, int]] = []
    target = put(tmp_path / "cache" / "a.gz", b"what was there before")
    size = source.stat().st_size
    files.download(good, target, lambda *step: seen.append(step))
    assert target.read_bytes() == source.read_bytes()
    assert seen == [("downloading a.gz", size, size)]
    other = File("a.gz", source.as_uri(), digest=md5(b"something else"), digest_of_content=True)
    target.write_bytes(b"what was there before")
    with pytest.raises(UserError, match="gave another file than the published"):
        files.download(other, target)
    with pytest.raises(UserError, match="cannot download b from"):
        files.download(File("b", (tmp_path / "nothing").as_uri()), target)
    assert target.read_bytes() == b"what was there before"
    assert [path.name for path in target.parent.iterdir()] == ["a.gz"]


def test_fetch_leaves_alone_what_is_whole(tmp_path: Path) -> None:
    wanted = []
    for name in ("a", "b"):
        source = put(tmp_path / "server" / name, name.encode())
        wanted.append(File(name, source.as_uri(), digest=md5(name.encode())))
    put(tmp_path / "cache" / "a", b"a")
    put(tmp_path / "cache" / "b", b"damaged")
    seen: list[str] = []
    files.fetch(Form(tuple(wanted)), tmp_path / "cache", lambda what, done, total: seen.append(what))
    assert seen == ["downloading b"]
    assert (tmp_path / "cache" / "b").read_bytes() == b"b"


def test_only_the_named_files_leave_an_archive(tmp_path: Path) -> None:
    (tmp_path / "server").mkdir()
    archive = tmp_path / "server" / "set.tgz"
    pack(archive, {"in/a": b"one", "../evil": b"bad", "/abs": b"bad", "in/b": b"two", "in/c": b"not asked for"})
    packed = File("set.tgz", archive.as_uri(), digest=md5(archive.read_bytes()))
    form = Form((File("a"), File("b")), archive=packed, inside="in/")
    assert files.fetch(form, tmp_path / "cache") == {name: tmp_path / "cache" / name for name in ("a", "b")}
    assert sorted(path.name for path in (tmp_path / "cache").iterdir()) == ["a", "b"]
    assert not (tmp_path / "evil").exists()
    with pytest.raises(UserError, match="damaged, or has no in/missing"):
        files.unpack(Form((File("missing"),), archive=packed, inside="in/"), archive, tmp_path / "cache")
    for content in (archive.read_bytes()[:60], b"nothing", b""):
        archive.write_bytes(content)
        with pytest.raises(UserError, match=r"set\.tgz"):
            files.unpack(form, archive, tmp_path / "cache")
    assert (tmp_path / "cache" / "a").read_bytes() == b"one"


def test_a_full_or_closed_disk_is_one_sentence(tmp_path: Path) -> None:
    source = put(tmp_path / "a", b"a")
    put(tmp_path / "in the way", b"")
    with pytest.raises(UserError, match="cannot make the folder"):
        files.fetch(Form((File("a", source.as_uri()),)), tmp_path / "in the way" / "cache")
    with pytest.raises(UserError, match="cannot write"):
        files.download(File("a", source.as_uri()), tmp_path / "no folder" / "a")


def test_a_pipe_or_a_closed_folder_is_not_a_dataset(home: Path) -> None:
    form = Form((File("a"),), archive=File("a.tgz"))
    os.mkfifo(home / "a")
    os.mkfifo(home / "a.tgz")
    assert files.find([form], [home, home / ("x" * 300), home / "nul\0"]) is None
    assert files.partly([form], [home, home / ("x" * 300)]) == []
    with pytest.raises(UserError, match="is a pipe"):
        files.verify(File("a", digest=md5(b"")), home / "a")
    with pytest.raises(UserError, match="is a pipe"):
        files.unpack(form, home / "a.tgz", home / "cache")


def test_somebody_without_a_home_is_told_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere() -> Path:
        raise RuntimeError("no home")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", nowhere)
    with pytest.raises(UserError, match="no home folder to keep datasets in: set XDG_CACHE_HOME"):
        files.cache_folder("x")


def test_a_bomb_is_not_unpacked_to_be_verified_or_out_of_an_archive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "LARGEST", 1 << 20)
    content = bytes((1 << 20) + 1)
    path = put(tmp_path / "a.gz", gzip.compress(content))
    with pytest.raises(UserError, match="its checksum is damaged"):
        files.verify(File("a.gz", digest=md5(content), digest_of_content=True), path)
    pack(tmp_path / "set.tgz", {"a": content})
    with pytest.raises(UserError, match=r"set\.tgz is damaged"):
        files.unpack(Form((File("a"),)), tmp_path / "set.tgz", tmp_path / "cache")
    assert list((tmp_path / "cache").iterdir()) == []
    source = put(tmp_path / "server" / "b", content)
    with pytest.raises(UserError, match="has brought more than 1,048,576 bytes"):
        files.download(File("b", source.as_uri()), tmp_path / "cache" / "b")
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_download_that_ends_early_gets_no_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def half(url: str, timeout: float) -> BytesIO:
        answer = BytesIO(b"half of it")
        answer.headers = {"Content-Length": "20"}  # type: ignore[attr-defined]  # all that is read of them
        return answer

    monkeypatch.setattr("urllib.request.urlopen", half)
    with pytest.raises(UserError, match="gave another file than the published"):
        files.download(File("a", "http://somewhere"), tmp_path / "a")  # nothing is known but what the server says
    assert list(tmp_path.iterdir()) == []


def test_a_connection_that_breaks_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Breaking(BytesIO):
        headers: ClassVar = {"Content-Length": "nonsense"}

        def read(self, count: int | None = -1) -> bytes:
            raise http.client.IncompleteRead(b"")

    monkeypatch.setattr("urllib.request.urlopen", lambda url, timeout: Breaking())
    with pytest.raises(UserError, match="cannot download a from http://somewhere: "):
        files.download(File("a", "http://somewhere"), tmp_path / "a")
    assert list(tmp_path.iterdir()) == []


def test_parts_of_killed_downloads_are_removed_and_others_waited_for(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    put(cache / ".d2dfl-0123456789abcdef.part", b"half")
    source = put(tmp_path / "server" / "a", b"a")
    form = Form((File("a", source.as_uri(), digest=md5(b"a")),))
    seen: list[str] = []
    with ExitStack() as other:
        other.enter_context(locked(cache))  # another process, which ends as soon as we wait for it

        def progress(what: str, done: int, total: int) -> None:
            seen.append(what)
            other.close()

        files.fetch(form, cache, progress)
    assert seen == ["waiting for another d2dfl to fetch this", "downloading a"]
    assert [path.name for path in cache.iterdir()] == ["a"]


def test_damage_inside_an_archive_leaves_nothing_half_made(tmp_path: Path) -> None:
    archive = tmp_path / "set.tgz"
    noise = random.Random(0).randbytes(50_000)
    pack(archive, {"a": noise})
    whole = archive.read_bytes()
    form = Form((File("a"),))
    # The last two can be unpacked, and only the checksum at the end tells.
    for content in (whole[:30_000], whole[:-9], whole[:20_000] + b"damage" + whole[20_006:]):
        archive.write_bytes(content)
        with pytest.raises(UserError, match=r"set\.tgz"):
            files.unpack(form, archive, tmp_path / "cache")
        assert list((tmp_path / "cache").iterdir()) == []
