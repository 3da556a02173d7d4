"""A peer without I/O: frames, files' contents and the time go in; frames and the time of the next timer come out.

    peer.receive(frame, now); peer.tick(now)      # whenever something comes, and when the timer says so
    for receiver, frame in peer.take(): …         # what is to be sent
    peer.timer()                                  # when to call tick again

Its store is written in one transaction for every event, and only then are frames let out. There is no socket, clock, thread
or random source in here.
"""

import hashlib
import math
from collections.abc import Sequence

from d2dfl.errors import UserError
from d2dfl.peer.answering import Answering
from d2dfl.peer.discovery import DiscoveryProtocol, graph_document, settled
from d2dfl.peer.forgetting import Forgetting
from d2dfl.peer.giving import Giving
from d2dfl.peer.handover.limits import Limits
from d2dfl.peer.handover.receiver import Receiver
from d2dfl.peer.identity.boxes import Box
from d2dfl.peer.identity.keys import Signer, Verify, fingerprint, verify
from d2dfl.peer.identity.roster import Roster, open_roster
from d2dfl.peer.policy import NOTHING, Policy, check_succession, open_policy
from d2dfl.peer.probing import Link
from d2dfl.peer.refusals import Refusals
from d2dfl.peer.store.operations import Fact, Note, Refuse, Seen, Spend
from d2dfl.peer.store.records import Keeping
from d2dfl.peer.store.store import Store, StoreFullError
from d2dfl.peer.wire import messages as say
from d2dfl.peer.wire.frames import PLAIN, Frame, Writer, open_frame, read_frame

GREETINGS = (say.Hello, say.Probe, say.Echo)


class Peer:
    """One device."""

    def __init__(
        self,
        signer: Signer,
        box: Box,
        store: Store,
        roster: Roster,
        roster_document: bytes,
        now: float,
        *,
        owner: bytes = b"",
        limits: Limits | None = None,
        keep: Keeping = "move",
        labels: tuple[str, ...] = (),
        check: Verify = verify,
        greets_only: bool = False,
    ) -> None:
        """`greets_only`: nothing moves; hellos and probes are said and heard, and only the count of runs is written down."""
        self.own, self.box = fingerprint(signer.public), box
        self.store, self.roster, self.roster_document = store, roster, roster_document
        self.owner, self.limits, self.check = owner, limits or Limits(), check
        self.keep, self.labels = keep, labels
        self.policy: Policy = NOTHING
        self.policies_read = 0
        self.discovery: DiscoveryProtocol | None = None
        self.links: dict[bytes, Link] = {}
        self.finished: set[bytes] = set()  # who has said that it has nothing more for us in this round
        self.heard_s: dict[bytes, float] = {}
        self.refused = Refusals()
        self.greets_only = greets_only
        self._outbox: list[tuple[bytes, bytes]] = []
        self._seen: dict[bytes, tuple[int, int]] = {}
        self._newest = 0  # policy that was obeyed, also while it could not be stored
        self._hello_s = now
        self.numbers = 0  # that were given in this run to attempts to find a graph
        self.run = int(store.fact("run")) + 1
        store.apply([Fact("run", self.run), *([] if greets_only else [Note("started", text=f"run {self.run}")])], now)
        self._writer = Writer(signer, box, self.run)
        self.receiver = Receiver(store, self.limits, frozenset(labels))
        self.giving = Giving(self, now)
        self.forgetting = Forgetting(self, now)
        self.answering = Answering(self)
        if greets_only:
            self.giving.progress.clear()
            self.forgetting.due_s.clear()

    # What goes in.

    def receive(self, data: bytes, now: float) -> None:
        """A frame from the network: whatever is wrong with it is counted, nothing is raised."""
        try:
            frame = read_frame(data)
            if frame.receiver != self.own:
                raise say.WireError("not for this peer")
            body = self._opened(frame)
        except say.WireError as error:
            self.refuse(str(error), now)
            return
        if self.greets_only and not isinstance(body, GREETINGS):
            return  # as if it were lost
        before = self.last_seen(frame.sender)
        if frame.place <= before:
            self.refuse("replayed or late", now)
            return
        if frame.run > before[0] and self.discovery is not None:
            self.discovery.restarted(frame.sender, now)
        self._seen[frame.sender] = frame.place
        fresh = now - self.heard_s.get(frame.sender, -math.inf) > 2 * self.limits.hello_s
        self.heard_s[frame.sender] = now
        try:
            self.answering.handle(frame, body, now)
            if fresh:
                self.greet(frame.sender)
                self.giving.back(frame.sender, now)
                self.forgetting.back(frame.sender, now)
        except StoreFullError:
            self.refuse("the disk is full", now)  # as if it had not come: its sender will ask

    def tick(self, now: float) -> None:
        """Time has passed."""
        try:
            self.giving.tick(now)
            self.forgetting.tick(now)
            if self.discovery is not None:
                self.discovery.tick(now)
                self.note_graph(now)
            if now >= self._hello_s:
                self._hello_s = now + self.limits.hello_s
                for member in self.roster.others(self.own):
                    if member.fingerprint not in self.heard_s:  # it may not know us yet
                        self.send(member.fingerprint, say.RosterNews(self.roster_document))
                    self.greet(member.fingerprint)
            if now >= self.refused.timer() and not self.greets_only:
                self.refused.write(self.store, now)
        except StoreFullError:
            self._hello_s = now + self.limits.hello_s
            self.refused.due_s = now + self.limits.timeout_s

    def set_policy(self, data: bytes, now: float) -> str | None:
        """Obey a newer policy from now on. One that is older or not whole is refused, says why, and nothing is shared until a valid one comes."""
        try:
            policy, print_ = open_policy(data, self.owner, self.check), hashlib.sha256(data).digest()
            newest = max(int(self.store.fact("policy") or 0), self._newest)
            known = self.store.fact("policy_digest") if newest == self.store.fact("policy") else None
            check_succession(policy, data, newest, known)
        except UserError as error:
            self.policy, self.policies_read = NOTHING, self.policies_read + 1
            self.store.apply([Note("policy-refused", text=str(error)[:200])], now)
            self.giving.look_again(now)
            return str(error)
        changed, self.policy = policy != self.policy, policy  # at once: a full disk must not delay a revocation
        self._newest, self.policies_read = policy.number, self.policies_read + 1
        if policy.number != self.store.fact("policy"):
            facts = [Fact("policy", policy.number), Fact("policy_digest", print_)]
            self.store.apply([*facts, Note("policy", text=f"number {policy.number}")], now)
        if changed:
            self.giving.look_again(now)
        return None

    def set_roster(self, data: bytes, now: float) -> None:
        """Take a newer roster of the same owner; raises a UserError for any other."""
        roster = open_roster(data, self.roster.owner, self.check)
        if roster.number <= self.roster.number:
            return
        gone = [member.fingerprint for member in roster.members if member.revoked]
        aside = [Refuse(transfer, who) for who in gone for transfer in self.store.receiving(who)]
        self.store.apply([Fact("roster", data), Note("roster", text=f"number {roster.number}"), *aside], now)
        self.roster, self.roster_document = roster, data
        if self.discovery is not None:
            self.discovery.know(roster)
        self.giving.look_again(now)

    def follow(self, discovery: DiscoveryProtocol) -> None:
        """Hand over along what this discovery finds."""
        discovery.know(self.roster)
        self.discovery = discovery
        self.finished.clear()
        self.giving.settled.clear()

    def note_graph(self, now: float) -> None:
        """Once links are settled they are written down: the next start goes on with them."""
        links = None if self.discovery is None or not self.discovery.keeps else self.discovery.links()
        if self.discovery is None or links is None:
            return
        if graph_document(self.discovery) != self.store.fact("graph"):
            self.store.apply(settled(self.discovery, links), now)
            self.giving.look_again(now)

    def probe(self, now: float) -> None:
        """Send a probe to everybody."""
        for member in self.roster.others(self.own):
            self.probe_one(member.fingerprint, now)

    def probe_one(self, receiver: bytes, now: float) -> None:
        number, first = self.links.setdefault(receiver, Link()).next_probe()
        self.send(receiver, say.Probe(number, first, now))

    # What comes out.

    def take(self) -> list[tuple[bytes, bytes]]:
        """(receiver, frame) that are to be sent."""
        if self.discovery is not None:
            for receiver, content in self.discovery.take():
                self.send(receiver, say.Discovery(content))
        taken, self._outbox = self._outbox, []
        return taken

    def timer(self) -> float:
        """When `tick` wants to be called."""
        times = [self._hello_s, self.giving.timer(), self.forgetting.timer()]
        if not self.greets_only:
            times.append(self.refused.timer())
        if self.discovery is not None:
            times.append(self.discovery.timer())
        return min(times)

    def visible(self, receiver: bytes, now: float) -> dict[str, int]:
        """All that may be told to a receiver about what is here: datapoints it may have, by label, and no more."""
        if self.roster.active(receiver) is None:
            return {}
        found = {}
        for label, number in self.store.counts(own_only=True).items():
            room = self.policy.allowance(receiver, label, now) - self.store.shown(receiver, label)
            if min(number, room) > 0:
                found[label] = min(number, room)
        return found

    # For those that belong to it.

    @property
    def head(self) -> say.Head:
        return say.Head(*self.store.head)

    def send(self, receiver: bytes, body: say.Body) -> None:
        """Sign a message and put it out; nobody outside of the roster is ever spoken to."""
        member = self.roster.active(receiver)
        if member is None or (self.greets_only and not isinstance(body, PLAIN)):
            return
        try:
            self._outbox.append((receiver, self._writer.write(member, body)))
        except ValueError:  # it has asked to join with a key with which nothing can be closed
            self.refused["receiver without a usable key"] += 1

    def greet(self, receiver: bytes) -> None:
        """Say hello: what is known here, and whether there is more to come."""
        self.send(receiver, self._hello(receiver))

    def secret(self, purpose: bytes) -> bytes:
        """32 bytes that only this store can make."""
        return self.store.secret(purpose)

    def door(self, sender: bytes, number: int, now: float) -> Spend | None:
        return self.answering.door(sender, number, now)

    def new_id(self, about: bytes) -> bytes:
        """The id of the next transfer or order, with what it is about in it: a store from a backup gives no old id to anything else.
        It stands in audits: nobody else can tell what it is about."""
        place = int(self.store.fact("transfers")).to_bytes(8, "big")
        return self.own + self.secret(b"d2dfl/id/1" + place + about)[:8]

    def last_seen(self, sender: bytes) -> tuple[int, int]:
        if sender not in self._seen:
            self._seen[sender] = self.store.last_seen(sender)
        return self._seen[sender]

    # Inside.

    def _opened(self, frame: Frame) -> say.Body:
        """The message of a frame whose sender is in the roster, or brings a newer roster in which it is."""
        member = self.roster.active(frame.sender)
        if member is not None:
            return open_frame(frame, member, self.box, self.check)
        if frame.closed or frame.sender in self.roster.by_fingerprint:
            raise say.WireError("unknown sender")
        body = say.decode_body(frame.body)
        if not isinstance(body, say.RosterNews):
            raise say.WireError("unknown sender")
        try:
            roster = open_roster(body.document, self.roster.owner, self.check)
        except UserError:
            raise say.WireError("foreign roster") from None
        member = roster.active(frame.sender)
        if member is None or roster.number <= self.roster.number:
            raise say.WireError("unknown sender")
        return open_frame(frame, member, self.box, self.check)

    def _hello(self, receiver: bytes) -> say.Hello:
        round_ = b"" if self.discovery is None else self.discovery.round
        return say.Hello(self.roster.number, self.head, round_, self.giving.nothing_left(receiver))

    def refuse(self, reason: str, now: float, number: int = 1) -> None:
        """Count what was wrong; the audit tells of it within a minute."""
        self.refused.add(reason, now, number)

    def close(self, now: float, why: Sequence[str] = ()) -> None:
        """The end of a run: what was heard of each sender is remembered, so that nothing of it counts again after the next start."""
        self.refused.write(self.store, now)
        heard = [Seen(sender, *place) for sender, place in self._seen.items()]
        self.store.apply([*heard, Note("stopped", text="; ".join(why)[:200])], now)
