"""Masked sums of peers: whoever calls an attempt chooses its id, and must learn nothing by choosing one twice."""

import pytest

pytest.importorskip("msgspec", reason="no msgspec: pip install 'd2dfl[peer]'")

from small_fleet import LABELS, NOON_S, Small

from d2dfl import preset
from d2dfl.peer.negotiation.negotiation import Negotiation
from d2dfl.peer.negotiation.plan import Plan
from d2dfl.peer.surroundings import PeerSurroundings
from d2dfl.peer.wire import negotiation as say


class Victim:
    """The second device, to which the first one speaks as it likes."""

    def __init__(self, size: int = 4) -> None:
        self.small, self.size = Small(size=size, points=1), size
        peer = self.small.peers[1]
        peer.labels = LABELS
        self.plan = Plan(preset("best"))
        self.talk = Negotiation(PeerSurroundings(peer, NOON_S), self.plan, NOON_S, calls=False)
        self.talk.know(self.small.roster)
        self.number = 0

    def invite(self, attempt: bytes) -> None:
        self.number += 1
        self.say(say.Invite(attempt, self.number, self.plan.digest(LABELS)))

    def keys_in(self, attempt: bytes) -> dict[bytes, bytes]:
        """Keys of its masks in an attempt that begins now, by who gets them."""
        self.invite(attempt)
        self.talk.take()
        agreed = say.Agreed(0, True, True, 2, 100, 0.02, [0] * self.size, [0.0])
        self.say(say.Begin(attempt, list(range(self.size)), agreed))
        said = [(receiver, say.decode_talk(content)) for receiver, content in self.talk.take()]
        packets = [(receiver, talk.content) for receiver, talk in said if isinstance(talk, say.Packet)]
        return {receiver: content.public for receiver, content in packets if isinstance(content, say.Key)}

    def say(self, talk: say.Talk) -> None:
        self.talk.receive(self.small.prints(0), say.encode_talk(talk), NOON_S)


def test_an_attempt_with_an_old_id_has_other_masks() -> None:
    """The same masks over counts that have changed since would show the change, label by label, to the next in the tree."""
    victim, once, between = Victim(), b"a" * 32, b"b" * 32
    first = victim.keys_in(once)
    victim.invite(between)
    again = victim.keys_in(once)
    assert len(first) == len(again) == 3
    assert not set(first.values()) & set(again.values())


def test_who_masks_with_whom_is_not_for_the_caller_to_choose() -> None:
    """Else it would try ids until all of somebody's neighbours in the mask graph are friends of its own."""
    victim = Victim(30)
    first, other = victim.keys_in(b"a" * 32), victim.keys_in(b"b" * 32)
    assert 2 < len(first) < 29
    assert first.keys() == other.keys()
