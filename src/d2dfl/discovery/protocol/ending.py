"""The end of devices with clocks of their own, told along a tree, and who is still among them.

The end: who is done and has heard so from all below it in the tree tells the one above it, and from the top the end is told down (4
messages a device, put by beforehand). So somebody who has ended still serves others, but nobody asks any more.

Members: `gone` is a device's view of who has left. It only grows, goes along with everything that is said over a lossy radio
(lossy.py), and the tree follows from it: it is all that is needed for the end to come.

- Everybody tells somebody of a lower number. So those who wait for the end wait for somebody lower, up to one that waits for others to be done.
- Who waits for others asks them now and then whether they are there. The answer brings their view. Either both views are the same now, and
  with them the tree: then the other is still busy, or tells this one next; or the other does not answer, and leaves the view.
- A view grows at most as often as there are devices, and accounts are finite. So every wait ends.

Who finds itself in somebody's view was away for too long: it leaves, its links end on both sides, and it has ended.
"""

from dataclasses import dataclass, field

from d2dfl.discovery.protocol.device import Device
from d2dfl.discovery.protocol.messages import Content, Done, End, Message, Taken
from d2dfl.discovery.protocol.tree import above, below


@dataclass
class Ending(Device):
    """A device that knows when it is done, and hears when all are."""

    done: bool = False
    told_done: bool = False
    heard_done: set[int] = field(default_factory=set)
    gone: set[int] = field(default_factory=set)  # itself among them: the others go on without it

    @property
    def left(self) -> bool:
        """Whether the others go on without it."""
        return self.number in self.gone

    def _top(self) -> int | None:
        return above(self.number, self.gone)

    def _stop(self) -> list[Message]:
        self.done = True
        return self._tell_done()

    def awaited(self) -> set[int]:
        """Those that tell it when they are done, and have not yet."""
        assert self.rules is not None
        return below(self.number, self.rules.devices, self.gone) - self.heard_done

    def watched(self) -> set[int]:
        """Those for whom it waits at the end."""
        if not self.done or self.ended:
            return set()
        top = self._top()
        return {top} if self.told_done and top is not None else self.awaited()

    def _tell_done(self) -> list[Message]:
        if not self.done or self.told_done or self.ended or self.awaited():
            return []
        self.told_done = True
        top = self._top()
        return self._tell_end() if top is None else [self._say(top, Done())]

    def _heard_done(self, sender: int, content: Content) -> list[Message]:
        self.heard_done.add(sender)
        if self.ended:
            return [self._say(sender, Taken()), self._say(sender, End())]
        return [self._say(sender, Taken()), *self._tell_done()]

    def has_ended(self, name: int) -> list[Message]:
        """Somebody knows of the end: it need not tell that it is done, and who has told it need not wait."""
        if name not in self.watched():
            return []
        if self.told_done:
            return self._tell_end()
        self.heard_done.add(name)
        return self._tell_done()

    def _tell_end(self) -> list[Message]:
        self.ended = True
        return [self._say(name, End()) for name in sorted(self.heard_done - self.gone)]

    def _end(self, sender: int, content: Content) -> list[Message]:
        further = [] if self.ended else self._tell_end()
        return [self._say(sender, Taken()), *further]

    def _leaves_view(self, name: int) -> None:
        """Somebody has left: the tree is another one."""
        top = self._top()
        self.gone.add(name)
        if self._top() != top:
            self.told_done = False
