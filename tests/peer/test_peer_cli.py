"""The commands of a device and of a fleet, and what they say to bad input."""

import json
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("msgspec", reason="no msgspec: pip install 'd2dfl[peer]'")

from device_folders import broken, device, grant, shard, write_graph

from calling import call
from d2dfl.network.files import load_network
from d2dfl.peer.datapoints import take_in
from d2dfl.peer.home import Home
from d2dfl.peer.store.operations import Note
from d2dfl.peer.transports.zenoh import free_ports
from d2dfl.storage import locked


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


def test_from_nothing_to_a_preview(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    kitchen, hall = (device(monkeypatch, *place) for place in zip(("kitchen", "hall"), free_ports(2), strict=True))
    assert call(monkeypatch, "peer", "join", "fleet/roster.json", "--home", "kitchen") == 0  # hall is in it by now
    assert call(monkeypatch, "peer", "policy", "--home", "kitchen") == 0
    assert capsys.readouterr().out == "nothing is shared\n"
    grant(kitchen, hall)
    assert call(monkeypatch, "peer", "policy", "--sign", "--home", "kitchen") == 0
    said = capsys.readouterr()
    assert "signed: policy number 2" in said.err
    assert said.out == "grant hall: 100 each of cat, dog, until 2099-01-01\n"
    (kitchen.folder / "policy.toml").write_text('[[grant]]\nto = "*"\nlabels = ["*"]\nnumber = 1\nuntil = 2099-01-01\n')
    assert call(monkeypatch, "peer", "policy", "--sign", "--home", "kitchen") == 2
    wrong = (kitchen.folder / "policy.toml").read_text().replace('"*"\nlabels', '"hall"\nlabels')
    (kitchen.folder / "policy.toml").write_text(wrong)
    assert call(monkeypatch, "peer", "policy", "--sign", "--home", "kitchen") == 2
    assert "give a fingerprint of 64 hexadecimal digits\n" in capsys.readouterr().err  # not "or *", which is refused
    nobody = 64 * "0"
    (kitchen.folder / "policy.toml").write_text(wrong.replace('"hall"', f'"{nobody}"'))
    assert call(monkeypatch, "peer", "policy", "--sign", "--home", "kitchen") == 0
    assert (
        capsys.readouterr().out
        == "grant 0000000000000000 (not in the roster here): 1 each of all labels, until 2099-01-01\n"
    )
    grant(kitchen, hall)
    assert call(monkeypatch, "peer", "policy", "--sign", "--home", "kitchen") == 0
    capsys.readouterr()
    write_graph([[1.0, 5.0, 2.0]], [[0, 1]])
    before = (kitchen.folder / "store.db").read_bytes()
    assert call(monkeypatch, "peer", "run", "--dry-run", "--graph", "graph.json", "--home", "kitchen") == 0
    assert capsys.readouterr().out.splitlines() == [
        "hall: 1 of 1 with label cat",
        "hall: 2 of 5 with label dog (there are no more)",
        "hall: 0 of 2 with label fox (the policy does not grant it)",
    ]
    assert (kitchen.folder / "store.db").read_bytes() == before  # the shards count, and are not taken in yet
    store = kitchen.store()
    take_in(store, "data", kitchen.folder, kitchen.settings.labels, time.time())
    store.close()
    assert call(monkeypatch, "peer", "run", "--dry-run", "--graph", "graph.json", "--home", "kitchen") == 0
    assert "hall: 2 of 5 with label dog (there are no more)" in capsys.readouterr().out
    settings = (kitchen.folder / "peer.toml").read_text()
    (kitchen.folder / "peer.toml").write_text(settings.replace("points_a_day = 100000", "points_a_day = 2"))
    assert call(monkeypatch, "peer", "run", "--dry-run", "--graph", "graph.json", "--home", "kitchen") == 0
    assert "hall: 1 of 5 with label dog (the day's limit is reached)" in capsys.readouterr().out
    (kitchen.folder / "peer.toml").write_text(settings)
    assert call(monkeypatch, "peer", "run", "--dry-run", "--graph", "graph.json", "--home", "hall") == 0
    assert (
        capsys.readouterr().out
        == "nothing would go from this device: no link, no datapoint or nobody else in the roster\n"
    )
    assert call(monkeypatch, "peer", "check", "--seconds", "0", "--home", "kitchen") == 0
    assert {line[:5].strip() for line in capsys.readouterr().out.splitlines()} == {"ok"}
    assert call(monkeypatch, "fleet", "status", "--json") == 0
    assert [item["name"] for item in json.loads(capsys.readouterr().out)] == ["hall", "kitchen"]
    assert call(monkeypatch, "fleet", "status", "--json", "kitchen") == 0
    assert [item["name"] for item in json.loads(capsys.readouterr().out)] == ["kitchen"]
    assert call(monkeypatch, "peer", "status", "--json", "--home", "kitchen") == 0
    assert json.loads(capsys.readouterr().out)["name"] == "kitchen"
    assert call(monkeypatch, "peer", "status", "--home", "kitchen") == 0
    assert "holds 6 (cat: 2, dog: 2, fox: 2)" in capsys.readouterr().out
    seen = {"probes": 3, "heard": 3, "loss": 0.0, "round_trip_s": 0.0021}
    late, never = {**seen, "last_heard_s": 3661.0}, {"probes": 0, "heard": 0, "loss": None, "round_trip_s": None}
    for link, said_of_it in (
        (late, "loss 0.000, round trip 2.1 ms, last heard 1970-01-01 01:01:01"),
        (never, "loss –, round trip –, not heard yet"),
    ):
        content = {"links": {hall.key().fingerprint.hex(): link}, "history": [], "signal_dbm": {}}
        (kitchen.folder / "links.json").write_text(json.dumps(content))
        assert call(monkeypatch, "peer", "status", "--home", "kitchen") == 0
        assert f"  link with hall: {said_of_it}\n" in capsys.readouterr().out


def test_measured_links_make_a_network(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    homes = [device(monkeypatch, *place) for place in zip(("kitchen", "hall"), free_ports(2), strict=True)]
    for home in homes:
        assert call(monkeypatch, "peer", "join", "fleet/roster.json", "--home", str(home.folder)) == 0
    grant(homes[0], homes[1])
    assert call(monkeypatch, "peer", "policy", "--sign", "--home", "kitchen") == 0
    link = {"probes": 10, "heard": 8, "loss": 0.2, "round_trip_s": 0.01}
    content = {"own": "", "links": {homes[0].key().fingerprint.hex(): link}}
    (homes[1].folder / "links.json").write_text(json.dumps(content))
    for home in homes:
        store = home.store()
        take_in(store, "data", home.folder, home.settings.labels, time.time())
        store.close()
        assert call(monkeypatch, "peer", "export", f"{home.settings.name}.json", "--home", str(home.folder)) == 0
    assert call(monkeypatch, "fleet", "network", "kitchen.json", "hall.json", "--save", "net.json") == 0
    network = load_network(Path("net.json"))
    assert network.counts.tolist() == [[2, 2, 2], [2, 2, 2]]
    receiver, slot = 1, network.candidates[1].tolist().index(0)
    assert network.drop[receiver, slot] == pytest.approx(0.2)
    assert network.trust[receiver, slot].tolist() == [True, True, False]
    assert (network.candidates[0] < 0).all()  # nobody measured that direction
    small = ["--set", "marginal.messages=60"]
    assert call(monkeypatch, "discover", "--network", "net.json", "--json", "graph.json", *small) == 0
    assert call(monkeypatch, "peer", "run", "--dry-run", "--graph", "graph.json", "--home", "kitchen") == 0
    assert call(monkeypatch, "fleet", "network", "kitchen.json", "--save", "net.json") == 2
    assert "no export of hall" in capsys.readouterr().err


def test_forget_and_export_and_audit(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    home = device(monkeypatch, "kitchen", *free_ports(1))
    from d2dfl.peer.datapoints import take_in

    store = home.store()
    take_in(store, "data", home.folder, home.settings.labels, time.time())
    store.close()
    assert call(monkeypatch, "peer", "forget", "3", "--home", "kitchen") == 0
    assert call(monkeypatch, "peer", "export", "out.npz", "--home", "kitchen") == 0
    with np.load("out.npz") as found:
        assert found["numbers"].tolist() == [0, 1, 2, 4, 5]
        assert found["inputs"][3].tolist() == [8.0, 9.0]
    with locked(home.folder):  # as if it were running
        assert call(monkeypatch, "peer", "forget", "4", "--home", "kitchen") == 0
        assert call(monkeypatch, "peer", "run", "--stay", "--home", "kitchen") == 2
        assert call(monkeypatch, "peer", "check", "--home", "kitchen") == 0
        assert "this peer runs" in capsys.readouterr().out
    wishes = [json.loads(path.read_text()) for path in (home.folder / "wishes").glob("*.json")]
    assert wishes == [{"forget": [4]}]
    capsys.readouterr()
    assert call(monkeypatch, "peer", "audit", "verify", "--home", "kitchen") == 0
    assert "lines are whole" in capsys.readouterr().out
    assert call(monkeypatch, "peer", "audit", "--home", "kitchen") == 0
    assert "forget " in capsys.readouterr().out
    assert call(monkeypatch, "peer", "forget", "99", "--home", "kitchen") == 2
    assert "there never was a datapoint 99" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["peer", "forget", "0"], "there never was a datapoint 0 of this device: it has taken in none yet"),
        (["peer", "check", "--seconds", "1"], "Address already in use"),
        (["peer", "run", "--for", "nan"], "Invalid value for '--for': nan is no number"),
        (["peer", "run", "--for", "1"], "Address already in use"),
    ],
)
def test_what_is_refused_leaves_the_store_as_it_was(
    arguments: list[str], said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("zenoh", reason="no zenoh: pip install 'd2dfl[peer]'")

    (port,) = free_ports(1)
    home = device(monkeypatch, "kitchen", port)
    before = (home.folder / "store.db").read_bytes()
    with socket.socket() as other:
        other.bind(("127.0.0.1", port))
        other.listen()
        capsys.readouterr()
        assert call(monkeypatch, *arguments, "--home", "kitchen") == 2
    assert said in capsys.readouterr().err
    assert (home.folder / "store.db").read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["peer", "status"], "is no folder of a peer"),
        (["peer", "run"], "is no folder of a peer"),
        (["peer", "init", "--name", "Küche", "--data", "x"], "will not do"),
        (["peer", "init", "--name", "k", "--data", "x", "--listen", "nowhere"], "give host:port"),
        (["peer", "init", "--name", "k", "--data", "x", "--listen", "127.0.0.1:0"], "a port from 1 to 65535"),
        (
            ["peer", "init", "--name", "k", "--data", "x", "--listen", "127.0.0.1:70000", "--address", "here:7447"],
            "the address '127.0.0.1:70000' will not do: give host:port with a port from 1 to 65535",
        ),
        (["peer", "init", "--name", "k", "--data", "x", "--labels", "a,a"], "stands twice"),
        (["peer", "init", "--name", "k", "--data", "x", "--labels", "-1"], "there are -1 labels: give 1 to 10,000"),
        (["peer", "init", "--name", "k", "--data", "x", "--labels", "1e3"], "there are 1e3 labels: give 1 to 10,000"),
        (["peer", "init", "--name", "k", "--data", "x", "--labels", "0"], "give 1 to 10,000"),
        (["peer", "init", "--name", "k", "--data", "x", "--labels", "20000"], "give 1 to 10,000"),
        (["fleet", "approve", "none.request"], "there is no file"),
        (["fleet", "status"], "there is no peer's folder here"),
        (["fleet", "revoke", "kitchen"], "holds no fleet"),
    ],
)
def test_bad_input_is_one_sentence_and_leaves_nothing(
    arguments: list[str], said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert call(monkeypatch, *arguments) == 2
    error = capsys.readouterr().err
    assert said in error
    assert len(error.strip().splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("size", [0, 4096, 20_000, 1_000_000])
def test_a_disk_that_is_full_leaves_no_half_of_a_device(size: int) -> None:
    """No file of the process may grow beyond so many bytes: keys and papers first, then the store."""
    code = (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); import d2dfl.cli.peer; "
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({size}, {size})); "
        "sys.argv = ['d2dfl', 'peer', 'init', '--name', 'k', '--data', 'data', '--home', 'k']; "
        "import d2dfl.__main__ as m; m.main()"
    )
    done = subprocess.run(
        [sys.executable, "-B", "-c", code], capture_output=True, text=True, check=False, cwd=Path.cwd()
    )
    whole = done.returncode == 0
    assert whole == (size == 1_000_000), done.stderr
    assert Path("k").exists() == whole
    if not whole:
        assert len(done.stderr.strip().splitlines()) == 1
        assert "cannot" in done.stderr
        assert done.returncode == 2


def test_a_clock_that_is_wrong_by_a_year(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    home = broken(monkeypatch)
    store = home.store()
    store.apply([Note("future")], time.time() + 365 * 86_400)
    store.close()
    assert call(monkeypatch, "peer", "run", "--graph", "graph.json", "--home", "kitchen") == 2
    assert "the clock is 365.0 days behind" in capsys.readouterr().err
    assert call(monkeypatch, "peer", "check", "--seconds", "0", "--home", "kitchen") == 2
    assert "WRONG clock" in capsys.readouterr().out


def test_a_foreign_roster_is_refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    device(monkeypatch, "kitchen", *free_ports(1))
    print_ = Home(Path("kitchen")).key().fingerprint.hex()
    approve = ["fleet", "approve", "kitchen/kitchen.request", "--fingerprint", print_, "--fleet", "other"]
    assert call(monkeypatch, *approve) == 0
    before = Path("kitchen/certificate.pem").read_bytes()
    assert call(monkeypatch, "peer", "join", "other/kitchen.admission", "--home", "kitchen") == 2
    assert "signed by somebody else" in capsys.readouterr().err
    assert Path("kitchen/certificate.pem").read_bytes() == before


@pytest.mark.parametrize("part", ["certificate", "authority"])
@pytest.mark.parametrize("other", ["garbage", "of another fleet", "of another device"])
def test_an_admission_with_a_wrong_certificate_changes_nothing(
    part: str, other: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    print_ = device(monkeypatch, "kitchen", *free_ports(1)).key().fingerprint.hex()
    device(monkeypatch, "hall", *free_ports(1))
    approve = ["fleet", "approve", "kitchen/kitchen.request", "--fingerprint", print_, "--fleet", "other"]
    assert call(monkeypatch, *approve) == 0
    found = json.loads(Path("fleet/kitchen.admission").read_text())
    if other == "garbage":
        found[part] = "garbage"
    elif other == "of another fleet":
        found[part] = json.loads(Path("other/kitchen.admission").read_text())[part]
    else:
        found[part] = json.loads(Path("fleet/hall.admission").read_text())["certificate"]
    Path("bad.admission").write_text(json.dumps(found))
    before = {path: path.read_bytes() for path in Path("kitchen").rglob("*") if path.is_file()}
    capsys.readouterr()
    assert call(monkeypatch, "peer", "join", "bad.admission", "--home", "kitchen") == 2
    assert "bad.admission" in capsys.readouterr().err
    assert {path: path.read_bytes() for path in Path("kitchen").rglob("*") if path.is_file()} == before


def test_a_wrong_fingerprint_signs_nothing(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    shard(Path("k/data"))
    assert call(monkeypatch, "peer", "init", "--name", "k", "--data", "data", "--home", "k") == 0
    for given in ("00000000", "ab", ""):
        assert call(monkeypatch, "fleet", "approve", "k/k.request", "--fingerprint", given) == 2
        assert "the fingerprints differ: nothing was signed" in capsys.readouterr().err
    assert not Path("fleet").exists()


LOADED = """
import sys
from pathlib import Path
from d2dfl.cli.peer import running
try:
    running.run_and_print(Path(sys.argv[1]), Path("graph.json"), False, 3.0)
finally:
    heavy = ("torch", "numba", "scipy", "sklearn", "matplotlib", "networkx")
    print("loaded", *(name for name in heavy if name in sys.modules))
"""


def test_a_peer_loads_neither_torch_nor_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("zenoh", reason="no zenoh: pip install 'd2dfl[peer]'")
    broken(monkeypatch)
    done = subprocess.run([sys.executable, "-c", LOADED, "kitchen"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "loaded"
    assert "holds 6 datapoints" in done.stderr


def test_without_the_extra_it_says_how_to_have_it() -> None:
    code = "import sys; sys.modules['msgspec'] = None; sys.argv = ['d2dfl', 'peer', 'status']; import d2dfl.__main__ as m; m.main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.strip() == (
        "d2dfl: a peer needs the package msgspec and cryptography: install it with pip install 'd2dfl[peer]'"
    )
