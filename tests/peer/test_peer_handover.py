"""Datapoints change hands exactly once, whatever is lost on the way."""

import ast
import inspect
import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("msgspec", reason="no msgspec: pip install 'd2dfl[peer]'")

from small_fleet import NOON_S, Small, rules

from d2dfl.peer.discovery import FixedGraph
from d2dfl.peer.handover.limits import Limits
from d2dfl.peer.handover.table import OPEN, RECEIVER, SENDER
from d2dfl.peer.peer import Peer
from d2dfl.peer.store.store import StoreFullError
from d2dfl.peer.wire import messages as say


def gift(small: Small, wanted: dict[str, int] | None = None) -> bytes | None:
    return small.peers[0].giving.give(small.prints(1), wanted or {"a": 5, "b": 5}, small.now)


def ready(**options: Any) -> Small:
    small = Small(**options)
    assert small.allow(0, rules(small.prints(1))) is None
    return small


def test_a_gift_moves_every_datapoint_once() -> None:
    small = ready()
    assert gift(small)
    small.pump()
    assert small.held(0) == set()
    assert small.held(1) == {(0, n) for n in range(10)} | {(1, n) for n in range(10)}
    assert small.stores[0].open_outgoing() == []
    content = small.stores[1].db.execute(
        "SELECT content FROM points WHERE number = 7 AND origin = ?", (small.prints(0),)
    )
    assert content.fetchone()[0] == bytes([7]) * 100
    assert "sent" in small.kinds(0)
    assert "received" in small.kinds(1)


def test_a_copy_stays_and_is_not_given_twice() -> None:
    small = ready(keep="copy")
    gift(small)
    small.pump()
    assert small.held(0) == {(0, n) for n in range(10)}
    assert small.held(1) >= small.held(0)
    assert gift(small) is None  # it has them all


@pytest.mark.parametrize("kind", [say.Offer, say.Piece, say.Commit, say.Status])
@pytest.mark.parametrize("times", [1, 3])
def test_a_lost_frame_is_asked_for_not_sent_blindly(kind: type[say.Body], times: int) -> None:
    small, lost = ready(), []

    def lose(receiver: bytes, body: say.Body) -> bool:
        if isinstance(body, kind) and len(lost) < times:
            lost.append(body)
            return True
        return False

    gift(small)
    small.pump(lose)
    before = len(small.log)
    small.wait(30.0, lose)
    assert len(lost) == times
    assert small.held(0) == set()
    assert len(small.held(1)) == 20
    open_ones = say.Hello | say.RosterNews
    after = [body for number, body in small.log[before:] if number == 0 and not isinstance(body, open_ones)]
    assert isinstance(after[0], say.Ask)  # time was out: the first word is a question


def test_silence_never_makes_a_piece_leave() -> None:
    small = ready()
    gift(small)
    small.wait(300.0, lambda receiver, body: isinstance(body, say.Status))
    assert small.sent(say.Piece) == []
    assert len(small.sent(say.Offer)) == 1
    assert len(small.sent(say.Ask)) > 3
    assert len(small.held(0)) == 10


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("pieces", range(5))
def test_either_side_restarts_at_every_piece_and_goes_on(which: int, pieces: int) -> None:
    small, seen = ready(), []

    def lose(receiver: bytes, body: say.Body) -> bool:
        if isinstance(body, say.Piece):
            seen.append(body.number)
        return isinstance(body, say.Piece) and len(seen) > pieces

    transfer = gift(small)
    assert transfer
    small.pump(lose)
    assert small.stores[1].incoming(transfer, small.prints(0)).next == pieces
    small.peers[which] = small.peer(which)
    small.allow(0, rules(small.prints(1)))
    seen.clear()
    small.wait(20.0, lambda receiver, body: isinstance(body, say.Piece) and seen.append(body.number) is not None)
    assert len(small.held(1)) == 20
    assert sorted(set(seen)) == list(range(pieces, 5))  # it resumed where it had stopped


def test_committed_is_said_for_ever() -> None:
    small = ready()
    transfer = gift(small)
    assert transfer
    small.pump(lambda receiver, body: isinstance(body, say.Status) and body.state == "committed")
    assert len(small.held(0)) == 10  # it does not know yet
    assert len(small.held(1)) == 20
    small.now += 1e8  # three years
    small.allow(0, rules(small.prints(1)))
    small.peers = [small.peer(0), small.peer(1)]
    small.allow(0, rules(small.prints(1)))
    small.wait(20.0)
    assert small.held(0) == set()
    assert len(small.held(1)) == 20


def test_what_a_cancelled_transfer_brings_late_finds_the_door_shut() -> None:
    small = ready()
    transfer = gift(small)
    late = [(to, frame) for to, frame in small.peers[0].take()]  # the offer, kept by the network
    small.allow(0, number=2)
    small.pump()
    assert small.stores[0].outgoing(transfer or b"").phase == "returned"  # type: ignore[union-attr]  # it is there
    for _, frame in late:
        small.peers[1].receive(frame, small.now)
    assert small.stores[1].incoming(transfer or b"", small.prints(0)).phase == "refused"
    assert len(small.held(0)) == 10


def test_a_full_disk_delays_and_loses_nothing() -> None:
    small = ready()

    def full(_: object) -> None:
        raise StoreFullError

    small.stores[1].watch = full
    gift(small)
    small.wait(10.0)
    assert len(small.held(0)) == 10
    small.stores[1].watch = None
    small.stores[0].watch = full  # now the sender cannot let go
    small.wait(30.0)
    assert len(small.held(0)) == 10
    small.stores[0].watch = None
    small.wait(60.0)
    assert small.held(0) == set()
    assert len(small.held(1)) == 20


def test_bytes_a_second_hold() -> None:
    small = ready(limits=Limits(piece_bytes=600, timeout_s=1.0, bytes_a_second=100.0))
    start = small.now
    gift(small)
    small.pump()
    small.wait(60.0, step=0.1)
    assert len(small.held(1)) == 20
    size = sum(len(body.content) for body in small.sent(say.Piece) if isinstance(body, say.Piece))
    first = size - 400  # the last piece may leave when the others have had their time
    done = [line for line in small.stores[0].audit() if b'"sent"' in line[1]]
    assert json.loads(done[0][1])["time"] - start >= first / 100.0 - 5.0


def test_bytes_and_datapoints_a_day_hold_and_go_on_the_next_day() -> None:
    small = ready(limits=Limits(piece_bytes=400, timeout_s=1.0, bytes_a_day=900, points_a_day=6, longest_timeout_s=600))
    gift(small, {"a": 5})
    assert gift(small, {"b": 5})  # one more today: a sixth
    assert small.peers[0].giving.reasons == {(small.prints(1), "b"): "the day's limit is reached"}
    assert gift(small, {"b": 4}) is None
    small.wait(100.0)
    day = int(NOON_S // 86_400)
    assert small.stores[0].spent(day, "sent points") == 6
    assert small.stores[0].spent(day, "sent bytes") <= 900
    small.wait(2 * 86_400.0, step=50.0)
    assert small.stores[0].open_outgoing() == []


def test_who_may_take_less_than_a_transfer_has_gets_what_it_may() -> None:
    small = ready()
    small.peers[1].receiver.limits = Limits(points_a_day=3)
    small.peers[0].follow(FixedGraph(b"round", {small.prints(1): {"a": 5, "b": 5}}, frozenset()))
    small.wait(30.0)
    assert 1 <= len(small.held(1)) - 10 <= 3
    assert small.peers[0].giving.idle
    assert "it takes no more now" in small.peers[0].giving.reasons[small.prints(1), "b"]
    told = [json.loads(line[1]) for line in small.stores[1].audit() if b'"not-taken"' in line[1]]
    assert "over a limit of this device" in told[0]["text"]


def test_what_could_never_leave_within_a_days_bytes_is_not_begun() -> None:
    small = ready(limits=Limits(timeout_s=1.0, bytes_a_day=200))
    assert gift(small) is None
    assert small.peers[0].giving.reasons[small.prints(1), "a"] == "a datapoint is larger than the day's limit of bytes"
    assert small.stores[0].counts(own_only=True) == {"a": 5, "b": 5}
    small = ready(limits=Limits(timeout_s=1.0, bytes_a_day=300))
    gift(small, {"a": 2})
    small.wait(2 * 86_400.0, step=50.0)
    assert len(small.held(1)) == 12


def test_a_receiver_with_other_labels_or_forms_takes_nothing() -> None:
    small = ready()
    small.stores[1].db.execute("UPDATE points SET form = '<f4:25'")
    gift(small)
    small.pump()
    assert len(small.held(0)) == 10
    assert len(small.held(1)) == 10
    assert "not-taken" in small.kinds(1)


def test_two_gifts_at_once_do_not_pass_a_grants_number() -> None:
    small = Small(points=40)
    small.allow(0, rules(small.prints(1), number=7))
    for _ in range(4):
        gift(small, {"a": 3, "b": 3})
    small.pump()
    labels = small.stores[1].db.execute(
        "SELECT label, count(*) FROM points WHERE origin = ? GROUP BY label", (small.prints(0),)
    )
    assert dict(labels.fetchall()) == {"a": 7, "b": 7}


def test_who_is_thrown_out_gets_nothing_more_and_what_was_on_its_way_comes_back() -> None:
    small = ready(size=3)
    gift(small)
    small.pump(lambda receiver, body: isinstance(body, say.Piece))
    newer = small.roster.without("p1")
    small.peers[0].set_roster(newer.sealed(small.owner), small.now)
    small.wait(20.0)
    assert len(small.held(0)) == 10
    assert small.stores[0].open_outgoing() == []
    assert small.peers[2].roster.number == 2  # it was told
    assert gift(small) is None


def test_the_tables_are_whole() -> None:
    """Every open state of the sender has an answer to the final words and to time-outs; every state is reached."""
    for state in OPEN:
        if state != "new":
            assert SENDER[state, "committed"] == ("done", ("release",))
            assert SENDER[state, "refused"] == ("returned", ("take_back",))
            assert "send" not in SENDER[state, "timeout"][1]
    assert {state for state, _ in SENDER} == set(OPEN)
    assert {target for target, _ in SENDER.values()} == {*OPEN, "done", "returned"} - {"new"}
    assert all("tell" in actions for _, actions in RECEIVER.values())
    for state in ("committed", "refused"):
        assert {target for (origin, _), (target, _) in RECEIVER.items() if origin == state} == {state}


def test_a_link_of_many_transfers_is_followed_to_its_end_and_no_further() -> None:
    """More than one receiver would keep open at once; the end is told only when nothing is left."""
    small = Small(points=60, limits=Limits(piece_bytes=600, timeout_s=1.0, transfer_points=2))
    for number in (0, 1):
        peer, links = small.peers[number], {small.prints(1): {"a": 25, "b": 20}} if number == 0 else {}
        peer.follow(FixedGraph(b"round", links, frozenset()))
    small.allow(0, rules(small.prints(1)))
    told_early = []

    def watch(receiver: bytes, body: say.Body) -> bool:
        if isinstance(body, say.Hello) and receiver == small.prints(1) and body.finished:
            told_early.append(len(small.held(1)) < 60 + 45)
        return False

    small.wait(60.0, watch)
    assert small.stores[1].counts() == {"a": 30 + 25, "b": 30 + 20}
    assert told_early
    assert not any(told_early)
    assert small.peers[0].giving.idle
    assert "not-taken" not in small.kinds(1)
    assert small.prints(0) in small.peers[1].finished


OUTSIDE = {"asyncio", "datetime", "multiprocessing", "os", "queue", "random", "secrets", "select", "socket", "ssl", "subprocess", "threading", "time", "zenoh"}  # fmt: skip
MACHINE = ("peer", "answering", "giving", "forgetting", "probing", "refusals", "policy", "surroundings")


def test_a_peer_knows_no_socket_clock_thread_or_random_source() -> None:
    folder = Path(inspect.getfile(Peer)).parent
    files = [folder / f"{name}.py" for name in MACHINE]
    for part in ("handover", "negotiation", "wire"):
        files += sorted((folder / part).glob("*.py"))
    assert len(files) > 20
    for file in files:
        lines = list(ast.walk(ast.parse(file.read_text())))
        named = {one.name for line in lines if isinstance(line, ast.Import) for one in line.names}
        named |= {line.module for line in lines if isinstance(line, ast.ImportFrom) and line.module}
        allowed = {"datetime"} if file.name == "policy.py" else set()  # dates of a file, never today's
        assert not {name.partition(".")[0] for name in named} & OUTSIDE - allowed, file
        assert not any("transports" in name or "runtime" in name for name in named), file
