"""Devices that revise at the same time, each by its own clock: no token, nothing of the whole network.

What the token did is done by others. Who revises next: everybody, after a pause of its own. When to stop: by one's own account, or
after as many own turns without a change as the rules say. The end is told along a tree (ending.py).

**What a cluster takes from outside.** Its first device keeps the account, a number for each member. A revision begins with a question
to it (2 messages, as many as the token took): so much I take; what do all of us take? Who hears that its share has changed
reckons what that does to its own cluster's term with the total that it has last heard, and says it with the change of its
reward; the account learns of it when its own next revision begins. So nobody tells other clusters anything, and totals are as old as a
device's last revision. If the first device is gone the next one takes over, and every member tells it what it takes.

Moves meet at transmitters, which serve one request after the other. So a change that somebody's share brings to a device in the
middle of a move of its own belongs to that somebody, who is told of it; what is left is its own. Every change of a reward is counted by
exactly one mover, and the sum over all moves is what rewards have gained.

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

from d2dfl.discovery.constants import SAME, TURN
from d2dfl.discovery.plain.reference import plain_uniform
from d2dfl.discovery.protocol.ending import Ending
from d2dfl.discovery.protocol.messages import Content, Done, Message, Now, Outside, Reply, Total, Wake
from d2dfl.discovery.protocol.receiver import told_by
from d2dfl.discovery.protocol.revision import NO_LINK, Move

FINISH = 2  # messages of a device to say that it is done, besides those of the end
PAUSE = 24.0  # message times between two revisions, in the mean
PAUSES = 1 << 41  # where the draws of pauses begin in a device's stream


@dataclass
class OwnClock(Ending):
    """A device that revises whenever it has paused."""

    taken: dict[int, float] = field(default_factory=dict)  # as the first of its cluster: what each member takes
    quiet: int = 0  # own turns in a row without a change

    def __post_init__(self) -> None:
        super().__post_init__()
        self.account -= FINISH
        self._known_use = 0.0  # what its cluster takes from outside, as it has last heard, with its own changes since
        self._opening = False  # waits for its cluster's total to begin a revision

    def _table(self) -> dict[type[Content], Callable[[int, Content], list[Message]]]:
        own = {Wake: self._wake, Outside: self._count, Total: self._counted, Done: self._heard_done}
        return super()._table() | own

    # Its clock

    def first_wake(self) -> list[Message]:
        """What a device says first: to itself, when to revise for the first time."""
        return [self._say(self.number, Wake(self._pause()))]

    def _pause(self) -> float:
        return 2.0 * PAUSE * plain_uniform(self.key, self.turns + PAUSES)

    def _wake(self, sender: int, content: Content) -> list[Message]:
        assert self.rules is not None
        if not self.may_go_on or self.quiet >= self.rules.patience:
            return self._stop()
        if not self._counts:
            return self._revise()
        self._opening = True
        if self._head() != self.number:
            self.spent += TURN
        return self._report()

    def _pass_on(self, changed: bool, stop: bool = False) -> list[Message]:
        """The revision is over."""
        self._revision = None
        self.quiet = 0 if changed else self.quiet + 1
        return self._stop() if stop else [self._say(self.number, Wake(self._pause()))]

    # What clusters take from outside

    @property
    def _counts(self) -> bool:
        return self.clusters.matter(self.holdings)

    @property
    def _use(self) -> float:
        return self._known_use

    def _head(self) -> int:
        """Who keeps the account of its cluster."""
        return self.clusters.head(self.cluster, self.gone - {self.number})

    def _report(self) -> list[Message]:
        """Tell who keeps the account what it takes from outside."""
        mine = self.holdings.outside(self.cluster)
        if self._head() == self.number:
            return self._counted(self.number, Total(self._total()))
        return [self._say(self._head(), Outside(mine))]

    def _total(self) -> float:
        self.taken[self.number] = self.holdings.outside(self.cluster)
        return sum(self.taken.values())

    def _count(self, sender: int, content: Content) -> list[Message]:
        assert isinstance(content, Outside)
        self.taken[sender] = content.takes
        return [self._say(sender, Total(self._total()))]

    def _counted(self, sender: int, content: Content) -> list[Message]:
        assert isinstance(content, Total)
        self._known_use = content.use
        if not self._opening:
            return []
        self._opening = False
        return self._revise()

    def _takes_more(self, more: float) -> float:
        """It takes so much more from outside: what that does to N times the objective, as far as it knows."""
        if not self._counts or abs(more) <= SAME:
            return 0.0
        term, before = self.clusters.term, self._known_use
        self._known_use += more
        return term(self.holdings, self.cluster, self._known_use) - term(self.holdings, self.cluster, before)

    def _settle_clusters(self, change: float, move: Move) -> list[Message]:
        return self._decide(change + self._takes_more(move.outside.get(self.cluster, 0.0)))

    def _told_now(self, sender: int, content: Content) -> list[Message]:
        (message,) = super()._told_now(sender, content)
        self._hear_of_released(sender, content)
        reply = message.content
        assert isinstance(reply, Reply)
        change = reply.change + self._takes_more(reply.outside)
        return [self._say(sender, Reply(change, self.cluster, 0.0, reply.prices))]

    def _hear_of_released(self, sender: int, content: Content) -> None:
        """A link that it is giving back has another share now: it is its own again should giving back be refused."""
        assert isinstance(content, Now)
        move = self._revision.move if self._revision else None
        link = move.before if move else None
        if link is not None and self._link_to(sender) is None and self.holdings.heard[link.slot].device == sender:
            link.granted, link.told = list(content.granted), told_by(content.offer)

    # What others may be told, and what is left when it is too much

    def _left_for_telling(self, concerned: int, undoing: bool) -> int:
        return self._left - (2 if undoing else 4) * concerned

    def _allowance(self, move: Move) -> int:
        return 2 * max(move.pool // (2 if move.undoing else 4), 0)

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
        """Those with whom it has links, or had them when the move that it is in began."""
        move = self._revision.move if self._revision else None
        links = [*self.holdings.links, move.before if move else None]
        from_whom = {self.holdings.heard[link.slot].device for link in links if link}
        return from_whom | set(self.giving.requesters)

    def lost(self, name: int) -> list[Message]:
        """Somebody is gone for good: links with it end, and nobody waits for it."""
        head = self._head()
        self._leaves_view(name)
        self.taken.pop(name, None)
        before, outside = self.holdings.standing(), self.holdings.outside(self.cluster)
        self.giving.leave(name)
        self._unlink(name)
        more = self.holdings.outside(self.cluster) - outside
        self._takes_more(more)
        self._start_reward += self.holdings.standing() - before
        self._start_outside += more
        self._line = deque(item for item in self._line if item[0] != name)
        messages: list[Message] = []
        if self._serving is not None and name in self._serving.waiting:
            self._serving.waiting.remove(name)
            messages += self._tell_next()
        messages += self._without(name)
        if name == head and self._counts:  # the next one takes over
            messages += self._report()
        return messages + self._tell_done()

    def leave(self) -> None:
        """The others go on without it: nothing of theirs holds any more."""
        self.gone.add(self.number)
        self.done = self.ended = True
        self._revision, self._opening, self._serving = None, False, None
        self._line.clear()
        self.giving.requesters.clear()
        self.holdings.given = [0.0] * len(self.holdings.given)
        self.holdings.links = [None] * len(self.holdings.links)

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
        if revision is None:
            return []
        if revision.move is None:
            return self._weigh() if revision.asking == name else []
        move = revision.move
        return self._request_next() if move.concerned[move.served] == name else []
