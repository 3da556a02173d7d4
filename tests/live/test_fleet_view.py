"""A fleet that is looked at shows what its devices hold, not what they held before they had their data."""

import time
from pathlib import Path

import pytest

pytest.importorskip("zenoh", reason="no peer extra: pip install 'd2dfl[peer]'")

from d2dfl.cli.live.fleet import FleetFolders, FleetView
from d2dfl.live.stand import Stand
from d2dfl.peer import demo
from d2dfl.peer.datapoints import take_in


def test_a_fleet_is_shown_once_all_hold_their_data(tmp_path: Path) -> None:
    homes = demo._make_devices(3, tmp_path, 0)
    fleet = FleetFolders(tmp_path, 3, FleetView(Stand()))
    fleet.look()
    assert fleet.talk is None  # keys and policies alone
    for home in homes:
        store = home.store()
        take_in(store, "data", home.folder, demo.LABELS, time.time())
        store.close()
        fleet.look()
        assert fleet.talk is None
    for home in homes:
        (home.folder / demo.LOG).touch()
    fleet.look()
    assert fleet.talk is not None
    assert fleet.talk.network.counts.sum(axis=1).tolist() == [demo.POINTS] * 3
