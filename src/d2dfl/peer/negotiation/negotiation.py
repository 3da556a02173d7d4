"""A discovery by the peers themselves: who takes part, and what happens when somebody is gone.

The first member of the roster that is there invites all; who answers takes part. If it is away the next one does so, a while later. All
else is an attempt (attempt.py). When a member falls silent, starts anew, is thrown out or says what does not fit, the attempt is given up
and another one is called; from the end of the revisions on, what was found stands. Messages are numbered between every two (line.py).
"""

import hashlib
import math
from collections import Counter
from dataclasses import dataclass, field

from d2dfl.peer.discovery import Links
from d2dfl.peer.identity.roster import Roster
from d2dfl.peer.negotiation.attempt import Attempt, Step
from d2dfl.peer.negotiation.consent import Room
from d2dfl.peer.negotiation.learner import Seat
from d2dfl.peer.negotiation.line import Line
from d2dfl.peer.negotiation.plan import Plan, Surroundings
from d2dfl.peer.wire import negotiation as say
from d2dfl.peer.wire.messages import WireError

INVITE_S = 1.0  # invitations are repeated so often
MOST_LOSS = 0.999


@dataclass
class _Call:
    """An invitation of this device."""

    attempt: bytes
    number: int
    until_s: float
    repeat_s: float
    answers: dict[bytes, bool] = field(default_factory=dict)


class Negotiation:
    """A DiscoveryProtocol."""

    keeps = True

    def __init__(self, here: Surroundings, plan: Plan, now: float, calls: bool = True) -> None:
        """`calls`: whether it may invite; else it waits for others to do so."""
        self.here, self.plan, self._calls = here, plan, calls
        self.roster: Roster | None = None
        self.number = 0  # of the last attempt that was heard of
        self.id = b""
        self.caller = b""
        self.attempt: Attempt | None = None
        self.members: list[bytes] = []
        self.lines: dict[int, Line] = {}
        self.tries = 0
        self.calls: Counter[str] = Counter()
        self.began_s = self.ended_s = math.nan
        self._start_s = now
        self._call: _Call | None = None
        self._call_s = math.inf  # when to invite
        self._said_yes = False
        self._remind_s = math.inf  # when to say so again: the beginning may have been lost
        self._standing = (0, 0)  # number and place of whose invitation was accepted last
        self._begun: say.Begin | None = None  # what this device told others
        self._strange: set[bytes] = set()  # who has said what does not fit
        self._outbox: list[tuple[bytes, bytes]] = []
        self._rooms: dict[int, tuple[tuple[int, int], Room]] = {}

    # DiscoveryProtocol.

    @property
    def round(self) -> bytes:
        return self.id if self.attempt is not None else b""

    @property
    def settled(self) -> bool:
        return self.attempt is not None and self.attempt.step == Step.SETTLED

    def know(self, roster: Roster) -> None:
        first, self.roster = self.roster is None, roster
        if first:
            self._call_s = self._start_s + self._rank() * self.plan.gather_s

    def receive(self, sender: bytes, content: bytes, now: float) -> None:
        try:
            talk = say.decode_talk(content)
        except WireError:
            self._blame(sender, now)
            raise
        if isinstance(talk, say.Invite):
            self._invited(sender, talk, now)
        elif isinstance(talk, say.Answer):
            self._answered(sender, talk, now)
        elif isinstance(talk, say.Begin):
            self._told_to_begin(sender, talk, now)
        elif isinstance(talk, say.Broken):
            if talk.attempt == self.id and sender in self.members and self.caller == self.here.own:
                self._break(now)
        else:
            self._packet(sender, talk, now)

    def restarted(self, other: bytes, now: float) -> None:
        """Somebody's process has started anew, and knows nothing of the attempt."""
        if other in self.members and not self.settled:
            self._break(now)

    def tick(self, now: float) -> None:
        if self._call is None and self.attempt is None and now >= self._call_s:
            if self._calls:
                self._invite(now)
            else:
                self._call_s = math.inf
        if self._call is not None:
            self._go_on_calling(now)
        if self._said_yes and now >= self._remind_s:
            self._say_yes(now)
        if self.attempt is not None:
            self._look_around(now)
        if self.attempt is not None:
            self.attempt.tick(now)
            self._carry(now)
            for line in self.lines.values():
                line.tick(now)

    def take(self) -> list[tuple[bytes, bytes]]:
        for number, line in self.lines.items():
            for place, seen, content in line.take():
                self._tell(self.members[number], say.Packet(self.id, place, seen, content))
        taken, self._outbox = self._outbox, []
        return taken

    def timer(self) -> float:
        if self._call is not None:
            return min(self._call.repeat_s, self._call.until_s)
        if self.attempt is None:
            return min(self._call_s, self._remind_s)
        times = [line.timer() for line in self.lines.values()]
        return min([self.attempt.wake_s, *times])

    def links(self) -> Links | None:
        if not self.settled or self.attempt is None:
            return None
        return {
            self.members[other]: {label: n for label, n in zip(self.here.labels, row, strict=True) if n}
            for other, row in self.attempt.gives.items()
            if any(row)
        }

    def senders(self) -> frozenset[bytes]:
        found = {} if self.attempt is None else self.attempt.gets
        return frozenset(self.members[other] for other in found)

    @property
    def messages(self) -> Counter[str]:
        """What this device has sent in this attempt, by kind; beside it repeats and bare acknowledgements."""
        found = Counter() if self.attempt is None else Counter(self.attempt.sent)
        found["repeats"] = sum(line.repeats for line in self.lines.values())
        found["acknowledgements"] = sum(line.acknowledgements for line in self.lines.values())
        return found

    # Who takes part.

    def _rank(self) -> int:
        assert self.roster is not None
        active = [member.fingerprint for member in self.roster.members if not member.revoked]
        return active.index(self.here.own) if self.here.own in active else len(active)

    def _invite(self, now: float) -> None:
        self.number += 1
        about = b"%d/%d" % (self.here.run(), self.number)
        attempt = hashlib.sha256(b"d2dfl/attempt/1" + self.here.own + about).digest()
        self._call = _Call(attempt, self.number, now + self.plan.gather_s, now)
        self._standing = (self.number, -self._place(self.here.own))
        self._call_s, self._said_yes, self._remind_s = math.inf, False, math.inf
        self._go_on_calling(now)

    def _go_on_calling(self, now: float) -> None:
        call, roster = self._call, self.roster
        assert call is not None
        assert roster is not None
        others = [
            member.fingerprint for member in roster.others(self.here.own) if member.fingerprint not in self._strange
        ]
        missing = [other for other in others if other not in call.answers]
        if not missing or now >= call.until_s:
            self._begin_all(call, now)
        elif now >= call.repeat_s:
            call.repeat_s = now + INVITE_S
            digest = self.plan.digest(self.here.labels)
            for other in missing:
                self._tell(other, say.Invite(call.attempt, call.number, digest))

    def _begin_all(self, call: _Call, now: float) -> None:
        """Everybody has answered, or it is time."""
        assert self.roster is not None
        self._call = None
        ready = {self.here.own} | {other for other, yes in call.answers.items() if yes}
        places = [place for place, member in enumerate(self.roster.members) if member.fingerprint in ready]
        plan = self.plan
        cluster = [plan.cluster[place] if plan.cluster else 0 for place in places]
        agreed = say.Agreed(
            plan.seed,
            plan.at_once,
            plan.config.discovery.edges,
            plan.config.marginal.messages,
            plan.message_s,
            cluster,
            list(plan.budget),
        )
        begin = self._begun = say.Begin(call.attempt, places, agreed)
        for place in places:
            self._tell(self.roster.members[place].fingerprint, begin)
        self._begin(self.here.own, begin, now)

    def _invited(self, sender: bytes, talk: say.Invite, now: float) -> None:
        assert self.roster is not None
        over = self.attempt is not None and self.attempt.step >= Step.SETTLING
        yes = talk.settings == self.plan.digest(self.here.labels) and sender not in self._strange and not over
        standing = (talk.number, -self._place(sender))
        if yes and talk.attempt != self.id:
            yes = standing > self._standing
            if yes:
                self._leave()
                self.id, self.caller, self._standing, self._said_yes = talk.attempt, sender, standing, True
                # Who invites may be gone before it begins: then others invite.
                self._call_s = now + (2 + self._rank()) * self.plan.gather_s
        self.number = max(self.number, talk.number)
        if yes and self._said_yes:
            self._say_yes(now)
        else:
            self._tell(sender, say.Answer(talk.attempt, yes, self.number))

    def _say_yes(self, now: float) -> None:
        self._remind_s = now + 2.0 * INVITE_S
        self._tell(self.caller, say.Answer(self.id, True, self.number))

    def _answered(self, sender: bytes, talk: say.Answer, now: float) -> None:
        self.number = max(self.number, talk.number)
        call = self._call
        if self._begun is not None and talk.attempt == self.id == self._begun.attempt and sender in self.members:
            self._tell(sender, self._begun)
        if call is None or talk.attempt != call.attempt:
            return
        if not talk.yes and talk.number > call.number:  # it is in a later attempt: call once more, with a higher number
            self._call = None
            self._call_s = now + INVITE_S
            return
        call.answers[sender] = talk.yes
        self._go_on_calling(now)

    def _told_to_begin(self, sender: bytes, talk: say.Begin, now: float) -> None:
        if not self._said_yes or talk.attempt != self.id or sender != self.caller or self.attempt is not None:
            return
        self._begin(sender, talk, now)

    def _begin(self, caller: bytes, begin: say.Begin, now: float) -> None:
        roster, agreed, labels = self.roster, begin.agreed, self.here.labels
        assert roster is not None
        places = begin.members
        fits = places == sorted(set(places)) and places[-1] < len(roster.members) and len(agreed.cluster) == len(places)
        if not fits or max(agreed.cluster) >= len(agreed.budget) or len(labels) > say.MOST_TOLD:
            raise WireError("a beginning that does not fit")
        members = [roster.members[place].fingerprint for place in places]
        if self.here.own not in members or any(roster.active(member) is None for member in members):
            raise WireError("a beginning that does not fit")
        self.id, self.caller, self.members = begin.attempt, caller, members
        self._said_yes, self._remind_s = False, math.inf
        own, held = members.index(self.here.own), self.here.held()
        self.lines = {number: Line() for number in range(len(members)) if number != own}
        self.tries += 1
        self._call, self._call_s, self.began_s = None, math.inf, now
        seat = Seat(
            number=own,
            size=len(members),
            agreed=agreed,
            config=self.plan.config,
            counts=[float(held[0].get(label, 0)) for label in labels],
            own=[float(held[1].get(label, 0)) for label in labels],
            losses={number: min(self.here.loss(members[number]), MOST_LOSS) for number in self.lines},
            trusts={number: [most > 0 for most in self._room(number, now)] for number in self.lines},
        )
        self.attempt = Attempt(seat, self._room, self.here.secret(b"mask" + self.id), self.id)
        self.attempt.begin(now)
        self._carry(now)

    def _room(self, other: int, now: float) -> Room:
        """What a member may have of each label; looked up again when the policy or the store changes, and every second."""
        about = (self.here.consent_number, int(now))
        if self._rooms.get(other, (None, []))[0] != about:
            seen = self.here.visible(self.members[other], now)
            self._rooms[other] = (about, [seen.get(label, 0) for label in self.here.labels])
        return self._rooms[other][1]

    # An attempt.

    def _packet(self, sender: bytes, talk: say.Packet, now: float) -> None:
        if self.attempt is None or talk.attempt != self.id or sender not in self.members:
            if self._said_yes and talk.attempt == self.id:  # others have begun
                self._say_yes(now)
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
        self._strange.add(sender)
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
        assert self.roster is not None
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
        caller, attempt = self.caller, self.id
        self._leave()
        if caller != self.here.own:
            self._tell(caller, say.Broken(attempt))
        # The caller calls again at once; should it be gone, others do in turn.
        self._call_s = now + (INVITE_S if caller == self.here.own else (1 + self._rank()) * self.plan.gather_s)

    def _leave(self) -> None:
        self.attempt, self.members, self.lines, self._call, self._rooms = None, [], {}, None, {}
        self._said_yes, self._remind_s, self._begun, self.began_s = False, math.inf, None, math.nan

    def _place(self, who: bytes) -> int:
        assert self.roster is not None
        order = [member.fingerprint for member in self.roster.members]
        return order.index(who) if who in order else len(order)

    def _tell(self, receiver: bytes, talk: say.Talk) -> None:
        if receiver != self.here.own:
            if not isinstance(talk, say.Packet):
                self.calls[type(talk).__name__] += 1
            self._outbox.append((receiver, say.encode_talk(talk)))
