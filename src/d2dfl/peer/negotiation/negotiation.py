"""A discovery by the peers themselves, and what happens when somebody is gone.

Who takes part is agreed on first (calling.py); all else is an attempt (attempt.py). When a member falls silent, starts anew, is thrown
out or says what does not fit, the attempt is given up and another one is called; from the end of the revisions on, what was found
stands. Messages are numbered between every two (line.py).
"""

import hashlib
import math
from collections import Counter
from functools import partial

from d2dfl.peer.discovery import Links
from d2dfl.peer.identity.roster import Roster
from d2dfl.peer.negotiation import consent
from d2dfl.peer.negotiation.attempt import Attempt, Step
from d2dfl.peer.negotiation.calling import Calling
from d2dfl.peer.negotiation.learner import Seat
from d2dfl.peer.negotiation.line import Line
from d2dfl.peer.negotiation.plan import Plan, Surroundings
from d2dfl.peer.wire import negotiation as say
from d2dfl.peer.wire.messages import WireError

MOST_LOSS = 0.999


class Negotiation:
    """A DiscoveryProtocol."""

    keeps = True

    def __init__(self, here: Surroundings, plan: Plan, now: float, calls: bool = True) -> None:
        """`calls`: whether it may invite; else it waits for others to do so."""
        self.here, self.plan = here, plan
        self.calling = Calling(here, plan, now, calls, self._tell)
        self.attempt: Attempt | None = None
        self.members: list[bytes] = []
        self.lines: dict[int, Line] = {}
        self.tries = 0
        self.calls: Counter[str] = Counter()
        self.began_s = self.ended_s = math.nan
        self._outbox: list[tuple[bytes, bytes]] = []
        self._rooms: dict[int, tuple[tuple[int, int], consent.Room]] = {}

    # DiscoveryProtocol.

    @property
    def round(self) -> bytes:
        return self.id if self.attempt is not None else b""

    @property
    def id(self) -> bytes:
        """Of the attempt."""
        return self.calling.id

    @property
    def roster(self) -> Roster:
        assert self.calling.roster is not None
        return self.calling.roster

    @property
    def settled(self) -> bool:
        return self.attempt is not None and self.attempt.step == Step.SETTLED

    def know(self, roster: Roster) -> None:
        self.calling.know(roster)

    def receive(self, sender: bytes, content: bytes, now: float) -> None:
        try:
            talk = say.decode_talk(content)
        except WireError:
            self._blame(sender, now)
            raise
        if isinstance(talk, say.Invite):
            over = self.attempt is not None and self.attempt.step >= Step.SETTLING
            if self.calling.invited(sender, talk, now, over):
                self._drop()
        elif isinstance(talk, say.Answer):
            self._begin_all(self.calling.answered(sender, talk, now), now)
        elif isinstance(talk, say.Begin):
            if self.attempt is None and self.calling.waits_for(sender, talk.attempt):
                self._begin(sender, talk, now)
        elif isinstance(talk, say.Broken):
            if talk.attempt == self.id and sender in self.members and self.calling.caller == self.here.own:
                self._break(now)
        else:
            self._packet(sender, talk, now)

    def restarted(self, other: bytes, now: float) -> None:
        """Somebody's process has started anew, and knows nothing of the attempt."""
        if other in self.members and not self.settled:
            self._break(now)

    def tick(self, now: float) -> None:
        self._begin_all(self.calling.tick(now, self.attempt is None), now)
        if self.attempt is not None:
            self._look_around(now)
        if self.attempt is not None:
            self.attempt.tick(now)
            self._carry(now)
            for number, line in self.lines.items():
                line.tick(now, partial(self._still, number, now))

    def take(self) -> list[tuple[bytes, bytes]]:
        for number, line in self.lines.items():
            for place, seen, content in line.take():
                self._tell(self.members[number], say.Packet(self.id, place, seen, content))
        taken, self._outbox = self._outbox, []
        return taken

    def timer(self) -> float:
        if self.attempt is None:
            return self.calling.timer()
        times = [line.timer() for line in self.lines.values()]
        return min([self.attempt.wake_s, *times])

    def links(self) -> Links | None:
        if not self.settled or self.attempt is None:
            return None
        return {
            self.members[other]: {label: n for label, n in zip(self.here.labels, row, strict=True) if n}
            for other, row in self.attempt.settling.gives.items()
            if any(row)
        }

    def senders(self) -> frozenset[bytes]:
        found = {} if self.attempt is None else self.attempt.settling.gets
        return frozenset(self.members[other] for other in found)

    @property
    def messages(self) -> Counter[str]:
        """What this device has sent in this attempt, by kind; beside it repeats and bare acknowledgements."""
        found = Counter() if self.attempt is None else Counter(self.attempt.sent)
        found["repeats"] = sum(line.repeats for line in self.lines.values())
        found["acknowledgements"] = sum(line.acknowledgements for line in self.lines.values())
        return found

    def call(self, now: float) -> None:
        """There is something new here: look for a graph, unless this device already does."""
        if self.attempt is None:
            self.calling.call(now)

    # An attempt.

    def _begin_all(self, begin: say.Begin | None, now: float) -> None:
        """If it is time: the others were told."""
        if begin is not None:
            self._begin(self.here.own, begin, now)

    def _begin(self, caller: bytes, begin: say.Begin, now: float) -> None:
        roster, agreed, labels = self.roster, begin.agreed, self.here.labels
        places = begin.members
        fits = places == sorted(set(places)) and places[-1] < len(roster.members) and len(agreed.cluster) == len(places)
        fits = fits and len(places) > 1
        if not fits or max(agreed.cluster) >= len(agreed.budget) or len(labels) > say.MOST_TOLD:
            raise WireError("a beginning that does not fit")
        members = [roster.members[place].fingerprint for place in places]
        if self.here.own not in members or any(roster.active(member) is None for member in members):
            raise WireError("a beginning that does not fit")
        if agreed.whole and places != self.calling.active:  # whoever chose who is summed up could subtract sums
            self._tell(caller, say.Broken(begin.attempt))
            raise WireError("a sum that leaves somebody out")
        self.calling.begins(caller, begin)
        self.members = members
        own, held = members.index(self.here.own), self.here.held()
        self.lines = {number: Line() for number in range(len(members)) if number != own}
        self.tries += 1
        self.began_s = now
        seat = Seat(
            number=own,
            size=len(members),
            agreed=agreed,
            config=self.plan.config,
            counts=[float(held[0].get(label, 0)) for label in labels],
            own=[float(held[1].get(label, 0)) for label in labels],
            losses={number: min(self.here.loss(members[number]), MOST_LOSS) for number in self.lines},
            trusts={number: [most > 0 for most in self._room(number, now)] for number in self.lines},
            asks_all=self.plan.asks_all,
        )
        # Whoever calls chooses the id. No mask may serve twice, so this device's own number of the attempt is in its seed.
        seed = self.here.secret(b"mask" + self.here.next_number() + self.id)
        order = hashlib.sha256(b"d2dfl/mask-order/1" + b"".join(members)).digest()
        self.attempt = Attempt(seat, self._room, seed, self.id, int.from_bytes(order[:8], "big"))
        self.attempt.begin(now)
        self._carry(now)

    def _room(self, other: int, now: float) -> consent.Room:
        """What a member may have of each label; looked up again when the policy or the store changes, and every second."""
        about = (self.here.consent_number, int(now))
        if self._rooms.get(other, (None, []))[0] != about:
            seen = self.here.visible(self.members[other], now)
            self._rooms[other] = (about, [seen.get(label, 0) for label in self.here.labels])
        return self._rooms[other][1]

    def _still(self, other: int, now: float, content: say.Content) -> say.Content:
        """What may be told of a message that is said again: the policy may be another one by now."""
        granted = self.here.granted(self.members[other], now)
        return consent.still(content, [granted.get(label, 0) for label in self.here.labels])

    def _packet(self, sender: bytes, talk: say.Packet, now: float) -> None:
        if self.attempt is None or talk.attempt != self.id or sender not in self.members:
            self.calling.remind(talk.attempt, now)
            return  # it will come again
        number = self.members.index(sender)
        try:
            for content in self.lines[number].hear(talk.number, talk.seen, talk.content, now):
                self.attempt.receive(number, content, now)
        except WireError:
            self._blame(sender, now)
            raise
        self._carry(now)

    def _blame(self, sender: bytes, now: float) -> None:
        """Somebody says what does not fit: this device does not look for a graph with it again."""
        self.calling.strange.add(sender)
        if sender in self.members:
            self._break(now)

    def _carry(self, now: float) -> None:
        if self.attempt is not None:
            for receiver, content in self.attempt.take():
                self.lines[receiver].say(content, now)
            if self.settled and math.isnan(self.ended_s):
                self.ended_s = now

    def _look_around(self, now: float) -> None:
        """Whether all who take part are still there."""
        if self.settled:
            return
        for member in self.members:
            gone = self.roster.active(member) is None
            if member != self.here.own and (gone or self.here.silent(member, now)):
                self._break(now)
                return

    def _break(self, now: float) -> None:
        """This attempt is over, unless all that matters has been said."""
        if self.attempt is None or self.attempt.give_up():
            return
        self._drop()
        self.calling.leave()
        if self.calling.caller != self.here.own:
            self._tell(self.calling.caller, say.Broken(self.id))
        self.calling.call_again(now)

    def _drop(self) -> None:
        self.attempt, self.members, self.lines, self._rooms, self.began_s = None, [], {}, {}, math.nan

    def _tell(self, receiver: bytes, talk: say.Talk) -> None:
        if receiver != self.here.own:
            if not isinstance(talk, say.Packet):
                self.calls[type(talk).__name__] += 1
            self._outbox.append((receiver, say.encode_talk(talk)))
