"""Random schedules of crashes, and broken devices, which the same checks must find."""

import pytest

from crashes import draw, run, run_many
from d2dfl.discovery.protocol import weather
from d2dfl.discovery.protocol.own_clock import OwnClock
from d2dfl.discovery.protocol.weather import FOR_GOOD, Weather


def test_whatever_crashes_all_come_to_the_end_and_agree() -> None:
    sums, wrong = run_many(0, 50)
    assert not wrong
    assert sums["schedules"] == 50
    assert sums["spells"] > 100
    assert sums["left"] > 10


def test_an_old_sign_of_life_is_no_answer_to_who_has_left() -> None:
    """A device that comes back asks its partner whether it is there, and hears from somebody else that it is out."""
    sums, wrong = run_many(5023, 1)
    assert not wrong
    assert sums["left"] == 1


def test_the_next_one_keeps_the_account_of_a_cluster_whose_first_device_is_gone() -> None:
    heirs = 0
    for seed in range(40):
        schedule = draw(seed)
        devices, _ = run(schedule.with_(Weather(0.1), {0: [(50.0, FOR_GOOD)]}))
        order = devices[1].clusters.order[devices[0].cluster]
        if len(order) < 3 or not devices[1].clusters.matter(devices[1].holdings):
            continue
        heir, others = devices[order[1]], [devices[name] for name in order[2:]]
        heirs += 1
        assert all(0 in device.gone for device in [heir, *others] if device.turns > 2)
        assert {device.number for device in others if 0 in device.gone} <= heir.taken.keys()
        assert 0 not in heir.taken
    assert heirs > 5


@pytest.mark.parametrize(
    ("broken", "seed", "what"),
    [("_unlink", 22, "which was dead"), ("leave", 12, "does not end"), ("_tell_done", 5, "does not end")],
)
def test_broken_devices_are_found(monkeypatch: pytest.MonkeyPatch, broken: str, seed: int, what: str) -> None:
    """Who keeps links with those that are gone; who does not believe that it is out; who does not say that it is done."""
    monkeypatch.setattr(OwnClock, broken, lambda self, *_: [])
    monkeypatch.setattr(weather, "EVENTS", 50_000)
    _, (line,) = run_many(seed, 1)
    assert what in line
    assert line.endswith(f"again: python benchmarks/crashes.py --seed {seed}")
