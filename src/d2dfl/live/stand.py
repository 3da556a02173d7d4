"""What is shown, by name, always the newest: the run puts functions here, and whoever looks has them called.

Records hold all that came before them (a curve all its rounds), so a slow browser misses nothing if it sees every third one. There
is no queue that could grow. While nobody looks, nothing is computed at all. What is computed for those who look may take one part in
a hundred of the time that passes (`SHARE`), since it is taken from the run: a drawing that is dear is made anew more seldom.
"""

import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

SHARE = 0.01
LEAST_S = 0.25  # between two drawings of a record
CHEAP_S = 0.001  # a record that takes less does not wait for others
Build = Callable[[], Any]  # gives plain values


@dataclass
class Part:
    """A record that is shown."""

    build: Build
    version: int
    text: str = ""  # as it was sent last
    built: int = 0  # the version of the text
    due_s: float = 0.0  # when it may be built again
    took_s: float = 0.0  # the last time


class Stand:
    """The newest records. `put` is called by the run, the rest by the server's thread."""

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, spent: Callable[[], float] = time.thread_time
    ) -> None:
        self._clock, self._spent = clock, spent
        self._lock = threading.Lock()
        self._parts: dict[str, Part] = {}
        self._made: dict[str, Build] = {}  # what browsers may ask for by name
        self._due_s = 0.0
        self.ended = threading.Event()

    def put(self, name: str, build: Build) -> None:
        """There is something newer to show. It is computed when somebody looks, if ever."""
        with self._lock:
            if name in self._parts:
                part = self._parts[name]
                part.build, part.version = build, part.version + 1
            else:
                self._parts[name] = Part(build, 1)

    def offer(self, name: str, build: Build) -> None:
        """Something that is computed only when a reader asks for it."""
        with self._lock:
            self._made[name] = build

    def asked(self, name: str) -> str | None:
        """What was offered under this name, as JSON."""
        with self._lock:
            build = self._made.get(name)
        return None if build is None else _text(name, 0, build())

    def newer(self, seen: dict[str, int]) -> list[str]:
        """Records that a browser has not seen, as JSON; `seen` is brought up to date. Once the run has ended, all of them."""
        with self._lock:
            waiting = [(name, part) for name, part in self._parts.items() if part.version > seen.get(name, 0)]
        texts = []
        for name, part in waiting:
            due_s = part.due_s if part.took_s < CHEAP_S else max(part.due_s, self._due_s)
            if part.built < part.version and (self.ended.is_set() or self._clock() >= due_s):
                self._build(name, part)
            if part.built > seen.get(name, 0):
                seen[name] = part.built
                texts.append(part.text)
        return texts

    def complete(self, seen: dict[str, int]) -> bool:
        """Whether a browser has seen everything."""
        with self._lock:
            return all(part.version <= seen.get(name, 0) for name, part in self._parts.items())

    def _build(self, name: str, part: Part) -> None:
        with self._lock:
            build, version = part.build, part.version
        began = self._spent()
        part.text, part.built = _text(name, version, build()), version
        part.took_s = self._spent() - began
        part.due_s = self._clock() + max(LEAST_S, part.took_s / SHARE)
        if part.took_s >= CHEAP_S:
            self._due_s = max(self._due_s, self._clock()) + part.took_s / SHARE


def _text(name: str, version: int, data: Any) -> str:
    content = {"name": name, "version": version, "data": data}
    return json.dumps(content, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
