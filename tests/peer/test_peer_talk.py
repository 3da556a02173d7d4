"""The same graph over real transports: peers with real keys, each with a queue of its own, on a board and over zenoh."""

import datetime
import time
from pathlib import Path
from queue import Empty, Queue

import pytest

pytest.importorskip("msgspec", reason="no msgspec: pip install 'd2dfl[peer]'")

from in_memory import Board

from d2dfl import Config, Network, discover, preset
from d2dfl.peer.handover.limits import Limits
from d2dfl.peer.identity.boxes import KeyBox
from d2dfl.peer.identity.certificates import authority, certify
from d2dfl.peer.identity.keys import Key
from d2dfl.peer.identity.roster import Member, Roster
from d2dfl.peer.negotiation.negotiation import Negotiation
from d2dfl.peer.negotiation.plan import Plan
from d2dfl.peer.peer import Peer
from d2dfl.peer.simulator.devices import signed_policy
from d2dfl.peer.simulator.talking import GivenLosses, full_mesh, in_clusters
from d2dfl.peer.store.store import Store
from d2dfl.peer.transports import Transport
from d2dfl.peer.transports.zenoh import free_ports

LONGEST_S = 120.0
MANY = 1_000_000


class Fleet:
    """Peers that hold what a network says, and may have what it trusts them with."""

    def __init__(self, network: Network, config: Config, seed: int) -> None:
        size = network.devices
        self.network, self.labels = network, tuple(f"l{number}" for number in range(network.partitions))
        self.keys, self.owner = [Key.new() for _ in range(size)], Key.new()
        self.prints = [key.fingerprint for key in self.keys]
        self.boxes = [KeyBox(key) for key in self.keys]
        ports = free_ports(size)
        members = tuple(
            Member(f"p{n}", key.public, self.boxes[n].public, f"127.0.0.1:{ports[n]}")
            for n, key in enumerate(self.keys)
        )
        self.roster = in_clusters(Roster(0, self.owner.public, members), network)
        self.inboxes = [Queue[bytes](10_000) for _ in range(size)]
        self.plan = Plan(config, seed, False, gather_s=60.0)
        self.peers = [self._peer(number) for number in range(size)]
        self.ends: list[Transport] = []
        self.wanted = expected(network, config, seed)

    def _peer(self, number: int) -> Peer:
        store, now, network = Store(":memory:", self.prints[number]), time.time(), self.network
        names = [
            label for label, count in zip(self.labels, network.counts[number], strict=True) for _ in range(int(count))
        ]
        rows = [(store.own, place, label, "|u1:1", b"x") for place, label in enumerate(names)]
        store.db.executemany("INSERT INTO points VALUES (?, ?, ?, ?, ?, NULL, NULL, NULL)", rows)
        store.db.execute("INSERT OR REPLACE INTO facts VALUES ('points', ?)", (len(rows),))
        peer = Peer(
            self.keys[number], self.boxes[number], store, self.roster, self.roster.sealed(self.owner), now,
            owner=self.owner.public, limits=Limits(), labels=self.labels,
        )  # fmt: skip
        grants = {}
        for receiver, print_ in enumerate(self.prints):
            if receiver != number:
                slot = network.candidates[receiver].tolist().index(number)
                trusted = network.trust[receiver, slot]
                grants[print_] = {label: MANY for label, ok in zip(self.labels, trusted, strict=True) if ok}
        peer.set_policy(signed_policy(self.owner, 1, grants), now)
        losses = {
            self.prints[name]: float(network.drop[number, slot]) for slot, name in enumerate(network.candidates[number])
        }
        peer.follow(Negotiation(GivenLosses(peer, now, losses), self.plan, now))
        return peer

    def run(self) -> None:
        """One thread drives them all until everybody knows its links."""
        end = time.monotonic() + LONGEST_S
        while any(peer.discovery is None or peer.discovery.links() is None for peer in self.peers):
            assert time.monotonic() < end, "it does not end"
            moved = False
            for peer, inbox, transport in zip(self.peers, self.inboxes, self.ends, strict=True):
                try:
                    while True:
                        peer.receive(inbox.get_nowait(), time.time())
                        moved = True
                except Empty:
                    pass
                if time.time() >= peer.timer():
                    peer.tick(time.time())
                for receiver, frame in peer.take():
                    transport.send(receiver, frame)
            if not moved:
                time.sleep(0.001)

    def amounts(self) -> dict[tuple[int, int], dict[str, int]]:
        return {
            (giver, self.prints.index(taker)): dict(row)
            for giver, peer in enumerate(self.peers)
            for taker, row in ((peer.discovery and peer.discovery.links()) or {}).items()
        }


def expected(network: Network, config: Config, seed: int) -> tuple[dict[tuple[int, int], dict[str, int]], float]:
    found = discover(network, config, seed=seed)
    graph = found.to_dict()
    rows = {
        (giver, taker): {f"l{label}": int(amount + 0.5) for label, amount in enumerate(row) if amount >= 0.5}
        for (giver, taker), row in zip(graph["edges"], graph["expected_datapoints"], strict=True)
    }
    return {link: row for link, row in rows.items() if row}, found.messages


def compared(devices: int) -> Fleet:
    config = preset("best").with_(
        **{"network.devices": devices, "network.samples_per_device": 60, "discovery.edges": 2, "marginal.messages": 120}
    )
    return Fleet(full_mesh(Network.generate(config, 4)), config, 4)


def check(fleet: Fleet) -> None:
    links, messages = fleet.wanted
    assert fleet.amounts() == links
    talks = [peer.discovery for peer in fleet.peers if isinstance(peer.discovery, Negotiation)]
    assert [talk.tries for talk in talks] == [1] * len(fleet.peers)
    assert sum(sum(talk.attempt.sent.values()) for talk in talks if talk.attempt) == messages


@pytest.mark.parametrize("devices", [5, 25])
def test_over_the_transport_in_memory(devices: int) -> None:
    fleet, board = compared(devices), Board()
    fleet.ends = [board.join(own, inbox) for own, inbox in zip(fleet.prints, fleet.inboxes, strict=True)]
    fleet.run()
    check(fleet)


@pytest.mark.parametrize("devices", [5, 25])
def test_over_zenoh(tmp_path: Path, devices: int) -> None:
    zenoh = pytest.importorskip("d2dfl.peer.transports.zenoh")
    pytest.importorskip("zenoh", reason="no zenoh: pip install 'd2dfl[peer]'")
    fleet, now = compared(devices), datetime.datetime.now(datetime.UTC)
    (tmp_path / "authority.pem").write_bytes(authority(fleet.owner, now))
    try:
        for number, member in enumerate(fleet.roster.members):
            key, certificate = tmp_path / f"{number}.key", tmp_path / f"{number}.pem"
            fleet.keys[number].save(key)
            certificate.write_bytes(certify(member, fleet.owner, now, 10.0))
            files = {"key": key, "certificate": certificate, "authority": tmp_path / "authority.pem"}
            others = [other.address for other in fleet.roster.others(member.fingerprint)]
            fleet.ends.append(
                zenoh.ZenohTransport(member.fingerprint, member.address, others, files, fleet.inboxes[number])
            )
        fleet.run()
    finally:
        for end in fleet.ends:
            end.close()
    check(fleet)
