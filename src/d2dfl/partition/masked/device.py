"""One device's side of masked sums: messages in, messages out, no sockets and no clock."""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from d2dfl.errors import UserError
from d2dfl.partition.masked.messages import Kind, Message
from d2dfl.partition.masked.pads import Pads
from d2dfl.partition.masked.plan import SumPlan
from d2dfl.partition.masked.words import Words, low_bits

FROM_CHILDREN = (Kind.MASKED, Kind.OPENING, Kind.STANDING)
NOBODY: frozenset[int] = frozenset()


@dataclass(frozen=True, eq=False)
class SumOutcome:
    """How a sum ended."""

    words: Words | None  # None: it failed
    present: frozenset[int] = NOBODY  # whose numbers are in it


@dataclass(eq=False)
class _Sum:
    """The sum that a device is in."""

    number: int
    count: int  # numbers in it
    awaited: Kind  # the step of which it awaits messages
    own: Words  # what it adds itself to the step
    children: frozenset[int]  # whom it awaits in this step
    heard: dict[int, Message] = field(default_factory=dict)
    below: frozenset[int] = NOBODY  # children whose masked values came in time
    absent: frozenset[int] = NOBODY  # in its branch, as it said itself; later in all, as the root says
    lost: frozenset[int] = NOBODY
    opened: Words | None = None  # at the root: masked values less what has been opened of them
    outcome: SumOutcome | None = None


class MaskedDevice:
    """A device in masked sums, one at a time.

    `begin` a sum, give `receive` what comes and send what it returns, call `stop_waiting` when a timer of one's own runs
    out, until `outcome` is there. Messages that do not fit are ignored and counted: a late one, one of another sum, one from
    a stranger.
    """

    def __init__(self, device: int, plan: SumPlan, pads: Pads) -> None:
        self.device, self.plan, self.ignored = device, plan, 0
        self._pads, self._last = pads, -1
        self._sum: _Sum | None = None
        self._early: dict[int, Message] = {}  # by child: it has begun a sum that this device has not

    def begin(self, number: int, words: Words) -> list[Message]:
        """Take part in sum `number` with these words. Numbers rise: masks of a number serve once."""
        if number <= self._last:
            raise UserError(f"masked sum {number} was begun before: give a number above {self._last}")
        if words.ndim != 1 or words.dtype != np.uint64 or (low_bits(words, self.plan.bits) != words).any():
            raise UserError(
                f"a masked sum is over one row of words of {self.plan.bits} bits: encode numbers with FixedPoint"
            )
        self._last = number
        children = frozenset(self.plan.children[self.device])
        self._sum = _Sum(number, len(words), Kind.MASKED, words, children)
        self._sum.own = self._added(words, self._own_mask(), self._pair_masks(self.plan.neighbours[self.device]))
        early, self._early = self._early, {}
        return self._go_on() + [answer for message in early.values() for answer in self.receive(message)]

    def receive(self, message: Message) -> list[Message]:
        """What to send after this message."""
        running = self._sum
        if message.number > self._last and message.sender in self.plan.children[self.device]:
            self._early[message.sender] = message
            return []
        if running is None or not self._fits(message, running):
            self.ignored += 1
            return []
        if message.kind is Kind.FAILED:
            return self._fail(besides=message.sender)
        if message.kind in FROM_CHILDREN:
            running.heard[message.sender] = message
            return self._go_on()
        if message.kind is Kind.PRESENT:
            told = message.absent & self.plan.branch[self.device]
            return self._open(message.absent) if told == running.absent else self._fail()
        if message.kind is Kind.LOST:
            return self._stand_in(message.absent)
        return self._finish(message.words)

    def stop_waiting(self, number: int) -> list[Message]:
        """Go on without those who did not answer: children are left out; without a parent the sum has failed."""
        running = self._sum
        if running is None or running.number != number or running.outcome:
            return []
        return self._go_on(late=True) if running.awaited in FROM_CHILDREN else self._fail()

    def awaits(self, number: int) -> Kind | None:
        """The step for which it waits, or None."""
        running = self._sum
        return running.awaited if running and running.number == number and not running.outcome else None

    def outcome(self, number: int) -> SumOutcome | None:
        """How the sum ended, or None."""
        return self._sum.outcome if self._sum and self._sum.number == number else None

    def _fits(self, message: Message, running: _Sum) -> bool:
        """Whether a message is one that this device awaits, from whom it awaits it, with what belongs into it."""
        if message.number != running.number or message.receiver != self.device or running.outcome:
            return False
        if message.kind in FROM_CHILDREN:
            possible = self.plan.branch[message.sender] if message.sender in running.children else NOBODY
            known = message.kind is running.awaited and message.sender in running.children - set(running.heard)
            return known and self._readable(message.words) and message.absent <= possible - {message.sender}
        if message.kind is Kind.FAILED:
            return message.sender == self.plan.parent[self.device] or message.sender in running.children
        due = {Kind.LOST: (Kind.LOST, Kind.TOTAL)}.get(running.awaited, (running.awaited,))
        if message.sender != self.plan.parent[self.device] or message.kind not in due:
            return False
        everybody = frozenset(range(self.plan.devices))
        if message.kind is Kind.TOTAL:
            return self._readable(message.words)
        return message.absent <= everybody - (running.absent if message.kind is Kind.LOST else NOBODY)

    def _readable(self, words: Words) -> bool:
        assert self._sum is not None
        right = words.dtype == np.uint64 and words.shape == (self._sum.count,)
        return right and bool((low_bits(words, self.plan.bits) == words).all())

    def _go_on(self, late: bool = False) -> list[Message]:
        """Once all awaited children are heard, or it is too late: add up, and send it on."""
        running = self._sum
        assert running is not None
        if len(running.heard) < len(running.children) and not late:
            return []
        step, total = running.awaited, self._added(running.own, *(item.words for item in running.heard.values()))
        silent = [self.plan.branch[child] for child in running.children - set(running.heard)]
        gone = NOBODY.union(*silent, *(item.absent for item in running.heard.values()))
        running.children = frozenset(running.heard)
        if step is Kind.MASKED:
            running.below, running.absent = running.children, gone
        else:
            gone -= running.absent | running.lost
        if self.device == self.plan.root:
            return self._decide(step, total, gone)
        running.awaited = {Kind.MASKED: Kind.PRESENT, Kind.OPENING: Kind.LOST, Kind.STANDING: Kind.TOTAL}[step]
        return [Message(step, self.device, self.plan.parent[self.device], running.number, total, gone)]

    def _decide(self, step: Kind, total: Words, gone: frozenset[int]) -> list[Message]:
        """What the root says at the end of a step."""
        running, neighbours = self._sum, self.plan.neighbours
        assert running is not None
        if step is Kind.MASKED:
            running.opened = total
            return self._open(gone)
        assert running.opened is not None
        running.opened = low_bits(running.opened - total, self.plan.bits)
        if step is Kind.OPENING and gone:
            away = running.absent | gone
            # An opening is the sum of what all neighbours know of it: without one of them nobody can say it.
            return self._fail() if any(away & set(neighbours[lost]) for lost in gone) else self._stand_in(gone)
        if any(running.lost & set(neighbours[device]) for device in gone):
            return self._fail()
        return self._finish(running.opened)

    def _open(self, absent: frozenset[int]) -> list[Message]:
        """Tell who is absent, and open one's own mask and those with absent ones, unless too few would hide one's numbers."""
        running, mine = self._sum, self.plan.neighbours[self.device]
        assert running is not None
        running.absent = absent
        missed = [other for other in mine if other in absent]
        if self.plan.devices - len(absent) < self.plan.least or 2 * len(missed) > len(mine):
            return self._fail()
        told = self._tell(running.below, Kind.PRESENT, absent=absent)
        running.own = self._added(self._own_mask(), self._pair_masks(missed))
        running.awaited, running.heard = Kind.OPENING, {}
        return told + self._go_on()

    def _stand_in(self, lost: frozenset[int]) -> list[Message]:
        """Say what lost neighbours' openings would have said."""
        running = self._sum
        assert running is not None
        running.lost = lost
        told = self._tell(running.children, Kind.LOST, absent=lost)
        parts = (self._pads.own(other, self.device, running.number, running.count) for other in self._mine(lost))
        running.own = self._added(*parts)
        running.awaited, running.heard = Kind.STANDING, {}
        return told + self._go_on()

    def _finish(self, words: Words) -> list[Message]:
        running = self._sum
        assert running is not None
        running.outcome = SumOutcome(words, frozenset(range(self.plan.devices)) - running.absent)
        return self._tell(running.below, Kind.TOTAL, words)

    def _fail(self, besides: int | None = None) -> list[Message]:
        running = self._sum
        assert running is not None
        running.outcome = SumOutcome(None)
        above = {self.plan.parent[self.device]} if self.device != self.plan.root else set()
        return self._tell((running.children | running.below | above) - {besides}, Kind.FAILED)

    def _mine(self, some: frozenset[int]) -> list[int]:
        return [other for other in self.plan.neighbours[self.device] if other in some]

    def _own_mask(self) -> Words:
        assert self._sum is not None
        number, count = self._sum.number, self._sum.count
        return self._added(*(self._pads.own(self.device, o, number, count) for o in self.plan.neighbours[self.device]))

    def _pair_masks(self, others: Iterable[int]) -> Words:
        """Pair masks with these, with their signs: what the lower device adds the higher one subtracts."""
        assert self._sum is not None
        number, count = self._sum.number, self._sum.count
        masks = ((other, self._pads.pair(self.device, other, number, count)) for other in others)
        return self._added(*(mask if self.device < other else np.uint64(0) - mask for other, mask in masks))

    def _added(self, *parts: Words) -> Words:
        """The sum of words, modulo 2^bits."""
        assert self._sum is not None
        total = np.zeros(self._sum.count, dtype=np.uint64)
        for part in parts:
            total += part
        return low_bits(total, self.plan.bits)

    def _tell(
        self, receivers: Iterable[int], kind: Kind, words: Words | None = None, absent: frozenset[int] = NOBODY
    ) -> list[Message]:
        assert self._sum is not None
        said = np.zeros(0, dtype=np.uint64) if words is None else words
        return [Message(kind, self.device, other, self._sum.number, said, absent) for other in sorted(receivers)]
