"""A device's folder of which a part is broken, gone or of somebody else: one sentence, and nothing changes. And how one that stays ends."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, nullcontext, suppress
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("msgspec", reason="no msgspec: pip install 'd2dfl[peer]'")

from device_folders import broken, device

from calling import call
from d2dfl.errors import UserError
from d2dfl.peer.auditing import audit_lines
from d2dfl.peer.home import Home
from d2dfl.peer.service import run
from d2dfl.peer.store.operations import Note
from d2dfl.peer.transports.zenoh import free_ports
from d2dfl.storage import locked


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


def sql(statement: str) -> Callable[[Path], None]:
    """Somebody changes a store by hand."""

    def harm(folder: Path) -> None:
        with closing(sqlite3.connect(folder / "store.db", isolation_level=None)) as base:
            base.execute(statement)

    return harm


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (lambda f: (f / "device.key").chmod(0o644), "others can read the key"),
        (lambda f: (f / "device.key").write_bytes(b"x"), "no key that can be read"),
        (lambda f: (f / "peer.toml").write_text("name = 3"), "labels is None"),
        (lambda f: (f / "peer.toml").write_text("name = " + "9" * 5000), "not readable as TOML"),
        (lambda f: (f / "peer.toml").write_text((f / "peer.toml").read_text() + "speed = 1\n"), "no limit 'speed'"),
        (lambda f: (f / "data" / "one.npz").write_bytes(b"no archive"), "one.npz"),
        (
            lambda f: np.savez(f / "data" / "two.npz", inputs=np.zeros((1, 2)), targets=np.array([3])),
            "two.npz has targets that are no numbers of labels",
        ),
        (
            lambda f: np.savez(f / "data" / "two.npz", inputs=np.array([[0.0, 1.0], [0.0, np.nan]]), targets=[0, 0]),
            "two.npz holds NaN or infinity in row 1",
        ),
        (
            lambda f: np.savez(f / "data" / "two.npz", inputs=np.zeros((1, 3)), targets=np.array([0])),
            "two.npz has inputs <f8:3, and others here have <f8:2",
        ),
        (
            lambda f: (f / "data" / "one.npz").rename(os.fsdecode(bytes(f / "data") + b"/\xff.npz")),
            "a name that is no text",
        ),
        (lambda f: (f / "certificate.pem").write_bytes(b"none"), "no certificate in PEM"),
        (lambda f: (f / "store.db").write_bytes(b"no database" * 500), "cannot use the store"),
        (lambda f: (f / "store.db").write_bytes(b""), "is gone or empty"),
        (lambda f: (f / "store.db").unlink(), "is gone or empty"),
        (lambda f: (f / "authority.pem").write_bytes(b"none"), "authority.pem is no certificate in PEM"),
        (
            lambda f: (f / "authority.pem").write_bytes((f / "certificate.pem").read_bytes()),
            "certificate of another key",
        ),
        (lambda f: (f / "policy.signed").unlink(), "there is no file"),
        (sql("UPDATE facts SET value = 12 WHERE name = 'roster'"), "its fact 'roster' is none"),
        (sql("UPDATE facts SET value = 'x' WHERE name = 'run'"), "its fact 'run' is none"),
        (sql("DELETE FROM facts WHERE name = 'roster_owner'"), "its fact 'roster_owner' is none"),
        (sql("DROP TABLE given"), "its table 'given' is gone"),
        (sql("DELETE FROM facts WHERE name = 'owner'"), "does not know whose policy to obey"),
        (sql("INSERT INTO audit VALUES (1, 'x', 'x')"), "the last line of the audit cannot be read"),
        (
            lambda f: Path("graph.json").write_text('{"edges": [[0, -5]], "expected_datapoints": [[1, 1, 1]]}'),
            "has the link",
        ),
        (lambda f: Path("graph.json").write_text('{"edges": [[0, 0]], "expected_datapoints": [[1]]}'), "has the link"),
        (lambda f: Path("graph.json").write_text("[]"), "holds no graph"),
    ],
)
def test_a_broken_folder_is_one_sentence_and_nothing_changes(
    harm: Callable[[Path], object], said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    home = broken(monkeypatch)
    harm(home.folder)
    before = {path: path.read_bytes() for path in home.folder.rglob("*") if path.is_file()}
    capsys.readouterr()
    assert call(monkeypatch, "peer", "run", "--graph", "graph.json", "--for", "1", "--home", "kitchen") == 2
    error = capsys.readouterr().err
    assert said in error
    assert len(error.strip().splitlines()) == 1
    assert {path: path.read_bytes() for path in home.folder.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("runs", [False, True])
@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("[]", "is no admission"),
        ('{"roster": "\\ud800", "certificate": "", "authority": ""}', "is no admission"),
        ('{"roster": 5, "certificate": "", "authority": ""}', "is no admission"),
        ("foreign", "is signed by somebody else"),
    ],
)
def test_a_bad_admission_is_one_sentence_also_while_the_peer_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], content: str, said: str, runs: bool
) -> None:
    home = broken(monkeypatch)
    print_ = home.key().fingerprint.hex()
    approve = ["fleet", "approve", "kitchen/kitchen.request", "--fingerprint", print_, "--fleet", "other"]
    assert call(monkeypatch, *approve) == 0
    Path("bad").write_text(Path("other/roster.json").read_text() if content == "foreign" else content)
    with locked(home.folder) if runs else nullcontext():
        assert call(monkeypatch, "peer", "join", "bad", "--home", "kitchen") == 2
    assert said in capsys.readouterr().err
    assert not (home.folder / "wishes").exists()


def test_a_folder_with_data_that_cannot_be_read_is_not_an_empty_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    broken(monkeypatch)

    def closed(path: Path) -> Iterator[Path]:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "iterdir", closed)  # who runs tests as root may read everything
    assert call(monkeypatch, "peer", "run", "--for", "1", "--home", "kitchen") == 2
    assert "cannot read 'kitchen/data': Permission denied" in capsys.readouterr().err


@pytest.mark.parametrize(
    "given",
    ["5", "[5]", "[('a', [[1], [1, 2]], [0])]", "[('a', 1)]", "None"],
    ids=["5", "[5]", "ragged", "two", "None"],
)
def test_a_function_that_gives_no_shards_is_bad_input(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], given: str
) -> None:
    home = broken(monkeypatch)
    (home.folder / "mine.py").write_text(f"def shards():\n    return {given}\n")
    settings = home.folder / "peer.toml"
    settings.write_text(settings.read_text().replace('data = "data"', 'data = "mine.py:shards"'))
    assert call(monkeypatch, "peer", "run", "--for", "1", "--home", "kitchen") == 2
    assert "it must give (name, inputs, targets)" in capsys.readouterr().err


@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.parametrize("column", ["content", "hash"])
def test_a_line_of_the_audit_that_became_a_text_is_a_changed_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], column: str, as_json: bool
) -> None:
    home = broken(monkeypatch)
    store = home.store()
    store.apply([Note("one"), Note("two")], time.time())
    store.close()
    sql(f"UPDATE audit SET {column} = 'text' WHERE line = 2")(home.folder)
    show = ["peer", "audit", "show", "--json"] if as_json else ["peer", "audit"]
    for command in (["peer", "audit", "verify"], show):
        assert call(monkeypatch, *command, "--home", "kitchen") == 2
        assert "the audit of kitchen is broken: line 2 was changed" in capsys.readouterr().err


def test_a_policy_with_an_endless_number_is_not_signed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    home = broken(monkeypatch)
    (home.folder / "policy.toml").write_text("[[grant]]\nnumber = " + "9" * 5000)
    assert call(monkeypatch, "peer", "policy", "--sign", "--home", "kitchen") == 2
    assert "not readable as TOML" in capsys.readouterr().err


def test_an_older_admission_does_not_bring_an_older_roster_back(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    broken(monkeypatch)
    device(monkeypatch, "hall", *free_ports(1))
    assert call(monkeypatch, "peer", "join", "fleet/roster.json", "--home", "kitchen") == 0
    capsys.readouterr()
    assert call(monkeypatch, "peer", "join", "fleet/kitchen.admission", "--home", "kitchen") == 0
    assert "kitchen is in the roster number 2, with 1 others" in capsys.readouterr().err


def test_a_store_that_is_gone_is_not_made_anew_by_a_join(monkeypatch: pytest.MonkeyPatch) -> None:
    home = broken(monkeypatch)
    (home.folder / "store.db").unlink()
    assert call(monkeypatch, "peer", "join", "fleet/kitchen.admission", "--home", "kitchen") == 2
    assert not (home.folder / "store.db").exists()


def test_one_broken_folder_hides_none_of_the_others(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    broken(monkeypatch)
    shelf = Path("a-shelf")
    shelf.mkdir()
    (shelf / "peer.toml").write_text("name = 3")
    capsys.readouterr()
    assert call(monkeypatch, "fleet", "status", "--json") == 2
    said = capsys.readouterr()
    assert [item["name"] for item in json.loads(said.out)] == ["kitchen"]
    assert "not all folders can be read (a-shelf: " in said.err


def test_who_stays_takes_a_new_shard_and_ends_with_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a process: alone, so that it looks for a graph all the time, and is stopped as a service manager does it."""
    home = device(monkeypatch, "kitchen", free_ports(1)[0])
    with Path("log").open("wb") as log:
        command = [sys.executable, "-m", "d2dfl", "peer", "run", "--stay", "--for", "1", "--home", "kitchen"]
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
    try:
        until(lambda: "started" in kinds(home))
        np.savez(home.folder / "data" / "two.npz", inputs=np.ones((3, 2)), targets=np.array([0, 1, 2]))
        until(lambda: kinds(home).count("taken-in") == 2)
        assert process.poll() is None  # also after --for, which is of one that does not stay
        process.terminate()
        assert process.wait(timeout=300.0) == 130
    finally:
        process.kill()
        process.wait()
    assert "everything that was agreed is kept: the next start goes on" in Path("log").read_text()
    assert kinds(home)[-1] == "stopped"


def test_a_shard_that_comes_while_others_are_read_is_taken_in_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """It counted as seen from the start, and nobody looked at it until another one came."""
    home = device(monkeypatch, "kitchen", *free_ports(1))

    def say(text: str) -> None:
        if text.startswith("took in"):
            np.savez(home.folder / "data" / "two.npz", inputs=np.ones((3, 2)), targets=np.array([0, 1, 2]))

    ended = threading.Event()

    def taken() -> int:
        with suppress(UserError, OSError, sqlite3.Error):  # the run writes what is read here
            return kinds(home).count("taken-in")
        return 0

    def stop() -> None:
        """Whatever happens to the reading, and if the first stop is lost in somebody's callback: the run ends."""
        try:
            until(lambda: taken() == 2)
        finally:
            for _ in range(60):
                signal.raise_signal(signal.SIGINT)
                if ended.wait(5.0):
                    break

    watcher = threading.Thread(target=stop)
    watcher.start()
    with pytest.raises(KeyboardInterrupt):
        run(home, stay=True, say=say)
    ended.set()
    watcher.join()
    assert kinds(home).count("taken-in") == 2


def kinds(home: Home) -> list[str]:
    return [line["kind"] for line in audit_lines(home)]


def until(true: Callable[[], bool]) -> None:
    """Wait for it, for five minutes at most: a busy machine starts a process slowly."""
    end = time.monotonic() + 300.0
    while not true():
        assert time.monotonic() < end
        time.sleep(0.1)


def test_a_check_looks_at_data_as_a_run_does(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    home = broken(monkeypatch)
    np.savez(home.folder / "data" / "two.npz", inputs=np.zeros((1, 2)), targets=np.array([3]))
    assert call(monkeypatch, "peer", "check", "--seconds", "0", "--home", "kitchen") == 2
    assert "WRONG data: two.npz has targets that are no numbers of labels" in capsys.readouterr().out
