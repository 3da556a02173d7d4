"""One device of our learner: messages in, messages out. No clock, no socket, nothing of anybody else but what was told.

`receive` takes a message and returns those to be sent. A device that gets the token revises one link: it weighs (weighing.py), asks
whoever looks best (receiver.py), tries it, and keeps it or takes it back (mover.py), as methods/marginal.py says; then the token goes on.
"""

from collections.abc import Callable
from dataclasses import dataclass

from d2dfl.discovery.protocol.messages import (
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
from d2dfl.discovery.protocol.mover import Mover
from d2dfl.discovery.protocol.revision import LEAST_MOVE, TURN, Move


@dataclass
class Device(Mover):
    """A device that revises when it has the token."""

    token: Token | None = None
    ended: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self._handlers = self._table()

    @property
    def may_go_on(self) -> bool:
        return bool(self.useful) and self.account - self.spent >= TURN + LEAST_MOVE

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
            End: self._end,
        }

    def _end(self, sender: int, content: Content) -> list[Message]:
        self.ended = True
        return [self._say(sender, Taken())]

    # The token

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
        self.token = Token(tuple(use), token.quiet, token.stopped)
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
            self.ended = True
            return [self._say(name, End()) for name in order if name != self.number]
        return [self._say(following[0], Token(token.use, quiet, frozenset(stopped)))]
