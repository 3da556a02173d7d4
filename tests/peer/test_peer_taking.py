"""What a receiver takes: no piece too large for a frame, no form that makes no dataset, and one sender's day is not another's."""

import json
from collections.abc import Callable
from typing import Any, cast

import pytest

pytest.importorskip("msgspec", reason="no msgspec: pip install 'd2dfl[peer]'")

import msgspec
from small_fleet import Small, rules

from d2dfl.peer.handover.content import digest
from d2dfl.peer.handover.limits import Limits
from d2dfl.peer.policy import read_rules
from d2dfl.peer.wire import messages as say
from d2dfl.peer.wire.frames import Writer


def test_long_labels_do_not_make_a_piece_larger_than_a_frame() -> None:
    small = Small(points=0, limits=Limits(piece_bytes=1 << 20, timeout_s=1.0))
    label = "\u6f22" * 100
    rows = [(small.prints(0), number, label, "|u1:888", bytes(888)) for number in range(1000)]
    small.stores[0].db.executemany("INSERT INTO points VALUES (?, ?, ?, ?, ?, NULL, NULL, NULL)", rows)
    small.allow(0, rules(small.prints(1)))
    small.peers[0].giving.give(small.prints(1), {label: 1000}, small.now)
    small.wait(20.0, step=1.0)
    assert len(small.held(1)) == 1000
    assert all(len(body.content) <= 1 << 20 for body in small.sent(say.Piece) if isinstance(body, say.Piece))


def evil(small: Small, number: int) -> Callable[[int, say.Body], None]:
    """Somebody else who writes with the key of a member."""
    writer = Writer(small.keys[number], small.boxes[number], 99)
    return lambda to, body: small.peers[to].receive(writer.write(small.roster.members[to], body), small.now)


def test_an_offer_alone_does_not_use_up_a_day() -> None:
    small = Small(size=3, limits=Limits(piece_bytes=600, window=2, timeout_s=1.0, points_a_day=10))
    small.allow(0, rules(small.prints(1)))
    nothing = say.Head(0, bytes(32))
    evil(small, 2)(1, say.Offer(small.prints(2) + bytes(8), [("a", 10)], 1, 1, bytes(32), bytes(32), nothing))
    transfer = small.peers[0].giving.give(small.prints(1), {"a": 5}, small.now)
    small.pump()
    assert small.stores[0].outgoing(transfer).phase == "done"


def test_a_store_from_a_backup_gives_no_old_id_to_other_datapoints() -> None:
    small = Small(points=10)
    small.allow(0, rules(small.prints(1)))
    backup = small.stores[0].db.serialize()
    first = small.peers[0].giving.give(small.prints(1), {"a": 5}, small.now)
    small.pump()
    small.stores[0].db.deserialize(backup)
    small.stores[0].head = small.stores[0]._last_line()
    for _ in range(3):  # its run is above what the receiver has seen
        small.peers[0] = small.peer(0)
    small.allow(0, rules(small.prints(1)))
    second = small.peers[0].giving.give(small.prints(1), {"b": 5}, small.now)
    small.wait(30)
    assert first != second
    assert {(0, n) for n in range(10)} <= small.held(0) | small.held(1)


def test_two_senders_with_other_forms_do_not_both_fill_an_empty_store() -> None:
    small = Small(size=3, points=4)
    small.stores[2].db.execute("DELETE FROM points")
    small.stores[1].db.execute("UPDATE points SET form='<f4:25'")
    for giver in (0, 1):
        small.allow(giver, rules(small.prints(2)))
        small.peers[giver].giving.give(small.prints(2), {"a": 2}, small.now)
    small.wait(5)
    assert len(small.stores[2].db.execute("SELECT DISTINCT form FROM points").fetchall()) == 1
    assert len(small.held(0) | small.held(1) | small.held(2)) == 8


@pytest.mark.parametrize("form", ["<f3:2", ">f4:1", "<b2", "|f1", "|u1:6\n", "|u1:06"])
def test_no_form_is_taken_that_numpy_has_not(form: str) -> None:
    with pytest.raises(say.WireError):
        say.decode_points(say.encode_points([say.Point(0, "a", form, bytes(6))]))


@pytest.mark.parametrize("form", ["|u1:6\n", "|u1:06", "|u1:0:999999999:999999999:999999999"])
def test_a_member_cannot_spoil_a_dataset_with_a_form(form: str) -> None:
    """An empty store takes the first form that comes: whatever it takes must make a dataset, and let honest data in."""
    small = Small(size=3, points=0)
    content = bytes(6) if "u1:0:" not in form else b""
    pieces = [msgspec.msgpack.encode([(0, "a", form, content)])]
    say_to = evil(small, 1)
    transfer = small.prints(1) + bytes(8)
    salt, head = bytes(32), say.Head(0, bytes(32))
    say_to(0, say.Offer(transfer, [("a", 1)], 1, len(pieces[0]), salt, digest(salt, pieces), head))
    say_to(0, say.Piece(transfer, 0, pieces[0]))
    say_to(0, say.Commit(transfer, head))
    assert small.stores[0].form() is None
    assert small.stores[0].incoming(transfer, small.prints(1)).phase == "refused"


@pytest.mark.parametrize("word", ["expelled", "revoked", "complete", "timeout"])
def test_a_receiver_cannot_say_what_only_others_may(word: str) -> None:
    small = Small()
    small.allow(0, rules(small.prints(1)))
    transfer = small.peers[0].giving.give(small.prints(1), {"a": 5}, small.now)
    small.pump(lambda receiver, body: isinstance(body, say.Commit))
    before = small.peers[0].giving.progress[transfer].state
    status = say.Status(transfer, cast(Any, word), 0, say.Head(0, bytes(32)))
    evil(small, 1)(0, status)
    assert small.peers[0].giving.progress[transfer].state == before
    assert small.peers[0].refused.total() == 1


def test_two_policies_with_one_number_are_not_both_obeyed() -> None:
    small = Small()
    assert small.allow(0, rules(small.prints(1)), number=5) is None
    assert small.allow(0, number=5) == "two policies have the number 5: sign it again"
    assert small.peers[0].visible(small.prints(1), small.now) == {}


def test_a_forbid_holds_however_its_letters_are_put_together() -> None:
    composed, apart = "caf\u00e9", "cafe\u0301"
    for written in (composed, apart):
        found = read_rules(f'[[forbid]]\nto = "*"\nlabels = ["{written}"]\n', "policy.toml")
        assert found["forbid"][0]["labels"] == [composed]


def test_what_is_about_somebody_elses_transfers_and_orders_is_in_the_audit() -> None:
    small = Small(size=3)
    small.allow(0, rules(small.prints(1)))
    transfer = small.peers[0].giving.give(small.prints(1), {"a": 1}, small.now)
    small.pump()
    order, head = small.peers[0].forgetting.order([0], small.now), say.Head(0, bytes(32))
    say_to = evil(small, 2)
    for body in (
        say.Status(transfer, "refused", 0, head),
        say.Commit(transfer, head),
        say.Forget(order, [0]),
        say.Forgotten(order, [], head),
    ):
        before = small.peers[0].refused.total()
        say_to(0, body)
        assert small.peers[0].refused.total() == before + 1, body
    small.wait(61.0)  # the receiver's own answers, also late ones, are nothing strange
    assert small.stores[0].pending_orders() == []
    texts = [json.loads(content)["text"] for _, content, _ in small.stores[0].audit() if b"refused-frames" in content]
    assert texts[0] == "1 an answer to no order, 1 somebody else's order, 2 somebody else's transfer"
    assert small.kinds(1).count("refused-frames") == 0
