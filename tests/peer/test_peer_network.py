"""Real processes over real TLS on loopback: kills, intruders, lost frames, the demo."""

import datetime
import json
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue

import pytest

pytest.importorskip("msgspec", reason="no msgspec: pip install 'd2dfl[peer]'")
pytest.importorskip("zenoh", reason="no zenoh: pip install 'd2dfl[peer]'")

from in_memory import Board
from small_fleet import Small, rules

from calling import call
from d2dfl.errors import UserError
from d2dfl.peer.identity.boxes import KeyBox
from d2dfl.peer.identity.certificates import authority, certify
from d2dfl.peer.identity.keys import Key
from d2dfl.peer.identity.roster import Member
from d2dfl.peer.transports.zenoh import ZenohTransport, _config, free_ports
from d2dfl.peer.wire.frames import LARGEST_FRAME
from d2dfl.rng import stream
from peer_kills import Pair, kill_round

NOW = datetime.datetime.now(datetime.UTC)
PATIENCE_S = 60.0
LONG_S = 300.0  # where processes start on a busy machine
LIFE_S = 12.0  # of a certificate that ends: two ends have to find each other before


def test_50_kills_9_of_either_side_lose_and_double_nothing(tmp_path: Path) -> None:
    """Five pairs at the same time: most of it is waiting for processes to start."""
    folders = [tmp_path / str(seed) for seed in range(5)]
    for folder in folders:
        folder.mkdir()
    with ThreadPoolExecutor(len(folders)) as pool:
        rounds = list(pool.map(kill_round, folders, range(5), [10] * 5))
    assert sum(found.kills.total() for found in rounds) >= 25  # those that hit the middle of a transfer, of fifty
    for found in rounds:
        assert (found.lost, found.doubled, found.without_grant, found.unfinished) == (0, 0, 0, 0)


class BadLine:
    """The process of bad_line.py in front of a port."""

    def __init__(self, port: int, after: int) -> None:
        script = [sys.executable, str(Path(__file__).with_name("bad_line.py")), str(port), str(after)]
        self.process = subprocess.Popen(script, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.here = int(self.process.stdout.readline())

    def end(self) -> int:
        """How often it cut a connection."""
        said, _ = self.process.communicate(timeout=LONG_S)
        return said.split().count("cut")


def test_lines_that_are_cut_again_and_again_lose_nothing(tmp_path: Path) -> None:
    lines: list[BadLine] = []

    def front(port: int) -> int:
        lines.append(BadLine(port, after=700_000))
        return lines[-1].here

    pair = Pair(tmp_path, seed=5, points=120, front=front)
    first = pair.points_of(0)
    try:
        for which in (0, 1):
            pair.start(which)
        end = time.monotonic() + LONG_S
        while not pair.finished() and time.monotonic() < end:
            time.sleep(0.1)
        assert pair.finished()
    finally:
        for which in (0, 1):
            pair.stop(which, signal.SIGKILL)
        cuts = sum(line.end() for line in lines)
    assert cuts >= 2  # 1.3 MB crossed them
    assert pair.points_of(0) + pair.points_of(1) == first
    assert sum(pair.points_of(1).values()) == 80


def test_ctrl_c_ends_cleanly_and_the_next_start_goes_on(tmp_path: Path) -> None:
    pair = Pair(tmp_path, seed=6, points=6)
    for _ in range(2):
        lines = len(pair.ask(1, "SELECT line FROM audit"))
        pair.start(1)
        process = pair.running[1]
        assert process is not None
        end = time.monotonic() + LONG_S
        while len(pair.ask(1, "SELECT line FROM audit")) < lines + 1 and time.monotonic() < end:
            time.sleep(0.05)
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=LONG_S) == 130
    log = (pair.homes[1].folder / "run.log").read_text().splitlines()
    assert log == ["d2dfl: stopped; everything that was agreed is kept: the next start goes on"] * 2
    kinds = [json.loads(bytes(row[0]))["kind"] for row in pair.ask(1, "SELECT content FROM audit")]  # type: ignore[arg-type]  # a column of bytes
    assert kinds.count("started") == kinds.count("stopped") == 2


class Ends:
    """Transports of members, and of those who would like to be."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.owner, self.open = folder, Key.new(), list[ZenohTransport]()
        (folder / "authority.pem").write_bytes(authority(self.owner, NOW))
        self.ports = free_ports(4)
        self.used = 0

    def add(self, connect: list[str], signer: Key | None = None, days: float = 10.0) -> tuple[Key, str, "Queue[bytes]"]:
        key, inbox = Key.new(), Queue[bytes](100)
        address = f"127.0.0.1:{self.ports[self.used]}"
        name = f"{self.used}"
        self.used += 1
        key.save(self.folder / f"{name}.key")
        member = Member(f"m{name}", key.public, KeyBox(key).public, address)
        (self.folder / f"{name}.pem").write_bytes(certify(member, signer or self.owner, NOW, days))
        files = {
            "key": self.folder / f"{name}.key",
            "certificate": self.folder / f"{name}.pem",
            "authority": self.folder / "authority.pem",
        }
        self.open.append(ZenohTransport(key.fingerprint, address, connect, files, inbox))
        return key, address, inbox

    def close(self) -> None:
        for transport in self.open:
            transport.close()


def arrives(sender: ZenohTransport, receiver: Key, inbox: "Queue[bytes]", word: bytes, seconds: float) -> bool:
    """Whether a word that is said again and again comes through."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        sender.send(receiver.fingerprint, word)
        time.sleep(0.05)
        while not inbox.empty():
            if inbox.get() == word:
                return True
    return False


def test_members_hear_each_other_and_intruders_are_kept_out(tmp_path: Path) -> None:
    ends = Ends(tmp_path)
    try:
        first, address, inbox = ends.add([])
        ends.add([address])
        assert arrives(ends.open[1], first, inbox, b"hello", PATIENCE_S)
        ends.add([address], signer=Key.new())  # a foreign authority
        ends.add([address], days=-1.0)  # a certificate that has ended
        assert not arrives(ends.open[2], first, inbox, b"foreign", 2.0)
        assert not arrives(ends.open[3], first, inbox, b"expired", 2.0)
        assert arrives(ends.open[1], first, inbox, b"still here", PATIENCE_S)
    finally:
        ends.close()


def test_nothing_looks_for_others_shares_memory_or_outlives_its_certificate(tmp_path: Path) -> None:
    """As zenoh itself understands what it is given: a setting that it does not know would be an error."""
    import zenoh

    files = {part: tmp_path / part for part in ("key", "certificate", "authority")}
    config = zenoh.Config.from_json5(json.dumps(_config("127.0.0.1:7447", ["127.0.0.1:7448"], files)))
    wanted = {
        "mode": "peer",
        "listen/endpoints": ["tls/127.0.0.1:7447"],
        "scouting/multicast/enabled": False,
        "scouting/gossip/enabled": False,
        "transport/shared_memory/enabled": False,
        "transport/link/protocols": ["tls"],
        "transport/link/tls/enable_mtls": True,
        "transport/link/tls/verify_name_on_connect": True,
        "transport/link/tls/close_link_on_expiration": True,
        "access_control/enabled": True,
        "access_control/default_permission": "deny",
    }
    assert {name: json.loads(config.get_json(name)) for name in wanted} == wanted


def test_frames_that_are_not_handed_on_are_counted_by_reason(tmp_path: Path) -> None:
    ends = Ends(tmp_path)
    try:
        first, address, inbox = ends.add([])
        ends.add([address])
        assert arrives(ends.open[1], first, inbox, b"hello", PATIENCE_S)
        for size in (LARGEST_FRAME + 1, 1 << 22):
            ends.open[1].send(first.fingerprint, bytes(size))
        for _ in range(150):  # of a hundred that wait
            ends.open[1].send(first.fingerprint, b"much")
        end = time.monotonic() + PATIENCE_S
        while ends.open[0].dropped["too many at once"] < 50 and time.monotonic() < end:
            time.sleep(0.05)
        assert ends.open[0].dropped["too large"] == 2
        assert ends.open[0].dropped["too many at once"] >= 50
        assert inbox.qsize() == 100
    finally:
        ends.close()


def test_a_certificate_that_ends_is_replaced_while_the_peer_runs(tmp_path: Path) -> None:
    ends = Ends(tmp_path)
    try:
        first, address, inbox = ends.add([])
        end = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=LIFE_S)
        second, _, answers = ends.add([address], days=(end - NOW) / datetime.timedelta(days=1))
        assert arrives(ends.open[1], first, inbox, b"hello", PATIENCE_S)
        time.sleep(max(0.0, (end - datetime.datetime.now(datetime.UTC)).total_seconds() + 2.0))
        assert not arrives(ends.open[1], first, inbox, b"ended", 2.0)
        address = f"127.0.0.1:{ends.ports[1]}"
        (tmp_path / "authority.pem").write_bytes(authority(ends.owner, NOW))  # the same key: others believe it
        member = Member("m1", second.public, KeyBox(second).public, address)
        (tmp_path / "1.pem").write_bytes(certify(member, ends.owner, NOW))
        ends.open[1].renew()
        assert arrives(ends.open[1], first, inbox, b"here again", PATIENCE_S)
        assert arrives(ends.open[0], second, answers, b"welcome", PATIENCE_S)
    finally:
        ends.close()


def test_without_a_certificate_nobody_is_heard(tmp_path: Path) -> None:
    import zenoh

    ends = Ends(tmp_path)
    try:
        first, address, inbox = ends.add([])
        config = {
            "mode": "client",
            "connect": {"endpoints": [f"tls/{address}"], "timeout_ms": 1500, "exit_on_failure": True},
            "scouting": {"multicast": {"enabled": False}},
            "transport": {"link": {"tls": {"root_ca_certificate": str(tmp_path / "authority.pem")}}},
        }
        try:
            session = zenoh.open(zenoh.Config.from_json5(json.dumps(config)))
        except zenoh.ZError:
            return
        session.put(f"d2dfl/peer/1/{first.fingerprint.hex()}", b"let me in")
        time.sleep(1.0)
        session.close()
        assert inbox.empty()
    finally:
        ends.close()


def test_a_port_in_use_is_one_sentence(tmp_path: Path) -> None:
    ends = Ends(tmp_path)
    try:
        _, address, _ = ends.add([])
        ends.ports[1] = int(address.rpartition(":")[2])
        with pytest.raises(UserError, match=f"cannot listen on {address}: Address already in use"):
            ends.add([])
    finally:
        ends.close()


def test_a_board_loses_frames_and_the_peers_do_not_care() -> None:
    small = Small()
    small.allow(0, rules(small.prints(1)))
    draws = stream(0, "test-board")
    board = Board(lambda receiver, frame: draws.random() < 0.3)
    inboxes = [Queue[bytes](50) for _ in small.peers]
    ends = [board.join(small.prints(n), inbox) for n, inbox in enumerate(inboxes)]
    small.peers[0].giving.give(small.prints(1), {"a": 5, "b": 5}, small.now)
    for _ in range(1000):
        small.now += 0.2
        for number, peer in enumerate(small.peers):
            if peer.timer() <= small.now:
                peer.tick(small.now)
            while not inboxes[number].empty():
                peer.receive(inboxes[number].get(), small.now)
            for receiver, frame in peer.take():
                ends[number].send(receiver, frame)
    assert small.held(0) == set()
    assert len(small.held(1)) == 20
    for end in ends:
        end.close()
    assert board.queues == {}


def test_a_demo_that_is_stopped_says_what_is_left(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("d2dfl.peer.demo._run_all", stop)
    assert call(monkeypatch, "fleet", "demo", "--devices", "2", "--out", str(tmp_path / "demo")) == 130
    said = capsys.readouterr().err.splitlines()[-1]
    assert said == (
        f"d2dfl: stopped; {tmp_path / 'demo'} holds what the devices had by then: "
        "for another demo remove it, or name another folder with --out"
    )
    assert (tmp_path / "demo" / "device-1" / "store.db").is_file()


def test_the_demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from d2dfl.peer.demo import run_demo

    monkeypatch.setattr("d2dfl.peer.demo.SECONDS", LONG_S)  # a limit; they end when they have finished
    said: list[str] = []
    found = run_demo(3, tmp_path / "demo", 0, said.append)
    assert found.faults == []
    assert found.moved > 20
    assert found.rows[-1].endswith("none lost, none doubled")
    assert "What the fleet did" in found.page.read_text()
    with pytest.raises(UserError, match="is there already"):
        run_demo(3, tmp_path / "demo", 0, said.append)
