"""Small fleets in one process for tests: real keys, stores in memory, frames handed from one to the other."""

from collections.abc import Callable
from dataclasses import dataclass, field

from d2dfl.peer.handover.limits import Limits
from d2dfl.peer.identity.boxes import KeyBox
from d2dfl.peer.identity.keys import Key
from d2dfl.peer.identity.roster import Member, Roster
from d2dfl.peer.peer import Peer
from d2dfl.peer.policy import sign_policy
from d2dfl.peer.store.records import Keeping
from d2dfl.peer.store.store import Store
from d2dfl.peer.wire import messages as say
from d2dfl.peer.wire.frames import read_body, read_frame

NOON_S = 1_790_000_000.0
LABELS = ("a", "b")
FAR = "2099-01-01"
Lose = Callable[[bytes, say.Body], bool]


def rules(to: bytes, labels: tuple[str, ...] = ("*",), number: int = 1000, until: str = FAR) -> dict[str, object]:
    return {"to": to.hex(), "labels": list(labels), "number": number, "until": until}


@dataclass
class Small:
    """A fleet whose clock a test holds in its hand."""

    size: int = 2
    points: int = 10
    keep: Keeping = "move"
    limits: Limits = field(default_factory=lambda: Limits(piece_bytes=600, window=2, timeout_s=1.0))
    now: float = NOON_S

    def __post_init__(self) -> None:
        self.keys = [Key.new() for _ in range(self.size)]
        self.owner = Key.new()
        self.boxes = [KeyBox(key) for key in self.keys]
        members = tuple(
            Member(f"p{n}", key.public, self.boxes[n].public, f"127.0.0.1:{7000 + n}")
            for n, key in enumerate(self.keys)
        )
        self.roster = Roster(1, self.owner.public, members)
        self.stores = [Store(":memory:", key.fingerprint) for key in self.keys]
        for store in self.stores:
            fill(store, self.points)
        self.peers = [self.peer(number) for number in range(self.size)]
        self.log: list[tuple[int, say.Body]] = []  # (who, what) of everything that was sent
        self.frames: list[tuple[bytes, bytes]] = []

    def peer(self, number: int, greets_only: bool = False) -> Peer:
        """A peer that starts with what its store holds."""
        return Peer(
            self.keys[number], self.boxes[number], self.stores[number], self.roster, self.roster.sealed(self.owner),
            self.now, owner=self.owner.public, limits=self.limits, keep=self.keep,
            greets_only=greets_only,
        )  # fmt: skip

    def prints(self, number: int) -> bytes:
        return self.keys[number].fingerprint

    def allow(
        self, giver: int, *grants: dict[str, object], number: int = 1, forbid: tuple[object, ...] = ()
    ) -> str | None:
        data = sign_policy({"grant": list(grants), "forbid": list(forbid)}, number, self.owner)
        return self.peers[giver].set_policy(data, self.now)

    def body(self, frame: bytes) -> say.Body:
        """What is in a frame: a test may look."""
        found = read_frame(frame)
        number = [key.fingerprint for key in self.keys].index(found.receiver)
        sender = next(member for member in self.roster.members if member.fingerprint == found.sender)
        return say.decode_body(read_body(found, sender.box, self.boxes[number]))

    def pump(self, lose: Lose = lambda receiver, body: False) -> None:
        """Hand over all frames until none is left; time stands still."""
        for _ in range(10_000):
            sent = [(n, to, frame) for n, peer in enumerate(self.peers) for to, frame in peer.take()]
            if not sent:
                return
            for number, receiver, frame in sent:
                body = self.body(frame)
                self.log.append((number, body))
                self.frames.append((receiver, frame))
                if not lose(receiver, body):
                    self.peers[self.number(receiver)].receive(frame, self.now)
        raise AssertionError("frames without end")

    def wait(self, seconds: float, lose: Lose = lambda receiver, body: False, step: float = 0.5) -> None:
        """Let time pass."""
        end = self.now + seconds
        while self.now < end:
            self.now += step
            for peer in self.peers:
                if peer.timer() <= self.now:
                    peer.tick(self.now)
            self.pump(lose)

    def number(self, fingerprint: bytes) -> int:
        return [key.fingerprint for key in self.keys].index(fingerprint)

    def held(self, number: int) -> set[tuple[int, int]]:
        """(origin, number) of what a peer has."""
        rows = self.stores[number].db.execute("SELECT origin, number FROM points").fetchall()
        return {(self.number(origin), point) for origin, point in rows}

    def sent(self, kind: type[say.Body]) -> list[say.Body]:
        return [body for _, body in self.log if isinstance(body, kind)]

    def kinds(self, number: int) -> list[str]:
        """Kinds of the lines of a peer's audit."""
        import json

        return [json.loads(content)["kind"] for _, content, _ in self.stores[number].audit()]


def fill(store: Store, points: int) -> None:
    rows = [(store.own, n, LABELS[n % 2], "|u1:100", bytes([n % 256]) * 100) for n in range(points)]
    store.db.executemany("INSERT INTO points VALUES (?, ?, ?, ?, ?, NULL, NULL, NULL)", rows)
    store.db.execute("INSERT OR REPLACE INTO facts VALUES ('points', ?)", (points,))
