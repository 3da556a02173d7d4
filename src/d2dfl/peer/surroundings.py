"""What a negotiation asks the peer in which it happens."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from d2dfl.peer.peer import Peer

SILENT = 3.0  # hellos that are missed before a member counts as gone


class PeerSurroundings:
    """A peer as its negotiation sees it."""

    def __init__(self, peer: "Peer", now: float) -> None:
        self._peer, self._start_s = peer, now
        self.own, self.labels = peer.own, peer.labels

    @property
    def consent_number(self) -> int:
        """Moves with every policy and with every change of the store."""
        return self._peer.policies_read + self._peer.store.changes

    def visible(self, receiver: bytes, now: float) -> dict[str, int]:
        return self._peer.visible(receiver, now)

    def granted(self, receiver: bytes, now: float) -> dict[str, int]:
        peer = self._peer
        if peer.roster.active(receiver) is None:
            return {}
        return {label: peer.policy.allowance(receiver, label, now) for label in self.labels}

    def held(self) -> tuple[dict[str, int], dict[str, int]]:
        return self._peer.store.counts(), self._peer.store.counts(own_only=True)

    def loss(self, sender: bytes) -> float:
        """As probes say; 0 where there were none yet."""
        link = self._peer.links.get(sender)
        return 0.0 if link is None else link.loss or 0.0

    def silent(self, other: bytes, now: float) -> bool:
        heard = self._peer.heard_s.get(other, self._start_s)
        return now - heard > SILENT * self._peer.limits.hello_s

    def secret(self, purpose: bytes) -> bytes:
        return self._peer.secret(purpose)

    def next_number(self) -> bytes:
        self._peer.numbers += 1
        return b"%d/%d" % (self._peer.run, self._peer.numbers)
