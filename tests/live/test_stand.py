"""The newest records: computed when somebody looks, never too often, and nothing is lost on a slow reader."""

import json
from itertools import pairwise

from d2dfl.live.stand import FORMING, LEAST_S, MOST, SHARE, Kind, Stand, since_now


class Clock:
    """Time that passes when it is told to, and work that takes as long as it says."""

    def __init__(self) -> None:
        self.now, self.worked = 0.0, 0.0

    def work(self, seconds: float) -> None:
        self.now, self.worked = self.now + seconds, self.worked + seconds


def stand_at(clock: Clock) -> Stand:
    return Stand(lambda: clock.now, lambda: clock.now, lambda: clock.worked)


def told(texts: list[str]) -> dict[str, object]:
    return {content["name"]: content["data"] for content in map(json.loads, texts)}


def test_nothing_is_computed_while_nobody_looks() -> None:
    stand, calls = stand_at(Clock()), list[int]()
    for number in range(1000):
        stand.put("curve", lambda number=number: calls.append(number) or number)
    assert calls == []
    assert told(stand.newer({})) == {"curve": 999}
    assert calls == [999]


def test_two_readers_share_one_computation_and_each_sees_the_newest() -> None:
    clock, calls = Clock(), list[int]()
    stand = stand_at(clock)
    stand.put("curve", lambda: calls.append(1) or [1])
    fast: dict[str, int] = {}
    slow: dict[str, int] = {}
    assert told(stand.newer(fast)) == told(stand.newer(slow)) == {"curve": [1]}
    assert stand.newer(fast) == []
    for end in range(2, 6):
        clock.now += 100.0
        stand.put("curve", lambda end=end: calls.append(1) or list(range(1, end + 1)))
        assert told(stand.newer(fast)) == {"curve": list(range(1, end + 1))}
    assert told(stand.newer(slow)) == {"curve": [1, 2, 3, 4, 5]}  # all that it missed is in it
    assert len(calls) == 5


def test_who_comes_after_the_run_sees_the_first_record_before_the_last_is_drawn() -> None:
    stand, drawn = stand_at(Clock()), list[str]()
    for name in ("head", "map", "whole discoveries"):
        stand.put(name, lambda name=name: drawn.append(name) or 1)
    stand.ended.set()
    texts = stand.one_by_one({})
    assert told([next(texts)]) == {"head": 1}
    assert drawn == ["head"]
    assert list(told(list(texts))) == ["map", "whole discoveries"]


def test_what_is_dear_is_computed_seldom() -> None:
    clock, calls = Clock(), list[float]()
    stand = stand_at(clock)

    def draw() -> int:
        clock.work(0.05)
        calls.append(clock.now)
        return len(calls)

    seen: dict[str, int] = {}
    for _ in range(10_000):  # 1,000 seconds, a tick every tenth
        stand.put("map", draw)
        stand.newer(seen)
        clock.now += 0.1
    assert 0.8 * SHARE < clock.worked / clock.now <= 1.5 * SHARE  # the first one is not waited for
    assert min(b - a for a, b in pairwise(calls)) >= LEAST_S


def test_links_are_seen_to_form_though_the_first_map_is_dear() -> None:
    """A discovery of 17 s, 60 devices: places of devices and names are found once, and the map without them is cheap."""
    clock, seen, maps = Clock(), dict[str, int](), list[float]()
    stand = stand_at(clock)

    def draw() -> int:
        clock.work(0.025 if maps else 0.07)
        maps.append(clock.now)
        return len(maps)

    while clock.now < 17.0:
        stand.put("map", draw, Kind(FORMING))
        stand.newer(seen)
        clock.now += 0.1
    assert len(maps) >= 5
    assert clock.worked < 0.02 * clock.now


def test_a_run_of_a_second_is_drawn_once_when_it_has_ended() -> None:
    """25 devices: the first map would be a thirtieth of it."""
    clock, seen, drawn = Clock(), dict[str, int](), list[float]()
    stand = stand_at(clock)
    while clock.now < 1.0:
        stand.put("map", lambda: clock.work(0.03) or drawn.append(clock.now) or 1, Kind(FORMING, 0.03))
        stand.put("head", lambda: clock.work(0.0001) or 1)
        stand.newer(seen)
        clock.now += 0.1
    assert drawn == []
    assert seen["head"] > 1  # how far it is costs next to nothing
    stand.ended.set()
    assert "map" in told(stand.newer(seen))


def test_whatever_is_shown_the_account_is_kept() -> None:
    """Eight records, the first of each dearer than thought, all of them said to be due at once when a part of the run ends."""
    clock, seen, names = Clock(), dict[str, int](), [f"record {number}" for number in range(8)]
    stand, times = stand_at(clock), dict.fromkeys(names, 0)

    def draw(name: str) -> int:
        clock.work(0.02 if times[name] else 0.06)
        times[name] += 1
        return times[name]

    while clock.now < 60.0:
        for name in names:
            stand.put(name, lambda name=name: draw(name), Kind(first_s=0.03))
        if 20.0 <= clock.now < 20.1:
            stand.settled(*names)
        stand.newer(seen)
        assert clock.worked <= MOST * clock.now + 0.03  # by what the first took more than was thought
        clock.now += 0.1
    assert min(times.values()) >= 1


def test_modules_are_loaded_once_and_charged_to_nobody() -> None:
    clock, seen, loaded = Clock(), dict[str, int](), list[int]()
    stand = stand_at(clock)
    clock.now = 10.0

    def load() -> None:
        if not loaded:
            clock.work(0.5)
            loaded.append(1)

    for number in range(3):
        stand.put("map", lambda number=number: clock.work(0.01) or number, Kind(first_s=0.01, load=load))
        assert told(stand.newer(seen)) == {"map": number}
        clock.now += 20.0
    assert loaded == [1]
    assert stand.loaded_s == 0.5


def test_a_map_that_has_found_its_places_is_thought_to_take_less() -> None:
    """Both first drawings took 0.03 s. The account soon has room for two fifths of that, and not for as much again."""
    clock, seen = Clock(), dict[str, int]()
    stand = stand_at(clock)
    clock.now = 0.061 / MOST
    for number, again in enumerate((0.4, 1.0)):
        stand.put(f"map {number}", lambda: clock.work(0.03) or 1, Kind(1.0, 0.03, again))
    assert len(told(stand.newer(seen))) == 2
    clock.now = 0.068 / MOST
    for number in range(2):
        stand.renew(f"map {number}")
    assert told(stand.newer(seen)) == {}
    clock.now = 0.075 / MOST
    assert told(stand.newer(seen)) == {"map 0": 1}


def test_what_the_server_did_before_anybody_looked_is_in_no_account() -> None:
    clock = Clock()
    stand = stand_at(clock)
    clock.work(10.0)
    stand.put("map", lambda: clock.work(0.01) or 1, Kind(first_s=0.01))
    assert told(stand.newer({})) == {"map": 1}


def test_a_clock_begins_when_a_run_begins() -> None:
    """One on the wall stands at what the machine has been on, of which the run has used nothing."""
    clock = Clock()
    clock.now = 1e6
    since = since_now(lambda: clock.now)
    clock.now += 2.0
    assert since() == 2.0


def test_while_nobody_has_looked_a_run_need_not_say_what_is_newer() -> None:
    stand, values = stand_at(Clock()), [0]
    stand.put("head", lambda: values[-1])
    assert not stand.watched
    values.append(1)  # nobody is told
    seen: dict[str, int] = {}
    assert told(stand.newer(seen)) == {"head": 1}
    assert stand.watched
    values.append(2)
    stand.renew("head")
    stand.ended.set()
    assert told(stand.newer(seen)) == {"head": 2}


def test_what_cost_much_once_is_not_held_against_a_cheap_record() -> None:
    clock, seen, drawn = Clock(), dict[str, int](), list[float]()
    stand = stand_at(clock)

    def draw() -> int:
        clock.work(0.2 if len(drawn) == 5 else 0.0001)  # Python collects its garbage in between
        drawn.append(clock.now)
        return len(drawn)

    for _ in range(200):
        stand.put("head", draw)
        stand.newer(seen)
        clock.now += 0.1
    assert max(b - a for a, b in pairwise(drawn)) < 1.0


def test_a_dear_record_does_not_keep_a_cheap_one_waiting_nor_another_dear_one_for_ever() -> None:
    clock, seen, times = Clock(), dict[str, int](), dict.fromkeys(("head", "map", "charts"), 0)
    stand = stand_at(clock)

    def draw(name: str, seconds: float) -> int:
        clock.work(seconds)
        times[name] += 1
        return times[name]

    for _ in range(1000):  # 100 seconds
        for name, seconds in (("head", 0.0001), ("map", 0.05), ("charts", 0.05)):
            stand.put(name, lambda name=name, seconds=seconds: draw(name, seconds))
        stand.newer(seen)
        clock.now += 0.1
    assert times["head"] > 250
    assert times["map"] == times["charts"] >= 3


def test_at_the_end_everything_comes_at_once() -> None:
    clock = Clock()
    stand = stand_at(clock)
    seen: dict[str, int] = {}
    stand.put("map", lambda: clock.work(1.0) or 1)
    stand.newer(seen)
    clock.now += 1.0
    stand.put("map", lambda: 2)
    assert stand.newer(seen) == []  # not due yet
    assert not stand.complete(seen)
    stand.ended.set()
    assert told(stand.newer(seen)) == {"map": 2}
    assert stand.complete(seen)


def test_what_has_settled_is_drawn_at_once_and_then_seldom_again() -> None:
    clock = Clock()
    clock.now = 1000.0  # of a run that may spend some
    stand = stand_at(clock)
    seen: dict[str, int] = {}
    stand.put("map", lambda: clock.work(1.0) or 1)
    assert told(stand.newer(seen)) == {"map": 1}
    clock.now += 1.0
    stand.put("map", lambda: clock.work(1.0) or 2)
    assert stand.newer(seen) == []
    stand.settled("map", "nothing")
    assert told(stand.newer(seen)) == {"map": 2}
    clock.now += 1.0
    stand.put("map", lambda: 3)
    assert stand.newer(seen) == []


def test_what_is_offered_is_computed_for_whoever_asks() -> None:
    stand = stand_at(Clock())
    stand.offer("one", lambda: {"a": 1})
    assert json.loads(stand.asked("one") or "")["data"] == {"a": 1}
    assert stand.asked("two") is None
