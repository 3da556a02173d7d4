"""Who takes part in an attempt: this device invites the others, or says yes to one that does.

The first member of the roster that is there invites all; who answers takes part. If it is away the next one does so, a while later.
Where nobody answers it goes on asking: one device alone finds no graph.
"""

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass, field

from d2dfl.peer.identity.roster import Roster
from d2dfl.peer.negotiation.plan import Plan, Surroundings
from d2dfl.peer.wire import negotiation as say
from d2dfl.peer.wire.messages import WireError

INVITE_S = 1.0  # invitations are repeated so often
FURTHEST = 1_000_000  # how far an attempt's number may be above all that was heard of: nobody calls so often

Tell = Callable[[bytes, say.Talk], None]


@dataclass
class _Call:
    """An invitation of this device."""

    attempt: bytes
    number: int
    until_s: float
    repeat_s: float
    answers: dict[bytes, bool] = field(default_factory=dict)


class Calling:
    """The road to the beginning."""

    def __init__(self, here: Surroundings, plan: Plan, now: float, calls: bool, tell: Tell) -> None:
        self.here, self.plan, self.tell, self._calls = here, plan, tell, calls
        self.roster: Roster | None = None
        self.number = 0  # of the last attempt that was heard of
        self.id = b""  # of the attempt that this device is in, or has said yes to
        self.caller = b""
        self.strange: set[bytes] = set()  # who has said what does not fit
        self._start_s = now
        self._call: _Call | None = None
        self._call_s = math.inf  # when to invite
        self._said_yes = False
        self._remind_s = math.inf  # when to say so again: the beginning may have been lost
        self._standing = (0, 0)  # number and place of whose invitation was accepted last
        self._begun: say.Begin | None = None  # what this device told others

    def know(self, roster: Roster) -> None:
        first, self.roster = self.roster is None, roster
        if first:
            self._call_s = self._start_s + self._rank() * self.plan.gather_s

    def timer(self) -> float:
        if self._call is not None:
            return min(self._call.repeat_s, self._call.until_s)
        return min(self._call_s, self._remind_s)

    def tick(self, now: float, free: bool) -> say.Begin | None:
        """What all are told when it is time to begin. `free`: this device is in no attempt."""
        begin = None
        if self.roster is None or self.roster.active(self.here.own) is None:  # thrown out: nobody would answer
            self.leave()
            self._call_s = math.inf
        elif self._call is None and free and now >= self._call_s:
            if self._calls:
                begin = self._invite(now)
            else:
                self._call_s = math.inf
        elif self._call is not None:
            begin = self._go_on(self._call, now)
        if self._said_yes and now >= self._remind_s:
            self.say_yes(now)
        return begin

    def call(self, now: float) -> None:
        """Invite the others now, unless somebody does so already."""
        self._calls = True
        if self._call is None and not self._said_yes:
            self._call_s = now

    def leave(self) -> None:
        """Out of whatever this device was in."""
        self._call, self._said_yes, self._remind_s, self._begun = None, False, math.inf, None

    def call_again(self, now: float) -> None:
        """After an attempt that broke: its caller calls at once; should it be gone, others do in turn."""
        own = self.caller == self.here.own
        self._call_s = now + (INVITE_S if own else (1 + self._rank()) * self.plan.gather_s)

    def waits_for(self, sender: bytes, attempt: bytes) -> bool:
        """Whether this device has said yes to that attempt, of this caller, and has not begun."""
        return self._said_yes and attempt == self.id and sender == self.caller

    def begins(self, caller: bytes, begin: say.Begin) -> None:
        self.id, self.caller = begin.attempt, caller
        self._said_yes, self._remind_s, self._call, self._call_s = False, math.inf, None, math.inf

    def remind(self, attempt: bytes, now: float) -> None:
        """Others have begun, and this device was not told."""
        if self._said_yes and attempt == self.id:
            self.say_yes(now)

    def say_yes(self, now: float) -> None:
        self._remind_s = now + 2.0 * INVITE_S
        self.tell(self.caller, say.Answer(self.id, True, self.number))

    def invited(self, sender: bytes, talk: say.Invite, now: float, over: bool) -> bool:
        """Answer; whether this device leaves what it was in for it. `over`: what it has found stands."""
        self._note(talk.number)
        yes = talk.settings == self.plan.digest(self.here.labels) and sender not in self.strange and not over
        standing, left = (talk.number, -self._place(sender)), False
        if yes and talk.attempt != self.id:
            yes = left = standing > self._standing
            if left:
                self.leave()
                self.id, self.caller, self._standing, self._said_yes = talk.attempt, sender, standing, True
                # Who invites may be gone before it begins: then others invite.
                self._call_s = now + (2 + self._rank()) * self.plan.gather_s
        if yes and self._said_yes:
            self.say_yes(now)
        else:
            self.tell(sender, say.Answer(talk.attempt, yes, self.number))
        return left

    def answered(self, sender: bytes, talk: say.Answer, now: float) -> say.Begin | None:
        """What all are told, if this was the last answer."""
        self._note(talk.number)
        call, begun = self._call, self._begun
        if begun is not None and talk.attempt == self.id == begun.attempt and self._place(sender) in begun.members:
            self.tell(sender, begun)
        if call is None or talk.attempt != call.attempt:
            return None
        if not talk.yes and talk.number > call.number:  # it is in a later attempt: call once more, with a higher number
            self._call, self._call_s = None, now + INVITE_S
            return None
        call.answers[sender] = talk.yes
        return self._go_on(call, now)

    # Inside.

    def _note(self, number: int) -> None:
        """Somebody counts so far. A jump would leave no number for anybody else."""
        if number > self.number + FURTHEST:
            raise WireError("a number far above all others")
        self.number = max(self.number, number)

    def _invite(self, now: float) -> say.Begin | None:
        self.number += 1
        attempt = hashlib.sha256(b"d2dfl/attempt/1" + self.here.own + self.here.next_number()).digest()
        self.leave()
        self._call = _Call(attempt, self.number, now + self.plan.gather_s, now)
        self._standing, self._call_s = (self.number, -self._place(self.here.own)), math.inf
        return self._go_on(self._call, now)

    def _go_on(self, call: _Call, now: float) -> say.Begin | None:
        assert self.roster is not None
        others = [m.fingerprint for m in self.roster.others(self.here.own) if m.fingerprint not in self.strange]
        missing = [other for other in others if other not in call.answers]
        ready = {other for other in others if call.answers.get(other)}
        if ready and (not missing or now >= call.until_s):
            return self._begin(call, ready)
        if now >= call.until_s:  # nobody is there, or free: ask all once more
            call.until_s = now + self.plan.gather_s
            call.answers.clear()
        if now >= call.repeat_s:
            call.repeat_s = now + INVITE_S
            digest = self.plan.digest(self.here.labels)
            for other in missing:
                self.tell(other, say.Invite(call.attempt, call.number, digest))
        return None

    def _begin(self, call: _Call, ready: set[bytes]) -> say.Begin:
        """Everybody has answered, or it is time and somebody has."""
        assert self.roster is not None
        self._call = None
        there = ready | {self.here.own}
        places = [place for place, member in enumerate(self.roster.members) if member.fingerprint in there]
        plan, (cluster, budget) = self.plan, self.roster.clusters
        agreed = say.Agreed(
            plan.seed,
            plan.at_once,
            places == self.active,
            plan.config.discovery.edges,
            plan.config.marginal.messages,
            plan.message_s,
            [cluster[place] for place in places],
            budget,
        )
        self._begun = say.Begin(call.attempt, places, agreed)
        for place in places:
            self.tell(self.roster.members[place].fingerprint, self._begun)
        return self._begun

    @property
    def active(self) -> list[int]:
        """Places of all who are in the roster, and not thrown out."""
        assert self.roster is not None
        return [place for place, member in enumerate(self.roster.members) if not member.revoked]

    def _rank(self) -> int:
        own = self._place(self.here.own)
        return self.active.index(own) if own in self.active else len(self.active)

    def _place(self, who: bytes) -> int:
        assert self.roster is not None
        order = [member.fingerprint for member in self.roster.members]
        return order.index(who) if who in order else len(order)
