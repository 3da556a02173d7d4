"""What is shown, by name, always the newest: the run puts functions here, and whoever looks has them called.

Records hold all that came before them (a curve all its rounds), so a slow browser misses nothing if it sees every third one. There
is no queue that could grow. While nobody looks, nothing is computed at all; before anybody has looked, the run does not even say that
there is something newer.

What is computed for those who look is taken from the run, so there is an account: all that the server's thread has done since somebody
looked, and a drawing that is to be made, may come to `MOST` of the seconds that the run has used until then. A discovery of a second
is therefore drawn once, when it has ended. Within that each record takes at most a share (`SHARE`): one that is dear is made anew more
seldom, and keeps no other one waiting. It is charged what it cost now or the time before, whichever is less: that Python collected its
garbage meanwhile must not stop how far it is for a minute.
"""

import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from d2dfl.progress import silent

MOST = 0.015  # of all that is done for those who look, of what the run has used until then
CHEAP_S = 0.001  # what is drawn in less waits for its own share alone
SHARE = 0.0012  # of each record; there are six at once
FORMING = 0.008  # of links that form: while devices negotiate hardly anything else is drawn
ELSEWHERE = 0.003  # where other processes do the work, one at least, by the clock on the wall; there are five
LEAST_S = 0.25  # between two drawings of a record
FIRST_S = 0.03  # a first drawing is charged at most so much: places of devices and names are found once
Load = Callable[[], object]
Build = Callable[[], Any]  # gives plain values
Clock = Callable[[], float]


class Kind(NamedTuple):
    """How a record may be drawn."""

    share: float | None = None  # of the run, for this record; None: as much as others
    first_s: float = 0.0  # that the first drawing is thought to take
    again: float = 1.0  # the share of it that the second is thought to take: a map has found its places then
    load: Load = silent  # modules that it needs: loaded once, and no part of what a drawing costs


USUAL = Kind()


@dataclass
class Part:
    """A record that is shown."""

    build: Build
    kind: Kind
    version: int
    text: str = ""  # as it was sent last
    built: int = 0  # the version of the text
    at_s: float = -LEAST_S  # when that was
    paid_s: float = 0.0  # by the clock of the run: when it may be built again
    cost_s: float = FIRST_S  # of the last drawing
    thought_s: float = 0.0  # that the next one will cost


class Stand:
    """The newest records. `put` is called by the run, the rest by the server's thread.

    `run` is the clock by which the run pays, from its beginning: seconds of the processor of this process, what it took to start
    included, where the run is in it. `own` is that of the server's thread. `share` is what each record may take.
    """

    def __init__(
        self,
        run: Clock = time.process_time,
        wall: Clock = time.monotonic,
        own: Clock = time.thread_time,
        share: float = SHARE,
    ) -> None:
        self._run, self._wall, self._own, self._share = run, wall, own, share
        self._lock = threading.Lock()
        self._parts: dict[str, Part] = {}
        self._made: dict[str, Build] = {}  # what browsers may ask for by name
        self.looked: Callable[[], None] = silent  # is told whenever somebody looks, while the run goes on
        self.watched = False  # somebody has looked: from then on the run says what has changed
        self.loaded_s = 0.0  # that the server's thread took for modules, which no drawing is charged
        self._begun_s = 0.0  # by its clock: when somebody looked for the first time
        self.ended = threading.Event()

    def put(self, name: str, build: Build, kind: Kind = USUAL) -> None:
        """There is something newer to show. It is computed when somebody looks, if ever. A name keeps the kind that it had first."""
        with self._lock:
            if name in self._parts:
                part = self._parts[name]
                part.build, part.version = build, part.version + 1
            else:
                at_s, paid_s = self._wall() - LEAST_S, self._run()
                self._parts[name] = Part(build, kind, 1, at_s=at_s, paid_s=paid_s, thought_s=kind.first_s)

    def renew(self, *names: str) -> None:
        """What these builds give has changed. Of no use while nobody has looked: the first who looks has them called anyway."""
        with self._lock:
            for name in names:
                self._parts[name].version += 1

    def settled(self, *names: str) -> None:
        """These will not change for a while: what was not yet drawn of them is due as soon as the account has it."""
        with self._lock:
            for part in (self._parts[name] for name in names if name in self._parts):
                part.paid_s = min(part.paid_s, self._run())

    def offer(self, name: str, build: Build) -> None:
        """Something that is computed only when a reader asks for it."""
        with self._lock:
            self._made[name] = build

    def withdraw(self, name: str) -> None:
        """It is offered no longer."""
        with self._lock:
            self._made.pop(name, None)

    def asked(self, name: str) -> str | None:
        """What was offered under this name, as JSON."""
        with self._lock:
            build = self._made.get(name)
        return None if build is None else _text(name, 0, build())

    def newer(self, seen: dict[str, int]) -> list[str]:
        """Records that a browser has not seen, as JSON; `seen` is brought up to date. Once the run has ended, all of them."""
        return list(self.one_by_one(seen))

    def one_by_one(self, seen: dict[str, int]) -> Iterator[str]:
        """The same, each as soon as it is drawn: who comes after a run does not wait for the last before the first is seen."""
        if not self.watched:
            self._begun_s, self.watched = self._own(), True
        if not self.ended.is_set():
            self.looked()
        with self._lock:
            waiting = [(name, part) for name, part in self._parts.items() if part.version > seen.get(name, 0)]
        for name, part in waiting:
            if part.built < part.version and (self.ended.is_set() or self._due(part)):
                self._build(name, part)
            if part.built > seen.get(name, 0):
                seen[name] = part.built
                yield part.text

    def complete(self, seen: dict[str, int]) -> bool:
        """Whether a browser has seen everything."""
        with self._lock:
            return all(part.version <= seen.get(name, 0) for name, part in self._parts.items())

    def _due(self, part: Part) -> bool:
        if self._wall() < part.at_s + LEAST_S or self._run() < part.paid_s:
            return False
        spent_s = self._own() - self._begun_s - self.loaded_s
        return part.thought_s < CHEAP_S or spent_s + part.thought_s <= MOST * self._run()

    def _build(self, name: str, part: Part) -> None:
        with self._lock:
            build, version = part.build, part.version
        before = self._own()
        part.kind.load()
        began = self._own()
        first, part.text, part.built = not part.built, _text(name, version, build()), version
        cost_s = self._own() - began
        charge_s = min(cost_s, part.cost_s)
        part.at_s, part.paid_s = self._wall(), self._run() + charge_s / (part.kind.share or self._share)
        part.thought_s = charge_s * (part.kind.again if first else 1.0)
        part.cost_s = cost_s
        self.loaded_s += began - before


def since_now(clock: Clock) -> Clock:
    """The same clock, begun at 0."""
    began = clock()
    return lambda: clock() - began


def _text(name: str, version: int, data: Any) -> str:
    content = {"name": name, "version": version, "data": data}
    return json.dumps(content, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
