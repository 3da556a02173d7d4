"""Files of a dataset: where they may be, whether they are whole, how they get here."""

import gzip
import hashlib
import http.client
import os
import tarfile
import urllib.error
import urllib.request
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from d2dfl.errors import UserError

Progress = Callable[[str, int, int], None]  # what is being done, how far, of how much (0: unknown)
CHUNK = 1 << 20


def silent(what: str, done: int, total: int) -> None:
    """Progress that nobody watches."""


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
    return (Path(base) if base else Path.home() / ".cache") / "d2dfl" / name


def search_folders(name: str, extra: Iterable[str]) -> list[Path]:
    """The folders to look into, in this order: $D2DFL_DATA, the user's cache, system packages."""
    own = os.environ.get("D2DFL_DATA", "")
    roots = [Path(own), Path(own) / name] if own else []
    system = [Path(os.path.expandvars(folder)).expanduser() for folder in extra]
    return [*roots, cache_folder(name), *(folder for folder in system if folder.is_absolute())]


def find(forms: Sequence[Form], folders: Iterable[Path]) -> tuple[Form, dict[str, Path]] | None:
    """The first folder that holds all files of a form. An archive counts as `{archive name: path}`."""
    for folder in folders:
        for form in forms:
            for place in [folder, *(folder / below for below in form.folders)]:
                paths = {file.name: place / file.name for file in form.files}
                if all(path.is_file() for path in paths.values()):
                    return form, paths
            if form.archive is not None and (folder / form.archive.name).is_file():
                return form, {form.archive.name: folder / form.archive.name}
    return None


def partly(forms: Sequence[Form], folders: Iterable[Path]) -> list[Path]:
    """Files that belong to the dataset but are not enough of it."""
    places = [
        place for folder in folders for place in [folder, *(folder / sub for form in forms for sub in form.folders)]
    ]
    names = {file.name for form in forms for file in form.files}
    return [place / name for place in places for name in sorted(names) if (place / name).is_file()]


def verify(file: File, path: Path) -> None:
    """Stop unless the file is the published one, as far as that is known."""
    try:
        size = path.stat().st_size
        digest = _digest_of(file, path)
    except OSError as error:
        raise UserError(f"cannot read {str(path)!r}: {error.strerror or error}") from None
    except (EOFError, zlib.error):
        digest = "damaged"
    if file.size and size != file.size:
        raise UserError(f"{path} has {size:,} bytes and not the published {file.size:,}{_WAYS_OUT}")
    if digest != file.digest:
        raise UserError(f"{path} is not the published file, its checksum is {digest}{_WAYS_OUT}")


_WAYS_OUT = ": delete it and fetch the dataset again, or set data.verify=false to take it as it is"


def _digest_of(file: File, path: Path) -> str:
    if not file.digest:
        return ""
    kind = file.digest.partition(":")[0]
    with gzip.open(path) if file.digest_of_content and path.suffix == ".gz" else path.open("rb") as content:
        checksum = hashlib.file_digest(content, kind)
    return f"{kind}:{checksum.hexdigest()}"


def fetch(form: Form, folder: Path, progress: Progress = silent) -> dict[str, Path]:
    """Download a form into `folder`; what is there and whole stays, and no file gets its name unverified."""
    _make(folder)
    for file in form.downloads:
        if form.archive is None and _is_whole(file, folder / file.name):
            continue
        download(file, folder / file.name, progress)
    if form.archive is not None:
        unpack(form, folder / form.archive.name, folder, progress)
        (folder / form.archive.name).unlink()
    return {file.name: folder / file.name for file in form.files}


def _is_whole(file: File, path: Path) -> bool:
    try:
        verify(file, path)
    except UserError:
        return False
    return path.is_file()


def download(file: File, path: Path, progress: Progress = silent) -> None:
    """Bring one file here, under another name until it is whole."""
    part = path.with_name(f".part.{os.getpid()}.{path.name}")  # keeps the suffix, which says how to look inside
    try:
        with urllib.request.urlopen(file.url, timeout=30) as answer, part.open("wb") as target:
            total = int(answer.headers.get("Content-Length") or file.size)
            _copy(answer, target, f"downloading {file.name}", total, progress)
        verify(file, part)
        part.replace(path)
    except (OSError, http.client.HTTPException) as error:  # URLError is an OSError
        raise UserError(f"cannot download {file.name} from {file.url}: {_reason(error)}") from None
    except UserError:
        raise UserError(f"{file.url} gave another file than the published {file.name}: try again later") from None
    finally:
        part.unlink(missing_ok=True)


def unpack(form: Form, archive: Path, folder: Path, progress: Progress = silent) -> dict[str, Path]:
    """Take the form's files out of its tar archive; nothing else is touched, no path in it is followed."""
    _make(folder)
    part = folder / f".part.{os.getpid()}.{archive.name}"
    paths = {}
    try:
        with tarfile.open(archive) as tar:
            for file in form.files:
                member = tar.extractfile(form.inside + file.name)
                if member is None:
                    raise KeyError(file.name)
                with member, part.open("wb") as target:
                    size = tar.getmember(form.inside + file.name).size
                    _copy(member, target, f"unpacking {file.name}", size, progress)
                paths[file.name] = part.replace(folder / file.name)
    except (tarfile.TarError, KeyError, EOFError, zlib.error):
        raise UserError(f"{archive} is damaged, or has no {form.inside}{form.files[-1].name} in it") from None
    except OSError as error:
        raise UserError(f"cannot unpack {str(archive)!r}: {error.strerror or 'it is damaged'}") from None
    finally:
        part.unlink(missing_ok=True)
    return paths


def _copy(source: IO[bytes] | Any, target: IO[bytes], what: str, total: int, progress: Progress) -> None:
    done = 0
    while chunk := source.read(CHUNK):
        target.write(chunk)
        done += len(chunk)
        progress(what, done, total)
    target.flush()
    os.fsync(target.fileno())


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot make the folder {str(folder)!r}: {error.strerror}") from None


def _reason(error: Exception) -> str:
    if isinstance(error, urllib.error.HTTPError):
        return f"the server answers {error.code}"
    if isinstance(error, urllib.error.URLError):
        return str(getattr(error.reason, "strerror", None) or error.reason)
    return str(getattr(error, "strerror", None) or error or type(error).__name__)
