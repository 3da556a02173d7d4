"""The side of a device that others ask: it tells what it can spare, and serves requests one after the other."""

from collections import deque
from dataclasses import dataclass, field

from d2dfl.discovery.protocol.giving import Giving
from d2dfl.discovery.protocol.holdings import Holdings, List
from d2dfl.discovery.protocol.messages import Ask, Content, Grant, Introduction, Message, Now, Offer, Reply, Request


@dataclass
class Serving:
    """A request that a transmitter is working on."""

    receiver: int
    waiting: deque[int]
    change: float
    told: int
    outside: dict[int, float] = field(default_factory=dict)
    begun: bool = False  # telling them


@dataclass
class Transmitter:
    """A device as those see it that receive from it."""

    number: int
    cluster: int
    holdings: Holdings
    trusts: dict[int, list[bool]]  # receiver -> whether it may have each label

    def __post_init__(self) -> None:
        self.giving = Giving(self.holdings)
        self._serving: Serving | None = None
        self._line: deque[tuple[int, Request]] = deque()
        self._start_reward = 0.0  # what it has of its own doing, when a move of its own begins

    def _say(self, receiver: int, content: Content) -> Message:
        return Message(self.number, receiver, content)

    def introductions(self) -> list[Message]:
        """Tell everybody that hears the device what it can spare of what it trusts them with."""
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
        self._start_reward += change / self.holdings.weight  # not the doing of a move of its own
        self._serving = Serving(sender, deque(affected), change, len(affected))
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
        return [self._now(serving.waiting[0])] if serving.waiting else self._grant(serving)

    def _now(self, name: int) -> Message:
        offer = self._offer(name, self.giving.requesters[name].asked)
        return self._say(name, Now(tuple(self.giving.granted(name)), offer))

    def _grant(self, serving: Serving) -> list[Message]:
        """All have been told: the request is answered, and the next one served."""
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
        if serving is None or sender not in serving.waiting:
            return []
        serving.waiting.remove(sender)
        serving.change += content.change
        if content.outside:
            serving.outside[content.cluster] = serving.outside.get(content.cluster, 0.0) + content.outside
        if sender in self.giving.requesters:
            self.giving.requesters[sender].prices = list(content.prices)
        return self._tell_next()
