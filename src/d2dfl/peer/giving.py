"""What a peer gives: transfers are planned within policy and limits, driven, and stopped when the policy no longer allows them."""

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from d2dfl.peer.handover.content import cut, digest, encoded, labels_of, size_of
from d2dfl.peer.handover.limits import DAY_S, Meter
from d2dfl.peer.handover.sender import Progress, Sender
from d2dfl.peer.store.operations import Heard, Note, Operation, Plan, Seen
from d2dfl.peer.store.records import Outgoing
from d2dfl.peer.store.store import StoreFullError
from d2dfl.peer.wire.messages import Point, Status

if TYPE_CHECKING:
    from d2dfl.peer.peer import Peer

FINAL = ("committed", "refused")
LONGEST_PAUSE_S = 3600.0
AT_ONCE = 2  # transfers of a round that one receiver has before it
LOOK_S = 10.0  # how often what the graph wants is compared with what was planned, beside whenever something has changed
THROWN_OUT = "it was thrown out of the roster"
TOO_LARGE = "a datapoint is larger than the day's limit of bytes"
ELSEWHERE = "they are on their way to another device"
NOT_TAKEN = "it takes no more now: its limits, or labels or inputs that it does not know"
SOON_S = 1.0  # while the discovery goes on


class Giving:
    """The sending half of a peer."""

    def __init__(self, peer: "Peer", now: float) -> None:
        self.peer = peer
        self.sender = Sender(peer.store, Meter(peer.limits, peer.store), peer.limits)
        # After a start nobody knows how things stand: ask at once.
        self.progress = {
            record.id: Progress("cancelling" if record.phase == "cancelling" else "asking", deadline_s=now)
            for record in peer.store.open_outgoing()
        }
        self.reasons: dict[tuple[bytes, str], str] = {}  # why less is given than the graph wants
        self.pause_s: dict[bytes, float] = {}  # who has not taken a transfer is not asked again at once
        self.refusals: dict[bytes, int] = {}
        self.fits: dict[bytes, int] = {}  # datapoints of a transfer that one may take, as far as it is known
        self.settled: set[bytes] = set()  # for whom the graph has no more, as things stand
        self._look_s = now

    def plan(self, receiver: bytes, label: str, wanted: int, today: int, now: float) -> tuple[list[Point], str]:
        """Datapoints of a label that may go to a receiver now, at most `wanted` and what the day leaves; and why no more."""
        peer = self.peer
        if peer.roster.active(receiver) is None:
            return [], THROWN_OUT
        granted = peer.policy.allowance(receiver, label, now)
        room = granted - peer.store.shown(receiver, label)
        allowed = max(0, min(wanted, room, today))
        points, cut_short = peer.store.free_points(label, receiver, allowed, peer.limits.memory_bytes)
        if any(size_of(point) > peer.limits.bytes_a_day for point in points):
            return [], TOO_LARGE
        if cut_short:
            return points, ""
        if len(points) < allowed and peer.store.lent(receiver, label):
            return points, ELSEWHERE
        return points, why_no_more(wanted, granted, room, today, len(points))

    def give(self, receiver: bytes, wanted: dict[str, int], now: float, round_: bytes = b"") -> bytes | None:
        """Make a transfer of at most this, and begin with it; None where nothing may go."""
        peer, points, left = self.peer, list[Point](), self.fits.get(receiver, self.peer.limits.transfer_points)
        today = peer.limits.points_a_day - peer.store.spent(int(now // DAY_S), "sent points")
        for label, number in sorted(wanted.items()):
            found, why = self.plan(receiver, label, min(number, left), max(0, today - len(points)), now)
            if not why and number <= left:
                self.reasons.pop((receiver, label), None)
            elif why and self.reasons.get((receiver, label)) != why:
                self.reasons[receiver, label] = why
                if why != ELSEWHERE:
                    peer.store.apply([Note("not-given", receiver, points=number, text=f"{label}: {why}")], now)
            points += found
            left = 0 if sum(len(one.content) for one in points) > peer.limits.memory_bytes / 2 else left - len(found)
        if not points:
            return None
        record = self._planned(receiver, points, round_, now)
        self.progress[record.id] = Progress("new", deadline_s=now)
        self.event(record, "begin", now)
        return record.id

    def _planned(self, receiver: bytes, points: list[Point], round_: bytes, now: float) -> Outgoing:
        peer, pieces = self.peer, cut(points, min(self.peer.limits.piece_bytes, self.peer.limits.bytes_a_day))
        contents, labels = encoded(pieces), labels_of(points)
        transfer = peer.new_id(receiver + digest(b"", contents))
        salt = peer.secret(b"salt" + transfer)
        whole = digest(salt, contents)
        numbers = tuple(tuple(point.number for point in piece) for piece in pieces)
        size = sum(map(len, contents))
        peer.store.apply(
            [
                Plan(
                    id=transfer,
                    receiver=receiver,
                    keep=peer.keep,
                    round=round_,
                    pieces=numbers,
                    size=size,
                    salt=salt,
                    digest=whole,
                    labels=labels,
                    day=int(now // DAY_S),
                ),
                Note("granted", receiver, transfer, len(points), whole, text=f"policy {peer.policy.number}"),
            ],
            now,
        )
        record = peer.store.outgoing(transfer)
        if record is None:
            raise RuntimeError("a transfer that was just planned is not there")
        return record

    def allowed(self, record: Outgoing, now: float) -> bool:
        """Whether the policy still lets a transfer's receiver have all of it."""
        policy, store = self.peer.policy, self.peer.store
        return all(
            store.shown(record.receiver, label) <= policy.allowance(record.receiver, label, now)
            for label, _ in record.labels
        )

    def event(self, record: Outgoing, event: str, now: float, next_: int = 0, more: tuple[Operation, ...] = ()) -> None:
        """One transition of a transfer, looked at by the policy first; stored, then sent."""
        before = self.progress.get(record.id)
        if before is None:
            return
        if self.peer.roster.active(record.receiver) is None:
            event = "expelled"
        elif event not in (*FINAL, "revoked") and record.phase == "open" and not self.allowed(record, now):
            event = "revoked"
        outcome = self.sender.step(record, before, event, now, self.peer.head, next_)
        if outcome.operations:
            self.peer.store.apply([*more, *outcome.operations], now)
        if outcome.progress.over:
            del self.progress[record.id]
            if (
                before.state != "cancelling" or outcome.progress.state == "done"
            ):  # what was taken back tells nothing of the next
                self._ended(record, event, outcome.progress.state == "done", now)
        else:
            self.progress[record.id] = outcome.progress
        for message in outcome.messages:
            self.peer.send(record.receiver, message)
        if outcome.progress.over:
            self.settled.discard(record.receiver)
            self._look_s = now  # another may begin

    def _ended(self, record: Outgoing, event: str, done: bool, now: float) -> None:
        """What the end of a transfer says of the next: one that was refused unseen may have been too large for the limits there."""
        receiver, most = record.receiver, self.peer.limits.transfer_points
        if done:
            self.fits[receiver] = min(most, 2 * self.fits.get(receiver, most))
            self.refusals.pop(receiver, None)
            return
        if event == "refused":
            self.reasons.update({(receiver, label): NOT_TAKEN for label, _ in record.labels})
            self.fits[receiver] = max(1, record.points // 4)
            if record.points > 1 and not record.exposed:
                return
        times = self.refusals[receiver] = self.refusals.get(receiver, 0) + 1
        pause = min(self.peer.limits.longest_timeout_s * 2 ** min(times - 1, 16), LONGEST_PAUSE_S)
        self.pause_s[receiver] = now + pause

    def on_status(self, sender: bytes, body: Status, seen: Seen, now: float) -> None:
        """What a receiver says of a transfer."""
        record = self.peer.store.outgoing(body.transfer)
        if record is None or record.receiver != sender:
            self.peer.refuse("somebody else's transfer", now)
            return
        if record.id not in self.progress:  # it is over
            return
        event = "complete" if body.state == "receiving" and body.next >= record.pieces else body.state
        heard = Heard(sender, body.head.lines, body.head.hash)
        self.event(record, event, now, min(body.next, record.pieces), (seen, heard))

    def tick(self, now: float) -> None:
        """Time-outs, limits that let go, and what the graph wants."""
        for transfer, progress in list(self.progress.items()):
            if progress.timer_s > now:
                continue
            record = self.peer.store.outgoing(transfer)
            if record is None:
                raise RuntimeError("a transfer has left the store")
            try:
                self.event(record, "timeout" if progress.deadline_s <= now else "wake", now)
            except StoreFullError:  # the others go on
                self.progress[transfer] = replace(progress, deadline_s=now + self.peer.limits.timeout_s)
        if now >= self._look_s:
            waits = self.peer.discovery is not None and self.peer.discovery.links() is None
            self._look_s = now + (SOON_S if waits else LOOK_S)
            self._follow_graph(now)

    def _follow_graph(self, now: float) -> None:
        links = self.peer.discovery.links() if self.peer.discovery is not None else None
        if self.peer.discovery is None or links is None:
            return
        round_ = self.peer.discovery.round
        for receiver, amounts in links.items():
            more = self.pause_s.get(receiver, now) <= now
            while more and len(self._to(receiver)) < AT_ONCE:
                planned = {label: self.peer.store.planned(round_, receiver, label) for label in amounts}
                wanted = {label: n - planned[label] for label, n in amounts.items() if n > planned[label]}
                more = bool(wanted) and self.give(receiver, wanted, now, round_) is not None
            waits = any(self.reasons.get((receiver, label)) == ELSEWHERE for label in amounts)
            if not more and not waits and receiver not in self.settled:
                self.settled.add(receiver)
                if not self._to(receiver):
                    self.peer.greet(receiver)

    def look_again(self, now: float) -> None:
        """The policy or the roster has changed: what is no longer allowed is stopped, what now is begins."""
        self.reasons.clear()
        self.settled.clear()
        for transfer in list(self.progress):
            record = self.peer.store.outgoing(transfer)
            if record is None:
                continue
            if self.peer.roster.active(record.receiver) is None or not self.allowed(record, now):
                self.event(record, "revoked", now)
        self._look_s = now

    def back(self, receiver: bytes, now: float) -> None:
        """Somebody is heard again after a silence: ask at once."""
        for transfer in self._to(receiver) & self.progress.keys():
            self.progress[transfer] = replace(self.progress[transfer], deadline_s=now)

    def _to(self, receiver: bytes) -> set[bytes]:
        return {record.id for record in self.peer.store.open_outgoing() if record.receiver == receiver}

    def nothing_left(self, receiver: bytes) -> bool:
        """Whether this round has nothing more for a receiver, as things stand."""
        links = None if self.peer.discovery is None else self.peer.discovery.links()
        if links is None or self._to(receiver):
            return False
        return receiver in self.settled or receiver not in links

    @property
    def idle(self) -> bool:
        """Likewise for everybody."""
        links = None if self.peer.discovery is None else self.peer.discovery.links()
        return not self.progress and links is not None and self.settled.issuperset(links)

    def timer(self) -> float:
        times = [progress.timer_s for progress in self.progress.values()]
        if self.peer.discovery is not None:
            times.append(self._look_s)
        return min(times, default=math.inf)


def why_no_more(wanted: int, granted: int, room: int, today: int, found: int) -> str:
    """Why a receiver gets no more of a label than was found, of what a graph wants; the reason that lasts longest."""
    if found >= wanted:
        return ""
    if granted == 0:
        return "the policy does not grant it"
    if found < min(wanted, room, today):
        return "there are no more"
    return "the grant's number is used up" if room <= min(wanted, today) else "the day's limit is reached"
