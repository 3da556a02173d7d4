"""Files of a dataset: where they may be, whether they are whole, how they get here."""

import hashlib
import http.client
import os
import time
import urllib.error
import urllib.request
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from d2dfl.data.packed import gunzipped, opened, skip_to_end, tar_members
from d2dfl.errors import UserError
from d2dfl.progress import silent
from d2dfl.storage import CHUNK, TakenError, locked, make_folder, open_plain, remove_parts, written_whole

Copied = Callable[[str, int, int], None]  # what is being done, how far, of how much (0: unknown)
LARGEST = 1 << 30  # bytes of a file, of an archive, and of all that is in one; RadioML has 641 million


@dataclass(frozen=True)
class File:
    """A file as its authors publish it. Empty fields: not published."""

    name: str
    url: str = ""
    size: int = 0
    digest: str = ""  # "md5:..." or "sha256:..."
    digest_of_content: bool = False  # of what is inside the .gz: packagers compress the same bytes anew


@dataclass(frozen=True)
class Form:
    """One way in which a dataset is distributed: files that belong together, perhaps in one archive."""

    files: tuple[File, ...]
    folders: tuple[str, ...] = ()  # sub-folders in which the files usually lie
    archive: File | None = None
    inside: str = ""  # folder of the files within the archive

    @property
    def downloads(self) -> tuple[File, ...]:
        files = self.files if self.archive is None else (self.archive,)
        return files if all(file.url for file in files) else ()

    def names(self) -> str:
        return " and ".join(file.name for file in self.files)


def cache_folder(name: str) -> Path:
    """Where downloads of a dataset go: the user's cache, by the XDG rule."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    try:
        return (Path(base) if base else Path.home() / ".cache") / "d2dfl" / name
    except RuntimeError:
        raise UserError("there is no home folder to keep datasets in: set XDG_CACHE_HOME to a folder") from None


def search_folders(name: str, extra: Iterable[str]) -> list[Path]:
    """The folders to look into, in this order: $D2DFL_DATA, the user's cache, system packages."""
    own = os.environ.get("D2DFL_DATA", "")
    roots = [Path(own), Path(own) / name] if own else []
    system = [Path(os.path.expanduser(os.path.expandvars(folder))) for folder in extra]
    return [*roots, cache_folder(name), *(folder for folder in system if folder.is_absolute())]


def find(forms: Sequence[Form], folders: Iterable[Path]) -> tuple[Form, dict[str, Path]] | None:
    """The first folder that holds all files of a form. An archive counts as `{archive name: path}`."""
    for folder in folders:
        for form in forms:
            for place in [folder, *(folder / below for below in form.folders)]:
                paths = {file.name: place / file.name for file in form.files}
                if all(_is_file(path) for path in paths.values()):
                    return form, paths
            if form.archive is not None and _is_file(folder / form.archive.name):
                return form, {form.archive.name: folder / form.archive.name}
    return None


def partly(forms: Sequence[Form], folders: Iterable[Path]) -> list[Path]:
    """Files that belong to the dataset but are not enough of it."""
    places = [
        place for folder in folders for place in [folder, *(folder / sub for form in forms for sub in form.folders)]
    ]
    names = {file.name for form in forms for file in form.files}
    return [place / name for place in places for name in sorted(names) if _is_file(place / name)]


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a folder that we may not look into, a name that is too long
        return False


def verify(file: File, path: Path) -> None:
    """Stop unless the file is the published one, as far as that is known."""
    with open_plain(path, f"the published {file.name}", LARGEST) as content:
        size = os.fstat(content.fileno()).st_size
        if file.size and size != file.size:
            raise UserError(f"{path} has {size:,} bytes and not the published {file.size:,}{_WAYS_OUT}")
        if not file.digest:
            return
        try:
            digest = _digest(file, iter(lambda: content.read(CHUNK), b""))
        except OSError as error:
            raise UserError(f"cannot read {str(path)!r}: {error.strerror or error}") from None
    if digest != file.digest:
        raise UserError(f"{path} is not the published file, its checksum is {digest}{_WAYS_OUT}")


_WAYS_OUT = ": delete it and fetch the dataset again, or set data.verify=false to take it as it is"


def _digest(file: File, chunks: Iterable[bytes]) -> str:
    """The checksum of what arrives, of the kind that is published."""
    if not file.digest:
        for _ in chunks:  # whoever sends them writes them down on the way
            pass
        return ""
    kind = file.digest.partition(":")[0]
    checksum = hashlib.new(kind, usedforsecurity=False)
    try:
        for chunk in gunzipped(chunks, LARGEST) if file.digest_of_content else chunks:
            checksum.update(chunk)
    except zlib.error:
        return "damaged"
    return f"{kind}:{checksum.hexdigest()}"


def fetch(form: Form, folder: Path, progress: Copied = silent) -> dict[str, Path]:
    """Download a form into `folder`; what is there and whole stays, and no file gets its name unverified."""
    with _alone(folder, progress):
        missing = [file for file in form.files if not _is_whole(file, folder / file.name)]
        if form.archive is not None and missing:
            packed = folder / form.archive.name
            download(form.archive, packed, progress)
            _unpack(form, packed, folder, progress)
            packed.unlink()
        elif form.archive is None:
            for file in missing:
                download(file, folder / file.name, progress)
    return {file.name: folder / file.name for file in form.files}


@contextmanager
def _alone(folder: Path, progress: Copied) -> Iterator[None]:
    """Work in a folder alone: what is fetched by another process now need not be fetched again."""
    make_folder(folder)
    with ExitStack() as stack:
        while True:
            try:
                stack.enter_context(locked(folder))
                break
            except TakenError:
                progress("waiting for another d2dfl to fetch this", 0, 0)
                time.sleep(0.2)
        remove_parts(folder)
        yield


def _is_whole(file: File, path: Path) -> bool:
    try:
        verify(file, path)
    except UserError:
        return False
    return True


def download(file: File, path: Path, progress: Copied = silent) -> None:
    """Bring one file here; it gets its name when it is whole."""
    try:
        with urllib.request.urlopen(file.url, timeout=30) as answer, written_whole(path) as target:
            announced = _announced(answer)
            total = announced or file.size
            chunks = _copied(_arriving(file, answer), target, f"downloading {file.name}", total, progress)
            digest, size = _digest(file, chunks), target.tell()
            if digest != file.digest or any(length not in (0, size) for length in (announced, file.size)):
                raise UserError(f"{file.url} gave another file than the published {file.name}: try again later")
    except (OSError, http.client.HTTPException) as error:  # URLError is an OSError
        raise UserError(f"cannot download {file.name} from {file.url}: {_reason(error)}") from None


def _announced(answer: Any) -> int:
    """The length that a server gives beforehand; 0 if it does not."""
    length = str(answer.headers.get("Content-Length") or "")
    return int(length) if length.isascii() and length.isdigit() and len(length) < 16 else 0


def _arriving(file: File, answer: Any) -> Iterator[bytes]:
    """What a server sends. Whatever goes wrong here is the server's fault and not that of the disk."""
    try:
        while chunk := answer.read(CHUNK):
            yield chunk
    except (OSError, http.client.HTTPException) as error:
        raise UserError(f"cannot download {file.name} from {file.url}: {_reason(error)}") from None


def unpack(form: Form, archive: Path, folder: Path, progress: Copied = silent) -> dict[str, Path]:
    """Take the form's files out of its tar archive; nothing else is touched, no path in it is followed."""
    with _alone(folder, progress):
        return _unpack(form, archive, folder, progress)


def _unpack(form: Form, archive: Path, folder: Path, progress: Copied) -> dict[str, Path]:
    """The files get their names when the archive was read to its end, where its checksum is."""
    wanted = {form.inside + file.name: folder / file.name for file in form.files}
    damaged = UserError(f"{archive} is damaged, or has no {form.inside}{form.files[-1].name} in it")
    with ExitStack() as parts, opened(archive, "a tar archive", LARGEST) as tar:
        try:
            for inside, size in tar_members(tar, LARGEST):
                if path := wanted.pop(inside, None):
                    target = parts.enter_context(written_whole(path))
                    for _ in _copied(_taken(tar, size, damaged), target, f"unpacking {path.name}", size, progress):
                        pass
            skip_to_end(tar, LARGEST)
        except (ValueError, EOFError) as error:
            raise error if isinstance(error, UserError) else damaged from None
        if wanted:
            raise damaged
    return {file.name: folder / file.name for file in form.files}


def _taken(source: IO[bytes], size: int, damaged: UserError) -> Iterator[bytes]:
    """So many bytes of an archive."""
    while size:
        try:
            chunk = source.read(min(size, CHUNK))
        except (OSError, EOFError, zlib.error):
            raise damaged from None
        if not chunk:
            raise damaged
        size -= len(chunk)
        yield chunk


def _copied(chunks: Iterable[bytes], target: IO[bytes], what: str, total: int, progress: Copied) -> Iterator[bytes]:
    """The same chunks, each written down before it is passed on."""
    done = 0
    for chunk in chunks:
        done += len(chunk)
        if done > LARGEST:
            raise UserError(f"{what} has brought more than {LARGEST:,} bytes: no dataset has so many in a file")
        try:
            target.write(chunk)
        except OSError as error:  # a full disk, which is not the source's fault
            raise UserError(f"cannot write while {what}: {error.strerror}") from None
        progress(what, done, total)
        yield chunk


def _reason(error: Exception) -> str:
    if isinstance(error, urllib.error.HTTPError):
        return f"the server answers {error.code}"
    if isinstance(error, urllib.error.URLError):
        return str(getattr(error.reason, "strerror", None) or error.reason)
    return str(getattr(error, "strerror", None) or error or type(error).__name__)
