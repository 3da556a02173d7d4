"""Devices that revise at the same time, each by its own clock: no token, nothing of the whole network.

What the token did is done by others. Who revises next: everybody, after a pause of its own. What a cluster takes from outside: its
first device keeps the account. A revision begins with the cluster's total (2 messages, as many as the token took), and with the same
question the first device hears what the last revision has changed. After a move each other cluster concerned is told the difference and says
its new total (2 messages each), from which the change of its term follows. When to stop: by one's own account, or after as many
own turns without a change as the rules say. The end: who is done and has heard so from all below it in a tree tells the one
above it, and from the top the end is told down (4 messages a device, put by beforehand).

Moves meet at transmitters, which serve one request after the other. So a change that somebody's share brings to a device in the
middle of a move of its own belongs to that somebody, who is told of it; what is left is its own. Every change of a reward is counted by
exactly one mover, and the sum over all moves is what the objective has gained.

**Nobody waits for ever.** A device waits for an offer or a total, which are given at once whatever the other does, or for a grant. A
grant waits for replies, which are given at once as well, and for those in line before it: at most one a device, as everybody
has one request under way at most. So there is no circle of devices that wait for each other.

**Never more than the account.** Others may have joined a transmitter before a move is taken back, and then more must be told than
on the way there. What the account does not pay is refused there too: a link that cannot be given back is kept, one that cannot be had again
ends, an amount that cannot be changed stays as it is; both sides agree on it, and the device stops.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from d2dfl.discovery.plain.reference import plain_uniform
from d2dfl.discovery.protocol.device import Device
from d2dfl.discovery.protocol.giving import SAME
from d2dfl.discovery.protocol.messages import Content, Done, End, Message, Outside, Taken, Total, Wake
from d2dfl.discovery.protocol.revision import LEAST_MOVE, NO_LINK, TURN, Move
from d2dfl.discovery.protocol.tree import above, below

FINISH = 2  # messages of a device to say that it is done, besides those of the end
PAUSE = 24.0  # message times between two revisions, in the mean
PAUSES = 1 << 41  # where the draws of pauses begin in a device's stream


@dataclass
class OwnClock(Device):
    """A device that revises whenever it has paused."""

    uses: float = 0.0  # as the first of its cluster: what that takes from outside
    owed: float = 0.0  # how much more it takes from outside than the first of its cluster has heard
    quiet: int = 0  # own turns in a row without a change
    done: bool = False
    told_done: bool = False
    heard_done: set[int] = field(default_factory=set)
    gone: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.account -= FINISH
        self._known_use = 0.0
        self._opening = False  # waits for its cluster's total to begin a revision
        self._change: float | None = None  # of a move, while clusters are being told
        self._telling: dict[int, tuple[int, float]] = {}  # first device -> its cluster, how much more

    def _table(self) -> dict[type[Content], Callable[[int, Content], list[Message]]]:
        own = {Wake: self._wake, Outside: self._count, Total: self._counted, Done: self._heard_done}
        return super()._table() | own

    # Its clock

    def first_wake(self) -> list[Message]:
        """To begin with."""
        return [self._say(self.number, Wake(self._pause()))]

    def _pause(self) -> float:
        return 2.0 * PAUSE * plain_uniform(self.key, self.turns + PAUSES)

    @property
    def _counts(self) -> bool:
        return self.clusters.matter(self.holdings)

    @property
    def may_go_on(self) -> bool:
        return bool(self.useful) and self.account - self.spent >= TURN + LEAST_MOVE

    def _wake(self, sender: int, content: Content) -> list[Message]:
        assert self.rules is not None
        if not self.may_go_on or self.quiet >= self.rules.patience:
            return self._stop()
        head = self.clusters.heads[self.cluster]
        if not self._counts or head in self.gone:
            self._known_use = 0.0
            return self._revise()
        if head == self.number:
            self._known_use = self.uses
            return self._revise()
        self.spent += TURN
        self._opening = True
        more, self.owed = self.owed, 0.0
        return [self._say(head, Outside(more))]

    @property
    def _use(self) -> float:
        return self._known_use

    def _pass_on(self, changed: bool, stop: bool = False) -> list[Message]:
        """The revision is over."""
        self._revision = None
        self.quiet = 0 if changed else self.quiet + 1
        return self._stop() if stop else [self._say(self.number, Wake(self._pause()))]

    # What clusters take from outside

    def _count(self, sender: int, content: Content) -> list[Message]:
        assert isinstance(content, Outside)
        self.uses += content.more
        return [self._say(sender, Total(self.uses))]

    def _settle_clusters(self, change: float, move: Move) -> list[Message]:
        messages = []
        for cluster, more in move.outside.items() if self._counts else ():
            head = self.clusters.heads[cluster]
            if abs(more) <= SAME or head in self.gone:
                continue
            if head == self.number:
                self.uses += more
                change += self._difference(cluster, more, self.uses)
            elif cluster == self.cluster:  # its first device hears of it when the next revision begins
                self._known_use += more
                self.owed += more
                change += self._difference(cluster, more, self._known_use)
            else:
                self._telling[head] = (cluster, more)
                self.spent += 2
                messages.append(self._say(head, Outside(more)))
        self._change = change
        return messages or self._settled()

    def _difference(self, cluster: int, more: float, use: float) -> float:
        term = self.clusters.term
        return term(self.holdings, cluster, use) - term(self.holdings, cluster, use - more)

    def _counted(self, sender: int, content: Content) -> list[Message]:
        """A total: at the beginning of a revision, or after a move."""
        assert isinstance(content, Total)
        if self._opening:
            self._opening, self._known_use = False, content.use
            return self._revise()
        assert self._change is not None
        self._change += self._difference(*self._telling.pop(sender), content.use)
        return [] if self._telling else self._settled()

    def _settled(self) -> list[Message]:
        change, self._change = self._change, None
        assert change is not None
        return self._decide(change)

    # What others may be told, and what is left when it is too much

    def _left_for_telling(self, concerned: int, undoing: bool) -> int:
        return self.account - self.spent - (2 if undoing else 4) * concerned

    def _allowance(self, move: Move) -> int:
        each = 2 if move.undoing else 4
        told = move.pool // each
        if self._counts:  # everybody who is told may be of another cluster, which is told then
            known, others = len(move.outside.keys() - {self.cluster}), len(self.clusters.budget) - 1
            told = max((move.pool - each * others) // each, (move.pool - each * known) // (2 * each))
        return 2 * max(told, 0)

    def _was_refused(self) -> list[Message]:
        move, links = self._current_move(), self.holdings.links
        if not move.undoing:
            served, earlier = set(move.concerned[: move.served]), move.earlier
            messages = super()._was_refused()
            for link in links:  # whoever was not asked yet still has what was asked for before
                name = self.holdings.heard[link.slot].device if link else -1
                if link and name in earlier and name not in served:
                    link.asked = earlier[name]
            return messages
        move.refused = True
        name = move.concerned[move.served]
        link = self._link_to(name)
        if link is None:  # it cannot be given back: all stays as it is
            links[move.edge] = move.before
            for other in links:
                if other:
                    device = self.holdings.heard[other.slot].device
                    other.asked = move.earlier.get(device, other.asked)
            move.served = len(move.concerned)
            return self._request_next()
        if link is links[move.edge]:
            links[move.edge] = None
        else:
            link.asked = move.earlier[name]
        move.served += 1
        return self._request_next()

    def _tell_next(self) -> list[Message]:
        """All whose share changes are told at once."""
        serving = self._serving
        assert serving is not None
        if not serving.begun:
            serving.begun = True
            if serving.waiting:
                return [self._now(name) for name in serving.waiting]
        return [] if serving.waiting else self._grant(serving)

    def _request_next(self) -> list[Message]:
        move = self._current_move()
        while move.served < len(move.concerned) and move.concerned[move.served] in self.gone:
            move.served += 1
        return super()._request_next()

    # Those that are gone

    def partners(self) -> set[int]:
        """Those with whom it has links."""
        from_whom = {self.holdings.heard[link.slot].device for link in self.holdings.links if link}
        return from_whom | set(self.giving.requesters)

    def lost(self, name: int) -> list[Message]:
        """Somebody is gone for good: links with it end, and nobody waits for it."""
        top = above(self.number, self.gone)
        self.gone.add(name)
        before, outside = self.holdings.standing(), self.holdings.outside(self.cluster)
        self.giving.leave(name)
        self._unlink(name)
        more = self.holdings.outside(self.cluster) - outside
        self._start_reward += self.holdings.standing() - before
        self._start_outside += more
        self.owed += more
        self._line = deque(item for item in self._line if item[0] != name)
        messages: list[Message] = []
        if self._serving is not None and name in self._serving.waiting:
            self._serving.waiting.remove(name)
            messages += self._tell_next()
        if self.told_done and not self.ended and top == name:
            self.told_done = False
        return messages + self._without(name) + self._tell_done()

    def _unlink(self, name: int) -> None:
        links, revision = self.holdings.links, self._revision
        for slot, there in self.holdings.heard.items():
            if there.device == name:
                there.spare = [0.0] * len(there.spare)
                self._useful = None
                if revision is not None:
                    revision.extra.pop(slot, None)
        for edge, link in enumerate(links):
            if link and self.holdings.heard[link.slot].device == name:
                links[edge] = None
        move = revision.move if revision is not None else None
        if move is not None:
            if move.before and self.holdings.heard[move.before.slot].device == name:
                move.before = None
            if move.after and self.holdings.heard[move.after.slot].device == name:
                move.after, move.slot = None, NO_LINK

    def _without(self, name: int) -> list[Message]:
        """Go on with a revision that waited for somebody who is gone."""
        revision = self._revision
        if self._opening and name == self.clusters.heads[self.cluster]:
            self._opening, self._known_use = False, 0.0
            return self._revise()
        if name in self._telling:
            del self._telling[name]
            return [] if self._telling else self._settled()
        if revision is None or self._change is not None:
            return []
        if revision.move is None:
            return self._weigh() if revision.asking == name else []
        move = revision.move
        return self._request_next() if move.concerned[move.served] == name else []

    # The end

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
        top = above(self.number, self.gone)
        return {top} if self.told_done and top is not None else self.awaited()

    def _tell_done(self) -> list[Message]:
        if not self.done or self.told_done or self.awaited():
            return []
        self.told_done = True
        upwards = above(self.number, self.gone)
        return self._tell_end() if upwards is None else [self._say(upwards, Done())]

    def _heard_done(self, sender: int, content: Content) -> list[Message]:
        self.heard_done.add(sender)
        if self.ended:
            return [self._say(sender, Taken()), self._say(sender, End())]
        return [self._say(sender, Taken()), *self._tell_done()]

    def has_ended(self, name: int) -> list[Message]:
        """Somebody knows of the end: it need not tell that it is done."""
        if self.ended or not self.done or name not in self.awaited():
            return []
        self.heard_done.add(name)
        return self._tell_done()

    def end_alone(self) -> list[Message]:
        """It has waited long enough: its own links stand, and it still serves others."""
        return self._tell_end()

    def _tell_end(self) -> list[Message]:
        self.ended = True
        return [self._say(name, End()) for name in sorted(self.heard_done - self.gone)]

    def _end(self, sender: int, content: Content) -> list[Message]:
        further = [] if self.ended else self._tell_end()
        return [self._say(sender, Taken()), *further]
