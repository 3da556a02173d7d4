"""A fleet on a virtual clock. Frames are lost, late, doubled, replayed and changed; peers crash between store operations; disks are slow or full."""

import hashlib
import heapq
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from d2dfl.errors import UserError
from d2dfl.peer.discovery import FixedGraph
from d2dfl.peer.handover.limits import Limits
from d2dfl.peer.identity.boxes import KeyBox
from d2dfl.peer.identity.keys import Key, Signer, Verify, fingerprint, verify
from d2dfl.peer.identity.roster import Member, Roster, open_roster
from d2dfl.peer.peer import Peer
from d2dfl.peer.simulator.devices import Device, OpenBox, QuickKey, content_of, quick_verify
from d2dfl.peer.simulator.faults import Faults
from d2dfl.peer.simulator.invariants import Checks
from d2dfl.peer.simulator.schedule import LABELS, Schedule
from d2dfl.peer.store.operations import Operation
from d2dfl.peer.store.schema import NEW_POINT
from d2dfl.peer.store.store import Store, StoreFullError
from d2dfl.rng import stream

START_S = 1_700_000_000.0
SETTLE_S = 4000.0  # after the last fault everything must have settled
MOST_EVENTS = 60_000


class CrashError(Exception):
    """The power is gone."""


class Fleet:
    """The world."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule, self.now = schedule, START_S
        self.random = stream(schedule.seed, "peer-fleet")
        self.events: list[tuple[float, int, Callable[[], None]]] = []
        self.order = self.handled = self.crashes = self.frames = self.waited = 0
        self.blocked: set[tuple[int, int]] = set()
        self.faulty = True
        self.check: Verify = verify if schedule.real_keys else quick_verify
        self.owner = self._key(99)
        self.devices = [self._device(number) for number in range(schedule.peers)]
        members = tuple(
            Member(f"p{d.number}", d.signer.public, d.box.public, f"127.0.0.1:{7000 + d.number}") for d in self.devices
        )
        self.roster = Roster(1, self.owner.public, members)
        self.document = self.roster.sealed(self.owner)
        self.by_print = {device.own: device for device in self.devices}
        self.limits = Limits(
            bytes_a_second=schedule.bytes_a_second,
            bytes_a_day=schedule.bytes_a_day,
            piece_bytes=170 * schedule.piece_points,
            window=schedule.window,
            timeout_s=1.0,
            longest_timeout_s=8.0,
            transfer_points=6,
            hello_s=30.0,
        )
        self.graph = self._graph()
        self.expelled: Device | None = None
        self.checks = Checks(self)
        for device in self.devices:
            self._fill(device)
            self.checks.new_policy(device, {other.own: 3 for other in self.devices if self.random.random() < 0.9})
            self._start(device)
        Faults(self).plan()

    def _graph(self) -> dict[bytes, dict[bytes, dict[str, int]]]:
        """Giver → taker → how many of which label, for those who follow a graph."""
        return {
            giver.own: {
                taker.own: {label: int(self.random.integers(1, 4)) for label in LABELS}
                for taker in self.devices
                if taker is not giver and self.random.random() < self.schedule.graph
            }
            for giver in self.devices
        }

    def _key(self, number: int) -> Signer:
        return Key.new() if self.schedule.real_keys else QuickKey(hashlib.sha256(b"%d" % number).digest())

    def _device(self, number: int) -> Device:
        signer = self._key(number)
        store = Store(":memory:", fingerprint(signer.public))
        store.db.execute(
            "UPDATE facts SET value = ? WHERE name = 'secret'", (bytes(32),)
        )  # the same seed, the same bytes
        box = KeyBox(signer) if isinstance(signer, Key) else OpenBox(signer.public)
        device = Device(number, signer, box, store, [])
        store.watch = lambda operation: self._before(device, operation)
        return device

    def _fill(self, device: Device) -> None:
        for number in range(self.schedule.points):
            label = LABELS[number % len(LABELS)]
            content = content_of(device.number, number)
            row = (device.own, number, label, f"|u1:{len(content)}", content)
            device.store.db.execute(NEW_POINT, row)
        device.store.db.execute("INSERT INTO facts VALUES ('points', ?)", (self.schedule.points,))

    # What goes wrong.

    def calm(self) -> None:
        self.faulty = False
        self.blocked.clear()
        self.limits = replace(self.limits, bytes_a_day=1 << 40)
        for device in self.devices:
            device.full_until_s = device.slow_s = 0.0
            if self.schedule.bytes_a_day < 1 << 40:  # its owner raises the limit and starts it anew
                self._start(device)

    def _before(self, device: Device, operation: Operation | None) -> None:
        """Told by a store before each operation, and before a transaction ends."""
        if device.full_until_s > self.now:
            raise StoreFullError
        if self.faulty and device.peer is not None and self.random.random() < self.schedule.crash:
            raise CrashError

    # How things run.

    def at(self, delay_s: float, what: Callable[[], Any]) -> None:
        self.order += 1
        heapq.heappush(self.events, (self.now + delay_s, self.order, what))

    def _start(self, device: Device) -> None:
        """Power is back."""
        device.waiting.clear()
        device.busy_until_s = 0.0
        try:
            peer = Peer(
                device.signer, device.box, device.store, *self._known_roster(device), self.now,
                owner=self.owner.public, limits=self.limits, keep=self.schedule.keep, check=self.check,
            )  # fmt: skip
            device.peer = peer
            if self.schedule.graph:
                peer.follow(FixedGraph(b"round", self.graph[device.own], frozenset()))
            peer.set_policy(device.policies[-1], self.now)
        except (StoreFullError, CrashError):
            device.peer = None
            self.at(1.0, lambda: self._start(device))
            return
        self._after(device)

    def _known_roster(self, device: Device) -> tuple[Roster, bytes]:
        """As the store knows it: it may have heard of a newer one."""
        document = device.store.fact("roster") or self.document
        return open_roster(document, self.owner.public, self.check), document

    def let(self, device: Device, action: Callable[[Peer], Any]) -> None:
        """Let a peer do something; while its disk still writes, that waits."""
        if device.peer is None:
            return
        if device.waiting or device.busy_until_s > self.now:
            self.waited += 1
            device.waiting.append(action)
            if len(device.waiting) == 1:
                self._wait(device, device.peer)
        else:
            self._do(device, device.peer, action)

    def _wait(self, device: Device, peer: Peer) -> None:
        self.at(max(device.busy_until_s - self.now, 0.0), lambda: self._next(device, peer))

    def _next(self, device: Device, peer: Peer) -> None:
        if device.peer is not peer:  # it has crashed meanwhile, and what waited is lost with it
            return
        self._do(device, peer, device.waiting.popleft())
        if device.waiting and device.peer is peer:
            self._wait(device, peer)

    def _do(self, device: Device, peer: Peer, action: Callable[[Peer], Any]) -> None:
        """Look at what it does, and send what it puts out; it may crash on the way."""
        before = device.store.changes
        try:
            action(peer)
        except CrashError:
            self.crashes += 1
            device.peer = None
            self.at(float(self.random.random()) * 5.0, lambda: self._start(device))
        except (StoreFullError, UserError):
            pass
        if device.slow_s and device.store.changes != before:
            device.busy_until_s = self.now + self.random.random() * device.slow_s
        self._after(device)

    def _after(self, device: Device) -> None:
        self.checks.after(device)
        if device.peer is None:
            return
        for receiver, frame in device.peer.take():
            self.frames += 1
            self.checks.frame(device, receiver, frame)
            if self.faulty and self.schedule.replays:
                device.sent.append((receiver, frame))
            self._deliver(device, receiver, frame)
        self._timer(device, device.peer)

    def _timer(self, device: Device, peer: Peer) -> None:
        due = peer.timer()
        if due < math.inf:
            self.at(max(due - self.now, 1e-3), lambda: self._tick(device, peer))

    def _tick(self, device: Device, peer: Peer) -> None:
        if device.peer is peer and peer.timer() <= self.now:
            self.let(device, lambda running: running.tick(self.now))

    def _deliver(self, device: Device, receiver: bytes, frame: bytes) -> None:
        target, draw = self.by_print[receiver], self.random.random
        written = max(device.busy_until_s - self.now, 0.0)  # nothing leaves before
        if not self.faulty:
            self.at(written + 0.01, lambda: self._arrive(target, frame))
            return
        if (device.number, target.number) in self.blocked or draw() < self.schedule.loss:
            return
        if draw() < self.schedule.mutations:
            place = int(draw() * len(frame))
            frame = frame[:place] + bytes([frame[place] ^ (1 << int(draw() * 8))]) + frame[place + 1 :]
        for _ in range(2 if draw() < self.schedule.duplicates else 1):
            self.at(written + 0.01 + draw() * self.schedule.delay_s, lambda: self._arrive(target, frame))
        if device.sent and draw() < self.schedule.replays:
            old_target, old = device.sent[int(draw() * len(device.sent))]
            self.at(draw() * 10.0, lambda: self._arrive(self.by_print[old_target], old))

    def _arrive(self, target: Device, frame: bytes) -> None:
        self.let(target, lambda peer: peer.receive(frame, self.now))

    def quiet(self) -> bool:
        """No transfer is open, no order waits."""
        return (
            not self.faulty
            and all(
                device.peer is not None and not device.peer.giving.progress and not device.peer.forgetting.waiting
                for device in self.members()
            )
            and (self.expelled is None or all(d.peer is not None and d.peer.roster.number > 1 for d in self.members()))
        )

    def members(self) -> list[Device]:
        """All who were not thrown out."""
        return [device for device in self.devices if device is not self.expelled]

    def run(self) -> "Fleet":
        """Until all is quiet; raises an AssertionError with the line that runs it again."""
        end = START_S + self.schedule.faults_end_s + SETTLE_S
        try:
            while not self.quiet():
                self.now, _, event = heapq.heappop(self.events)
                self.handled += 1
                if self.now > end or self.handled > MOST_EVENTS:
                    raise AssertionError("it does not settle")
                event()
            self.checks.at_rest()
        except AssertionError as error:
            raise AssertionError(f"{error}; again: {self.schedule.line}") from error
        return self
