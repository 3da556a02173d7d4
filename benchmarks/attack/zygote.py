"""One process that has imported and compiled everything, and forks a child for each job: a case costs no start.

Jobs come as JSON lines on standard input and go back as JSON lines on standard output (see `sandbox.Job`). A child has a
process group, a folder, a temporary folder and limits of its own; nothing that it does reaches this process.
"""

import atexit
import contextlib
import ctypes
import importlib
import io
import json
import os
import resource
import select
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.dont_write_bytecode = True  # Python's own files beside a plug-in are nothing that we left behind
TINY = ["--devices", "3", "--seed", "1"]
# What children need compiled: every kernel of the cheap methods, a training, its pictures.
WARM = (
    ["discover", *TINY],
    *(["discover", *TINY, "--method", name] for name in ("qlearning", "bandit", "greedy")),
    [
        "compare",
        *TINY[:2],
        "--rounds",
        "1",
        "--seeds",
        "1",
        "--methods",
        "closest",
        "--set",
        "data.samples=12",
        "--set",
        "federation.device=cpu",
    ],
)


class Sentry:
    """Counts what a process changes in its folder, and ends it as `kill -9` does just before the n-th change."""

    def __init__(self, folder: str, at: int) -> None:
        self.folder, self.at, self.seen = folder, at, 0

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event not in ("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir"):
            return
        if event == "open" and not (isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)):
            return
        try:
            inside = os.path.abspath(os.fsdecode(arguments[0])).startswith(self.folder)
        except (TypeError, ValueError):
            return
        if inside:
            self.seen += 1
            if self.seen == self.at:
                os.kill(os.getpid(), signal.SIGKILL)


def warm_up() -> None:
    """Import and compile, here: children inherit it."""
    from d2dfl.cli import app as cli

    importlib.import_module("d2dfl.report.page.page")
    importlib.import_module("d2dfl.paper.run")
    import torch

    from d2dfl.experiment import compare

    # Trainings of an attack are over before states are saved a second time. Here after each round: cuts have something to hit.
    compare.PAUSE_S = 0.0
    # On the CPU, without so much as asking for a GPU: CUDA does not survive a fork.
    before, asked = Path.cwd(), torch.cuda.is_available
    torch.cuda.is_available = lambda: False
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for number, arguments in enumerate(WARM):
            out = ["--out", f"warm-{number}"] if arguments[0] == "compare" else []
            sys.argv = ["d2dfl", *arguments, *out]
            with (
                contextlib.redirect_stderr(io.StringIO()) as said,
                contextlib.redirect_stdout(io.StringIO()),
                contextlib.suppress(SystemExit),
            ):
                cli.main()
            if "d2dfl:" in said.getvalue():
                sys.stderr.write(f"warm-up: {said.getvalue()}")
        os.chdir(before)
    torch.cuda.is_available = asked


def mapped_bytes() -> int:
    """Virtual memory of this process."""
    return int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")


def child(job: dict[str, Any]) -> None:
    """Do a job; never returns."""
    code = 70
    try:
        os.setsid()
        for number, name in ((1, "stdout"), (2, "stderr")):
            file = os.open(f"{job['place']}/{name}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            os.dup2(file, number)
            os.close(file)
        null = os.open("/dev/null", os.O_RDONLY)
        os.dup2(null, 0)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        sys.stdin, sys.stdout = os.fdopen(0, closefd=False), os.fdopen(1, "w", encoding=job["encoding"], closefd=False)
        sys.stderr = os.fdopen(2, "w", encoding=job["encoding"], errors="backslashreplace", closefd=False)
        os.chdir(job["folder"])
        os.environ.update(job["environment"], TMPDIR=job["temporary"])
        tempfile.tempdir = None
        if job["memory"]:
            most = mapped_bytes() + job["memory"]
            resource.setrlimit(resource.RLIMIT_AS, (most, most))
        resource.setrlimit(resource.RLIMIT_FSIZE, (job["file_size"],) * 2)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        sentry = Sentry(os.path.abspath(job["folder"]), job["kill_at"])
        sys.addaudithook(sentry)
        code = _work(job)
        Path(job["place"], "changes").write_text(str(sentry.seen))
    except BaseException:  # of the harness, or what `main` lets through: the interpreter would print it too
        traceback.print_exc()
        code = 1
    finally:
        with contextlib.suppress(Exception):
            threading._shutdown()  # type: ignore[attr-defined]  # as the interpreter does at its end: joblib cleans up
            atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                stream.flush()
        os._exit(code)


def _work(job: dict[str, Any]) -> int:
    if job["call"]:
        module, _, name = job["call"].partition(":")
        getattr(importlib.import_module(module), name)(**job["arguments"])
        return 0
    from d2dfl.cli import app as cli

    sys.argv = ["d2dfl", *job["arguments"]]
    try:
        cli.main()
    except SystemExit as end:
        return _code(end.code)
    return 0


def _code(value: object) -> int:
    """As the interpreter makes an exit code of whatever `sys.exit` was given."""
    if value is None:
        return 0
    if isinstance(value, int):
        return value & 0xFF
    sys.stderr.write(f"{value}\n")
    return 1


class Running:
    """A child under way."""

    def __init__(self, job: dict[str, Any], pid: int) -> None:
        self.job, self.pid, self.began = job, pid, time.monotonic()
        self.late = self.killed = False
        self.pidfd = os.pidfd_open(pid)

    def next_event(self) -> float:
        """Seconds until it is to be killed."""
        limit = self.job["kill_after"] if self.job["kill_after"] and not self.killed else self.job["limit"]
        return max(0.0, self.began + limit - time.monotonic())

    def watch(self) -> None:
        """Kill it, or its whole group, where its time has come."""
        spent = time.monotonic() - self.began
        if self.job["kill_after"] and not self.killed and spent >= self.job["kill_after"]:
            self.killed = True
            os.kill(self.pid, signal.SIGKILL)  # it alone: its own children have to notice
        elif spent >= self.job["limit"]:
            self.late = True
            kill_group(self.pid)

    def reap(self) -> dict[str, Any]:
        """What became of it."""
        _, status, used = os.wait4(self.pid, 0)
        os.close(self.pidfd)
        seconds = time.monotonic() - self.began
        code = os.waitstatus_to_exitcode(status)
        return {
            "number": self.job["number"],
            "code": code,
            "late": self.late,
            "killed": code == -signal.SIGKILL and not self.late,
            "seconds": seconds,
            "peak": used.ru_maxrss * 1024,
            "orphans": orphans(self.pid, self.job["patience"]),
        }


def kill_group(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


def orphans(group: int, patience: float) -> int:
    """Processes of a group that outlive their parent by more than `patience` seconds; they end here."""
    end = time.monotonic() + patience
    while left := _members(group):
        if time.monotonic() >= end:
            kill_group(group)
            return left
        time.sleep(0.05)
    return 0


def _members(group: int) -> int:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return 0
    number = 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            state, _, mine = path.read_text().rpartition(")")[2].split()[:3]
            number += int(mine) == group and state not in "ZX"
    return number


def serve() -> None:
    """Take jobs until standard input ends."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # nothing else may write between our lines
    warm_up()
    out.write(json.dumps({"ready": True, "threads": threading.active_count()}) + "\n")
    out.flush()
    running: dict[int, Running] = {}
    lines = _lines(0)
    while True:
        wait = min((item.next_event() for item in running.values()), default=None)
        ready, _, _ = select.select([0, *running], [], [], wait)
        for item in [item for pidfd, item in running.items() if pidfd in ready]:
            del running[item.pidfd]
            out.write(json.dumps(item.reap()) + "\n")
            out.flush()
        for item in running.values():
            item.watch()
        if 0 in ready:
            jobs = next(lines, None)
            if jobs is None:
                for item in running.values():
                    kill_group(item.pid)
                return
            for job in jobs:
                pid = os.fork()
                if pid == 0:
                    child(job)
                item = Running(job, pid)
                running[item.pidfd] = item


def _lines(number: int) -> Iterator[list[dict[str, Any]]]:
    """Jobs that have arrived, as often as there is something to read."""
    rest = b""
    while content := os.read(number, 1 << 16):
        *whole, rest = (rest + content).split(b"\n")
        yield [json.loads(line) for line in whole]


def die_with_parent() -> None:
    """A client that is killed must not leave us waiting."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


if __name__ == "__main__":
    die_with_parent()
    serve()
