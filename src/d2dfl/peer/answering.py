"""What a peer does with each kind of message."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from d2dfl.errors import UserError
from d2dfl.peer.handover.limits import DAY_S
from d2dfl.peer.probing import Link
from d2dfl.peer.store.operations import Heard, Operation, Refuse, Seen, Spend
from d2dfl.peer.wire import messages as say
from d2dfl.peer.wire.frames import Frame

if TYPE_CHECKING:
    from d2dfl.peer.peer import Peer

DOORS_A_DAY = 100_000  # refused transfers, forgotten datapoints and heads that one member may make us remember


class Answering:
    """The receiving half of a peer."""

    def __init__(self, peer: "Peer") -> None:
        self.peer = peer
        self._handlers: dict[type[say.Body], Callable[..., None]] = {
            say.Hello: self._on_hello,
            say.RosterNews: self._on_roster,
            say.Status: peer.giving.on_status,
            say.Forget: peer.forgetting.on_forget,
            say.Forgotten: peer.forgetting.on_forgotten,
            say.Probe: self._on_probe,
            say.Echo: self._on_echo,
            say.Discovery: self._on_discovery,
        }

    def handle(self, frame: Frame, body: say.Body, now: float) -> None:
        seen = Seen(frame.sender, frame.run, frame.counter)
        self._handlers.get(type(body), self._on_transfer)(frame.sender, body, seen, now)

    def door(self, sender: bytes, number: int, now: float) -> Spend | None:
        """What a member's wish to be remembered costs it; None where it has used up its day, and is not heard."""
        day, what = int(now // DAY_S), f"doors {sender.hex()}"
        if self.peer.store.spent(day, what) + number > DOORS_A_DAY:
            self.peer.refuse("too many in a day", now)
            return None
        return Spend(day, what, number)

    def _on_hello(self, sender: bytes, body: say.Hello, seen: Seen, now: float) -> None:
        peer = self.peer
        known = peer.greets_only or peer.store.knows_head(sender, body.head.lines, body.head.hash)
        if not known and (door := self.door(sender, 1, now)):
            peer.store.apply([seen, door, Heard(sender, body.head.lines, body.head.hash)], now)
        if body.roster < peer.roster.number:
            peer.send(sender, say.RosterNews(peer.roster_document))
        if peer.discovery is not None and body.finished and body.round == peer.discovery.round:
            peer.finished.add(sender)

    def _on_roster(self, sender: bytes, body: say.RosterNews, seen: Seen, now: float) -> None:
        try:
            self.peer.set_roster(body.document, now)
        except UserError:
            self.peer.refuse("foreign roster", now)

    def _on_transfer(
        self, sender: bytes, body: say.Offer | say.Piece | say.Commit | say.Ask | say.Cancel, seen: Seen, now: float
    ) -> None:
        peer = self.peer
        if body.transfer[: len(sender)] != sender:
            peer.refuse("somebody else's transfer", now)
            return
        record = peer.store.incoming(body.transfer, sender)
        operations: list[Operation] = list(peer.receiver.step(record, body, now))
        if any(isinstance(operation, Refuse) for operation in operations):
            door = self.door(sender, 1, now)
            if door is None:
                return
            operations.append(door)
        if operations:
            head = [Heard(sender, body.head.lines, body.head.hash)] if isinstance(body, say.Offer | say.Commit) else []
            peer.store.apply([seen, *head, *operations], now)
            record = peer.store.incoming(body.transfer, sender)
        peer.send(sender, say.Status(record.id, record.phase, record.next, peer.head))

    def _on_probe(self, sender: bytes, body: say.Probe, seen: Seen, now: float) -> None:
        link = self.peer.links.setdefault(sender, Link())
        anew = body.number <= link.last or not link.heard
        link.hear(body.number, body.first)
        link.ahead_s = body.sent_s - now
        self.peer.send(sender, say.Echo(body.number, body.sent_s))
        if anew:  # it has just started, and wants to know what time it is here
            self.peer.probe_one(sender, now)

    def _on_echo(self, sender: bytes, body: say.Echo, seen: Seen, now: float) -> None:
        link = self.peer.links.setdefault(sender, Link())
        if body.number == link.number and 0 <= now - body.sent_s < 3600:
            link.round_trips_s.append(now - body.sent_s)

    def _on_discovery(self, sender: bytes, body: say.Discovery, seen: Seen, now: float) -> None:
        if self.peer.discovery is None:
            return
        try:
            self.peer.discovery.receive(sender, body.content, now)
        except say.WireError as error:
            self.peer.refuse(f"discovery: {error}", now)
        self.peer.note_graph(now)
