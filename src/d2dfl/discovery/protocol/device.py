"""One device of our learner: messages in, messages out. No clock, no socket, nothing of anybody else but what was told.

`receive` takes a message and returns those to be sent. A device that gets the token revises one link: it weighs (weighing.py), asks
whoever looks best, tries it, and keeps it or takes it back, as methods/marginal.py says; then the token goes on.
"""

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from d2dfl.discovery.plain.reference import plain_uniform
from d2dfl.discovery.protocol.giving import SAME, Giving
from d2dfl.discovery.protocol.holdings import Holdings, Link, List, Told
from d2dfl.discovery.protocol.messages import (
    Answer,
    Ask,
    Content,
    End,
    Grant,
    Introduction,
    Message,
    Now,
    Offer,
    Reply,
    Request,
    Taken,
    Token,
)
from d2dfl.discovery.protocol.weighing import Clusters, expected_worth, nothing_told

SLIGHT = 1e-10  # improvements below this are rounding
TURN = 2  # messages that bring the token
LEAST_MOVE = 4  # messages of the cheapest move there and back
ASKED = 8  # transmitters that a device asks at most in one revision
UNLIMITED = 1 << 40
NO_LINK = -1


class Rules(NamedTuple):
    """What all devices agree on."""

    hot: float  # temperature at the beginning
    cold: float  # share of the account from which on it is 0
    restless: float  # of `hot`: how noisy proposals stay
    patience: int  # turns in a row without a change after which all stop
    devices: int


@dataclass
class _Move:
    """A link that is being put in force."""

    edge: int
    slot: int
    before: Link | None
    after: Link | None
    concerned: list[int]  # transmitters, in turn
    pool: int  # messages left for telling others, there and back
    undoing: bool
    refused: bool = False
    wished: list[List] = field(default_factory=list)
    served: int = 0
    change: float = 0.0
    outside: dict[int, float] = field(default_factory=dict)


@dataclass
class _Revision:
    """What a device thinks about while it has the token."""

    edge: int
    temperature: float
    noise: float
    extra: dict[int, float]  # noise and claims by slot; NO_LINK where it may have none
    answers: dict[int, Told] = field(default_factory=dict)
    expected: float = 0.0
    move: _Move | None = None


@dataclass
class _Serving:
    """A request that a transmitter is working on."""

    receiver: int
    waiting: deque[int]
    change: float
    told: int
    outside: dict[int, float] = field(default_factory=dict)


@dataclass
class Device:
    """A device, its account and its side of every link."""

    number: int
    cluster: int
    holdings: Holdings
    clusters: Clusters
    trusts: dict[int, list[bool]]  # receiver -> whether it may have each label
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

    def __post_init__(self) -> None:
        self.giving = Giving(self.holdings)
        self._revision: _Revision | None = None
        self._serving: _Serving | None = None
        self._line: deque[tuple[int, Request]] = deque()

    # What it can do at all

    @property
    def useful(self) -> list[int]:
        """Slots over which something could move."""
        need = self.holdings.need
        return [
            slot
            for slot, there in sorted(self.holdings.heard.items())
            if any(n > 0.0 and s > 0.0 for n, s in zip(need, there.spare, strict=True))
        ]

    @property
    def may_go_on(self) -> bool:
        return bool(self.useful) and self.account - self.spent >= TURN + LEAST_MOVE

    def introductions(self) -> list[Message]:
        """To everybody that hears it: what it can spare of what it trusts them with."""
        spare, giving = self.holdings.surplus, self.giving.introduction()
        return [
            Message(
                self.number,
                receiver,
                Introduction(self._allowed(receiver, spare), self._allowed(receiver, giving), self.cluster),
            )
            for receiver in sorted(self.trusts)
        ]

    def _allowed(self, receiver: int, values: List | tuple[float, ...]) -> tuple[float, ...]:
        """Numbers of the labels that a receiver may know of; 0 for others."""
        return tuple(value if ok else 0.0 for value, ok in zip(values, self.trusts[receiver], strict=True))

    def best_alone(self) -> float:
        """The best gain that it could have if nobody else asked: its part of the unit of temperatures."""
        here, best = self.holdings.standing(), 0.0
        for slot in self.useful:
            link = Link(slot, self.holdings.wishes([slot])[0], [], nothing_told(self.holdings, slot))
            after, sent, there = self.holdings.kept(), self.holdings.kept(), self.holdings.heard[slot]
            for label, amount in enumerate(self.holdings.expected(link)):
                sent[label] += amount
                after[label] += amount * there.arrives
            best = max(best, self.holdings.weight * (self.holdings.worth(after, sent, there.drop) - here))
        return best

    # Messages

    def receive(self, message: Message) -> list[Message]:
        """What to send after this message."""
        content, sender = message.content, message.sender
        if isinstance(content, Introduction):
            there = next(item for item in self.holdings.heard.values() if item.device == sender)
            there.spare, there.giving, there.cluster = list(content.spare), list(content.giving), content.cluster
            return []
        handlers: dict[type[Content], Callable[[int, Content], list[Message]]] = {
            Ask: self._asked,
            Request: self._requested,
            Now: self._told_now,
            Reply: self._replied,
            Offer: self._offered,
            Grant: self._granted,
            Token: self._begin,
            Taken: lambda *_: [],
            End: self._end,
        }
        return handlers[type(content)](sender, content)

    def _say(self, receiver: int, content: Content) -> Message:
        return Message(self.number, receiver, content)

    def _end(self, sender: int, content: Content) -> list[Message]:
        self.ended = True
        return [self._say(sender, Taken())]

    # As a transmitter

    def _asked(self, sender: int, content: Content) -> list[Message]:
        assert isinstance(content, Ask)
        return [self._say(sender, self._offer(sender, list(content.asked)))]

    def _offer(self, receiver: int, asked: List) -> Offer:
        offer = self.giving.offer(receiver, asked)
        return Offer(*(self._allowed(receiver, part) for part in (offer.demand, offer.giving, offer.taking)))

    def _requested(self, sender: int, content: Content) -> list[Message]:
        """Requests are served one after the other."""
        assert isinstance(content, Request)
        self._line.append((sender, content))
        return self._serve_next() if self._serving is None else []

    def _serve_next(self) -> list[Message]:
        if not self._line:
            return []
        sender, request = self._line.popleft()
        before = self.giving.requesters.get(sender)
        held = None if before is None else (list(before.asked), list(before.prices))
        asked = list(self._allowed(sender, request.asked))
        self.giving.set_request(sender, asked, list(request.prices))
        shares = self.giving.shares(self.giving.demand())
        affected = self.giving.affected(shares, sender)
        if 2 * len(affected) > request.allowed:
            self._take_back(sender, held)
            nothing = Offer((), (), ())
            refusal = Grant((), nothing, 0.0, (), 0, refused=True)
            return [self._say(sender, refusal), *self._serve_next()]
        change = self.giving.settle(shares)
        self._serving = _Serving(sender, deque(affected), change, len(affected))
        return self._tell_next()

    def _take_back(self, sender: int, held: tuple[List, List] | None) -> None:
        """A refused request changes nothing for anybody; who wanted to leave counts as the latest to join."""
        if held is None:
            self.giving.requesters.pop(sender, None)
        else:
            self.giving.set_request(sender, *held)

    def _tell_next(self) -> list[Message]:
        serving = self._serving
        assert serving is not None
        if serving.waiting:
            name = serving.waiting[0]
            offer = self._offer(name, self.giving.requesters[name].asked)
            return [self._say(name, Now(tuple(self.giving.granted(name)), offer))]
        name = serving.receiver
        asked = self.giving.requesters[name].asked if name in self.giving.requesters else [0.0] * len(self.giving.share)
        grant = Grant(
            tuple(self.giving.granted(name)),
            self._offer(name, asked),
            serving.change,
            tuple(sorted(serving.outside.items())),
            serving.told,
        )
        self._serving = None
        return [self._say(name, grant), *self._serve_next()]

    def _replied(self, sender: int, content: Content) -> list[Message]:
        assert isinstance(content, Reply)
        serving = self._serving
        if serving is None or not serving.waiting or serving.waiting[0] != sender:
            return []
        serving.waiting.popleft()
        serving.change += content.change
        if content.outside:
            serving.outside[content.cluster] = serving.outside.get(content.cluster, 0.0) + content.outside
        if sender in self.giving.requesters:
            self.giving.requesters[sender].prices = list(content.prices)
        return self._tell_next()

    # As a receiver

    def _told_now(self, sender: int, content: Content) -> list[Message]:
        assert isinstance(content, Now)
        link = self._link_to(sender)
        before, outside = self.holdings.standing(), self.holdings.outside(self.cluster)
        prices: List = [0.0] * len(content.granted)
        if link is not None:
            link.granted, link.told = list(content.granted), _told(content.offer)
            prices = self.holdings.prices(link)
        change = self.holdings.weight * (self.holdings.standing() - before)
        more = self.holdings.outside(self.cluster) - outside
        return [self._say(sender, Reply(change, self.cluster, more, tuple(prices)))]

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
        edge = self.turns % len(self.holdings.links)
        self.turns += 1
        came = [] if sender == self.number else [self._say(sender, Taken())]
        self.spent += 0 if sender == self.number else TURN
        hot = self.rules.hot
        temperature = hot * max(0.0, 1.0 - self.spent / (self.rules.cold * self.account))
        restless = 2.0 * plain_uniform(self.key, self.turns + (1 << 40)) * self.rules.restless * hot
        noise = max(temperature, restless)
        extra = {NO_LINK: self._gumbel(noise)} if self.free else {}
        others = {link.slot for place, link in enumerate(self.holdings.links) if link and place != edge}
        for slot in self.useful:
            if slot not in others:
                extra[slot] = self._gumbel(noise) + self.claim.get(slot, 0.0)
        self._revision = _Revision(edge, temperature, noise, extra)
        return came + self._weigh()

    def _uniform(self) -> float:
        self.draws += 1
        return plain_uniform(self.key, self.draws - 1)

    def _gumbel(self, noise: float) -> float:
        if noise <= 0.0:
            return 0.0
        return -noise * math.log(-math.log(self._uniform() + 1e-300) + 1e-300)

    def _value(self, slot: int) -> float:
        """What it expects with this slot in place of the link that it thinks about."""
        revision, token = self._revision, self.token
        assert revision is not None
        assert token is not None
        links = self.holdings.links
        slots = [link.slot if link else NO_LINK for link in links]
        empty = Told([], [], [])
        told = [link.told if link else empty for link in links]
        if slot != slots[revision.edge]:
            slots[revision.edge] = slot
            told[revision.edge] = empty if slot < 0 else revision.answers.get(slot, nothing_told(self.holdings, slot))
        return expected_worth(self.holdings, self.clusters, self.cluster, token.use[self.cluster], slots, told)

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
        if len(revision.answers) == ASKED or self.account - self.spent < 2:
            return self._pass_on(False)
        self.spent += 2
        return [self._say(self.holdings.heard[top].device, Ask(tuple(self._wanted(top))))]

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
        rest = self.account - self.spent
        return self._move(self.holdings.links[revision.edge], link, rest, undoing=False)

    def _move(self, before: Link | None, after: Link | None, rest: int, undoing: bool) -> list[Message]:
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
        pool = rest - 4 * len(concerned)
        slot = after.slot if after else NO_LINK
        revision.move = _Move(revision.edge, slot, before, after, concerned, pool, undoing, wished=wished)
        if pool < 0:
            return self._not_done()
        for link, asked in zip(links, wished, strict=True):
            if link:
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
        return [self._say(name, Request(tuple(asked), tuple(prices), max(move.pool // 2, 0)))]

    def _current_move(self) -> _Move:
        assert self._revision is not None
        assert self._revision.move is not None
        return self._revision.move

    def _granted(self, sender: int, content: Content) -> list[Message]:
        assert isinstance(content, Grant)
        move = self._current_move()
        if content.refused:
            return self._was_refused()
        self.spent += 2 * content.told
        move.pool -= 4 * content.told
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
        back = _Move(
            move.edge, NO_LINK, move.after, move.before, done, UNLIMITED, undoing=True, refused=True, wished=wished
        )
        self._revision.move = back
        return self._request_next()

    def _not_done(self) -> list[Message]:
        """The account does not pay for the move: nothing was asked, and the device stops."""
        move = self._current_move()
        self.holdings.links[move.edge] = move.before
        return self._pass_on(False, stop=True)

    def _moved(self) -> list[Message]:
        """All have granted: keep it, or take it back."""
        move, revision = self._current_move(), self._revision
        assert revision is not None
        if move.refused:
            return self._pass_on(False, stop=True)
        change = move.change + self.holdings.weight * (self.holdings.standing() - self._start_reward)
        more = self.holdings.outside(self.cluster) - self._start_outside
        move.outside[self.cluster] = move.outside.get(self.cluster, 0.0) + more
        change += self._settle_clusters(move.outside)
        if move.undoing:
            return self._pass_on(False)
        old = move.before.slot if move.before else NO_LINK
        beyond = self.claim.get(move.slot, 0.0) - self.claim.get(old, 0.0)
        forced = old == NO_LINK and not self.free
        if forced or self._keeps(change + beyond, revision.expected + beyond):
            return self._pass_on(True)
        return self._move(move.after, move.before, UNLIMITED, undoing=True)

    def _keeps(self, change: float, expected: float) -> bool:
        revision = self._revision
        assert revision is not None
        if revision.temperature <= 0.0:
            return change > SLIGHT
        odds = change / revision.temperature - min(expected, 0.0) / revision.noise
        return self._uniform() < math.exp(min(0.0, odds))

    def _settle_clusters(self, outside: dict[int, float]) -> float:
        """What clusters take from outside, anew, and by how much N times the objective changes with it."""
        token, change = self.token, 0.0
        assert token is not None
        use = list(token.use)
        for cluster, more in outside.items():
            change -= self.clusters.term(self.holdings, cluster, use[cluster])
            use[cluster] += more
            change += self.clusters.term(self.holdings, cluster, use[cluster])
        self.token = Token(tuple(use), token.quiet, token.stopped)
        return change

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
            self.ended = True
            return [self._say(name, End()) for name in order if name != self.number]
        return [self._say(following[0], Token(token.use, quiet, frozenset(stopped)))]


def _told(offer: Offer) -> Told:
    return Told(list(offer.demand), list(offer.giving), list(offer.taking))


__all__ = ["Answer", "Device", "Rules"]
