"""The side of a device that receives: it weighs what it could have, asks whoever looks best, and hears of its shares."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

from d2dfl.discovery.constants import ASKED, REHEAT, SLIGHT
from d2dfl.discovery.plain.reference import plain_uniform
from d2dfl.discovery.protocol.holdings import Link, List, Told
from d2dfl.discovery.protocol.messages import Ask, Content, Introduction, Message, Now, Offer, Reply
from d2dfl.discovery.protocol.revision import NO_LINK, Revision, Rules
from d2dfl.discovery.protocol.transmitter import Transmitter
from d2dfl.discovery.protocol.weighing import ReliableClusters, expected_worth, nothing_told


@dataclass
class Receiver(Transmitter, ABC):
    """A device that looks for links, with an account of what that may cost."""

    clusters: ReliableClusters
    claim: dict[int, float]  # what a link is worth beyond the objective, by slot
    free: bool  # may choose no link
    key: int
    account: int
    rules: Rules | None = None
    spent: int = 0
    draws: int = 0
    turns: int = 0
    cycle: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        self._began = 0  # what it had spent when this cycle began
        self._revision: Revision | None = None
        self._start_outside = 0.0
        self._useful: list[int] | None = None

    # What it can do at all

    @property
    def useful(self) -> list[int]:
        """Slots over which something could move."""
        if self._useful is None:
            need = self.holdings.need
            self._useful = [
                slot
                for slot, there in sorted(self.holdings.heard.items())
                if any(n > 0.0 and s > 0.0 for n, s in zip(need, there.spare, strict=True))
            ]
        return self._useful

    @property
    def _limit(self) -> int:
        """What it may have spent when this cycle ends."""
        cycles = self.rules.cycles if self.rules else 1
        return self._began + (self.account - self._began) // (cycles - self.cycle)

    @property
    def _left(self) -> int:
        return self._limit - self.spent

    def best_alone(self) -> float:
        """What it expects of its best link while nobody else asks: its part of the unit of temperatures."""
        here, best = self.holdings.standing(), 0.0
        for slot in self.useful:
            link = Link(slot, self.holdings.requests([slot])[0], [], nothing_told(self.holdings, slot))
            after, sent, there = self.holdings.kept(), self.holdings.kept(), self.holdings.heard[slot]
            gain = 0.0
            for label, amount in enumerate(self.holdings.expected(link)):
                sent[label] += amount
                after[label] += amount * there.arrives
                gain += amount * there.giving[label]  # to the transmitter
            best = max(best, gain + self.holdings.weight * (self.holdings.worth(after, sent, there.drop) - here))
        return best

    # What it is told

    def _introduced(self, sender: int, content: Content) -> list[Message]:
        assert isinstance(content, Introduction)
        there = next(item for item in self.holdings.heard.values() if item.device == sender)
        there.spare, there.giving, there.cluster = list(content.spare), list(content.giving), content.cluster
        self._useful = None
        return []

    def _told_now(self, sender: int, content: Content) -> list[Message]:
        assert isinstance(content, Now)
        link = self._link_to(sender)
        before, outside = self.holdings.standing(), self.holdings.outside(self.cluster)
        prices: List = [0.0] * len(content.granted)
        if link is not None:
            link.granted, link.told = list(content.granted), told_by(content.offer)
            prices = self.holdings.prices(link)
        change, more = self.holdings.standing() - before, self.holdings.outside(self.cluster) - outside
        self._start_reward += change  # the doing of somebody else, who is told of it
        self._start_outside += more
        return [self._say(sender, Reply(self.holdings.weight * change, self.cluster, more, tuple(prices)))]

    def _link_to(self, transmitter: int) -> Link | None:
        return next(
            (link for link in self.holdings.links if link and self.holdings.heard[link.slot].device == transmitter),
            None,
        )

    # A revision

    @property
    def temperature(self) -> float:
        """It falls with what this cycle has spent of its part of the account."""
        assert self.rules is not None
        hot = self.rules.hot * (REHEAT if self.cycle else 1.0)
        fallen = (self.spent - self._began) / (self.rules.cold * max(self._limit - self._began, 1))
        return hot * max(0.0, 1.0 - fallen)

    @property
    @abstractmethod
    def _use(self) -> float:
        """What its cluster takes from outside, as far as it knows."""

    @abstractmethod
    def _pass_on(self, changed: bool, stop: bool = False) -> list[Message]:
        """The revision is over."""

    @abstractmethod
    def _move(self, before: Link | None, after: Link | None, undoing: bool) -> list[Message]:
        """Put another link in force."""

    def _revise(self) -> list[Message]:
        """Think about one link."""
        assert self.rules is not None
        edge = self.turns % len(self.holdings.links)
        self.turns += 1
        temperature = self.temperature
        restless = 2.0 * plain_uniform(self.key, self.turns + (1 << 40)) * self.rules.restless * self.rules.hot
        noise = max(temperature, restless)
        extra = {NO_LINK: self._gumbel(noise)} if self.free else {}
        others = {link.slot for place, link in enumerate(self.holdings.links) if link and place != edge}
        for slot in self.useful:
            if slot not in others:
                extra[slot] = self._gumbel(noise) + self.claim.get(slot, 0.0)
        self._revision = Revision(edge, temperature, noise, extra)
        return self._weigh()

    def _uniform(self) -> float:
        self.draws += 1
        return plain_uniform(self.key, self.draws - 1)

    def _gumbel(self, noise: float) -> float:
        if noise <= 0.0:
            return 0.0
        return -noise * math.log(-math.log(self._uniform() + 1e-300) + 1e-300)

    def _value(self, slot: int) -> float:
        """What it expects with this slot in place of the link that it thinks about."""
        revision = self._revision
        assert revision is not None
        links = self.holdings.links
        slots = [link.slot if link else NO_LINK for link in links]
        empty = Told([], [], [])
        told = [link.told if link else empty for link in links]
        if slot != slots[revision.edge]:
            slots[revision.edge] = slot
            told[revision.edge] = empty if slot < 0 else revision.answers.get(slot, nothing_told(self.holdings, slot))
        return expected_worth(self.holdings, self.clusters, self.cluster, self._use, slots, told)

    def _weigh(self) -> list[Message]:
        """Choose what looks best; ask before it is tried."""
        revision = self._revision
        assert revision is not None
        link = self.holdings.links[revision.edge]
        old = link.slot if link else NO_LINK
        top, best = NO_LINK, -1e300
        if self.free:
            best = self._value(NO_LINK) + revision.extra[NO_LINK]
        for slot, extra in revision.extra.items():
            if slot != NO_LINK:
                worth = self._value(slot) + extra
                if worth > best + SLIGHT or (slot == old and worth > best - SLIGHT):
                    top, best = slot, worth
        if top in (old, NO_LINK) or top in revision.answers:
            return self._pass_on(False) if top == old else self._try(old, top)
        if len(revision.answers) == ASKED or self._left < 2:
            return self._pass_on(False)
        self.spent += 2
        revision.asking = self.holdings.heard[top].device
        return [self._say(revision.asking, Ask(tuple(self._wanted(top))))]

    def _wanted(self, slot: int) -> List:
        """Its need of the labels that a transmitter has for it."""
        spare = self.holdings.heard[slot].spare
        return [need if there > 0.0 else 0.0 for need, there in zip(self.holdings.need, spare, strict=True)]

    def _offered(self, sender: int, content: Content) -> list[Message]:
        assert isinstance(content, Offer)
        assert self._revision is not None
        slot = next(slot for slot, there in self.holdings.heard.items() if there.device == sender)
        self._revision.answers[slot] = told_by(content)
        return self._weigh()

    def _try(self, old: int, slot: int) -> list[Message]:
        revision = self._revision
        assert revision is not None
        revision.expected = self._value(slot) - self._value(old)
        zero = [0.0] * len(self.holdings.counts)
        link = None if slot < 0 else Link(slot, zero, zero, revision.answers[slot])
        return self._move(self.holdings.links[revision.edge], link, undoing=False)


def told_by(offer: Offer) -> Told:
    return Told(list(offer.demand), list(offer.giving), list(offer.taking))
