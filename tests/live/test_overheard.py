"""Discoveries of workers: told while somebody looks, and shown by the view of a reproduction."""

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from d2dfl import Network, discover, preset
from d2dfl.experiment.overheard import EVERY_S, FRESH_S, LOOKED, Listener, tell_into, trace_to_tell
from d2dfl.live.grids import GridView
from d2dfl.live.stand import Stand
from d2dfl.live.views import PUSHED

CONFIG = preset("best").with_(**{"network.devices": 6})


class Clock:
    """Time that passes when it is told to."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """This process is a worker that tells of its discoveries there."""
    tell_into(tmp_path)
    yield tmp_path
    tell_into(None)


def discovery(seed: int = 0, method: str = "marginal") -> bool:
    """One discovery of a worker; whether it was recorded."""
    network = Network.generate(CONFIG, seed)
    trace = trace_to_tell(network, CONFIG, method)
    discover(network, CONFIG, seed=seed, method=method, trace=trace)
    return trace is not None


def test_nothing_is_recorded_unless_somebody_looks(folder: Path) -> None:
    assert not discovery()
    assert list(folder.iterdir()) == []
    Listener(folder).look()
    assert discovery()
    long_ago = time.time() - 2 * FRESH_S
    os.utime(folder / LOOKED, (long_ago, long_ago))
    assert not discovery()
    tell_into(None)
    Listener(folder).look()
    assert not discovery()


def test_a_discovery_is_heard_as_it_went(folder: Path) -> None:
    clock = Clock()
    listener = Listener(folder, clock)
    assert listener.look() == []
    assert discovery(seed=3)
    assert listener.look() == []  # too soon
    clock.now += EVERY_S
    (heard,) = listener.look()
    found = discover(Network.generate(CONFIG, 3), CONFIG, seed=3)
    assert (heard.over, heard.trace.method, heard.trace.seed, heard.config) == (True, "marginal", 3, CONFIG)
    assert len(heard.trace.moments) > 5
    assert np.array_equal(heard.trace.moments[-1].stages[-1], found.graph.slots)
    clock.now += EVERY_S
    assert listener.look() == []  # nothing new


def test_the_view_of_a_reproduction_shows_the_newest_and_keeps_the_last_few(folder: Path) -> None:
    clock, stand = Clock(), Stand(lambda: 1e6, lambda: clock.now, lambda: 0.0)
    view = GridView(stand, Listener(folder, clock))
    stand.newer({})  # somebody looks
    for seed in range(PUSHED + 2):
        assert discovery(seed)
        clock.now += 1.0
        parts = {part["name"]: part["data"] for part in map(json.loads, stand.newer({}))}
    assert parts["negotiation"]["title"] == f"Marginal (ours), seed {seed}, 6 devices with digits, 5 links each"
    assert [chart["title"] for chart in parts["negotiation"]["charts"]] == ["Objective", "Temperature"]
    listed = [key for key, _ in parts["discoveries"]]
    assert len(listed) == len(view.traces) == PUSHED
    whole = json.loads(stand.asked(listed[-1]) or "")["data"]
    assert len(whole["frames"]) > 5
    first = listed[0].rpartition("-")
    assert stand.asked(f"{first[0]}-{int(first[2]) - 1}") is None  # let go
    view.end()
    clock.now += 1.0
    stand.ended.set()
    pushed = {part["name"]: part["data"] for part in map(json.loads, stand.newer({}))}
    assert list(pushed["traces"]) == listed


def test_a_folder_that_is_gone_ends_nothing(folder: Path, tmp_path: Path) -> None:
    Listener(folder).look()
    network = Network.generate(CONFIG, 0)
    trace = trace_to_tell(network, CONFIG, "closest")
    tell_into(tmp_path / "gone")
    assert trace is not None
    os.rename(folder, tmp_path.with_name("elsewhere"))
    assert discover(network, CONFIG, method="closest", trace=trace).graph.edges
    assert Listener(folder).look() == []
    os.rename(tmp_path.with_name("elsewhere"), folder)
