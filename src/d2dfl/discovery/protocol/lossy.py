"""Between a device and a radio that loses, delays and doubles: what a device says arrives once and in order, or the other is gone.

Numbers. Messages from one device to another are numbered, and delivered by number: what comes too early waits, what comes twice
is dropped. A question is repeated until its answer is there, less and less often; a question that comes twice gets the answer that it
got, or, while somebody still works on it, a sign of life. A missing number is either a question, which its sender repeats, or an answer,
whose question its receiver repeats: so every gap is filled, and behind this layer devices see what they would see without loss,
only later. Introductions are answers to nobody; who misses one asks for it.

Gone. Who shows no sign of life while a question is repeated GIVE_UP times has left, for all: who has left goes along with everything that
is said (ending.py), links with it end, and it is told so should it still hear. A device that waits for others to be done
asks them now and then whether they are there. When all are done, and whenever a device comes back that was away, those that have
links ask each other whether they still count on them.

Stored before anything is sent: all fields of the device (its links, its book of requesters, its account, where its move stands) and all of
this layer: numbers, unanswered questions, answers until they have been seen, and what came too early. So a device that was away
goes on where it was.

Accounts pay for exchanges, as if nothing were lost; repeats, signs of life, notices and what a new first device of a cluster is told come on
top. All are counted where they are sent (`sent`, `repeated`, `noticed`).
"""

from collections import defaultdict
from dataclasses import dataclass, replace

from d2dfl.discovery.protocol.envelopes import (
    ANSWERED_BY,
    FIRST_REPEAT,
    NONE,
    Envelope,
    Gone,
    Here,
    Missing,
    Notice,
    Still,
    Waiting,
    patience,
)
from d2dfl.discovery.protocol.messages import Content, Introduction, Message, Wake
from d2dfl.discovery.protocol.own_clock import OwnClock

LOOK = 500.0  # message times after which a device that waits for others asks whether they are there
GIVE_UP = 30  # repeats without any sign of life


@dataclass
class Post:
    """One device's side of the layer. No clock, no socket: the time goes in, envelopes come out."""

    device: OwnClock
    wake: float | None = None
    sent: int = 0  # messages of the device, each counted once
    repeated: int = 0  # questions and answers once more
    noticed: int = 0  # notices, repeats with them

    def __post_init__(self) -> None:
        self._next: defaultdict[int, int] = defaultdict(int)
        self._expected: defaultdict[int, int] = defaultdict(int)
        self._ahead: defaultdict[int, dict[int, Envelope]] = defaultdict(dict)
        self._open: dict[tuple[int, int | type[Notice]], Waiting] = {}
        self._asked: dict[tuple[int, type[Content]], int] = {}  # questions at work, by who waits for which answer
        self._looked = False  # after its partners, at the end
        self._given: defaultdict[int, dict[int, Envelope]] = defaultdict(dict)  # answers by the question's number

    @property
    def gone(self) -> set[int]:
        """Who has left, as this device knows."""
        return self.device.gone

    # What goes out

    def post(self, messages: list[Message], now: float) -> list[Envelope]:
        """Number what the device says; keep it until it is answered or seen."""
        sent = []
        for message in messages:
            name, content = message.receiver, message.content
            if isinstance(content, Wake):
                self.wake = now + content.after
            elif name not in self.gone and not self.device.left:
                sent.append(self._numbered(name, content, now))
        self.sent += len(sent)
        return sent

    def _numbered(self, name: int, content: Content, now: float) -> Envelope:
        number, question = self._next[name], NONE
        if type(content) not in ANSWERED_BY:
            question = self._asked.pop((name, type(content)), NONE)
        gone = frozenset(self.gone)
        envelope = Envelope(self.device.number, name, content, number, question, self._expected[name], gone)
        self._next[name] += 1
        if type(content) in ANSWERED_BY:
            self._open[name, number] = Waiting(envelope, now + patience(content))
        else:
            self._given[name][question] = envelope
        return envelope

    def await_introductions(self, now: float) -> None:
        for there in self.device.holdings.heard.values():
            self._keep_asking(there.device, Missing(), now + FIRST_REPEAT)

    def _keep_asking(self, name: int, content: Notice, at: float, final: bool = False) -> None:
        """A notice that goes out then, and again until it is answered."""
        envelope = Envelope(self.device.number, name, content)
        self._open[name, type(content)] = Waiting(envelope, at, final=final)

    def _notice(self, name: int, content: Notice) -> Envelope:
        self.noticed += 1
        return Envelope(self.device.number, name, content, seen=self._expected[name], gone=frozenset(self.gone))

    def _here(self, name: int) -> list[Envelope]:
        return [self._notice(name, Here(self.device.ended))]

    # What comes in

    def arrive(self, envelope: Envelope, now: float) -> list[Envelope]:
        """An envelope that is for this device."""
        sender, content = envelope.sender, envelope.content
        if self.device.left or sender in self.gone:
            # A sign of life may be older than what it was told: only one that knows who has left is an answer.
            if isinstance(content, Gone) or {sender, self.device.number} & envelope.gone:
                self._open.pop((sender, Gone), None)
            if isinstance(content, Here):
                return []
            return self._here(sender) if isinstance(content, Gone) else [self._notice(sender, Gone())]
        if self.device.number in envelope.gone:
            return [*self._leave(now), *self._here(sender)]
        sent = [item for name in sorted(envelope.gone - self.gone) for item in self._lose(name, now)]
        if sender in self.gone:
            return [*sent, *self._here(sender)]
        self._sign_of_life(envelope, now)
        return sent + self._taken_in(envelope, now)

    def _taken_in(self, envelope: Envelope, now: float) -> list[Envelope]:
        """What it says itself."""
        sender, content = envelope.sender, envelope.content
        if isinstance(content, Still):
            return self._here(sender)
        if isinstance(content, Missing):
            return self._again(sender, NONE)
        if isinstance(content, Here):
            sent = self.post(self.device.has_ended(sender) if content.ended else [], now)
            self._watch(now)
            return sent
        return self._in_order(envelope, now)

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

    def _in_order(self, envelope: Envelope, now: float) -> list[Envelope]:
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
            self.repeated += 1
            return [self._given[sender][question]]
        at_work = any(name == sender and number == question for (name, _), number in self._asked.items())
        return self._here(sender) if at_work else []

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
                sent.append(self._once_more(waiting.envelope))
            else:
                del self._open[key]
                sent += self._lose(key[0], now)
        return sent

    def _once_more(self, envelope: Envelope) -> Envelope:
        """The same with what is known by now."""
        if envelope.number == NONE:
            self.noticed += 1
        else:
            self.repeated += 1
        return replace(envelope, seen=self._expected[envelope.receiver], gone=frozenset(self.gone))

    def come_back(self, now: float) -> list[Envelope]:
        """Go on after the device was away: repeat all questions, and ask those with whom it has links whether they count on it."""
        for name in sorted(self.device.partners() - self.gone):
            self._keep_asking(name, Still(), now, final=True)
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
                self._keep_asking(name, Still(), at, final=True)
        watched = self.device.watched() - self.gone
        for name in watched:
            if (name, Still) not in self._open:
                self._keep_asking(name, Still(), now + LOOK)
        for name, kind in list(self._open):
            if kind is Still and name not in watched and not self._open[name, kind].final:
                del self._open[name, kind]

    # Those that have left

    def _lose(self, name: int, now: float) -> list[Envelope]:
        """Somebody has left. Those that had links with it tell it so, until it answers or they give up."""
        if name in self.gone:
            return []
        linked = name in self.device.partners()
        self._open = {key: waiting for key, waiting in self._open.items() if key[0] != name}
        self._asked = {key: number for key, number in self._asked.items() if key[0] != name}
        self._ahead.pop(name, None)
        self._given.pop(name, None)
        sent = self.post(self.device.lost(name), now)
        if linked:
            self._keep_asking(name, Gone(), now)
        self._watch(now)
        return sent

    def _leave(self, now: float) -> list[Envelope]:
        """The others go on without this device: whoever may still count on it is told."""
        partners = sorted(self.device.partners() - self.gone)
        self.device.leave()
        self.wake = None
        self._looked = True
        for memory in (self._open, self._asked, self._ahead, self._given):
            memory.clear()
        for name in partners:
            self._keep_asking(name, Gone(), now)
        return []
