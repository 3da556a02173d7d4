"""What comes from the network is refused unless a member said it, to us, once."""

import pytest

pytest.importorskip("msgspec", reason="no msgspec: pip install 'd2dfl[peer]'")

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from small_fleet import Small, rules

from d2dfl.peer.discovery import FixedGraph
from d2dfl.peer.identity.boxes import KeyBox
from d2dfl.peer.identity.keys import Key
from d2dfl.peer.identity.roster import Member, Roster
from d2dfl.peer.wire import messages as say
from d2dfl.peer.wire.frames import LARGEST_FRAME, Frame, Writer, read_frame
from d2dfl.peer.wire.messages import encode_body as encode
from d2dfl.rng import stream
from peer_frames import Target, attack, bodies


def test_thousands_of_changed_frames_are_all_refused_and_in_the_audit() -> None:
    found = attack(6000, seed=1)
    assert found["taken"] == 0
    assert found["in_audit"] == 6000
    assert int(str(found["audit_lines"])) < 15  # however many they are


@pytest.mark.parametrize("seed", range(3))
def test_a_member_that_signs_nonsense_breaks_nothing_and_takes_nothing(seed: int) -> None:
    """Messages of every kind with changed bits, closed and signed as they should be: the decoder is all that stands between."""
    small, draws = Small(size=3), stream(seed, "signed-nonsense")
    small.allow(0, rules(small.prints(1)))
    transfer = small.peers[0].giving.give(small.prints(1), {"a": 3}, small.now)
    small.pump(lambda receiver, body: True)
    liar, me = Writer(small.keys[2], small.boxes[2], 5), small.roster.members[0]
    kinds = [encode(body) for body in bodies(small.prints(2))]
    assert transfer is not None
    kinds += [encode(say.Status(transfer, "committed", 1, say.Head(1, bytes(32)))), encode(say.Cancel(transfer))]
    for number in range(1500):
        content = bytearray(kinds[number % len(kinds)])
        for _ in range(int(draws.integers(0, 4))):
            content[int(draws.integers(len(content)))] = int(draws.integers(256))
        small.peers[0].receive(liar.write_bytes(me, bytes(content), bool(draws.random() < 0.8)), small.now)
        small.now += 0.01
    assert {(0, n) for n in range(10)} <= small.held(0)
    assert [record.id for record in small.stores[0].open_outgoing()] == [transfer]
    assert small.stores[0].audit_fault() is None
    assert small.peers[0].refused.total() > 300
    small.wait(30.0)
    assert {(0, n) for n in (0, 2, 4)} <= small.held(1)


@given(st.binary(max_size=200))
def test_bytes_from_nowhere_are_no_frame(data: bytes) -> None:
    with pytest.raises(say.WireError):
        read_frame(data)


@pytest.mark.parametrize("size", [0, 1, 100, LARGEST_FRAME, LARGEST_FRAME + 1, 4 * LARGEST_FRAME])
def test_frames_of_every_wrong_size(size: int) -> None:
    target = Target()
    target.peer.receive(bytes(size), 1.9e9)
    assert target.peer.refused.total() == 1


def test_a_frame_has_one_encoding() -> None:
    good = Target().good[0]
    frame = msgspec.msgpack.decode(good, type=Frame)
    padded = bytearray(good)
    place = good.index(b"\xc4" + bytes([len(frame.body)]))  # bin 8 → bin 16
    padded[place : place + 2] = b"\xc5\x00" + bytes([len(frame.body)])
    assert msgspec.msgpack.decode(bytes(padded), type=Frame) == frame
    with pytest.raises(say.WireError, match="not canonical"):
        read_frame(bytes(padded))


def test_replayed_and_reordered_frames_are_refused() -> None:
    small = Small()
    small.allow(0, rules(small.prints(1)))
    small.peers[0].giving.give(small.prints(1), {"a": 5, "b": 5}, small.now)
    small.pump()
    before = small.held(1)
    for _, frame in reversed(small.frames):
        for peer in small.peers:
            peer.receive(frame, small.now)
    assert small.peers[1].refused["replayed or late"] == sum(to == small.prints(1) for to, _ in small.frames)
    assert small.peers[0].take() == []
    assert small.held(1) == before
    small.peers[1] = small.peer(1)  # what changed anything is remembered after a start
    changing = [
        frame for to, frame in small.frames if to == small.prints(1) and isinstance(small.body(frame), say.Piece)
    ]
    for frame in changing:
        small.peers[1].receive(frame, small.now)
    assert small.peers[1].refused["replayed or late"] == len(changing) == 5


def test_what_was_heard_before_an_end_is_refused_after_the_next_start() -> None:
    """Also what changed nothing: a probe that is told again would say another time than it is there."""
    small = Small()
    small.wait(15.0)
    small.peers[0].probe(small.now)
    small.pump()
    told = [frame for to, frame in small.frames if to == small.prints(1)]
    assert any(isinstance(small.body(frame), say.Probe) for frame in told)
    small.peers[1].close(small.now)
    small.peers[1] = small.peer(1)
    small.now += 86_400.0
    for frame in told:
        small.peers[1].receive(frame, small.now)
    assert small.peers[1].refused == {"replayed or late": len(told)}
    assert small.peers[1].links == {}


@pytest.mark.parametrize("moment", [float("nan"), float("inf"), -1e300])
def test_a_time_that_is_none_is_no_message(moment: float) -> None:
    for body in (say.Probe(1, 1, moment), say.Echo(1, moment)):
        with pytest.raises(say.WireError):
            say.decode_body(say.encode_body(body))


def test_a_member_cannot_speak_for_another() -> None:
    small = Small(size=3)
    small.allow(0, rules(small.prints(1)))
    transfer = small.peers[0].giving.give(small.prints(1), {"a": 5}, small.now)
    small.pump(lambda receiver, body: True)
    assert transfer
    me = small.roster.members[0]
    liar = Writer(small.keys[2], small.boxes[2], 5)
    small.peers[0].receive(liar.write(me, say.Status(transfer, "committed", 1, say.Head(0, bytes(32)))), small.now)
    assert len(small.held(0)) == 10  # it is not the receiver of this transfer
    for body in (say.Cancel(transfer), say.Ask(transfer), say.Forget(transfer, [1, 2])):
        small.peers[1].receive(liar.write(small.roster.members[1], body), small.now)
    assert small.stores[1].incoming(transfer, small.prints(0)).phase == "unknown"
    forged = Writer(small.keys[2], small.boxes[2], 9)
    forged.own = small.prints(1)  # another's name under one's own signature
    small.peers[0].receive(forged.write(me, say.Ask(transfer)), small.now)
    assert small.peers[0].refused["bad signature"] == 1


def test_what_is_meant_for_one_member_is_closed_for_others() -> None:
    small = Small(size=3)
    small.allow(0, rules(small.prints(1)))
    small.peers[0].giving.give(small.prints(1), {"a": 5}, small.now)
    small.pump()
    secret = bytes([4]) * 50
    assert any(secret in body.content for body in small.sent(say.Piece) if isinstance(body, say.Piece))
    closed = [frame for _, frame in small.frames]
    assert not any(secret in frame for frame in closed)
    piece = next(read_frame(frame) for _, frame in small.frames if isinstance(small.body(frame), say.Piece))
    about = msgspec.msgpack.encode((piece.sender, piece.receiver, piece.run, piece.counter))
    other = small.boxes[2].open(piece.body, about, piece.sender, piece.receiver, small.boxes[0].public)
    assert other is None


def test_an_open_message_that_should_be_closed_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    small = Small()
    monkeypatch.setattr("d2dfl.peer.wire.frames.PLAIN", (say.Hello, say.RosterNews, say.Probe, say.Echo, say.Ask))
    frame = Writer(small.keys[0], small.boxes[0], 3).write(small.roster.members[1], say.Ask(small.prints(0) + bytes(8)))
    monkeypatch.undo()
    small.peers[1].receive(frame, small.now)
    assert small.peers[1].refused["open where it should be closed"] == 1


def test_a_newcomer_brings_the_newer_roster_and_nobody_else_is_touched() -> None:
    small = Small(size=2)
    key = Key.new()
    box = KeyBox(key)
    newcomer = Member("new", key.public, box.public, "127.0.0.1:7999")
    newer = small.roster.with_member(newcomer)
    writer = Writer(key, box, 1)
    ask = writer.write(small.roster.members[0], say.Ask(key.fingerprint + bytes(8)))
    small.peers[0].receive(ask, small.now)
    assert small.peers[0].refused["unknown sender"] == 1
    foreign = newer.sealed(Key.new())
    small.peers[0].receive(writer.write(small.roster.members[0], say.RosterNews(foreign)), small.now)
    assert small.peers[0].refused["foreign roster"] == 1
    news = writer.write(small.roster.members[0], say.RosterNews(newer.sealed(small.owner)))
    small.peers[0].receive(news, small.now)
    assert small.peers[0].roster.number == 2
    small.peers[0].take()
    small.peers[0].tick(small.now + 100)
    hellos = [to for to, _ in small.peers[0].take()]
    assert key.fingerprint in hellos


def test_devices_that_joined_earlier_learn_of_later_ones_from_these() -> None:
    """And links of a graph that names a later one are settled when it has come."""
    small = Small(size=3)
    newest, earlier = small.roster, Roster(0, small.owner.public, small.roster.members[:1])
    small.roster = earlier
    small.peers[0] = small.peer(0)
    small.roster = newest
    small.peers[0].follow(GraphStub(small.prints(2)))
    assert small.peers[0].giving.timer() < small.now + 1
    small.wait(30.0)
    assert small.peers[0].roster.number == 1
    assert small.peers[0].discovery is not None
    assert small.peers[0].discovery.links() == {small.prints(2): {"a": 1}}


class GraphStub(FixedGraph):
    """A link to somebody who may not be known yet."""

    def __init__(self, to: bytes) -> None:
        super().__init__(b"round", None, frozenset())
        self.to = to

    def know(self, roster: Roster) -> None:
        self._links = {self.to: {"a": 1}} if roster.active(self.to) else None


def test_a_member_cannot_make_others_remember_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    small = Small()
    monkeypatch.setattr("d2dfl.peer.answering.DOORS_A_DAY", 30)
    writer = Writer(small.keys[0], small.boxes[0], 4)
    for number in range(50):
        transfer = small.prints(0) + number.to_bytes(8, "big")
        small.peers[1].receive(writer.write(small.roster.members[1], say.Cancel(transfer)), small.now)
    forget = say.Forget(small.prints(0) + bytes(8), list(range(20)))
    small.peers[1].receive(writer.write(small.roster.members[1], forget), small.now)
    assert small.stores[1].db.execute("SELECT count(*) FROM incoming").fetchone() == (30,)
    assert small.stores[1].db.execute("SELECT count(*) FROM forgotten").fetchone() == (0,)
    assert small.peers[1].refused["too many in a day"] == 21
    small.now += 86_400.0
    small.peers[1].receive(writer.write(small.roster.members[1], forget), small.now)
    assert small.stores[1].db.execute("SELECT count(*) FROM forgotten").fetchone() == (20,)


def test_a_revoked_member_is_not_heard() -> None:
    small = Small(size=3)
    small.peers[0].set_roster(small.roster.without("p2").sealed(small.owner), small.now)
    frame = Writer(small.keys[2], small.boxes[2], 7).write(small.roster.members[0], say.Probe(1, 1, 0.0))
    small.peers[0].receive(frame, small.now)
    assert small.peers[0].refused["unknown sender"] == 1
    back = Writer(small.keys[2], small.boxes[2], 8)
    old = back.write(small.roster.members[0], say.RosterNews(small.roster.sealed(small.owner)))
    small.peers[0].receive(old, small.now)  # nor with the roster in which it still was
    assert small.peers[0].roster.number == 2


def test_probes_measure_loss_of_one_direction_and_the_way_back() -> None:
    small, count = Small(), [0]

    def lose(receiver: bytes, body: say.Body) -> bool:
        count[0] += isinstance(body, say.Probe) and receiver == small.prints(1)
        return isinstance(body, say.Probe) and receiver == small.prints(1) and count[0] % 4 == 0

    for _ in range(401):
        for peer in small.peers:
            peer.probe(small.now)
        small.now += 0.01
        small.pump(lose)
    assert small.peers[1].links[small.prints(0)].loss == pytest.approx(0.25, abs=0.01)
    assert small.peers[0].links[small.prints(1)].loss == 0.0
    assert small.peers[0].links[small.prints(1)].round_trip_s == pytest.approx(0.01, abs=1e-3)
