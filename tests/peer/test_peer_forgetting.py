"""Forgetting reaches everybody who was given a datapoint, now or when they are back, and is proven."""

import json
from typing import Any

import pytest

pytest.importorskip("msgspec", reason="no msgspec: pip install 'd2dfl[peer]'")

from small_fleet import Small, rules

from d2dfl.errors import UserError
from d2dfl.peer.discovery import FixedGraph
from d2dfl.peer.store.audit import first_fault
from d2dfl.peer.wire import messages as say


def given(size: int = 2, **options: Any) -> Small:
    """A fleet in which peer 0 has given everybody all that they may have."""
    small = Small(size=size, **options)
    small.allow(0, *(rules(small.prints(n)) for n in range(1, size)))
    for number in range(1, size):
        small.peers[0].giving.give(small.prints(number), {"a": 2, "b": 2}, small.now)
        small.pump()
    return small


def test_receivers_delete_and_prove_it() -> None:
    small = given()
    assert (0, 0) in small.held(1)
    small.peers[0].forgetting.order([0, 1, 9], small.now)
    small.pump()
    assert small.held(1) & {(0, 0), (0, 1)} == set()
    assert (0, 2) in small.held(1)
    assert (0, 9) not in small.held(0)  # it had not left
    assert small.stores[0].pending_orders() == []
    assert small.kinds(0)[-1] == "forgotten-there"
    assert small.kinds(1)[-1] == "forgotten"
    heads = small.stores[0].db.execute("SELECT lines, hash FROM heads WHERE peer = ?", (small.prints(1),)).fetchall()
    fault, chain = first_fault(small.stores[1].audit())
    assert fault is None
    assert max(lines for lines, _ in heads) == len(chain)  # the head that was told covers the line
    assert all(lines == 0 or chain[lines - 1] == hash_ for lines, hash_ in heads)


def test_who_was_away_forgets_when_it_is_back_also_after_starts() -> None:
    small = given(size=3, keep="copy")
    away = small.prints(1)
    small.peers[0].forgetting.order([0], small.now)
    small.wait(50.0, lambda receiver, body: receiver == away)
    assert (0, 0) in small.held(1)
    assert (0, 0) not in small.held(2)
    assert [receiver for _, receiver in small.stores[0].pending_orders()] == [away]
    small.peers = [small.peer(n) for n in range(3)]
    small.wait(50.0)
    assert (0, 0) not in small.held(1)
    assert small.stores[0].pending_orders() == []


def test_a_receiver_is_told_of_the_datapoints_that_it_was_given_alone() -> None:
    small = given(size=3)
    small.peers[0].forgetting.order([0, 1, 4, 5, 9], small.now)
    small.pump()
    told = {tuple(body.points) for body in small.sent(say.Forget) if isinstance(body, say.Forget)}
    assert told == {(0, 1), (4, 5)}
    assert small.stores[0].pending_orders() == []


def test_an_order_stays_what_it_is_when_the_transfer_has_come_back() -> None:
    small = Small(size=3)
    small.allow(0, rules(small.prints(1)), rules(small.prints(2)))
    small.peers[0].giving.give(small.prints(2), {"b": 1}, small.now)
    small.pump()
    small.peers[0].giving.give(small.prints(1), {"a": 2}, small.now)
    small.pump(lambda receiver, body: isinstance(body, say.Commit))
    small.peers[0].forgetting.order([0, 1], small.now)
    small.wait(30.0, lambda receiver, body: isinstance(body, say.Forgotten))
    assert small.stores[0].open_outgoing() == []
    assert {(number, tuple(body.points)) for number, body in small.log if isinstance(body, say.Forget)} == {
        (0, (0,)),
        (0, (1,)),
    }
    small.wait(90.0)
    assert small.stores[0].pending_orders() == []


@pytest.mark.parametrize("kind", [say.Offer, say.Piece, say.Commit])
def test_forgetting_stops_a_transfer_and_the_rest_comes_back(kind: type[say.Body]) -> None:
    small = Small()
    small.allow(0, rules(small.prints(1)))
    small.peers[0].giving.give(small.prints(1), {"a": 5, "b": 5}, small.now)
    small.pump(lambda receiver, body: isinstance(body, kind))
    small.peers[0].forgetting.order([4], small.now)
    small.wait(30.0)
    assert small.held(0) == {(0, n) for n in range(10) if n != 4}
    assert small.held(1) == {(1, n) for n in range(10)}
    aside = small.stores[1].db.execute("SELECT count(*) FROM pieces").fetchone()
    assert aside == (0,)


def test_what_was_taken_back_is_not_called_refused_by_its_receiver() -> None:
    """The rest of a transfer that was stopped goes at once, and whole."""
    small = Small()
    small.allow(0, rules(small.prints(1)))
    small.peers[0].follow(FixedGraph(b"round", {small.prints(1): {"a": 4, "b": 4}}, frozenset()))
    small.wait(1.0, lambda receiver, body: isinstance(body, say.Commit))
    small.peers[0].forgetting.order([4], small.now)
    small.wait(5.0)
    assert small.peers[0].giving.reasons == {}
    assert len(small.held(1)) == 18
    assert (0, 4) not in small.held(1)


def test_a_commit_that_nobody_knows_of_yet_does_not_bring_it_back() -> None:
    small = Small()
    small.allow(0, rules(small.prints(1)))
    small.peers[0].giving.give(small.prints(1), {"a": 5, "b": 5}, small.now)
    small.pump(lambda receiver, body: isinstance(body, say.Status) and body.state == "committed")
    assert (0, 4) in small.held(1)
    small.peers[0].forgetting.order([4], small.now)
    small.wait(30.0)
    assert not {(0, 4)} & (small.held(0) | small.held(1))
    assert small.held(1) == {(0, n) for n in range(10) if n != 4} | {(1, n) for n in range(10)}
    assert small.held(0) == set()


def test_nobody_forgets_for_somebody_else() -> None:
    small = given(size=3)
    with pytest.raises(UserError, match="there never was a datapoint 10 of this device"):
        small.peers[1].forgetting.order([10], small.now)
    small.peers[2].send(small.prints(1), say.Forget(small.prints(2) + bytes(8), [0, 1, 2]))
    small.pump()
    assert (0, 0) in small.held(1)  # peer 2 means datapoints of its own, which are not here


def test_what_was_trained_on_it_is_listed() -> None:
    small = given()
    small.stores[1].db.execute("INSERT INTO uses VALUES ('round 7', ?, 0)", (small.prints(0),))
    order = small.peers[0].forgetting.order([0], small.now)
    small.pump()
    row = small.stores[0].db.execute("SELECT used_in FROM order_receivers WHERE id = ?", (order,)).fetchone()
    assert json.loads(row[0]) == ["round 7"]
    lines = [json.loads(content) for _, content, _ in small.stores[0].audit()]
    assert [line["text"] for line in lines if line["kind"] == "forgotten-there"] == ["round 7"]


def test_more_trainings_than_a_message_holds_are_counted_and_the_order_is_done() -> None:
    small = given()
    uses = [(f"round {number:04}", small.prints(0), 0) for number in range(1001)]
    small.stores[1].db.executemany("INSERT INTO uses VALUES (?, ?, ?)", uses)
    small.peers[0].forgetting.order([0], small.now)
    small.pump()
    assert small.stores[0].pending_orders() == []
    (answer,) = small.sent(say.Forgotten)
    assert isinstance(answer, say.Forgotten)
    assert answer.used_in[-2:] == ["round 0998", "and 2 more"]
