"""One device of our learner: messages in, messages out. No clock, no socket, nothing of anybody else but what was told.

`receive` takes a message and returns those to be sent. A device that gets the token revises its links one after the other: it weighs
(weighing.py), asks whoever looks best (receiver.py), tries it, and keeps it or takes it back (mover.py), as methods/marginal.py says;
then the token goes on.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from d2dfl.discovery.constants import LEAST_MOVE, SLIGHT, TURN
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
from d2dfl.discovery.protocol.mover import Mover
from d2dfl.discovery.protocol.remembered import Remembered
from d2dfl.discovery.protocol.revision import Move


@dataclass
class Device(Mover):
    """A device that revises when it has the token."""

    token: Token | None = None
    ended: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self._remembered: Remembered | None = None
        self._revised, self._changed = 0, False  # links in this turn, and whether any of them is another now
        self._getting_ready: set[int] = set()  # who has not said yet whether it goes on with the next cycle
        self._handlers = self._table()

    @property
    def may_go_on(self) -> bool:
        return bool(self.useful) and self._left >= TURN + LEAST_MOVE

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

    def _end(self, sender: int, content: Content) -> list[Message]:
        assert isinstance(content, End)
        self._finish(content.back)
        return [self._say(sender, Taken())]

    # The token

    def _begin(self, sender: int, content: Content) -> list[Message]:
        """The token: a turn begins. Who looks for nothing, or cannot pay for a turn, says so and hands it on."""
        assert isinstance(content, Token)
        goes_on, said = self.may_go_on, []
        if sender != self.number:
            self.spent += TURN
            said.append(self._say(sender, Taken()))
        if not goes_on:
            return [*said, *self._hand_on(replace(content, stopped=content.stopped | {self.number}))]
        self.token, self._revised, self._changed = content, 0, False
        return [*said, *self._revise()]

    @property
    def _use(self) -> float:
        """What its cluster takes from outside, as far as it knows."""
        assert self.token is not None
        return self.token.use[self.cluster]

    def _settle_clusters(self, change: float, move: Move) -> list[Message]:
        """What clusters take from outside after the move, and by how much N times the objective changes with it."""
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
        """The revision is over: revise the next link, or hand the token to the next device that still revises, or tell all that the cycle is over."""
        self._revised, self._changed = self._revised + 1, self._changed or changed
        if not stop and self._revised < len(self.holdings.links) and self._left >= LEAST_MOVE:
            return self._revise()
        token = self.token
        assert token is not None
        self._revision = self.token = None
        stopped = token.stopped | ({self.number} if stop or not self.may_go_on else frozenset())
        quiet = 0 if self._changed else token.quiet + 1
        return self._hand_on(replace(token, quiet=quiet, stopped=frozenset(stopped)))

    def _hand_on(self, token: Token) -> list[Message]:
        """Hand the token to the next device that may still revise, or tell all that the cycle is over."""
        rules = self.rules
        assert rules is not None
        order = [(self.number + step) % rules.devices for step in range(1, rules.devices + 1)]
        following = [name for name in order if name not in token.stopped]
        if not following or token.quiet >= rules.patience * rules.devices:
            return self._end_cycle(token)
        return [self._say(following[0], token)]

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
