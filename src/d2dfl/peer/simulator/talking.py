"""Peers that look for the graph of a given network, on a virtual clock: every frame takes as long as one is told."""

import heapq
import itertools
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from d2dfl.config import Config
from d2dfl.network import Network
from d2dfl.peer.handover.limits import Limits
from d2dfl.peer.identity.keys import fingerprint
from d2dfl.peer.identity.roster import Member, Roster
from d2dfl.peer.negotiation.negotiation import Negotiation
from d2dfl.peer.negotiation.plan import Plan
from d2dfl.peer.peer import Peer
from d2dfl.peer.simulator.devices import OpenBox, QuickKey, quick_verify, signed_policy
from d2dfl.peer.store.schema import NEW_POINT
from d2dfl.peer.store.store import Store
from d2dfl.peer.surroundings import PeerSurroundings
from d2dfl.peer.wire import negotiation as say
from d2dfl.peer.wire.frames import read_frame
from d2dfl.peer.wire.messages import Discovery, decode_body

NOON_S = 1_790_000_000.0
MANY = 1_000_000


def full_mesh(network: Network) -> Network:
    """The same network with slots in the order of devices, as peers have them."""
    size = network.devices
    drop, trust = np.ones((size, size)), np.zeros((size, size, network.partitions), dtype=bool)
    for receiver, slot in zip(*np.nonzero(network.candidates >= 0), strict=True):
        drop[receiver, network.candidates[receiver, slot]] = network.drop[receiver, slot]
        trust[receiver, network.candidates[receiver, slot]] = network.trust[receiver, slot]
    assert (drop[~np.eye(size, dtype=bool)] < 0.999).all()
    return Network.from_arrays(
        counts=network.counts, threshold=network.threshold, trust=trust, drop=drop, cluster=network.cluster, budget=network.budget
    )  # fmt: skip


def in_clusters(roster: Roster, network: Network) -> Roster:
    """A roster with the clusters of a network whose budgets are alike, counted by device."""
    allowance = float(network.budget[0] / (network.cluster == 0).sum())
    found = roster.in_clusters(network.cluster.tolist(), allowance)
    assert np.allclose(found.clusters[1], network.budget, rtol=1e-12)
    return found


class GivenLosses(PeerSurroundings):
    """Losses as the network says, not as probes do."""

    def __init__(self, peer: Peer, now: float, losses: dict[bytes, float]) -> None:
        super().__init__(peer, now)
        self._losses = losses

    def loss(self, sender: bytes) -> float:
        return self._losses[sender]


def _never(receiver: bytes, frame: bytes) -> bool:
    return False


@dataclass
class Talking:
    """All of them."""

    network: Network
    config: Config
    seed: int = 0
    at_once: bool = False
    takes_s: float = 0.02
    lose: Callable[[bytes, bytes], bool] = _never
    now: float = NOON_S
    granted: int = MANY  # of each trusted label
    keep: bool = False  # all frames
    seen: list[tuple[bytes, bytes]] = field(default_factory=list)

    def __post_init__(self) -> None:
        size = self.network.devices
        self.labels = tuple(f"l{number}" for number in range(self.network.partitions))
        self.keys = [QuickKey(b"%032d" % number) for number in range(size)]
        self.prints = [fingerprint(key.public) for key in self.keys]
        self.owner = QuickKey(b"owner".ljust(32))
        members = tuple(
            Member(f"p{n}", key.public, key.public, f"127.0.0.1:{7000 + n}") for n, key in enumerate(self.keys)
        )
        self.roster = in_clusters(Roster(0, self.owner.public, members), self.network)
        self.stores = [Store(":memory:", print_) for print_ in self.prints]
        for number, store in enumerate(self.stores):
            self._fill(store, self.network.counts[number])
        self.line: list[tuple[float, int, int, bytes | None]] = []
        self.order = itertools.count()
        self.frames = 0
        self.due = [math.inf] * size
        self.peers = [self.start(number) for number in range(size)]

    def _fill(self, store: Store, counts: NDArray[np.float64]) -> None:
        names = [label for label, number in zip(self.labels, counts, strict=True) for _ in range(int(number))]
        rows = [(store.own, number, label, "|u1:1", b"x") for number, label in enumerate(names)]
        store.db.executemany(NEW_POINT, rows)
        store.db.execute("INSERT OR REPLACE INTO facts VALUES ('points', ?)", (len(rows),))

    def grants(self, number: int) -> dict[bytes, dict[str, int]]:
        found: dict[bytes, dict[str, int]] = {}
        for receiver in range(self.network.devices):
            slots = np.flatnonzero(self.network.candidates[receiver] == number)
            if receiver != number and len(slots):
                trusted = self.network.trust[receiver, slots[0]]
                found[self.prints[receiver]] = {
                    label: self.granted for label, ok in zip(self.labels, trusted, strict=True) if ok
                }
        return found

    def start(self, number: int) -> Peer:
        """A process of this device begins."""
        peer = Peer(
            self.keys[number], OpenBox(self.keys[number].public), self.stores[number], self.roster,
            self.roster.sealed(self.owner), self.now, owner=self.owner.public, limits=Limits(hello_s=5.0),
            labels=self.labels, check=quick_verify,
        )  # fmt: skip
        peer.set_policy(signed_policy(self.owner, 1, self.grants(number)), self.now)
        network = self.network
        losses = {
            self.prints[name]: float(network.drop[number, slot]) for slot, name in enumerate(network.candidates[number])
        }
        plan = Plan(self.config, self.seed, self.at_once, message_s=self.takes_s, gather_s=4.0)
        peer.follow(Negotiation(GivenLosses(peer, self.now, losses), plan, self.now))
        self.due[number] = self.now
        self._push(self.now, number, None)
        return peer

    def talk(self, number: int) -> Negotiation:
        found = self.peers[number].discovery
        assert isinstance(found, Negotiation)
        return found

    @property
    def talks(self) -> list[Negotiation]:
        return [self.talk(number) for number in range(len(self.peers))]

    def _push(self, time_s: float, number: int, frame: bytes | None) -> None:
        heapq.heappush(self.line, (time_s, next(self.order), number, frame))

    def run(self, until: Callable[[], bool], longest_s: float = 4000.0, most: int = 5_000_000) -> None:
        end = self.now + longest_s
        for _ in range(most):
            if until():
                return
            self.now, _, number, frame = heapq.heappop(self.line)
            if frame is None and self.due[number] != self.now:
                continue  # a timer that was set anew
            assert self.now < end, "it does not end"
            self._step(number, frame)
        raise AssertionError("events without end")

    def _step(self, number: int, frame: bytes | None) -> None:
        peer = self.peers[number]
        if frame is not None:
            peer.receive(frame, self.now)
        if peer.timer() <= self.now:
            peer.tick(self.now)
        for receiver, sent in peer.take():
            self.frames += 1
            if self.keep:
                self.seen.append((receiver, sent))
            if not self.lose(receiver, sent):
                self._push(self.now + self.takes_s, self.prints.index(receiver), sent)
        due = max(peer.timer(), self.now + 1e-5)
        if due != self.due[number] or frame is None:
            self.due[number] = due
            self._push(due, number, None)

    def found(self) -> None:
        """Until everybody knows its links."""
        self.run(lambda: all(talk.links() is not None for talk in self.talks))

    def edges(self) -> set[tuple[int, int]]:
        """(giver, taker)."""
        return {
            (giver, self.prints.index(taker)) for giver, talk in enumerate(self.talks) for taker in (talk.links() or {})
        }

    def amounts(self) -> dict[tuple[int, int], dict[str, int]]:
        return {
            (giver, self.prints.index(taker)): dict(row)
            for giver, talk in enumerate(self.talks)
            for taker, row in (talk.links() or {}).items()
        }

    def messages(self) -> Counter[str]:
        return sum((talk.messages for talk in self.talks), Counter())

    def said(self) -> Counter[str]:
        """Without what lost frames and silence cost."""
        return Counter({kind: n for kind, n in self.messages().items() if kind not in ("repeats", "acknowledgements")})

    def bodies(self, kind: type[say.Said]) -> list[tuple[int, int, say.Said]]:
        """(sender, receiver, content) of all packets that were sent with such a content, if frames were kept."""
        found: list[tuple[int, int, say.Said]] = []
        for receiver, data in self.seen:
            frame = read_frame(data)
            body = decode_body(frame.body)
            talk = say.decode_talk(body.content) if isinstance(body, Discovery) else None
            if isinstance(talk, say.Packet) and isinstance(talk.content, kind):
                found.append((self.prints.index(frame.sender), self.prints.index(receiver), talk.content))
        return found
