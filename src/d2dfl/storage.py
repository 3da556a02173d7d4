"""Files: only plain ones are opened, all are written whole or not at all, and one process at a time works in a folder.

What stands at a path stays until the new content is safe on the disk. Symbolic links are followed and modes kept; a
device, a pipe or a folder is never replaced by a file.
"""

import hashlib
import json
import os
import re
import secrets
import stat
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, NoReturn

from d2dfl.errors import UserError

LARGEST = 1 << 34  # bytes of a file that is read at all
LARGEST_TEXT = 1 << 28  # of a file of text, which takes several times as much once it is understood
CHUNK = 1 << 20  # bytes that are read at a time
LOCK = ".d2dfl-lock"
MARK = "run.json"  # of a run folder: what it is for
PART = re.compile(r"\.d2dfl-[0-9a-f]{16}\.part")  # what a file is called until it is whole
KINDS: tuple[tuple[Callable[[int], bool], str], ...] = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


class TakenError(UserError):
    """A folder that holds something else, or in which another process works."""


def open_plain(path: Path, wanted: str = "a file", limit: int = LARGEST) -> IO[bytes]:
    """Open a plain file for reading; anything else at this path is one sentence.

    `wanted` says what would be right. A pipe is not even opened: that could wait for ever.
    """
    try:
        _only_plain(path, os.stat(path).st_mode, f"give {wanted}")
        number = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
    except FileNotFoundError:
        raise UserError(f"there is no file {str(path)!r}: give {wanted}") from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise UserError(f"cannot read {str(path)!r}: {_reason(error)}") from None
    try:
        found = os.fstat(number)  # of what was opened: the path may lead elsewhere by now
        _only_plain(path, found.st_mode, f"give {wanted}")
        if found.st_size > limit:
            raise UserError(f"{path} has {found.st_size:,} bytes: {wanted} may have {limit:,}")
        return os.fdopen(number, "rb")
    except BaseException:
        with suppress(OSError):
            os.close(number)
        raise


def read_bytes(path: Path, wanted: str = "a file", limit: int = LARGEST) -> bytes:
    """The content of a plain file."""
    with open_plain(path, wanted, limit) as file:
        try:
            # Not read(limit + 1): that would set aside so much memory before it reads a byte.
            content = file.read(os.fstat(file.fileno()).st_size)
            while len(content) <= limit and (more := file.read(CHUNK)):
                content += more
        except OSError as error:
            raise UserError(f"cannot read {str(path)!r}: {_reason(error)}") from None
    if len(content) > limit:  # it grew, or is one of those that say they are empty
        raise UserError(f"{path} has more than {limit:,} bytes: {wanted} may not")
    return content


def read_text(path: Path, wanted: str = "a text file", limit: int = LARGEST_TEXT) -> str:
    """The content of a plain file in UTF-8, without the mark that some editors put first."""
    try:
        return read_bytes(path, wanted, limit).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UserError(f"{path} is not text in UTF-8: give {wanted}") from None


def read_json(path: Path, wanted: str = "a JSON file", limit: int = LARGEST_TEXT) -> Any:
    """The content of a JSON file. A key that stands twice in one object is refused: one of its values would be lost."""
    text = read_text(path, wanted, limit)
    try:
        return json.loads(text, object_pairs_hook=_once)
    except UserError as error:
        raise UserError(f"{path}: {error}") from None
    except (ValueError, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error).partition(": line")[0]
        raise UserError(f"{path} is not readable as JSON: {reason:.120}") from None


def json_checksum(content: Any) -> str:
    """SHA-256 of plain values, whatever the order of their keys."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise UserError(f"the key {twice!r:.80} stands twice in one object: give it once")
    return found


def write_whole(path: Path, content: bytes) -> None:
    """Write a file whole or not at all."""
    with written_whole(path) as file:
        file.write(content)


@contextmanager
def written_whole(path: Path) -> Iterator[IO[bytes]]:
    """A file to write into. It takes its place only when the block ends well and the content is on the disk."""
    target, before = _target(path)
    part = target.with_name(f".d2dfl-{secrets.token_hex(8)}.part")
    try:
        # Nobody else may read what replaces a file that nobody else may read.
        file = os.fdopen(os.open(part, _NEW, 0o666 if before is None else 0o600), "wb")
    except OSError as error:
        _cannot_write(path, error)
    try:
        with file:
            yield file
            file.flush()
            if before is not None:
                _keep_rights(file.fileno(), before)
            os.fsync(file.fileno())
        part.replace(target)
    except BaseException as error:
        with suppress(OSError):  # a disk that may no longer be written must not hide why
            part.unlink(missing_ok=True)
        if isinstance(error, OSError):
            _cannot_write(path, error)
        raise
    sync_folder(target.parent)


_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)


def _target(path: Path) -> tuple[Path, os.stat_result | None]:
    """Where a file truly is, behind links, and what stands there."""
    try:
        target = path.resolve()
    except (OSError, RuntimeError, ValueError) as error:  # RuntimeError: links in a circle; ValueError: a NUL
        _cannot_write(path, error)
    try:
        found = target.stat()
    except FileNotFoundError:
        return target, None
    except OSError as error:
        _cannot_write(path, error)
    _only_plain(path, found.st_mode, "name a file")
    if not found.st_mode & 0o222 or not os.access(target, os.W_OK):
        raise UserError(f"cannot write {str(path)!r}: the file is read-only")
    folder = target.parent.stat()
    ours = getattr(os, "geteuid", lambda: 0)()
    if folder.st_mode & stat.S_ISVTX and ours not in (0, found.st_uid, folder.st_uid):
        raise UserError(f"cannot write {str(path)!r}: the file is somebody else's, in a folder that keeps it so")
    return target, found


def _keep_rights(number: int, before: os.stat_result) -> None:
    """Mode and, where we may, owner of the file that was there."""
    if hasattr(os, "fchown"):  # POSIX
        with suppress(OSError):
            os.fchown(number, before.st_uid, before.st_gid)
        os.fchmod(number, stat.S_IMODE(before.st_mode))


def sync_folder(folder: Path) -> None:
    """Names of files are safe on the disk only when their folder is."""
    with suppress(OSError):  # some file systems cannot
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)


def check_output(path: Path) -> None:
    """Refuse, before minutes of work, a path that could not be written after them."""
    target, _ = _target(path)
    if not target.parent.is_dir():
        where = target.parent if path.is_symlink() else path.parent
        raise UserError(f"cannot write {str(path)!r}: there is no folder {str(where)!r}")
    trial = target.with_name(f".d2dfl-{secrets.token_hex(8)}.part")
    try:
        os.close(os.open(trial, _NEW, 0o600))
    except OSError as error:
        _cannot_write(path, error)
    trial.unlink(missing_ok=True)


def make_folder(folder: Path) -> None:
    """Make a folder and those above it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        reason = "there is a file of this name" if isinstance(error, FileExistsError) else _reason(error)
        raise UserError(f"cannot make the folder {str(folder)!r}: {reason}") from None


@contextmanager
def new_files(folder: Path, names: Sequence[str]) -> Iterator[None]:
    """Files of these names that the block makes in a folder: all of them, or none, and then not the folder either if it was not there."""
    there, before = folder.exists(), {name for name in names if (folder / name).exists()}
    make_folder(folder)
    try:
        yield
    except BaseException:
        with suppress(OSError):  # what led here is to be told
            for name in set(names) - before:
                (folder / name).unlink(missing_ok=True)
            if not there:
                folder.rmdir()
        raise


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Work in a folder alone. The lock ends with the process, however it ends."""
    number = _lock(folder)
    try:
        yield
    finally:
        if number is not None:
            try:
                if os.path.samestat(os.fstat(number), os.stat(folder / LOCK)):  # and not a later one of somebody else
                    (folder / LOCK).unlink()
            except OSError:
                pass  # the folder is gone
            finally:
                os.close(number)


def _lock(folder: Path) -> int | None:
    """An open lock file; None where the system has no such locks."""
    try:
        import fcntl
    except ImportError:  # not a POSIX system
        return None
    path = folder / LOCK
    while True:
        try:
            number = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
        except OSError as error:
            raise UserError(f"cannot work in {str(folder)!r}: {_reason(error)}") from None
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(number)
            raise TakenError(f"another d2dfl works in {folder} now: wait for it, or give another folder") from None
        except OSError:  # a file system without locks
            os.close(number)
            return None
        try:
            if os.path.samestat(os.fstat(number), os.stat(path)):
                return number
        except FileNotFoundError:
            pass
        os.close(number)  # its last holder removed the file between our opening and our locking: once more


def remove_parts(folder: Path) -> None:
    """Remove what writers that were killed have left below a folder; for whoever holds its lock."""
    for path in folder.rglob(".d2dfl-*.part"):
        if PART.fullmatch(path.name):
            path.unlink(missing_ok=True)


def _only_plain(path: Path, mode: int, wanted: str) -> None:
    if not stat.S_ISREG(mode):
        kind = next((name for test, name in KINDS if test(mode)), "not a file")
        raise UserError(f"{str(path)!r} is {kind}: {wanted}")


def _cannot_write(path: Path, error: Exception) -> NoReturn:
    raise UserError(f"cannot write {str(path)!r}: {_reason(error)}") from None


def _reason(error: Exception) -> str:
    return str(getattr(error, "strerror", None) or error or type(error).__name__)
