"""The receiving side of a transfer: a message in, operations out; the answer is always a Status, made after they are stored."""

from collections.abc import Iterator
from typing import Protocol

from d2dfl.peer.handover.content import is_whole
from d2dfl.peer.handover.limits import DAY_S, Limits
from d2dfl.peer.handover.table import RECEIVER
from d2dfl.peer.store.operations import Adopt, Keep, Note, Open, Operation, Refuse, Spend
from d2dfl.peer.store.records import Incoming
from d2dfl.peer.wire.messages import MOST_POINTS, Ask, Cancel, Commit, Offer, Piece, WireError, decode_points

WHY = {
    "bad": "over a limit of this device, or with labels that it does not know",
    "broken": "not what was offered, or inputs of another form",
    "cancel": "its sender took it back",
}

ToReceiver = Offer | Piece | Commit | Ask | Cancel


class IncomingReader(Protocol):
    """What the machine may look at."""

    def pieces(self, transfer: bytes) -> Iterator[bytes]: ...
    def receiving(self, sender: bytes) -> list[bytes]: ...
    def form(self) -> str | None: ...
    def spent(self, day: int, what: str) -> int: ...


class Receiver:
    """The machine."""

    def __init__(self, reader: IncomingReader, limits: Limits, labels: frozenset[str] = frozenset()) -> None:
        self.reader, self.limits, self.labels = reader, limits, labels  # labels that are known here; none: all

    def step(self, record: Incoming, message: ToReceiver, now: float) -> list[Operation]:
        """One transition: what is to be stored before the Status is told."""
        event = self._event(record, message, now)
        _, actions = RECEIVER[record.phase, event]
        operations: list[Operation] = []
        for action in actions:
            if action != "tell":
                operations += getattr(self, f"_{action}")(record, message, now)
        if "refuse" in actions:
            operations.append(
                Note("not-taken", record.sender, record.id, record.points, record.digest, text=WHY[event])
            )
        return operations

    def _event(self, record: Incoming, message: ToReceiver, now: float) -> str:
        if isinstance(message, Offer):
            return "good" if record.phase != "unknown" or self._welcome(record, message, now) else "bad"
        if isinstance(message, Piece):
            return self._piece_event(record, message, now)
        if isinstance(message, Commit):
            if record.phase != "receiving" or record.next < record.pieces:
                return "partial"
            if self._spent(now, "received points") + record.points > self.limits.points_a_day:
                return "bad"
            return "whole" if is_whole(record, self.reader.pieces(record.id), self.reader.form()) else "broken"
        return "ask" if isinstance(message, Ask) else "cancel"

    def _piece_event(self, record: Incoming, message: Piece, now: float) -> str:
        if record.phase != "receiving" or message.number != record.next or record.next >= record.pieces:
            return "other"
        if len(message.content) > record.left:
            return "broken"
        if self._spent(now, "received bytes") + len(message.content) > self.limits.bytes_a_day:
            return "bad"
        try:
            points = decode_points(message.content)
        except WireError:
            return "broken"
        form = self._form(record) or points[0].form
        return "next" if all(point.fits and point.form == form for point in points) else "broken"

    def _form(self, record: Incoming) -> str | None:
        """What datapoints here look like; while there are none, those of the transfer's first piece."""
        first = next(self.reader.pieces(record.id), None) if record.next else None
        return self.reader.form() or (None if first is None else decode_points(first)[0].form)

    def _spent(self, now: float, what: str) -> int:
        return self.reader.spent(int(now // DAY_S), what)

    def _welcome(self, record: Incoming, offer: Offer, now: float) -> bool:
        """Whether the limits of a day, and of what one sender may have open, leave room.

        An offer reserves nothing: what comes is counted when it comes, so nobody uses up a day with words.
        """
        points = sum(number for _, number in offer.labels)
        names = [name for name, _ in offer.labels]
        return (
            0 < points <= MOST_POINTS
            and names == sorted(set(names))
            and (not self.labels or self.labels.issuperset(names))
            and offer.pieces <= points
            and offer.size <= 2 * self.limits.memory_bytes
            and len(self.reader.receiving(record.sender)) < self.limits.open_from_one
            and self._spent(now, "received points") + points <= self.limits.points_a_day
            and self._spent(now, "received bytes") + offer.size <= self.limits.bytes_a_day
        )

    def _open(self, record: Incoming, offer: Offer, now: float) -> list[Operation]:
        labels = tuple((name, number) for name, number in offer.labels)
        points = sum(number for _, number in labels)
        return [
            Open(record.id, record.sender, offer.pieces, offer.size, offer.salt, offer.digest, labels),
            Note("offered", record.sender, record.id, points, offer.digest),
        ]

    def _keep(self, record: Incoming, piece: Piece, now: float) -> list[Operation]:
        return [
            Keep(record.id, piece.number, piece.content),
            Spend(int(now // DAY_S), "received bytes", len(piece.content)),
        ]

    def _adopt(self, record: Incoming, message: Commit, now: float) -> list[Operation]:
        return [
            Adopt(record.id, record.sender),
            Spend(int(now // DAY_S), "received points", record.points),
            Note("received", record.sender, record.id, record.points, record.digest),
        ]

    def _refuse(self, record: Incoming, message: ToReceiver, now: float) -> list[Operation]:
        return [Refuse(record.id, record.sender)]
