"""One device of our learner: messages in, messages out. No clock, no socket, nothing of anybody else but what was told.

`receive` takes a message and returns those to be sent. A device that gets the token revises one link: it weighs (weighing.py), asks
whoever looks best, tries it, and keeps it or takes it back, as methods/marginal.py says; then the token goes on.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from d2dfl.discovery.plain.reference import plain_uniform
from d2dfl.discovery.protocol.giving import SAME
from d2dfl.discovery.protocol.holdings import Link, List, Told
from d2dfl.discovery.protocol.messages import (
    Ask,
    Content,
    End,
    Grant,
    Introduction,
    Message,
    NextCycle,
    Now,
    Offer,
    Ready,
    Reply,
    Request,
    Taken,
    Token,
)
from d2dfl.discovery.protocol.remembered import Remembered
from d2dfl.discovery.protocol.revision import (
    ASKED,
    LEAST_MOVE,
    NO_LINK,
    REHEAT,
    SLIGHT,
    TURN,
    UNLIMITED,
    Move,
    Revision,
    Rules,
)
from d2dfl.discovery.protocol.transmitter import Transmitter
from d2dfl.discovery.protocol.weighing import Clusters, expected_worth, nothing_told


@dataclass
class Device(Transmitter):
    """A device, its account and its side of every link."""

    clusters: Clusters
    claim: dict[int, float]  # what a link is worth beyond the objective, by slot
    free: bool  # may choose no link
    key: int
    account: int
    rules: Rules | None = None
    spent: int = 0
    draws: int = 0
    turns: int = 0
    token: Token | None = None
    ended: bool = False
    cycle: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        self._began = 0  # what it had spent when this cycle began
        self._remembered: Remembered | None = None
        self._getting_ready: set[int] = set()  # who has not said yet whether it goes on with the next cycle
        self._revision: Revision | None = None
        self._start_outside = 0.0
        self._useful: list[int] | None = None
        self._handlers = self._table()

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
    def may_go_on(self) -> bool:
        return bool(self.useful) and self._left >= TURN + LEAST_MOVE

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
            link = Link(slot, self.holdings.wishes([slot])[0], [], nothing_told(self.holdings, slot))
            after, sent, there = self.holdings.kept(), self.holdings.kept(), self.holdings.heard[slot]
            gain = 0.0
            for label, amount in enumerate(self.holdings.expected(link)):
                sent[label] += amount
                after[label] += amount * there.arrives
                gain += amount * there.giving[label]  # to the transmitter
            best = max(best, gain + self.holdings.weight * (self.holdings.worth(after, sent, there.drop) - here))
        return best

    # Messages

    def receive(self, message: Message) -> list[Message]:
        """What to send after this message."""
        return self._handlers[type(message.content)](message.sender, message.content)

    def _table(self) -> dict[type[Content], Callable[[int, Content], list[Message]]]:
        """What is done with each kind of message."""
        return {
            Introduction: self._introduced,
            Ask: self._asked,
            Request: self._requested,
            Now: self._told_now,
            Reply: self._replied,
            Offer: self._offered,
            Grant: self._granted,
            Token: self._begin,
            Taken: lambda *_: [],
            NextCycle: self._next_cycle,
            Ready: self._ready,
            End: self._end,
        }

    def _introduced(self, sender: int, content: Content) -> list[Message]:
        assert isinstance(content, Introduction)
        there = next(item for item in self.holdings.heard.values() if item.device == sender)
        there.spare, there.giving, there.cluster = list(content.spare), list(content.giving), content.cluster
        self._useful = None
        return []

    def _end(self, sender: int, content: Content) -> list[Message]:
        assert isinstance(content, End)
        self._finish(content.back)
        return [self._say(sender, Taken())]

    # As a receiver

    def _told_now(self, sender: int, content: Content) -> list[Message]:
        assert isinstance(content, Now)
        link = self._link_to(sender)
        before, outside = self.holdings.standing(), self.holdings.outside(self.cluster)
        prices: List = [0.0] * len(content.granted)
        if link is not None:
            link.granted, link.told = list(content.granted), _told(content.offer)
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

    def _begin(self, sender: int, content: Content) -> list[Message]:
        """The token: a turn begins."""
        assert isinstance(content, Token)
        assert self.rules is not None
        self.token = content
        if sender == self.number:
            return self._revise()
        self.spent += TURN
        return [self._say(sender, Taken()), *self._revise()]

    @property
    def _use(self) -> float:
        """What its cluster takes from outside, as far as it knows."""
        assert self.token is not None
        return self.token.use[self.cluster]

    def _revise(self) -> list[Message]:
        """Think about one link."""
        assert self.rules is not None
        edge = self.turns % len(self.holdings.links)
        self.turns += 1
        hot = self.rules.hot * (REHEAT if self.cycle else 1.0)
        fallen = (self.spent - self._began) / (self.rules.cold * (self._limit - self._began))
        temperature = hot * max(0.0, 1.0 - fallen)
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
        self._revision.answers[slot] = _told(content)
        return self._weigh()

    def _try(self, old: int, slot: int) -> list[Message]:
        revision = self._revision
        assert revision is not None
        revision.expected = self._value(slot) - self._value(old)
        zero = [0.0] * len(self.holdings.counts)
        link = None if slot < 0 else Link(slot, zero, zero, revision.answers[slot])
        return self._move(self.holdings.links[revision.edge], link, undoing=False)

    def _left_for_telling(self, concerned: int, undoing: bool) -> int:
        """Messages that a move may cost beyond those to the transmitters concerned; what is taken back was put by before."""
        return UNLIMITED if undoing else self._left - 4 * concerned

    def _allowance(self, move: Move) -> int:
        """Messages that the next transmitter may spend on telling others, when as many may be needed to take it back."""
        return max(move.pool // 2, 0)

    def _move(self, before: Link | None, after: Link | None, undoing: bool) -> list[Message]:
        """Ask every transmitter concerned for what is wanted now, one after the other."""
        revision, links = self._revision, self.holdings.links
        assert revision is not None
        self._start_reward, self._start_outside = self.holdings.standing(), self.holdings.outside(self.cluster)
        links[revision.edge] = after
        wished = self.holdings.wishes([link.slot if link else NO_LINK for link in links])
        concerned: list[int] = []
        for link, asked in [(before, None), *zip(links, wished, strict=True)]:
            if link is None or (link is after and asked is not None):
                continue
            if asked is None or any(abs(one - two) > SAME for one, two in zip(asked, link.asked, strict=True)):
                concerned.append(self.holdings.heard[link.slot].device)
        if after is not None:
            concerned.append(self.holdings.heard[after.slot].device)
        pool = self._left_for_telling(len(concerned), undoing)
        slot = after.slot if after else NO_LINK
        revision.move = Move(revision.edge, slot, before, after, concerned, pool, undoing, wished=wished)
        if pool < 0:
            return self._not_done()
        for link, asked in zip(links, wished, strict=True):
            if link:
                revision.move.earlier[self.holdings.heard[link.slot].device] = link.asked
                link.asked = asked
        return self._request_next()

    def _request_next(self) -> list[Message]:
        move = self._current_move()
        if move.served == len(move.concerned):
            return self._moved()
        name = move.concerned[move.served]
        link = self._link_to(name)
        asked = link.asked if link else [0.0] * len(self.holdings.counts)
        prices = self.holdings.prices(link, expected=True) if link else asked
        self.spent += 2
        return [self._say(name, Request(tuple(asked), tuple(prices), self._allowance(move)))]

    def _current_move(self) -> Move:
        assert self._revision is not None
        assert self._revision.move is not None
        return self._revision.move

    def _granted(self, sender: int, content: Content) -> list[Message]:
        assert isinstance(content, Grant)
        move = self._current_move()
        if content.refused:
            return self._was_refused()
        self.spent += 2 * content.told
        move.pool -= (2 if move.undoing else 4) * content.told
        move.change += content.change
        for cluster, more in content.outside:
            move.outside[cluster] = move.outside.get(cluster, 0.0) + more
        link = self._link_to(sender)
        if link is not None:
            link.granted, link.told = list(content.granted), _told(content.offer)
        move.served += 1
        return self._request_next()

    def _was_refused(self) -> list[Message]:
        """A transmitter would need more messages than are left: take back what the others have granted."""
        move, links = self._current_move(), self.holdings.links
        done = move.concerned[: move.served]
        links[move.edge] = move.before
        wished = self.holdings.wishes([link.slot if link else NO_LINK for link in links])
        for link, asked in zip(links, wished, strict=True):
            if link:
                link.asked = asked
        assert self._revision is not None
        pool = self._left_for_telling(len(done), undoing=True)
        back = Move(move.edge, NO_LINK, move.after, move.before, done, pool, undoing=True, refused=True, wished=wished)
        back.outside, back.earlier = move.outside, move.earlier
        self._revision.move = back
        return self._request_next()

    def _not_done(self) -> list[Message]:
        """The account does not pay for the move: nothing was asked, and the device stops."""
        move = self._current_move()
        self.holdings.links[move.edge] = move.before
        return self._pass_on(False, stop=True)

    def _moved(self) -> list[Message]:
        """All have granted: find out what the move has changed."""
        move = self._current_move()
        change = move.change + self.holdings.weight * (self.holdings.standing() - self._start_reward)
        more = self.holdings.outside(self.cluster) - self._start_outside
        move.outside[self.cluster] = move.outside.get(self.cluster, 0.0) + more
        return self._settle_clusters(change, move)

    def _decide(self, change: float) -> list[Message]:
        """Keep it, or take it back."""
        move, revision = self._current_move(), self._revision
        assert revision is not None
        if move.undoing:
            return self._pass_on(False, stop=move.refused)
        old = move.before.slot if move.before else NO_LINK
        beyond = self.claim.get(move.slot, 0.0) - self.claim.get(old, 0.0)
        forced = old == NO_LINK and not self.free
        if forced or self._keeps(change + beyond, revision.expected + beyond):
            self._add_gain(change + beyond)
            return self._pass_on(True)
        return self._move(move.after, move.before, undoing=True)

    def _keeps(self, change: float, expected: float) -> bool:
        revision = self._revision
        assert revision is not None
        if revision.temperature <= 0.0:
            return change > SLIGHT
        odds = change / revision.temperature - min(expected, 0.0) / revision.noise
        return self._uniform() < math.exp(min(0.0, odds))

    def _settle_clusters(self, change: float, move: Move) -> list[Message]:
        """What clusters take from outside, anew, and by how much N times the objective changes with it."""
        token = self.token
        assert token is not None
        use, more_worth = list(token.use), 0.0
        if not move.refused:  # what was refused has changed nothing
            for cluster, more in move.outside.items():
                more_worth -= self.clusters.term(self.holdings, cluster, use[cluster])
                use[cluster] += more
                more_worth += self.clusters.term(self.holdings, cluster, use[cluster])
        self.token = replace(token, use=tuple(use))
        return self._decide(change + more_worth)

    def _pass_on(self, changed: bool, stop: bool = False) -> list[Message]:
        """The turn is over: the token goes to the next device that still revises, or everybody is told that it is over."""
        token, rules = self.token, self.rules
        assert token is not None
        assert rules is not None
        self._revision = self.token = None
        stopped = token.stopped | ({self.number} if stop or not self.may_go_on else frozenset())
        quiet = 0 if changed else token.quiet + 1
        order = [(self.number + step) % rules.devices for step in range(1, rules.devices + 1)]
        following = [name for name in order if name not in stopped]
        if not following or quiet >= rules.patience * rules.devices:
            return self._end_cycle(token)
        return [self._say(following[0], replace(token, quiet=quiet, stopped=frozenset(stopped)))]

    # Cycles

    def _add_gain(self, gain: float) -> None:
        if self.token is not None:  # which is not there when all revise at once
            self.token = replace(self.token, gained=self.token.gained + gain)

    def _end_cycle(self, token: Token) -> list[Message]:
        """Who holds the token at the end of a cycle tells everybody to stay or to go back."""
        rules = self.rules
        assert rules is not None
        back = token.best is not None and token.gained <= token.best[0] + SLIGHT
        gained, use = token.best if back and token.best else (token.gained, token.use)
        others = [(self.number + step) % rules.devices for step in range(1, rules.devices)]
        if token.cycle + 1 == rules.cycles:
            self._finish(back)
            return [self._say(name, End(back)) for name in others]
        self._turn_over(back)
        stopped = frozenset() if self.may_go_on else frozenset({self.number})
        self.token = Token(use, 0, stopped, token.cycle + 1, gained, (gained, use))
        self._getting_ready = set(others)
        return [self._say(name, NextCycle(back)) for name in others]

    def _next_cycle(self, sender: int, content: Content) -> list[Message]:
        assert isinstance(content, NextCycle)
        self._turn_over(content.back)
        return [self._say(sender, Ready(self.may_go_on))]

    def _ready(self, sender: int, content: Content) -> list[Message]:
        """When all are ready, the lowest number that goes on begins."""
        assert isinstance(content, Ready)
        token, rules = self.token, self.rules
        assert token is not None
        assert rules is not None
        if not content.goes_on:
            token = self.token = replace(token, stopped=token.stopped | {sender})
        self._getting_ready.discard(sender)
        if self._getting_ready:
            return []
        self.token = None
        going = [name for name in range(rules.devices) if name not in token.stopped]
        return [self._say(going[0], token)] if going else self._end_cycle(token)

    def _turn_over(self, back: bool) -> None:
        self._stay_or_go_back(back)
        self._began, self.cycle = self.spent, self.cycle + 1

    def _finish(self, back: bool) -> None:
        self._stay_or_go_back(back)
        self.ended = True

    def _stay_or_go_back(self, back: bool) -> None:
        if not back:
            self._remembered = Remembered.of(self.holdings, self.giving)
        elif self._remembered is not None:
            self._remembered.restore(self.holdings, self.giving)


def _told(offer: Offer) -> Told:
    return Told(list(offer.demand), list(offer.giving), list(offer.taking))
