"""Between a device and a radio that loses, delays and doubles: what a device says arrives once and in order, or the other is gone.

Numbers. Messages from one device to another are numbered, and delivered by number: what comes too early waits, what comes twice
is dropped. A question is repeated until its answer is there, less and less often; a question that comes twice gets the answer that it
got, or, while somebody still works on it, a sign of life. A missing number is either a question, which its sender repeats, or an answer,
whose question its receiver repeats: so every gap is filled, and behind this layer devices see what they would see without loss,
only later. Introductions are answers to nobody; who misses one asks for it.

Gone. Who shows no sign of life while a question is repeated GIVE_UP times counts as gone, is told so should it still hear, and its
links end on both sides. A device that waits for others to be done asks them now and then whether they are there. When all are done,
and whenever a device comes back that was away, those that have links ask each other whether they still count on them.

Stored before anything is sent: all fields of the device (its links, its book of requesters, its account, where its move stands) and all of
this layer: numbers, unanswered questions, answers until they have been seen, and what came too early. So a device that was away
goes on where it was.

Accounts pay for exchanges, as if nothing were lost; repeats, signs of life and notices come on top and are counted by who carries them.
"""

from collections import defaultdict
from dataclasses import dataclass, field

from d2dfl.discovery.protocol.messages import (
    Ask,
    Content,
    Done,
    End,
    Grant,
    Introduction,
    Message,
    Now,
    Offer,
    Outside,
    Reply,
    Request,
    Taken,
    Total,
    Wake,
)
from d2dfl.discovery.protocol.own_clock import OwnClock

FIRST_REPEAT = 6.0  # message times after which a question is repeated; doubled from one repeat to the next,
LAST_REPEAT = 48.0  # up to this
REQUEST_REPEAT = 24.0  # the same for a request, which waits in line, and for others to be told
LOOK = 500.0  # message times after which a device that waits for others asks whether they are there
LOOKS = (
    40  # that are answered, after which it waits no longer: those who differ on who is gone could wait for each other
)
GIVE_UP = 30  # repeats without any sign of life
NONE = -1

ANSWERED_BY: dict[type[Content], type[Content]] = {
    Ask: Offer,
    Request: Grant,
    Now: Reply,
    Outside: Total,
    Done: Taken,
    End: Taken,
}


@dataclass(frozen=True)
class Missing:
    """Your introduction has not come."""


@dataclass(frozen=True)
class Still:
    """Are you there, and do you count on me?"""


@dataclass(frozen=True)
class Here:
    """A sign of life, and whether the end was told: who was away may wait for others that tell somebody else."""

    ended: bool = False


@dataclass(frozen=True)
class Gone:
    """I take you for gone: nothing of ours holds."""


Notice = Missing | Still | Here | Gone


@dataclass(frozen=True)
class Envelope:
    sender: int
    receiver: int
    content: Content | Notice
    number: int = NONE  # of what this sender says to this receiver; notices have none
    answers: int = NONE  # number of the question
    seen: int = 0  # all that the receiver has said with lower numbers has arrived


@dataclass
class _Open:
    """Something that is repeated until it is answered."""

    envelope: Envelope
    due: float
    repeats: int = 0
    quiet: int = 0  # repeats since the last sign of life
    final: bool = False  # asked whether or not anybody waits for it

    def repeated(self, now: float) -> None:
        self.repeats += 1
        self.quiet += 1
        self.due = now + min(_patience(self.envelope.content) * 2.0 ** min(self.repeats, 8), LAST_REPEAT)


@dataclass
class Post:
    """One device's side of the layer. No clock, no socket: the time goes in, envelopes come out."""

    device: OwnClock
    wake: float | None = None
    gone: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._next: defaultdict[int, int] = defaultdict(int)
        self._expected: defaultdict[int, int] = defaultdict(int)
        self._ahead: defaultdict[int, dict[int, Envelope]] = defaultdict(dict)
        self._open: dict[tuple[int, int | type[Notice]], _Open] = {}
        self._asked: dict[tuple[int, type[Content]], int] = {}  # questions at work, by who waits for which answer
        self._looks = 0
        self._looked = False  # after its partners, at the end
        self._given: defaultdict[int, dict[int, Envelope]] = defaultdict(dict)  # answers by the question's number

    # What goes out

    def post(self, messages: list[Message], now: float) -> list[Envelope]:
        """Number what the device says; keep it until it is answered or seen."""
        sent = []
        for message in messages:
            name, content = message.receiver, message.content
            if isinstance(content, Wake):
                self.wake = now + content.after
            elif name not in self.gone:
                envelope = Envelope(message.sender, name, content, self._next[name], NONE, self._expected[name])
                self._next[name] += 1
                if type(content) in ANSWERED_BY:
                    self._open[name, envelope.number] = _Open(envelope, now + _patience(content))
                else:
                    question = self._asked.pop((name, type(content)), NONE)
                    envelope = Envelope(*_parts(envelope)[:4], question, envelope.seen)
                    self._given[name][question] = envelope
                sent.append(envelope)
        return sent

    def await_introductions(self, now: float) -> None:
        for there in self.device.holdings.heard.values():
            missing = self._notice(there.device, Missing())
            self._open[there.device, Missing] = _Open(missing, now + FIRST_REPEAT)

    def _notice(self, name: int, content: Notice) -> Envelope:
        return Envelope(self.device.number, name, content, seen=self._expected[name])

    # What comes in

    def arrive(self, envelope: Envelope, now: float) -> list[Envelope]:
        sender, content = envelope.sender, envelope.content
        if isinstance(content, Gone):
            return [self._notice(sender, Here(self.device.ended)), *self._lose(sender, now)]
        if sender in self.gone:
            if isinstance(content, Here):
                self._open.pop((sender, Gone), None)
                return []
            return [self._notice(sender, Gone())]
        self._sign_of_life(envelope, now)
        if isinstance(content, Still):
            return [self._notice(sender, Here(self.device.ended))]
        if isinstance(content, Missing):
            return self._again(sender, NONE)
        if isinstance(content, Here):
            return self._still_there(sender, content.ended, now)
        return self._numbered(envelope, now)

    def _still_there(self, sender: int, ended: bool, now: float) -> list[Envelope]:
        self._looks += sender in self.device.watched()
        messages = self.device.has_ended(sender) if ended else []
        if self._looks > LOOKS and not self.device.ended:
            messages = self.device.end_alone()
        sent = self.post(messages, now)
        self._watch(now)
        return sent

    def _sign_of_life(self, envelope: Envelope, now: float) -> None:
        sender = envelope.sender
        for (name, _), waiting in self._open.items():
            if name == sender:
                waiting.quiet = 0
        if (sender, Still) in self._open and isinstance(envelope.content, Here | Still):
            del self._open[sender, Still]
            self._watch(now)
        for question in [number for number, given in self._given[sender].items() if given.number < envelope.seen]:
            del self._given[sender][question]

    def _numbered(self, envelope: Envelope, now: float) -> list[Envelope]:
        sender = envelope.sender
        if isinstance(envelope.content, Introduction):
            self._open.pop((sender, Missing), None)
        if envelope.number < self._expected[sender]:
            return self._again(sender, envelope.number) if type(envelope.content) in ANSWERED_BY else []
        self._ahead[sender][envelope.number] = envelope
        sent = []
        while sender not in self.gone and self._expected[sender] in self._ahead[sender]:
            ready = self._ahead[sender].pop(self._expected[sender])
            self._expected[sender] += 1
            sent += self._deliver(ready, now)
        return sent

    def _again(self, sender: int, question: int) -> list[Envelope]:
        """The answer that a question got; a sign of life while there is none; nothing if the answer has been seen."""
        if question in self._given[sender]:
            return [self._given[sender][question]]
        at_work = any(name == sender and number == question for (name, _), number in self._asked.items())
        return [self._notice(sender, Here(self.device.ended))] if at_work else []

    def _deliver(self, envelope: Envelope, now: float) -> list[Envelope]:
        content = envelope.content
        assert not isinstance(content, Notice)
        # Not before: an answer that waits for something earlier would wait for ever if its sender were gone.
        self._open.pop((envelope.sender, envelope.answers), None)
        if type(content) in ANSWERED_BY:
            self._asked[envelope.sender, ANSWERED_BY[type(content)]] = envelope.number
        messages = self.device.receive(Message(envelope.sender, envelope.receiver, content))
        self._watch(now)
        return self.post(messages, now)

    # Time

    def timer(self) -> float | None:
        """When it wants to be called."""
        times = [waiting.due for waiting in self._open.values()] + ([] if self.wake is None else [self.wake])
        return min(times, default=None)

    def tick(self, now: float) -> list[Envelope]:
        """Wake the device, repeat what is due, give up those without a sign of life."""
        sent: list[Envelope] = []
        if self.wake is not None and self.wake <= now:
            self.wake = None
            number = self.device.number
            sent += self.post(self.device.receive(Message(number, number, Wake(0.0))), now)
            self._watch(now)
        for key, waiting in list(self._open.items()):
            if waiting.due > now or key not in self._open:
                continue
            if waiting.quiet < GIVE_UP:
                waiting.repeated(now)
                sent.append(waiting.envelope)
            else:
                del self._open[key]
                sent += self._lose(key[0], now)
        return sent

    def come_back(self, now: float) -> list[Envelope]:
        """After it was away: repeat all questions, and ask those with whom it has links whether they count on it."""
        for name in sorted(self.device.partners() - self.gone):
            self._open[name, Still] = _Open(self._notice(name, Still()), now, final=True)
        for waiting in self._open.values():
            waiting.due = now
        return self.tick(now)

    def _watch(self, now: float) -> None:
        """Look after those for whom the device waits at the end."""
        if self.device.ended and not self._looked:
            # Receivers look after their transmitters, who look after those that do not.
            self._looked = True
            for name in sorted(self.device.partners() - self.gone):
                at = now if name not in self.device.giving.requesters else now + LOOK
                self._open[name, Still] = _Open(self._notice(name, Still()), at, final=True)
        watched = self.device.watched() - self.gone
        for name in watched:
            if (name, Still) not in self._open:
                self._open[name, Still] = _Open(self._notice(name, Still()), now + LOOK)
        for name, kind in list(self._open):
            if kind is Still and name not in watched and not self._open[name, kind].final:
                del self._open[name, kind]

    def _lose(self, name: int, now: float) -> list[Envelope]:
        if name in self.gone:
            return []
        self.gone.add(name)
        self._open = {key: waiting for key, waiting in self._open.items() if key[0] != name}
        self._asked = {key: number for key, number in self._asked.items() if key[0] != name}
        self._ahead.pop(name, None)
        notice = self._notice(name, Gone())
        self._open[name, Gone] = _Open(notice, now + FIRST_REPEAT)
        sent = [notice, *self.post(self.device.lost(name), now)]
        self._watch(now)
        return sent


def _parts(envelope: Envelope) -> tuple[int, int, Content | Notice, int, int, int]:
    return envelope.sender, envelope.receiver, envelope.content, envelope.number, envelope.answers, envelope.seen


def _patience(content: Content | Notice) -> float:
    return REQUEST_REPEAT if isinstance(content, Request) else FIRST_REPEAT
