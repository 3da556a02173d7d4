"""Cases in folders of their own: what was there before, what is there after, and what the program said."""

import hashlib
import json
import os
import select
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

HERE = Path(__file__).resolve().parent
GIB = 1 << 30
LIMIT_S = 180.0
MEMORY = 6 * GIB  # above what is mapped at the start
FILE_SIZE = 1 << 31
LOCK = ".d2dfl-lock"
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS", "NUMEXPR_NUM_THREADS")
Entry = tuple[str, int, str]  # kind, mode, content (a digest) or target
Shot = dict[str, Entry]


@dataclass(frozen=True)
class Job:
    """One call of the command line, or of a function, in a folder."""

    arguments: Any  # of the command line; keywords of a call
    folder: Path
    call: str = ""  # "module:function" instead of the command line
    limit: float = LIMIT_S
    memory: int = MEMORY  # 0: no limit
    file_size: int = FILE_SIZE
    kill_after: float = 0.0  # seconds after which it is killed; 0: never
    kill_at: int = 0  # it dies just before this change of its folder; 0: never
    patience: float = 60.0  # seconds for processes that it leaves behind
    encoding: str = "utf-8"
    environment: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Outcome:
    """How a job ended."""

    code: int  # negative: the signal that ended it
    late: bool
    killed: bool  # by our own hand
    seconds: float
    peak: int
    orphans: int
    stdout: str
    stderr: str
    temporary: Path  # its temporary folder
    changes: int  # of its folder, where it came to an end


class Zygote:
    """Runs jobs in forked children of a process that is warm. Two at a time, unless told otherwise."""

    def __init__(self, place: Path | None = None, width: int = 2) -> None:
        self.width = width
        self.place = Path(tempfile.mkdtemp(prefix="d2dfl-attack-")) if place is None else place
        self.place.mkdir(parents=True, exist_ok=True)
        source = [str(HERE.parent), *([os.environ["PYTHONPATH"]] if os.environ.get("PYTHONPATH") else [])]
        environment = {
            **os.environ,
            **dict.fromkeys(THREADS, "1"),
            "PYTHONPATH": os.pathsep.join(source),
            "PYTORCH_NVML_BASED_CUDA_CHECK": "1",  # asking for a GPU must not start CUDA here: it does not survive a fork
            "COLUMNS": "200",
        }
        self._process = subprocess.Popen(
            [sys.executable, str(HERE / "zygote.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
        )
        self._number = 0
        self._out: dict[int, tuple[Any, Path]] = {}
        self._rest = b""
        self._receive()  # it says when it is warm

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(60)
        self._process.stdout.close()

    def submit(self, job: Job, token: Any = None) -> None:
        """Start a job; `results` gives the token back with its outcome."""
        self._number += 1
        place = self.place / f"job-{self._number}"
        (place / "tmp").mkdir(parents=True)
        self._out[self._number] = token, place
        content = {**vars(job), "number": self._number, "folder": str(job.folder), "place": str(place)}
        content["temporary"] = str(place / "tmp")
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(content).encode() + b"\n")
        self._process.stdin.flush()

    @property
    def under_way(self) -> int:
        """Jobs without an outcome."""
        return len(self._out)

    def result(self) -> tuple[Any, Outcome]:
        """Wait for the next job that ends."""
        found = self._receive()
        token, place = self._out.pop(found.pop("number"))
        said = [(place / name).read_bytes().decode("utf-8", "replace") for name in ("stdout", "stderr")]
        counted = place / "changes"
        number = int(counted.read_text()) if counted.exists() else 0
        return token, Outcome(**found, stdout=said[0], stderr=said[1], temporary=place / "tmp", changes=number)

    def run(self, job: Job) -> Outcome:
        """One job, alone."""
        self.submit(job)
        return self.result()[1]

    def run_all(self, jobs: Iterable[tuple[Any, Job]]) -> Iterator[tuple[Any, Outcome]]:
        """Many jobs, a few at a time, as they end."""
        for token, job in jobs:
            self.submit(job, token)
            if self.under_way >= self.width:
                yield self.result()
        while self.under_way:
            yield self.result()

    def _receive(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        number = self._process.stdout.fileno()
        while b"\n" not in self._rest:
            select.select([number], [], [])
            content = os.read(number, 1 << 16)
            if not content:
                raise RuntimeError("the zygote died: see what it said above")
            self._rest += content
        line, _, self._rest = self._rest.partition(b"\n")
        found: dict[str, Any] = json.loads(line)
        return found


def snapshot(folder: Path) -> Shot:
    """Everything below a folder: path → kind, mode, content or target. Links are not followed."""
    shot: Shot = {}
    for root, folders, files in os.walk(folder):
        for name in [*folders, *files]:
            path = os.path.join(root, name)
            found = os.lstat(path)
            shot[os.path.relpath(path, folder)] = _entry(path, found)
    return shot


def _entry(path: str, found: os.stat_result) -> Entry:
    mode = stat.S_IMODE(found.st_mode)
    if stat.S_ISLNK(found.st_mode):
        return "link", 0, os.readlink(path)
    if stat.S_ISDIR(found.st_mode):
        return "folder", mode, ""
    if stat.S_ISREG(found.st_mode):
        with open(path, "rb") as file:
            return "file", mode, hashlib.file_digest(file, "sha256").hexdigest()
    return f"special {stat.S_IFMT(found.st_mode):o} {found.st_rdev}", mode, ""


def changes(before: Shot, after: Shot, may_change: Iterable[str] = ()) -> list[str]:
    """What happened to things that were there before, in words. Content alone may change where that was asked for."""
    allowed = set(may_change)
    found = []
    for path, was in before.items():
        now = after.get(path)
        if now is None and os.path.basename(path) == LOCK:  # ours: what a killed run has left
            continue
        if now is None:
            found.append(f"{path!r} is gone")
        elif now[:2] != was[:2]:
            found.append(f"{path!r} was {was[0]} {was[1]:o} and is {now[0]} {now[1]:o}")
        elif now[2] != was[2] and path not in allowed:
            found.append(f"{path!r} has another {'target' if was[0] == 'link' else 'content'}")
    return found


def remove(folder: Path) -> None:
    """Remove a folder of ours, also where something in it may not be written."""
    for root, folders, _ in os.walk(folder):
        for name in folders:
            path = os.path.join(root, name)
            if not os.path.islink(path):
                os.chmod(path, 0o700)
    shutil.rmtree(folder, ignore_errors=True)
