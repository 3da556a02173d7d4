"""Discoveries of other processes, for one that watches them: each writes how far its newest one is into a folder that both see.

Nobody records anything unless somebody has looked a moment ago, and nothing of it is kept.
"""

import os
import pickle
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from d2dfl.config import Config
from d2dfl.discovery.methods import NO_EXCHANGE
from d2dfl.discovery.trace import Trace
from d2dfl.errors import UserError
from d2dfl.experiment.folder.traces import MOST_TABLE, traced
from d2dfl.network import Network
from d2dfl.storage import LARGEST_TEXT, read_bytes, write_whole

LOOKED = "looked"  # a file that is younger than `FRESH_S` while somebody looks
FRESH_S = 6.0
EVERY_S = 0.5  # between two writings of one discovery, and between two readings of all
SUFFIX = ".told"


class _Own:
    """What this process tells of itself."""

    folder: Path | None = None  # where it tells of its discoveries; None: nobody asked for them
    number = 0  # of discoveries that were told


def tell_into(folder: Path | None) -> None:
    """From now on, discoveries of this process are told there while somebody looks."""
    _Own.folder = folder


def trace_to_tell(network: Network, config: Config, method: str) -> Trace | None:
    """A trace of the discovery that begins now, which is written as it grows; None where nobody looks."""
    folder = _Own.folder
    if folder is None or method == NO_EXCHANGE or not traced(network.devices) or network.trust.size > MOST_TABLE:
        return None
    try:
        if time.time() - (folder / LOOKED).stat().st_mtime > FRESH_S:
            return None
    except OSError:
        return None
    _Own.number += 1
    trace = Trace(lambda: tell())
    tell = _Telling(folder, _Own.number, trace, config)
    return trace


class _Telling:
    """Writes a trace now and then, and at its end; a disk that takes nothing must not end the work."""

    def __init__(self, folder: Path, number: int, trace: Trace, config: Config) -> None:
        self.folder, self.number, self.trace, self.config = folder, number, trace, config
        self.last_s = time.monotonic()  # a short one is told once, when it is over

    def __call__(self) -> None:
        over, now = self.trace.moments[-1].share >= 1.0, time.monotonic()
        if not over and now - self.last_s < EVERY_S:
            return
        self.last_s = now
        trace = self.trace
        content = (self.number, over, trace.network, trace.method, trace.seed, trace.moments, self.config)
        with suppress(OSError, UserError):
            write_whole(self.folder / f"{os.getpid()}{SUFFIX}", pickle.dumps(content))


class Overheard(NamedTuple):
    """A discovery of another process, as far as it was when it was written."""

    key: str
    trace: Trace
    config: Config
    over: bool


@dataclass
class Listener:
    """Who looks into the folder. It must be one that only this user can write into."""

    folder: Path
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self._seen: dict[str, int] = {}
        self._last_s = -EVERY_S

    def look(self) -> list[Overheard]:
        """What was written since the last time, the oldest first; workers now know that somebody looks."""
        if self.clock() - self._last_s < EVERY_S:
            return []
        self._last_s = self.clock()
        found = []
        with suppress(OSError):  # of a folder that is gone there is nothing to tell
            (self.folder / LOOKED).touch()
            times = {path: path.stat().st_mtime_ns for path in self.folder.glob(f"*{SUFFIX}")}
            for path in sorted(times, key=lambda one: times[one]):
                if times[path] != self._seen.get(path.stem):
                    self._seen[path.stem] = times[path]
                    found.append(_read(path))
        return found


def _read(path: Path) -> Overheard:
    number, over, network, method, seed, moments, config = pickle.loads(read_bytes(path, "a trace", LARGEST_TEXT))
    trace = Trace()
    trace.network, trace.method, trace.seed, trace.moments = network, method, seed, moments
    return Overheard(f"{path.stem}-{number}", trace, config, over)
