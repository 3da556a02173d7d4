"""A check greets everybody and moves nothing; it compares clocks."""

import pytest

pytest.importorskip("msgspec", reason="no msgspec: pip install 'd2dfl[peer]'")

from small_fleet import Small, rules

from d2dfl.peer.preflight import compared
from d2dfl.peer.probing import Link
from d2dfl.peer.wire import messages as say
from d2dfl.peer.wire.frames import PLAIN


@pytest.mark.parametrize("who", [0, 1])
def test_a_check_moves_nothing_where_a_transfer_is_open(who: int) -> None:
    small = Small()
    small.allow(0, rules(small.prints(1)))
    small.peers[0].giving.give(small.prints(1), {"a": 5, "b": 5}, small.now)
    small.pump(lose=lambda _, body: isinstance(body, say.Commit))
    assert small.stores[0].open_outgoing()
    before = [small.held(number) for number in range(2)]
    small.peers[who] = small.peer(who)
    if who == 0:
        small.allow(0, rules(small.prints(1)))
    small.peers[who].only_greet()
    small.log.clear()
    for _ in range(5):
        small.peers[who].probe(small.now)
        small.wait(5.0)
    said = [body for number, body in small.log if number == who]
    assert said
    assert all(isinstance(body, PLAIN) for body in said)
    assert [small.held(number) for number in range(2)] == before
    small.peers[who] = small.peer(who)  # the next run goes on
    if who == 0:
        small.allow(0, rules(small.prints(1)))
    small.wait(200.0)
    assert small.held(0) == set()
    assert len(small.held(1)) == 20


def test_a_clock_that_is_a_year_ahead_is_seen_by_a_check() -> None:
    small = Small()
    clocks = (small.now + 365 * 86_400.0, small.now)
    for number in range(2):
        small.peers[number].probe(clocks[number])
    for _ in range(2):  # probes, then their echoes
        for number in range(2):
            for _, frame in small.peers[number].take():
                small.peers[1 - number].receive(frame, clocks[1 - number])
    fine, said = compared(small.peers[1].links[small.prints(0)])
    assert not fine
    assert "its clock is 365.0 days ahead of this one" in said
    fine, said = compared(small.peers[0].links[small.prints(1)])
    assert not fine
    assert "its clock is 365.0 days behind this one" in said


def test_who_does_not_answer_is_no_fault() -> None:
    assert compared(Link()) == (True, "no answer")
