"""Changed and invented frames into a peer: none may be taken, none may break it, memory stays bounded, all are in the audit.

    python benchmarks/peer_frames.py --frames 1000000

Frames of every kind, really signed and closed, are changed at one or several places, cut, lengthened, glued together, replayed,
sent to another peer, or signed by somebody else; some are bytes from nowhere.
"""

import argparse
import json
import resource
import sys
import time
from collections import Counter

import numpy as np

from d2dfl.peer.identity.boxes import KeyBox
from d2dfl.peer.identity.keys import Key
from d2dfl.peer.identity.roster import Member, Roster
from d2dfl.peer.peer import Peer
from d2dfl.peer.store.store import Store
from d2dfl.peer.wire import messages as say
from d2dfl.peer.wire.frames import Writer
from d2dfl.rng import stream

START_S = 1_800_000_000.0


def bodies(sender: bytes) -> list[say.Body]:
    """A message of every kind."""
    transfer, head, hash_ = sender + bytes(8), say.Head(3, bytes(32)), bytes(range(32))
    points = say.encode_points([say.Point(n, "a", "|u1:4", b"abcd") for n in range(20)])
    return [
        say.Hello(1, head, b"", True),
        say.RosterNews(b"{}"),
        say.Offer(transfer, [("a", 20)], 1, len(points), hash_, hash_, head),
        say.Piece(transfer, 0, points),
        say.Commit(transfer, head),
        say.Ask(transfer),
        say.Cancel(transfer),
        say.Status(transfer, "committed", 1, head),
        say.Forget(transfer, [1, 2, 3]),
        say.Forgotten(transfer, ["training"], head),
        say.Probe(1, 1, 0.5),
        say.Echo(1, 0.5),
        say.Discovery(b"anything"),
    ]


class Target:
    """A peer with a store in memory, two members who may speak to it, and one who may not."""

    def __init__(self) -> None:
        self.keys = [Key.new() for _ in range(4)]
        owner = Key.new()
        members = [
            Member(f"m{n}", key.public, KeyBox(key).public, f"127.0.0.1:{7000 + n}") for n, key in enumerate(self.keys)
        ]
        roster = Roster(1, owner.public, tuple(members[:3]))
        self.store = Store(":memory:", self.keys[0].fingerprint)
        self.store.db.execute("PRAGMA synchronous=OFF")
        document = roster.sealed(owner)
        self.peer = Peer(self.keys[0], KeyBox(self.keys[0]), self.store, roster, document, START_S)
        friend, stranger = (Writer(self.keys[n], KeyBox(self.keys[n]), 1) for n in (1, 3))
        self.good = [friend.write(members[0], body) for body in bodies(self.keys[1].fingerprint)]
        self.bad = [stranger.write(members[0], body) for body in bodies(self.keys[3].fingerprint)]
        self.bad += [friend.write(members[2], body) for body in bodies(self.keys[1].fingerprint)]

    def state(self) -> list[int]:
        tables = ("points", "incoming", "outgoing", "pieces", "seen", "forgotten", "orders", "heads")
        return [self.store.db.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in tables]


def changed(target: Target, generator: np.random.Generator) -> bytes:
    """A frame that must be refused."""
    frame = bytearray(target.good[int(generator.integers(len(target.good)))])
    kind = int(generator.integers(8))
    if kind == 0:
        return generator.bytes(int(generator.integers(0, 400)))
    if kind == 1:
        return target.bad[int(generator.integers(len(target.bad)))]
    if kind == 2:
        return bytes(frame[: int(generator.integers(len(frame)))])
    if kind == 3:
        return bytes(frame) + generator.bytes(int(generator.integers(1, 40)))
    if kind == 4:  # a length that claims much more than there is
        frame[int(generator.integers(len(frame)))] = int(generator.choice([0xC6, 0xDD, 0xDF, 0xDB, 0xC9]))
        return bytes(frame) if bytes(frame) not in target.good else b""
    if kind == 5:
        other = target.good[int(generator.integers(len(target.good)))]
        place = int(generator.integers(1, len(frame)))
        glued = bytes(frame[:place]) + other[place:]
        return glued if glued not in target.good else b""
    for _ in range(int(generator.integers(1, 4))):
        frame[int(generator.integers(len(frame)))] ^= 1 << int(generator.integers(8))
    return bytes(frame) if bytes(frame) not in target.good else b""


def attack(number: int, seed: int) -> dict[str, object]:
    """Feed so many; figures of what happened."""
    target, generator, now = Target(), stream(seed, "peer-frames"), START_S
    before, reasons = target.state(), Counter[str]()
    for count in range(number):
        target.peer.receive(changed(target, generator), now)
        if count % 1000 == 999:
            now += 61.0
            target.peer.tick(now)
            target.peer.take()
    now += 61.0
    target.peer.close(now)
    for _, line, _ in target.store.audit():
        found = json.loads(line)
        if found["kind"] == "refused-frames":
            for part in found["text"].split(", "):
                amount, reason = part.split(" ", 1)
                reasons[reason] += int(amount)
    return {
        "frames": number,
        "taken": int(target.state() != before),
        "in_audit": reasons.total(),
        "reasons": dict(reasons.most_common()),
        "audit_lines": target.store.head[0],
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--frames", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    began = time.perf_counter()
    found = attack(options.frames, options.seed)
    print(json.dumps({**found, "seconds": round(time.perf_counter() - began, 1)}))
    return int(bool(found["taken"]) or found["in_audit"] != options.frames)


if __name__ == "__main__":
    sys.exit(main())
