"""Dry runs of folders, by the commands: what they say is what a run then does, and what they refuse it refuses, too."""

import time
from pathlib import Path

import pytest

pytest.importorskip("msgspec", reason="no msgspec: pip install 'd2dfl[peer]'")

from device_folders import broken, device, grant, write_graph

from calling import call
from d2dfl.peer.datapoints import take_in
from d2dfl.peer.home import Home
from d2dfl.peer.identity.keys import load_key
from d2dfl.peer.policy import sign_policy
from d2dfl.peer.reports import preview
from d2dfl.peer.service import opened
from d2dfl.peer.store.operations import Fact
from d2dfl.peer.transports.zenoh import free_ports


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("most", [100_000, 3])
def test_a_preview_is_what_a_run_gives(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    """Two receivers want the same datapoints, which go to one of them; and a day has a limit."""
    homes = [device(monkeypatch, *place) for place in zip(("kitchen", "hall", "attic"), free_ports(3), strict=True)]
    kitchen = homes[0]
    assert call(monkeypatch, "peer", "join", "fleet/roster.json", "--home", "kitchen") == 0
    policy = ""
    for other in homes[1:]:
        grant(kitchen, other)
        policy += (kitchen.folder / "policy.toml").read_text()
    (kitchen.folder / "policy.toml").write_text(policy)
    kitchen.sign_policy()
    settings = (kitchen.folder / "peer.toml").read_text()
    (kitchen.folder / "peer.toml").write_text(settings.replace("points_a_day = 100000", f"points_a_day = {most}"))
    kitchen = Home(kitchen.folder)
    write_graph([[2.0, 1.0, 0.0], [2.0, 2.0, 0.0]], [[0, 2], [0, 1]])
    rows = preview(kitchen, Path("graph.json"))
    said = {(row["receiver"], row["label"]): row["would_give"] for row in rows if row["would_give"]}
    reasons = {(row["receiver"], row["label"]): row["why"] for row in rows if row["why"]}
    with opened(kitchen) as store:
        take_in(store, "data", kitchen.folder, kitchen.settings.labels, time.time())
        peer = kitchen.peer(store, time.time())
        peer.follow(kitchen.graph(peer.own, Path("graph.json")))
        peer.tick(time.time())
        names = {home.key().fingerprint: home.settings.name for home in homes}
        rows = store.db.execute("SELECT receiver, label, count(*) FROM given GROUP BY receiver, label").fetchall()
        assert said == {(names[receiver], label): number for receiver, label, number in rows}
        assert reasons == {(names[who], label): why for (who, label), why in peer.giving.reasons.items()}
    assert sum(said.values()) == min(most, 4)
    kept = settings.replace('keep = "move"', 'keep = "copy"')
    (kitchen.folder / "peer.toml").write_text(kept)
    with opened(kitchen) as store:
        store.db.execute("UPDATE points SET leaving = NULL")  # as if they had come there, and had been kept here, too
    write_graph([[2.0, 2.0, 0.0]], [[0, 2]])
    again = {row["label"]: row["would_give"] for row in preview(Home(kitchen.folder), Path("graph.json"))}
    assert again == {label: 2 - said.get(("attic", label), 0) for label in ("cat", "dog")}


def test_a_graph_with_devices_that_are_in_no_roster_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It was named: nobody has looked for one, and who answers does not matter."""
    pytest.importorskip("zenoh", reason="no zenoh: pip install 'd2dfl[peer]'")
    home = broken(monkeypatch)
    write_graph([[1.0, 0.0, 0.0]], [[0, 9]])
    capsys.readouterr()
    assert call(monkeypatch, "peer", "run", "--graph", "graph.json", "--for", "1", "--home", "kitchen") == 2
    said = capsys.readouterr().err.strip().splitlines()[-1]
    assert said.startswith("d2dfl: the graph has more devices than the roster here: nothing has moved; take the newer")
    assert sum(home.store(read_only=True).counts().values()) == 6


def test_a_preview_under_an_older_policy_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    home = broken(monkeypatch)
    with opened(home) as store:
        store.apply([Fact("policy", 7)], time.time())
    assert call(monkeypatch, "peer", "run", "--dry-run", "--graph", "graph.json", "--home", "kitchen") == 2
    assert "the policy is number 1, and 7 was in force" in capsys.readouterr().err


def test_a_preview_and_a_check_know_two_policies_with_one_number(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run shares nothing under the second one."""
    home = broken(monkeypatch)
    with opened(home) as store:
        assert home.peer(store, time.time()).policy.number == 1
    signed = sign_policy(
        {"grant": [], "forbid": [{"to": "*", "labels": ["cat"]}]}, 1, load_key(home.folder / "owner.key")
    )
    (home.folder / "policy.signed").write_bytes(signed)
    assert call(monkeypatch, "peer", "run", "--dry-run", "--graph", "graph.json", "--home", "kitchen") == 2
    assert "two policies have the number 1: sign it again" in capsys.readouterr().err
    assert call(monkeypatch, "peer", "check", "--home", "kitchen", "--seconds", "0") == 2
    assert "WRONG policy: two policies have the number 1" in capsys.readouterr().out
