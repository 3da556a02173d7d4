"""A system at work in processes of its own, one round when it is told to, and its peak memory."""

import contextlib
import json
import os
import signal
import subprocess
import tempfile
import threading
from pathlib import Path
from typing import Any, Protocol

from frameworks.workers.shared import family

WORKERS = Path(__file__).resolve().parent / "workers"
SAMPLE_S = 0.1  # between two looks at the memory
SCRIPTS = {"ours": "run_ours.py", "bare loop": "run_bare.py", "Flower": "run_flower.py", "pfl": "run_pfl.py"}


class How(Protocol):
    """A system and its setting."""

    @property
    def system(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def threads(self) -> int: ...
    @property
    def processes(self) -> int: ...


class System:
    """A system at work, in processes of its own; it takes one round when it is told to."""

    def __init__(self, python: Path, how: How, folder: Path, rounds: int) -> None:
        self.how, self.rounds, self.allowed = how, rounds, 0
        self.errors = tempfile.TemporaryFile("w+")  # noqa: SIM115  # closed in `stop`
        with tempfile.NamedTemporaryFile("w", dir=folder, prefix="turns-", delete=False) as file:
            file.write("0")
        self.turns = Path(file.name)
        self.process = subprocess.Popen(
            self._command(python, folder),
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
            env=os.environ | _environment(how, folder),
            cwd=folder,
        )

    def _command(self, python: Path, folder: Path) -> list[str]:
        command = [str(python)]
        if self.how.system == "pfl" and self.how.processes > 1:
            command += ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={self.how.processes}"]
        command += [str(WORKERS / SCRIPTS[self.how.system]), str(folder), str(self.turns), f"--rounds={self.rounds}"]
        return [
            *command,
            f"--threads={self.how.threads}",
            f"--processes={self.how.processes}",
            f"--kind={self.how.kind}",
        ]

    def allow(self, rounds: int = 1) -> None:
        """Let it begin some rounds more."""
        self.allowed += rounds
        part = self.turns.with_suffix(".part")
        part.write_text(str(self.allowed))
        part.replace(self.turns)

    def heard(self) -> dict[str, Any]:
        """What it says next: a round's seconds and processor seconds, or, after the last, what it has learned."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith("{"):
                return dict(json.loads(line))
        self.errors.seek(0)
        text = self.errors.read()[-3000:]
        self.stop()
        raise SystemExit(f"{self.how.title} stopped early:\n{text}")

    def round(self) -> dict[str, Any]:
        """One round."""
        self.allow()
        return self.heard()

    def stop(self) -> None:
        """End it and all that it started."""
        members = family(self.process.pid) if self.process.poll() is None else []
        for member in members:
            with contextlib.suppress(ProcessLookupError):
                os.kill(member, signal.SIGKILL)
        self.process.wait()
        self.errors.close()


def _environment(how: How, folder: Path) -> dict[str, str]:
    return {
        "OMP_NUM_THREADS": str(how.threads),
        # Threads wait without spinning: a core that someone else takes then costs its share, and not a factor of 10.
        "OMP_WAIT_POLICY": "PASSIVE",
        "PYTHONWARNINGS": "ignore",
        "FLWR_TELEMETRY_ENABLED": "0",
        "FLWR_HOME": str(folder / "flwr"),
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_worker_niceness": "0",  # Ray's own 15 would let everyone else on the machine go first
    }


def peak_memory(python: Path, how: How, folder: Path) -> tuple[float, int]:
    """GiB of a system at its peak in two rounds, alone on the machine, and the number of its processes."""
    system = System(python, how, folder, rounds=2)
    peak, most, over = 0, 0, threading.Event()

    def watch() -> None:
        nonlocal peak, most
        while not over.wait(SAMPLE_S):
            held, count = proportional_bytes(system.process.pid)
            peak, most = max(peak, held), max(most, count)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        system.allow(2)
        for _ in range(3):
            system.heard()
    finally:
        over.set()
        watcher.join()
        system.stop()
    return peak / 2**30, most


def proportional_bytes(root: int) -> tuple[int, int]:
    """PSS of a process and all that descend from it (a page that n of them share counts 1/n in each), and how many."""
    total, count = 0, 0
    for member in family(root):
        try:
            text = Path(f"/proc/{member}/smaps_rollup").read_text()
        except OSError:
            continue  # it has just ended
        found = [line for line in text.splitlines() if line.startswith("Pss:")]
        if found:
            total, count = total + 1024 * int(found[0].split()[1]), count + 1
    return total, count
