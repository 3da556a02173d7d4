"""What peers measure: losses as time goes by, the strength of the radio, traces for the simulator; and [discovery] in peer.toml."""

import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("msgspec", reason="no msgspec: pip install 'd2dfl[peer]'")

from d2dfl.errors import UserError
from d2dfl.peer.fleet_network import trace_of
from d2dfl.peer.home import Home, make_home
from d2dfl.peer.measured import measured
from d2dfl.peer.negotiation.settings import DiscoverySettings
from d2dfl.peer.owner import FleetFolder, read_request
from d2dfl.peer.probing import Link
from d2dfl.peer.radio import signal_dbm
from d2dfl.peer.settings import read_settings_text

WIRELESS = """\
Inter-| sta-|   Quality        |   Discarded packets               | Missed | WE
 face | tus | link level noise |  nwid  crypt   frag  retry   misc | beacon | 22
 wlan0: 0000   54.  -56.  -256        0      0      0      0     12        0
  old1: 0000   30.  200.  161.        0      0      0      0      0        0
  bad0: 0000   30.  -.5.  161.        0      0      0      0      0        0
  off0: 0000    0.    0.    0.        0      0      0      0      0        0
"""


def test_the_radio_is_heard_where_the_platform_tells_it(tmp_path: Path) -> None:
    (tmp_path / "wireless").write_text(WIRELESS)
    assert signal_dbm(tmp_path / "wireless") == {"wlan0": -56.0, "old1": -56.0}
    assert signal_dbm(tmp_path / "none") == {}
    (tmp_path / "wireless").write_bytes(bytes(range(256)) * 100)
    assert signal_dbm(tmp_path / "wireless") == {}


def test_losses_are_those_since_they_were_last_asked_for() -> None:
    link = Link()
    assert link.since_last() is None
    for number in (1, 2, 4, 5):
        link.hear(number, 1)
    assert link.since_last() == pytest.approx(1 / 5)
    assert link.since_last() is None
    link.hear(9, 1)
    assert link.since_last() == pytest.approx(3 / 4)
    link.hear(101, 101)  # a new series: what is missing of the one before was lost
    assert link.since_last() == pytest.approx(91 / 92)
    link.hear(1, 1)  # its process has started anew
    assert link.since_last() == 0.0


@pytest.mark.parametrize(("number", "first"), [(1 << 61, 0), (1 << 61, 1 << 61), (101, 1), (3, 4)])
def test_a_probe_that_nobody_sends_counts_for_nothing(number: int, first: int) -> None:
    link = Link()
    link.hear(1, 1)
    link.hear(number, first)
    assert link.as_dict() == {"probes": 1, "heard": 1, "loss": 0.0, "round_trip_s": None}


@pytest.fixture
def three(tmp_path: Path) -> FleetFolder:
    fleet = FleetFolder(tmp_path / "fleet")
    fleet.create()
    for name in ("a", "b", "c"):
        request = make_home(tmp_path / name, name, "data", ("x", "y"), "127.0.0.1:7447")
        fleet.approve(read_request(request))
    return fleet


def exported(folder: Path, name: str, *moments: tuple[float, dict[str, float]]) -> Path:
    prints = {one: Home(folder / one).key().fingerprint.hex() for one in ("a", "b", "c")}
    history = [{"time_s": t, "loss": {prints[who]: loss for who, loss in losses.items()}} for t, losses in moments]
    content = {
        "fingerprint": prints[name],
        "labels": ["x", "y"],
        "counts": [1, 2],
        "grants": {},
        "links": {},
        "history": history,
    }
    (folder / f"{name}.json").write_text(json.dumps(content))
    return folder / f"{name}.json"


def test_a_trace_holds_what_was_measured_and_the_last_of_it_meanwhile(tmp_path: Path, three: FleetFolder) -> None:
    files = [
        exported(tmp_path, "a", (100.0, {"b": 0.1}), (161.0, {"b": 0.3})),
        exported(tmp_path, "b", (131.0, {"a": 0.5})),
        exported(tmp_path, "c"),
    ]
    loss, seconds = trace_of(files, three.roster())
    assert seconds.tolist() == [100.0, 130.0, 160.0]
    assert loss[:, 0, 1].tolist() == [0.1, 0.1, 0.3]
    assert loss[:, 1, 0].tolist() == [0.5, 0.5, 0.5]
    assert (loss[:, 2] == 1.0).all()
    with pytest.raises(UserError, match="let the peers run for some minutes"):
        trace_of(files[2:], three.roster())
    far = exported(tmp_path, "c", (1e9, {"a": 0.0}))
    with pytest.raises(UserError, match="days apart"):
        trace_of([files[0], far], three.roster())
    with pytest.raises(UserError, match="is no export of a peer"):
        trace_of([exported(tmp_path, "c", (1.0, {"a": 2.0}))], three.roster())


def test_the_command_writes_a_trace_that_the_simulator_reads(
    tmp_path: Path, three: FleetFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    from d2dfl.cli.fleet import network_and_print
    from d2dfl.network.traces import read_trace

    monkeypatch.chdir(tmp_path)
    files = [exported(tmp_path, name, (100.0, {"a": 0.25} if name != "a" else {"b": 0.5})) for name in ("a", "b", "c")]
    network_and_print(files, Path("network.json"), Path("trace.npz"), Path("fleet"))
    assert read_trace(Path("trace.npz"))[0, 1, 0] == 0.25
    assert np.diagonal(read_trace(Path("trace.npz")), axis1=1, axis2=2).tolist() == [[0.0, 0.0, 0.0]]
    with pytest.raises(UserError, match=".npz"):
        network_and_print(files, Path("network.json"), Path("trace.txt"), Path("fleet"))


def test_devices_with_reliable_links_are_signed_into_clusters(
    tmp_path: Path, three: FleetFolder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from d2dfl.cli.fleet import clusters_and_print

    monkeypatch.chdir(tmp_path)
    prints = {one: Home(tmp_path / one).key().fingerprint.hex() for one in ("a", "b", "c")}
    losses = {"a": {"b": 0.3, "c": 0.01}, "b": {"a": 0.0, "c": 0.3}, "c": {"a": 0.02}}
    files = []
    for name, heard in losses.items():
        path = exported(tmp_path, name)
        content = json.loads(path.read_text())
        path.write_text(json.dumps(content | {"links": {prints[who]: {"loss": loss} for who, loss in heard.items()}}))
        files.append(path)
    before = three.roster()
    clusters_and_print(files, 0.05, 7.0, Path("fleet"))
    assert capsys.readouterr().out == "cluster 0, 14 from outside: a, c\ncluster 1, 7 from outside: b\n"
    after = three.roster()
    assert (before.number, before.clusters) == (3, ([0, 0, 0], [0.0]))
    assert (after.number, after.clusters) == (4, ([0, 1, 0], [14.0, 7.0]))
    request = make_home(tmp_path / "d", "d", "data", ("x", "y"), "127.0.0.1:7447")
    three.approve(read_request(request))
    assert three.roster().clusters == ([0, 1, 0, 2], [14.0, 7.0, 7.0])  # who joined since is one by itself
    assert three.revoke("c").clusters == ([0, 1, 0, 2], [7.0, 7.0, 7.0])
    clusters_and_print([*files, _no_links(tmp_path)], 0.5, 7.0, Path("fleet"))
    assert three.roster().clusters == ([0, 0, 1, 2], [14.0, 0.0, 7.0])


def _no_links(folder: Path) -> Path:
    """Of the device d, which has not run yet."""
    own = Home(folder / "d").key().fingerprint.hex()
    content = {"fingerprint": own, "labels": ["x", "y"], "counts": [1, 2], "grants": {}, "links": {}}
    (folder / "d.json").write_text(json.dumps(content))
    return folder / "d.json"


@pytest.mark.parametrize(
    "content", ["[]", '{"links": {"x": {}}}', '{"links": 3}', '{"history": [3]}', '{"signal_dbm": {"a": "b"}}', "{"]
)
def test_damaged_measurements_are_one_sentence(tmp_path: Path, three: FleetFolder, content: str) -> None:
    home = Home(tmp_path / "a")
    assert measured(home)["links"] == {}
    (home.folder / "links.json").write_text(content)
    with pytest.raises(UserError, match="links.json"):
        measured(home)


SETTINGS = 'name = "a"\ndata = "d"\nlabels = ["x"]\nlisten = "127.0.0.1:1"\n'


def test_settings_of_a_discovery() -> None:
    assert read_settings_text(SETTINGS, "peer.toml").discovery == DiscoverySettings()
    found = read_settings_text(
        SETTINGS + '[discovery]\nmode = "token"\nlinks = 2\nmessage_s = 1', "peer.toml"
    ).discovery
    assert (found.mode, found.links, found.message_s) == ("token", 2, 1)
    assert found.plan().config.discovery.edges == 2
    assert not found.plan().at_once


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('mode = "fast"', "mode is 'fast'"),
        ("links = 0", "links is 0: give a whole number from 1 to 50"),
        ("links = 2.5", "links is 2.5"),
        ("links = true", "links is True"),
        ("message_s = nan", "message_s is nan"),
        ("gather_s = 1e9", "gather_s"),
        ("luck = 1", "there is no setting 'luck'"),
    ],
)
def test_bad_settings_of_a_discovery_are_one_sentence(line: str, reason: str) -> None:
    with pytest.raises(UserError, match=reason):
        read_settings_text(f"{SETTINGS}[discovery]\n{line}\n", "peer.toml")
