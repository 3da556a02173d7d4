"""Everything also from Python, by what `d2dfl.peer` offers."""

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("msgspec", reason="no msgspec: pip install 'd2dfl[peer]'")
pytest.importorskip("zenoh", reason="no zenoh: pip install 'd2dfl[peer]'")

import d2dfl.peer as peer
from d2dfl.errors import UserError
from d2dfl.peer.transports.zenoh import free_ports

LABELS = ("cat", "dog")


def two(folder: Path) -> list[peer.Home]:
    """Kitchen, which grants cats to hall, and hall; a graph that wants more."""
    fleet, homes = peer.FleetFolder(folder / "fleet"), []
    fleet.create()
    for name, port in zip(("kitchen", "hall"), free_ports(2), strict=True):
        (folder / name / "data").mkdir(parents=True)
        np.savez(folder / name / "data" / "one.npz", inputs=np.arange(20.0).reshape(10, 2), targets=np.arange(10) % 2)
        request = peer.make_home(folder / name, name, "data", LABELS, f"127.0.0.1:{port}")
        fleet.approve(peer.read_request(request))
        homes.append(peer.Home(folder / name))
    for home in homes:
        admission = fleet.approve(peer.read_request(home.folder / f"{home.settings.name}.request"))
        assert peer.join(home, admission).endswith("is in the roster number 2, with 1 others")
    to = homes[1].key().fingerprint.hex()
    (homes[0].folder / "policy.toml").write_text(
        f'[[grant]]\nto = "{to}"\nlabels = ["cat"]\nnumber = 3\nuntil = 2099-01-01\n'
    )
    homes[0].sign_policy()
    (folder / "graph.json").write_text(json.dumps({"edges": [[0, 1]], "expected_datapoints": [[5.0, 1.0]]}))
    return homes


def test_a_round_from_python(tmp_path: Path) -> None:
    homes, graph, said = two(tmp_path), tmp_path / "graph.json", list[str]()
    assert all(fine for home in homes for _, fine, _ in peer.check(home))
    assert [(row["label"], row["would_give"]) for row in peer.preview(homes[0], graph)] == [("cat", 3), ("dog", 0)]
    assert [row["would_give"] for row in peer.preview(homes[0])] == [3, 0]  # as docs/devices.md calls it
    with ThreadPoolExecutor() as pool:
        other = pool.submit(peer.run, homes[1], graph, seconds=60.0)
        result = peer.run(homes[0], graph, seconds=60.0, say=said.append)
        assert other.result() == peer.RunResult(
            found=True, done=True, short={}, gave={}, got={"kitchen": 3}, holds=13, open_transfers=0
        )
    assert said == ["took in 10 datapoints", "gave 3 to hall; got nothing"]
    short = {("hall", "cat"): "the grant's number is used up", ("hall", "dog"): "the policy does not grant it"}
    assert result == peer.RunResult(
        found=True, done=True, short=short, gave={"hall": 3}, got={}, holds=7, open_transfers=0
    )
    assert [peer.status(home)["holds"] for home in homes] == [{"cat": 2, "dog": 5}, {"cat": 8, "dog": 5}]
    assert peer.forget(homes[0], [0]) == (1, [])  # hall has it
    with pytest.raises(UserError, match="forgotten already"):
        peer.forget(homes[0], [0])


def test_it_loads_nothing_before_it_is_asked_for() -> None:
    code = "import sys, d2dfl.peer as p; assert set(p.__all__) <= {*p._HOMES}; print('numpy' in sys.modules, 'sqlite3' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
