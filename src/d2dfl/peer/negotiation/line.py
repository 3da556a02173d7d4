"""One pair of devices: messages are numbered, kept until the other says that they have come, and delivered once and in order."""

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from d2dfl.peer.wire.messages import WireError
from d2dfl.peer.wire.negotiation import Content, size_of

FIRST_REPEAT_S = 0.4
LAST_REPEAT_S = 4.0
ACKNOWLEDGE_S = 0.15  # what has come is said with the next message, or after so long on its own
AT_ONCE = 16  # messages that are repeated together
AHEAD = 512  # messages that may come before one that is missing
AHEAD_BYTES = 1 << 20  # of these; more are let go, and come again


@dataclass
class Line:
    """This side of both directions. The time goes in; (number, seen, content) come out, without content to say `seen` alone."""

    next: int = 0
    seen: int = 0  # all of the other's numbers below have come
    kept: deque[tuple[int, Content]] = field(default_factory=deque)  # sent, and not known to have come
    ahead: dict[int, Content] = field(default_factory=dict)
    outbox: list[tuple[int, Content | None]] = field(default_factory=list)
    repeat_s: float = math.inf
    pause_s: float = FIRST_REPEAT_S
    owed_s: float = math.inf  # when `seen` must be said at the latest
    repeats: int = 0
    acknowledgements: int = 0

    def say(self, content: Content, now: float) -> None:
        self.outbox.append((self.next, content))
        self.kept.append((self.next, content))
        self.next += 1
        if self.repeat_s == math.inf:
            self.repeat_s, self.pause_s = now + FIRST_REPEAT_S, FIRST_REPEAT_S

    def hear(self, number: int, seen: int, content: Content | None, now: float) -> list[Content]:
        """What is new, in order."""
        if seen > self.next:
            raise WireError("says that more has come than was sent")
        came = bool(self.kept) and self.kept[0][0] < seen
        while self.kept and self.kept[0][0] < seen:
            self.kept.popleft()
        if came:
            self.pause_s = FIRST_REPEAT_S
            self.repeat_s = now + FIRST_REPEAT_S if self.kept else math.inf
        if content is None:
            return []
        self.owed_s = min(self.owed_s, now + (ACKNOWLEDGE_S if number >= self.seen else 0.0))
        if number >= self.seen + AHEAD:
            raise WireError("too far ahead")
        if number == self.seen or (number > self.seen and self._room(content)):
            self.ahead[number] = content
        found = []
        while self.seen in self.ahead:
            found.append(self.ahead.pop(self.seen))
            self.seen += 1
        return found

    def _room(self, content: Content) -> bool:
        """Whether one more may wait for one that is missing."""
        return sum(map(size_of, self.ahead.values())) + size_of(content) <= AHEAD_BYTES

    def tick(self, now: float, still: Callable[[Content], Content]) -> None:
        """`still`: what may be told of a message now that it is said again."""
        if now >= self.repeat_s:
            out = {number for number, content in self.outbox if content is not None}
            again = [(number, still(content)) for number, content in list(self.kept)[:AT_ONCE] if number not in out]
            self.outbox += again
            self.repeats += len(again)
            self.pause_s = min(2.0 * self.pause_s, LAST_REPEAT_S)
            self.repeat_s = now + self.pause_s
        if now >= self.owed_s and not self.outbox:
            self.outbox.append((self.next, None))
            self.acknowledgements += 1

    def take(self) -> list[tuple[int, int, Content | None]]:
        taken, self.outbox = self.outbox, []
        if taken:
            self.owed_s = math.inf
        return [(number, self.seen, content) for number, content in taken]

    def timer(self) -> float:
        return min(self.repeat_s, self.owed_s)
