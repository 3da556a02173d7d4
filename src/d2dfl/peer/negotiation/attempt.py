"""One attempt to find the graph, as one device sees it: messages of the others and the time go in, messages come out.

    keys, then the population's counts as a masked sum       what labels there are in all
    introductions                                            what each can spare for each, as far as policies let it be told
    gains as a masked sum, the list of claims                how noisy to begin, which pairs of labels should meet
    revisions                                                d2dfl.discovery.protocol: a token goes round, or all at once
    V, Q and U over the final links                          whole datapoints, which the hand-over then moves

It stands or falls as a whole: nothing moves before it is over, so one that breaks is begun anew, and nothing has happened.
"""

import math
from collections import Counter
from dataclasses import replace
from enum import IntEnum

import numpy as np

from d2dfl.discovery.protocol import messages as learner
from d2dfl.discovery.protocol.device import Device
from d2dfl.discovery.protocol.own_clock import OwnClock
from d2dfl.peer.negotiation import consent
from d2dfl.peer.negotiation.checks import Questions
from d2dfl.peer.negotiation.learner import Claiming, Seat
from d2dfl.peer.negotiation.settling import Settling
from d2dfl.peer.negotiation.sums import FEWEST, Sums
from d2dfl.peer.wire import negotiation as say
from d2dfl.peer.wire.messages import WireError

HELD = 4096  # messages that may come before this device is there
HELD_BYTES = 1 << 18  # of these, of one sender
FAULTS = (AssertionError, LookupError, StopIteration, ArithmeticError, ValueError, TypeError)


class Step(IntEnum):
    """Where a device stands."""

    SUMMING = 0
    INTRODUCING = 1
    GAINS = 2
    CLAIMING = 3
    REVISING = 4
    SETTLING = 5
    SETTLED = 6


NEEDED = {  # from which step on a message can be understood; before, it is kept
    say.Key: Step.SUMMING,
    say.Summed: Step.SUMMING,
    say.Introduction: Step.INTRODUCING,
    say.Claims: Step.CLAIMING,
    say.Listed: Step.CLAIMING,
    say.Available: Step.SETTLING,
    say.Wanted: Step.SETTLING,
    say.Allocated: Step.SETTLING,
}


class Attempt:
    """This device's part."""

    def __init__(self, seat: Seat, room: consent.Rooms, mask_seed: bytes, session: bytes, order: int) -> None:
        self.seat, self.room = seat, room
        self.step = Step.SUMMING
        self.outbox: list[tuple[int, say.Content]] = []
        self.sent: Counter[str] = Counter()  # messages by kind
        self.wake_s = math.inf
        self.settling = Settling(room)
        self._sums = Sums(seat.number, seat.size, len(seat.counts), mask_seed, session, order)
        self._held: list[tuple[int, say.Content]] = []
        self._held_bytes: Counter[int] = Counter()  # by sender
        self._questions = Questions()
        self._introduced: set[int] = set()
        self._device: Device | None = None
        self._claiming: Claiming | None = None
        self._spread = 0.0
        self._lists = 0  # rounds of the list that this device has seen

    @property
    def device(self) -> Device:
        assert self._device is not None
        return self._device

    def begin(self, now: float) -> None:
        # Of two, a sum would tell each what the other holds; of some, who compares sums would learn what others hold.
        if self.seat.size >= FEWEST:
            self._put(self._sums.begin())
        if self.seat.size < FEWEST or not self.seat.agreed.whole:
            self.seat.population = [1.0 / len(self.seat.counts)] * len(self.seat.counts)
            self._introduce(now)
        self._go_on(now)

    def receive(self, sender: int, content: say.Content, now: float) -> None:
        """Raises a WireError for what does not fit."""
        if self.step < NEEDED.get(type(content), Step.REVISING):
            self._held_bytes[sender] += say.size_of(content)
            if len(self._held) >= HELD or self._held_bytes[sender] > HELD_BYTES:
                raise WireError("too early")
            self._held.append((sender, content))
            return
        self._understand(sender, content, now)
        self._go_on(now)

    def tick(self, now: float) -> None:
        if now >= self.wake_s:
            self.wake_s = math.inf
            self._learn(self.seat.number, learner.Wake(0.0), now)
            self._go_on(now)

    def take(self) -> list[tuple[int, say.Content]]:
        taken, self.outbox = self.outbox, []
        return taken

    def give_up(self) -> bool:
        """Whether what was found so far stands though somebody is gone: from the end of the revisions on."""
        if self.step >= Step.SETTLING:
            self.step = Step.SETTLED
        return self.step == Step.SETTLED

    # Inside.

    def _put(self, messages: list[tuple[int, say.Content]]) -> None:
        for receiver, content in messages:
            self.sent[type(content).__name__] += 1
            self.outbox.append((receiver, content))

    def _go_on(self, now: float) -> None:
        """Take steps as far as they go, and look again at what came too early."""
        for _ in range(len(Step)):
            before = self.step
            self._next_step(now)
            if self.step == before:
                return
            held, self._held = self._held, []
            for sender, content in held:
                if self.step < NEEDED.get(type(content), Step.REVISING):
                    self._held.append((sender, content))
                else:
                    self._understand(sender, content, now)

    def _next_step(self, now: float) -> None:
        if self.step == Step.SUMMING:
            self._put(self._sums.go_on(1, lambda: self._sums.count_words(self.seat.counts)))
            if (total := self._sums.counts()) is not None:
                self.seat.take_population(total)
                self._introduce(now)
        elif self.step == Step.INTRODUCING and len(self._introduced) == self.seat.size - 1:
            self.step = Step.GAINS
            if self.seat.size < FEWEST:
                best, useful, _ = self.seat.gains(self.device)
                self._agree(2.0 * np.array([best, useful, 0.0]), now)  # no claims: neither knows of the other's
        elif self.step == Step.GAINS:
            self._put(self._sums.go_on(2, lambda: self.seat.sum_words(self.device)))
            if (total := self._sums.gains()) is not None:
                self._agree(total, now)
        elif self.step == Step.REVISING and self.device.ended:
            self.step = Step.SETTLING
            self._put(self.settling.begin(self.device, now))
        if self.step == Step.SETTLING and self.settling.over:
            self.step = Step.SETTLED

    def _introduce(self, now: float) -> None:
        self.step = Step.INTRODUCING
        self._device = self.seat.device()
        self._say(self._device.introductions(), now)

    def _agree(self, total: "np.ndarray[tuple[int], np.dtype[np.float64]]", now: float) -> None:
        """Everything is known that all must know."""
        self._spread = self.seat.prepare(self.device, total)
        if self.device.account < 0:  # too few messages for anything: all see the same, and end without links
            self.step = Step.SETTLED
        elif self._spread > 0.0:
            self.step = Step.CLAIMING
            self._claiming = Claiming.of(self.seat, self.device)
            if self.seat.number == 0:
                self._claim({}, now)
        else:
            self._revise(now)

    def _claim(self, claimed: dict[tuple[int, int], int], now: float) -> None:
        """The list is here."""
        assert self._claiming is not None
        if self._lists < self.seat.agreed.links:
            self._lists += 1
            self._claiming.claim(claimed)
            pairs = [(one, other, times) for (one, other), times in sorted(claimed.items())]
            self._put([((self.seat.number + 1) % self.seat.size, say.Claims(pairs))])
            if self.seat.number == 0 or self._lists < self.seat.agreed.links:
                return
        self.device.claim = self._claiming.values(self._spread)
        self._revise(now)

    def _revise(self, now: float) -> None:
        self.step, device = Step.REVISING, self.device
        if isinstance(device, OwnClock):
            self._say(device.first_wake(), now)
        elif device.number == 0:
            token = learner.Token((0.0,) * len(device.clusters.budget), 0, frozenset())
            self._learn(0, token, now)

    def _understand(self, sender: int, content: say.Content, now: float) -> None:
        if isinstance(content, say.Key | say.Summed):
            self._sums.receive(sender, content)
        elif isinstance(content, say.Claims):
            self._heard_claims(sender, content, now)
        elif isinstance(content, say.Listed):
            return
        elif isinstance(content, say.Available | say.Wanted | say.Allocated):
            self._put(self.settling.receive(sender, content, self.device, now))
        else:
            said = say.from_wire(content)
            self._questions.check(sender, said, self.device)
            heard = consent.heard(said, self.room(sender, now))
            if isinstance(heard, learner.Introduction):
                if sender in self._introduced:
                    raise WireError("introduced twice")
                self._introduced.add(sender)
                if not self.seat.asks(sender):
                    heard = replace(heard, spare=(0.0,) * len(heard.spare))
            self._learn(sender, heard, now)

    def _heard_claims(self, sender: int, content: say.Claims, now: float) -> None:
        labels = len(self.seat.counts)
        if sender != (self.seat.number - 1) % self.seat.size or self.step != Step.CLAIMING:
            raise WireError("a list out of turn")
        if any(not one < other < labels for one, other, _ in content.pairs):
            raise WireError("no such labels")
        self._put([(sender, say.Listed())])
        self._claim({(one, other): times for one, other, times in content.pairs}, now)

    def _learn(self, sender: int, content: learner.Content, now: float) -> None:
        """Let the learner have a message. What it then says to itself it hears at once."""
        line = [learner.Message(sender, self.seat.number, content)]
        while line:
            message = line.pop()
            try:
                answers = self.device.receive(message)
            except FAULTS:
                raise WireError("what does not fit the learner") from None
            for one in answers:
                if one.receiver == one.sender and not isinstance(one.content, learner.Wake):
                    line.append(one)
                else:
                    self._say([one], now)

    def _say(self, messages: list[learner.Message], now: float) -> None:
        for message in messages:
            if isinstance(message.content, learner.Wake):
                self.wake_s = now + message.content.after * self.seat.agreed.message_s
                continue
            content = consent.told(message.content, self.room(message.receiver, now))
            self._questions.asked(message.receiver, content)
            self._put([(message.receiver, say.to_wire(content))])
