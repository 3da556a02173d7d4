"""Fleets under thousands of schedules of faults; and broken peers, which the same checks must find."""

import os
import subprocess
import sys
from collections.abc import Callable

import pytest

pytest.importorskip("msgspec", reason="no msgspec: pip install 'd2dfl[peer]'")

from d2dfl.peer import giving, peer
from d2dfl.peer.handover import table
from d2dfl.peer.simulator.fleet import Fleet
from d2dfl.peer.simulator.schedule import draw
from d2dfl.peer.store import changes
from d2dfl.peer.store import operations as do
from d2dfl.peer.store.store import Store
from peer_schedules import figures, run_many


@pytest.mark.parametrize("part", range(5))
def test_nothing_is_lost_doubled_or_shared_without_a_grant(part: int) -> None:
    sums, wrong = run_many(400 * part, 400, real_keys=False)
    assert wrong == []
    assert sums["schedules"] == 400
    assert sums["crashes"] > 100  # and all of it really happened
    assert sums["transfers"] > 400
    assert sums["forgotten"] > 100
    assert sums["waited"] > 100


def test_the_same_with_real_keys() -> None:
    assert run_many(0, 60, real_keys=True)[1] == []


def test_the_same_seed_is_the_same_run() -> None:
    one, other = Fleet(draw(7)).run(), Fleet(draw(7)).run()
    assert figures(one) == figures(other)
    assert [d.store.head for d in one.devices] == [d.store.head for d in other.devices]
    assert figures(one) != figures(Fleet(draw(8)).run())


def test_the_same_seed_is_the_same_run_in_another_process() -> None:
    """A failing seed is run again elsewhere, where sets have another order."""
    code = (
        "from d2dfl.peer.simulator.fleet import Fleet; from d2dfl.peer.simulator.schedule import draw\n"
        "for seed in (5001, 5028, 5110): print([d.store.head for d in Fleet(draw(seed)).run().devices])"
    )
    runs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": order},
            stdout=subprocess.PIPE,
            check=True,
        ).stdout
        for order in ("1", "2", "3")
    }
    assert len(runs) == 1


def first_failure(seeds: int = 150) -> str:
    for seed in range(seeds):
        try:
            Fleet(draw(seed)).run()
        except AssertionError as error:
            return str(error) if f"again: python benchmarks/peer_schedules.py --seed {seed}" in str(error) else ""
    return ""


@pytest.mark.parametrize(
    ("which", "place", "instead"),
    [
        ("SENDER", ("asking", "timeout"), ("returned", ("take_back",))),  # who is silent has not got it
        ("SENDER", ("committing", "timeout"), ("done", ("release",))),  # who is silent has got it
        ("SENDER", ("cancelling", "timeout"), ("returned", ("take_back",))),  # nobody waits for an answer to a cancel
        ("SENDER", ("sending", "revoked"), ("returned", ("take_back",))),  # a revocation needs no answer
        ("RECEIVER", ("unknown", "cancel"), ("unknown", ("tell",))),  # a cancel of nothing is nothing
        ("RECEIVER", ("receiving", "cancel"), ("committed", ("adopt", "tell"))),  # a cancel comes too late
    ],
)
def test_a_broken_table_is_found(
    monkeypatch: pytest.MonkeyPatch, which: str, place: tuple[str, str], instead: table.Transition
) -> None:
    monkeypatch.setitem(getattr(table, which), place, instead)
    assert first_failure()


def test_a_peer_that_does_not_look_at_its_policy_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(giving.Giving, "allowed", lambda *_: True)
    assert "grant" in first_failure()


def test_a_peer_that_sends_before_it_stores_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The receiver says committed and forgets to commit."""
    monkeypatch.setitem(changes.CHANGES, do.Adopt, _phase_only)
    assert first_failure()


def _phase_only(store: Store, op: do.Adopt, now: float) -> None:
    store.db.execute("UPDATE incoming SET phase = 'committed' WHERE id = ?", (op.id,))


def test_a_store_that_keeps_what_it_was_to_erase_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(changes.CHANGES, do.Erase, lambda *_: None)
    assert first_failure()


def test_a_peer_that_obeys_an_older_policy_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    obey: Callable[..., str | None] = peer.Peer.set_policy

    def gullible(self: peer.Peer, data: bytes, now: float) -> str | None:
        self.store.db.execute("DELETE FROM facts WHERE name = 'policy'")
        self._newest = 0
        return obey(self, data, now)

    monkeypatch.setattr(peer.Peer, "set_policy", gullible)
    assert "older policy" in first_failure()


def test_a_peer_that_forgets_what_it_has_planned_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Store, "planned", lambda *_: 0)
    assert "handed over twice" in first_failure()


def test_a_peer_that_waits_for_one_who_was_thrown_out_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    for state in table.OPEN:
        monkeypatch.setitem(table.SENDER, (state, "expelled"), (state, ()))
    assert "does not settle" in first_failure()
