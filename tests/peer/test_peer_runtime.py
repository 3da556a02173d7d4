"""A peer at work: files that change while it runs, wishes of other commands, the end of a round."""

import json
import sqlite3
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from queue import Queue

import numpy as np
import pytest

pytest.importorskip("msgspec", reason="no msgspec: pip install 'd2dfl[peer]'")

from in_memory import Board, MemoryTransport

from d2dfl.peer import runtime
from d2dfl.peer.datapoints import take_in
from d2dfl.peer.discovery import GraphFile
from d2dfl.peer.home import Home, make_home, read_admission
from d2dfl.peer.identity.certificates import certify
from d2dfl.peer.owner import FleetFolder, read_request
from d2dfl.peer.runtime import WISHES, Running
from d2dfl.peer.service import join
from d2dfl.storage import locked

LABELS = ("cat", "dog")


class Two:
    """Two peers in folders, on a board, with a clock that a test moves."""

    def __init__(self, folder: Path, skewed: bool = False) -> None:
        self.now = time.time()
        fleet, self.homes, board = FleetFolder(folder / "fleet"), list[Home](), Board()
        fleet.create()
        for number, name in enumerate(("kitchen", "hall")):
            (folder / name / "data").mkdir(parents=True)
            inputs = np.arange(40.0).reshape(20, 2) + 100 * number
            np.savez(
                folder / name / "data" / "one.npz",
                inputs=inputs,
                targets=np.full(20, number) if skewed else np.arange(20) % 2,
            )
            request = make_home(folder / name, name, "data", LABELS, f"127.0.0.1:{7000 + number}")
            fleet.approve(read_request(request))
            self.homes.append(Home(folder / name))
        self.running = []
        graph = {"edges": [[0, 1]], "expected_datapoints": [[3.0, 4.6]]}
        (folder / "graph.json").write_text(json.dumps(graph))
        for home in self.homes:
            fleet.approve(read_request(home.folder / f"{home.settings.name}.request"))
            home.join(folder / "fleet" / f"{home.settings.name}.admission")
            store, inbox = home.store(), Queue[bytes](100)
            take_in(store, "data", home.folder, LABELS, self.now)
            peer = home.peer(store, self.now)
            peer.follow(GraphFile(folder / "graph.json", peer.own, LABELS))
            self.running.append(Running(home, peer, board.join(peer.own, inbox), inbox, lambda: self.now))

    def allow(self, text: str) -> None:
        to = self.homes[1].key().fingerprint.hex()
        (self.homes[0].folder / "policy.toml").write_text(text.replace("HALL", to))
        self.homes[0].sign_policy()

    def go(self, rounds: int = 40) -> None:
        for _ in range(rounds):
            self.now += 0.3
            for one in self.running:
                one.once()

    def stay(self, times: int = 400) -> list[bytes]:
        """For so many steps; the rounds that came to their end."""
        found = []
        for _ in range(times):
            self.now += 0.3
            for one in self.running:
                one.once()
                talk = one.peer.discovery
                if one.round_over(stay=True) and talk is not None:
                    found.append(talk.round)
        return found

    def counts(self, which: int) -> dict[str, int]:
        return self.running[which].peer.store.counts()


@pytest.fixture
def two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Two]:
    monkeypatch.setattr("d2dfl.peer.runtime.LONGEST_NAP_S", 0.0)  # the clock is the test's
    found = Two(tmp_path)
    yield found
    for one in found.running:
        one.peer.store.close()


@pytest.fixture
def apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Two]:
    """One has cats only, the other dogs."""
    monkeypatch.setattr("d2dfl.peer.runtime.LONGEST_NAP_S", 0.0)
    found = Two(tmp_path, skewed=True)
    yield found
    for one in found.running:
        one.peer.store.close()


GRANT = '[[grant]]\nto = "HALL"\nlabels = ["cat", "dog"]\nnumber = {}\nuntil = 2099-01-01\n'


def test_a_policy_is_read_while_it_runs(two: Two) -> None:
    two.go()
    assert two.counts(1) == {"cat": 10, "dog": 10}  # nothing is granted
    two.allow(GRANT.format(2))
    two.go()
    assert two.counts(1) == {"cat": 12, "dog": 12}
    two.allow("")
    two.go()
    two.allow(GRANT.format(100))
    two.go()
    assert two.counts(1) == {"cat": 13, "dog": 15}  # what the graph wants, and no more
    assert two.counts(0) == {"cat": 7, "dog": 5}
    assert all(one.finished() for one in two.running)
    signed = two.homes[0].folder / "policy.signed"
    signed.write_bytes(b"broken")
    two.go(5)
    assert two.running[0].peer.policy.grants == ()


def test_a_round_that_was_handed_over_is_not_handed_over_again(two: Two) -> None:
    two.allow(GRANT.format(100))
    two.go()
    home, store = two.homes[0], two.running[0].peer.store
    graph = two.running[0].peer.discovery
    two.running[0].peer = home.peer(store, two.now)
    assert graph is not None
    two.running[0].peer.follow(graph)
    two.go()
    assert two.counts(1) == {"cat": 13, "dog": 15}


def test_wishes_of_other_commands_are_granted_once(two: Two, tmp_path: Path) -> None:
    two.allow(GRANT.format(100))
    two.go()
    wishes = two.homes[0].folder / WISHES
    wishes.mkdir()
    (wishes / "1.json").write_text('{"forget": [0, 1]}')
    (wishes / "2.json").write_text('{"forget": [999]}')
    (wishes / "3.json").write_text("no wish")
    (wishes / "5.json").mkdir()
    newer = FleetFolder(tmp_path / "fleet").revoke("hall")
    two.go()
    assert two.counts(1) == {"cat": 12, "dog": 14}
    assert [path.name for path in wishes.iterdir()] == ["5.json"]
    roster = (tmp_path / "fleet" / "roster.json").read_text()
    (wishes / "4.json").write_text(json.dumps({"roster": roster}))
    two.go(5)
    assert two.running[0].peer.roster == newer


def test_a_new_certificate_is_taken_while_it_runs(two: Two, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    renewed: list[bytes] = []
    monkeypatch.setattr(MemoryTransport, "renew", lambda end: renewed.append(end.own))
    two.go(5)
    home, fleet = two.homes[0], FleetFolder(tmp_path / "fleet")
    before = (home.folder / "certificate.pem").read_bytes()
    admission = fleet.approve(read_request(home.folder / "kitchen.request"))
    with locked(home.folder):
        assert "the new certificate" in join(home, admission)
    assert (home.folder / "certificate.pem").read_bytes() != before
    assert renewed == []
    two.go(8)
    assert renewed == [two.running[0].peer.own]
    sooner = certify(read_request(home.folder / "kitchen.request"), fleet.key(), datetime.now(UTC), days=100)
    older = read_admission(admission) | {"certificate": sooner.decode()}
    home.write_certificates(older, fleet.roster().owner)
    assert (home.folder / "certificate.pem").read_bytes() == json.loads(admission.read_text())["certificate"].encode()
    (home.folder / "certificate.pem").write_bytes(b"none")  # what the transport has read still counts
    two.go(8)
    assert len(renewed) == 1


def test_links_are_measured_and_written(two: Two) -> None:
    two.go(120)
    for one, other in ((0, 1), (1, 0)):
        content = json.loads((two.homes[one].folder / "links.json").read_text())
        (link,) = content["links"].values()
        assert list(content["links"]) == [two.homes[other].key().fingerprint.hex()]
        assert link["loss"] == 0.0
        assert link["probes"] > 10


def test_time_follows_a_clock_that_is_set_forward_and_never_goes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    wall, steady = [1000.0], [5.0]
    monkeypatch.setattr(runtime.time, "time", lambda: wall[0])
    monkeypatch.setattr(runtime.time, "monotonic", lambda: steady[0])
    clock = runtime.Clock()
    assert clock() == 1000.0
    steady[0], wall[0] = 6.0, 1001.0
    assert clock() == 1001.0
    wall[0] = 90_000.0  # it slept for a day, or has heard what time it is
    assert clock() == 90_000.0
    steady[0], wall[0] = 8.0, 500.0  # set back: time only goes on
    assert clock() == 90_002.0


def test_who_stays_goes_on_with_the_next_round_when_there_is_something_new(apart: Two) -> None:
    apart.allow(GRANT.format(4))
    for one in apart.running:
        one.peer.follow(one.home.discovery(one.peer, apart.now))
    first = apart.stay()
    assert apart.counts(1) == {"cat": 4, "dog": 20}
    assert apart.stay() == []  # nothing new
    inputs = np.arange(60.0).reshape(30, 2) + 500
    (apart.homes[0].folder / "data" / "two.npz").write_bytes(b"half of it")
    assert apart.stay() == []
    np.savez(apart.homes[0].folder / "data" / "two.npz", inputs=inputs, targets=np.zeros(30, dtype=np.int64))
    second = apart.stay()
    kinds = [json.loads(content)["kind"] for _, content, _ in apart.running[0].peer.store.audit()]
    assert kinds.count("not-taken-in") == 1
    assert apart.counts(0) == {"cat": 46}  # 16 and 30 new ones; the grant is used up
    apart.allow(GRANT.format(100))
    third = apart.stay()
    assert len({*first, *second, *third}) == 3
    assert apart.counts(1)["cat"] > 4


def test_who_stays_with_a_graph_that_was_named_gives_what_is_granted_later(two: Two) -> None:
    assert two.stay() == []
    two.allow(GRANT.format(100))
    assert two.stay() == []
    assert two.counts(1) == {"cat": 13, "dog": 15}


def test_who_is_alone_goes_on_asking_and_finds_who_comes_later(apart: Two) -> None:
    apart.allow(GRANT.format(100))
    early, late = apart.running
    early.peer.follow(early.home.discovery(early.peer, apart.now))
    for _ in range(200):
        apart.now += 0.3
        early.once()
        assert not early.round_over(stay=False)
    late.peer.follow(late.home.discovery(late.peer, apart.now))
    apart.go(300)
    assert all(one.finished() for one in apart.running)
    assert apart.counts(1)["cat"] > 0


def test_a_disk_that_is_full_is_said_once_and_once_when_there_is_room(two: Two) -> None:
    def full(_: object) -> None:
        error = sqlite3.OperationalError("database or disk is full")
        error.sqlite_errorcode = sqlite3.SQLITE_FULL
        raise error

    hall, said = two.running[1], []
    hall.warn = said.append
    two.allow(GRANT.format(100))
    hall.peer.store.watch = full
    two.go()
    assert len(said) == 1
    assert "cannot be written (database or disk is full): nothing is lost" in said[0]
    assert two.counts(1) == {"cat": 10, "dog": 10}
    hall.peer.store.watch = None
    two.go(200)
    assert said[1:] == ["the store can be written again"]
    assert two.counts(1) == {"cat": 13, "dog": 15}


def test_what_did_not_get_through_a_transport_is_in_the_audit(tmp_path: Path) -> None:
    two = Two(tmp_path)
    kitchen = two.running[0]
    kitchen.transport.dropped["too large"] += 2
    two.go(10)
    kitchen.transport.dropped["too large"] += 1
    two.now += 61.0
    two.go(10)
    lines = [json.loads(content) for _, content, _ in kitchen.peer.store.audit()]
    found = [(line["points"], line["text"]) for line in lines if line["kind"] == "refused-frames"]
    assert found == [(2, "2 too large"), (1, "1 too large")]
