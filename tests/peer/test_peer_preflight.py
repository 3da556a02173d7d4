"""A check greets everybody and moves nothing; it compares clocks."""

from math import nan as NAN
from typing import Any

import pytest

pytest.importorskip("msgspec", reason="no msgspec: pip install 'd2dfl[peer]'")

from small_fleet import Small, rules

from d2dfl.errors import UserError
from d2dfl.peer import preflight
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
    lines = small.stores[who].head
    small.peers[who] = small.peer(who, greets_only=True)
    small.log.clear()
    small.peers[who].receive(b"no frame", small.now)
    for _ in range(5):
        small.peers[who].probe(small.now)
        small.wait(5.0)
    said = [body for number, body in small.log if number == who]
    assert said
    assert all(isinstance(body, PLAIN) for body in said)
    assert [small.held(number) for number in range(2)] == before
    assert small.stores[who].head == lines  # a clock that is wrong leaves no line with its time
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


def answering(*days: float) -> dict[str, Link]:
    """Links with others whose clocks are so far ahead; NaN: it does not answer."""
    found = {}
    for number, ahead in enumerate(days):
        link = found[f"p{number}"] = Link(ahead_s=ahead * 86_400.0)
        if ahead == ahead:
            link.hear(1, 1)
    return found


@pytest.mark.parametrize(
    ("days", "fine"),
    [
        ((-365.0,), False),
        ((365.0, 364.0, 0.0), False),
        ((365.0, 0.0), True),
        ((0.01,), True),
        ((), True),
        ((NAN,), True),
    ],
)
def test_a_run_refuses_a_clock_that_most_know_otherwise(
    monkeypatch: pytest.MonkeyPatch, days: tuple[float, ...], fine: bool
) -> None:
    monkeypatch.setattr(preflight, "who_answers", lambda *_, **__: answering(*days))
    nothing: Any = None
    if fine:
        preflight.agree_on_clock(nothing, nothing, nothing, nothing)
    else:
        with pytest.raises(UserError, match=r"the clock of p0 is 365.0 days (ahead of|behind) this one"):
            preflight.agree_on_clock(nothing, nothing, nothing, nothing)


def test_who_starts_anew_hears_at_once_what_time_it_is() -> None:
    small = Small()
    for _ in range(3):
        small.peers[0].probe(small.now)
        small.pump()
    small.peers[1] = small.peer(1, greets_only=True)
    small.peers[1].probe(small.now)
    small.pump()  # no time passes
    assert small.peers[1].links[small.prints(0)].heard


def test_who_does_not_answer_is_no_fault() -> None:
    assert compared(Link()) == (True, "no answer")
