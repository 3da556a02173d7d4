"""The sending side of a transfer: an event and the time in; operations, messages and a timer out."""

import math
from dataclasses import dataclass, field, replace
from typing import Protocol

from d2dfl.peer.handover.limits import Limits, Meter
from d2dfl.peer.handover.table import SENDER
from d2dfl.peer.store.operations import Expose, Note, Operation, Release, Stop, TakeBack
from d2dfl.peer.store.records import ENDED, Outgoing
from d2dfl.peer.wire.messages import Ask, Body, Cancel, Commit, Head, Offer, Piece

NEVER = math.inf


class OutgoingReader(Protocol):
    """What the machine may look at."""

    def piece(self, transfer: bytes, number: int) -> bytes: ...


@dataclass(frozen=True)
class Progress:
    """Where a transfer stands as far as this process knows; lost with it."""

    state: str = "asking"
    next: int = 0  # the piece that the receiver waits for
    sent: int = 0  # pieces before this one have left
    deadline_s: float = 0.0  # then time is out
    wake_s: float = NEVER  # then a limit lets it go on
    waits: int = 0  # how often in a row time was out

    @property
    def over(self) -> bool:
        return self.state in ENDED

    @property
    def timer_s(self) -> float:
        return NEVER if self.over else min(self.deadline_s, self.wake_s)


@dataclass
class Outcome:
    """What an event led to; nothing of it has happened before the operations are stored."""

    progress: Progress
    operations: list[Operation] = field(default_factory=list)
    messages: list[Body] = field(default_factory=list)


class Sender:
    """The machine; `head` is the last line of the audit, which offers and commits carry."""

    def __init__(self, reader: OutgoingReader, meter: Meter, limits: Limits) -> None:
        self.reader, self.meter, self.limits = reader, meter, limits

    def step(self, record: Outgoing, before: Progress, event: str, now: float, head: Head, next_: int = 0) -> Outcome:
        """One transition. `next_`: the piece that the receiver waits for, where its Status says so."""
        state, actions = SENDER.get((before.state, event), (before.state, ()))
        moved = next_ > before.next
        waits = before.waits + 1 if event == "timeout" else 0 if moved or state != before.state else before.waits
        outcome = Outcome(replace(before, state=state, next=max(before.next, next_), waits=waits, wake_s=NEVER))
        if "rewind" in actions:
            outcome.progress = replace(outcome.progress, next=next_, sent=next_)
        for action in actions:
            if action != "rewind":
                getattr(self, f"_{action}")(record, outcome, now, head)
        if actions or moved:
            patience = min(self.limits.timeout_s * 2 ** min(waits, 16), self.limits.longest_timeout_s)
            after, found = outcome.progress, now
            if after.wake_s != NEVER and after.sent == after.next:  # nothing is on its way: a limit is waited for
                found = after.wake_s
            outcome.progress = replace(after, deadline_s=found + patience)
        elif before.wake_s != NEVER:
            outcome.progress = replace(outcome.progress, wake_s=before.wake_s)
        return outcome

    def _offer(self, record: Outgoing, outcome: Outcome, now: float, head: Head) -> None:
        labels = list(record.labels)
        outcome.messages.append(Offer(record.id, labels, record.pieces, record.size, record.salt, record.digest, head))
        outcome.progress = replace(outcome.progress, next=0, sent=0)

    def _send(self, record: Outgoing, outcome: Outcome, now: float, head: Head) -> None:
        sizes: list[int] = []
        number = max(outcome.progress.sent, outcome.progress.next)
        wake = NEVER
        while number < min(record.pieces, outcome.progress.next + self.limits.window):
            content = self.reader.piece(record.id, number)
            later = self.meter.take(sizes, len(content), now)
            if later:
                wake = later
                break
            outcome.messages.append(Piece(record.id, number, content))
            sizes.append(len(content))
            number += 1
        if sizes and not record.exposed:
            outcome.operations.append(Expose(record.id))
        outcome.operations += self.meter.bill(sizes, now)
        outcome.progress = replace(outcome.progress, sent=number, wake_s=wake)

    def _commit(self, record: Outgoing, outcome: Outcome, now: float, head: Head) -> None:
        outcome.messages.append(Commit(record.id, head))

    def _ask(self, record: Outgoing, outcome: Outcome, now: float, head: Head) -> None:
        outcome.messages.append(Ask(record.id))

    def _cancel(self, record: Outgoing, outcome: Outcome, now: float, head: Head) -> None:
        if record.phase == "open":
            outcome.operations += [Stop(record.id), self._note("cancelling", record)]
        outcome.messages.append(Cancel(record.id))

    def _release(self, record: Outgoing, outcome: Outcome, now: float, head: Head) -> None:
        outcome.operations += [Release(record.id), self._note("sent", record)]

    def _take_back(self, record: Outgoing, outcome: Outcome, now: float, head: Head) -> None:
        outcome.operations += [TakeBack(record.id), self._note("returned", record)]

    @staticmethod
    def _note(kind: str, record: Outgoing) -> Note:
        return Note(kind, record.receiver, record.id, record.points, record.digest)
