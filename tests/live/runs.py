"""Commands with a live page, as a user starts them."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PATIENCE = 300.0  # seconds, for a command that compiles first
ADDRESS = re.compile(r"http://127\.0\.0\.1:[0-9]+/[\w-]+/")
SMALL = ["--devices", "6", "--set", "data.samples=20", "--set", "qlearning.steps=300", "--methods", "marginal,closest"]


class Command:
    """A command that was started, and what it says."""

    def __init__(self, *arguments: str, cwd: Path, **environment: str) -> None:
        clean = {
            name: value for name, value in os.environ.items() if name not in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
        }
        self.process = subprocess.Popen(
            [sys.executable, "-m", "d2dfl", *arguments],
            cwd=cwd,
            env={**clean, "OMP_NUM_THREADS": "1", **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.said = ""
        self._told, self._heard = threading.Event(), threading.Thread(target=self._listen, daemon=True)
        self._heard.start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.said += line
            if ADDRESS.search(self.said.replace("\n", "")):
                self._told.set()
        self._told.set()

    @property
    def address(self) -> str:
        assert self._told.wait(PATIENCE), "it never said its address"
        found = ADDRESS.search(self.said.replace("\n", ""))
        assert found, self.said
        return found.group()

    def stays(self) -> bool:
        """Whether it comes to say that its page stays until it is stopped."""
        until = time.monotonic() + PATIENCE
        while "Ctrl-C ends it" not in self.said.replace("\n", " ") and time.monotonic() < until:
            time.sleep(0.05)
        return "Ctrl-C ends it" in self.said.replace("\n", " ")

    def end(self, kind: int = signal.SIGINT) -> int:
        self.process.send_signal(kind)
        return self.wait()

    def wait(self) -> int:
        code = self.process.wait(PATIENCE)
        self._heard.join(PATIENCE)
        if self.process.stdout is not None:
            self.process.stdout.close()
        return code


@contextmanager
def command(*arguments: str, cwd: Path, **environment: str) -> Iterator[Command]:
    """A command that is gone after the block, whatever happens in it."""
    started = Command(*arguments, cwd=cwd, **environment)
    try:
        yield started
    finally:
        if started.process.poll() is None:
            started.process.kill()
        started.wait()
