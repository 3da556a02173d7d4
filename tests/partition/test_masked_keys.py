"""Keys that devices agree on: both sides of a pair have the same, nobody else has it, and sums over them are exact."""

import numpy as np
import pytest

from d2dfl.errors import UserError
from d2dfl.partition.masked.bill import masked_sum_cost
from d2dfl.partition.masked.driver import run_sum
from d2dfl.partition.masked.keys import KeyAgreement, PublicKey, agreed_devices
from d2dfl.partition.masked.messages import Kind
from d2dfl.partition.masked.pads import KeyedPads
from d2dfl.partition.masked.plan import SumPlan, balanced_tree, mask_graph

pytest.importorskip("cryptography", reason="no cryptography: pip install 'd2dfl[peer]'")


def plan_of(devices: int) -> SumPlan:
    return SumPlan(balanced_tree(devices), mask_graph(devices, 0), 64)


def side(device: int, session: bytes = b"one") -> KeyAgreement:
    return KeyAgreement(device, session)


def met(one: KeyAgreement, other: KeyAgreement) -> None:
    for sender, receiver in ((one, other), (other, one)):
        (message,) = sender.announcements([receiver.device])
        receiver.hear(message)


def test_both_sides_have_the_same_key_and_another_one_with_anybody_else() -> None:
    first, second, third = side(0), side(1), side(2)
    met(first, second)
    met(first, third)
    met(second, third)
    assert first(0, 1) == first(1, 0) == second(0, 1)
    assert len({first(0, 1), first(0, 2), second(1, 2)}) == 3
    with pytest.raises(UserError, match="no key"):
        third(0, 1)


def test_sessions_have_keys_of_their_own() -> None:
    one, other = side(0, b"one"), side(1, b"two")
    met(one, other)
    assert one(0, 1) != other(0, 1)


@pytest.mark.parametrize("public", [b"short", bytes(32)], ids=["too short", "low order"])
def test_a_key_that_is_none_is_refused(public: bytes) -> None:
    with pytest.raises(UserError, match="device 1 sent is none"):
        side(0).hear(PublicKey(1, 0, public))


def test_a_second_key_changes_nothing() -> None:
    one, other = side(0), side(1)
    met(one, other)
    before = one(0, 1)
    one.hear(PublicKey(1, 0, side(1).public))
    assert one(0, 1) == before


@pytest.mark.parametrize("step", [None, Kind.MASKED, Kind.OPENING])
def test_sums_with_agreed_keys_are_exact_whoever_drops_out(step: Kind | None) -> None:
    plan = plan_of(9)
    devices, sent = agreed_devices(plan, b"session")
    words = list(np.random.default_rng(2).integers(0, 1000, (9, 5), dtype=np.uint64))
    told = run_sum(devices, 0, words, {} if step is None else {7: step})
    present = [name for name in range(9) if step is not Kind.MASKED or name != 7]
    assert told.total is not None
    assert told.total.tolist() == np.sum([words[name] for name in present], axis=0).tolist()
    lost = {"absent": int(step is Kind.MASKED), "lost": int(step is Kind.OPENING)}
    cost = masked_sum_cost(9, [5], word_bits=64, **lost)
    assert len(sent) + len(told.messages) <= cost.messages
    assert sum(message.bits for message in sent) + told.bits <= cost.bits
    if step is None:
        assert sum(message.bits for message in sent) + told.bits == cost.bits


def test_who_heard_all_public_keys_cannot_make_the_masks() -> None:
    """An eavesdropper with a key pair of its own agrees on other keys than the two that it listened to."""
    plan = plan_of(4)
    _, sent = agreed_devices(plan, b"session")
    listener = KeyAgreement(0, b"session")
    for message in sent:
        if message.receiver == 0:
            listener.hear(message)
    devices, _ = agreed_devices(plan, b"session")
    guessed = KeyedPads(listener, b"session", 64).pair(0, 1, 0, 3)
    assert guessed.tolist() != devices[0]._pads.pair(0, 1, 0, 3).tolist()
