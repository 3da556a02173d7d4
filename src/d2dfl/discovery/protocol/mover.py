"""The side of a device that moves: a link is put in force, and kept or taken back by what all concerned say of it."""

import math
from abc import abstractmethod

from d2dfl.discovery.constants import SAME, SLIGHT
from d2dfl.discovery.protocol.holdings import Link
from d2dfl.discovery.protocol.messages import Content, Grant, Message, Request
from d2dfl.discovery.protocol.receiver import Receiver, told_by
from d2dfl.discovery.protocol.revision import NO_LINK, UNLIMITED, Move


class Mover(Receiver):
    """A device in the middle of a move."""

    @abstractmethod
    def _settle_clusters(self, change: float, move: Move) -> list[Message]:
        """What clusters take from outside after the move, and by how much N times the objective changes with it."""

    @abstractmethod
    def _add_gain(self, gain: float) -> None:
        """A move that is kept has brought so much."""

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
        requested = self.holdings.requests([link.slot if link else NO_LINK for link in links])
        concerned: list[int] = []
        for link, asked in [(before, None), *zip(links, requested, strict=True)]:
            if link is None or (link is after and asked is not None):
                continue
            if asked is None or any(abs(one - two) > SAME for one, two in zip(asked, link.asked, strict=True)):
                concerned.append(self.holdings.heard[link.slot].device)
        if after is not None:
            concerned.append(self.holdings.heard[after.slot].device)
        pool = self._left_for_telling(len(concerned), undoing)
        slot = after.slot if after else NO_LINK
        revision.move = Move(revision.edge, slot, before, after, concerned, pool, undoing)
        if pool < 0:
            return self._not_done()
        for link, asked in zip(links, requested, strict=True):
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
            link.granted, link.told = list(content.granted), told_by(content.offer)
        move.served += 1
        return self._request_next()

    def _was_refused(self) -> list[Message]:
        """A transmitter would need more messages than are left: take back what the others have granted."""
        move, links = self._current_move(), self.holdings.links
        done = move.concerned[: move.served]
        in_force = {self.holdings.heard[link.slot].device: link.asked for link in links if link}
        links[move.edge] = move.before
        requested = self.holdings.requests([link.slot if link else NO_LINK for link in links])
        for link, asked in zip(links, requested, strict=True):
            if link:
                link.asked = asked
        assert self._revision is not None
        pool = self._left_for_telling(len(done), undoing=True)
        back = Move(move.edge, NO_LINK, move.after, move.before, done, pool, undoing=True, refused=True)
        back.outside, back.earlier = move.outside, in_force  # which holds where taking back is refused, too
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
