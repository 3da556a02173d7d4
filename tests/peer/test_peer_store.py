"""The store: whole transactions, a version, and an audit in which nothing can be changed unseen."""

import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("msgspec", reason="no msgspec: pip install 'd2dfl[peer]'")

from small_fleet import NOON_S, Small, fill, rules

from d2dfl.errors import UserError
from d2dfl.peer.auditing import exported_audit, verify_audit
from d2dfl.peer.datapoints import arrays, dataset, take_in
from d2dfl.peer.home import Home, make_home
from d2dfl.peer.preflight import check_clock
from d2dfl.peer.store.audit import chained
from d2dfl.peer.store.operations import Erase, Fact, Note, Spend
from d2dfl.peer.store.store import Store, StoreFullError

OWN = bytes(range(32))


def test_it_is_durable_and_only_its_owner_can_read_it(tmp_path: Path) -> None:
    store = Store(tmp_path / "store.db", OWN)
    assert store.db.execute("PRAGMA journal_mode").fetchone() == ("delete",)
    assert store.db.execute("PRAGMA synchronous").fetchone() == (3,)  # EXTRA
    assert (tmp_path / "store.db").stat().st_mode & 0o777 == 0o600


def test_an_event_happens_whole_or_not_at_all() -> None:
    store, operations = Store(":memory:", OWN), [Note("one"), Fact("x", 1), Spend(3, "sent bytes", 5), Note("two")]
    store.apply([Note("before")], NOON_S)
    for broken in range(len(operations) + 1):
        left = [broken]

        def stop(_: object, left: list[int] = left) -> None:
            if not left[0]:
                raise ZeroDivisionError
            left[0] -= 1

        store.watch = stop
        with pytest.raises(ZeroDivisionError):
            store.apply(operations, NOON_S)
        store.watch = None
        assert store.head[0] == 1
        assert store.fact("x") is None
        assert store.audit_fault() is None
    store.apply(operations, NOON_S)
    assert (store.head[0], store.fact("x"), store.spent(3, "sent bytes")) == (3, 1, 5)


def test_a_disk_that_is_really_full_changes_nothing(tmp_path: Path) -> None:
    store = Store(tmp_path / "store.db", OWN)
    pages = store.db.execute("PRAGMA page_count").fetchone()[0]
    store.db.execute(f"PRAGMA max_page_count={pages + 1}")
    with pytest.raises(StoreFullError):
        store.apply([Note("much", text="x" * 100_000)], NOON_S)
    assert store.head[0] == 0
    assert store.audit_fault() is None


@contextmanager
def no_more_files() -> Iterator[None]:
    """As on a disk that has no room for another file: SQLite says the same of a journal that it cannot make."""
    resource = pytest.importorskip("resource", reason="no limits on files here")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = os.dup(0)  # the next file would have this number
    os.close(free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_disk_without_room_for_a_journal_changes_nothing(tmp_path: Path) -> None:
    """It is waited for, as where blocks are missing: it must not end a run."""
    store = Store(tmp_path / "store.db", OWN)
    with no_more_files(), pytest.raises(StoreFullError):
        store.apply([Note("much")], NOON_S)
    assert store.head[0] == 0
    store.apply([Note("much")], NOON_S)
    assert store.head[0] == 1


def test_a_transaction_that_ended_with_an_error_of_the_disk_may_have_happened(tmp_path: Path) -> None:
    """As where a folder cannot be synced after the journal is gone: what comes next goes by what is in the file."""

    class Odd:
        def __init__(self, db: sqlite3.Connection) -> None:
            self.db, self.broken = db, True

        def __getattr__(self, name: str) -> object:
            return getattr(self.db, name)

        def execute(self, text: str, *more: object) -> object:
            found = self.db.execute(text, *more)
            if text == "COMMIT" and self.broken:
                self.broken = False
                error = sqlite3.OperationalError("disk I/O error")
                error.sqlite_errorcode = sqlite3.SQLITE_IOERR
                raise error
            return found

    store = Store(tmp_path / "store.db", OWN)
    store.db = Odd(store.db)  # type: ignore[assignment]  # it wraps a connection
    with pytest.raises(StoreFullError):
        store.apply([Note("one")], NOON_S)
    store.apply([Note("two")], NOON_S)
    assert store.audit_fault() is None
    assert [json.loads(content)["kind"] for _, content, _ in store.audit()] == ["one", "two"]


def test_what_is_erased_is_not_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    store = Store(path, OWN)
    fill(store, 40)
    secret = bytes([7]) * 100
    assert secret in path.read_bytes()
    store.apply([Erase(OWN, (7,))], NOON_S)
    store.close()
    assert secret not in path.read_bytes()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("PRAGMA user_version=99", "is of a newer version (99, not 1): it was left as it is"),
        ("PRAGMA application_id=1", "is no store of d2dfl"),
        ("UPDATE facts SET value = x'00' WHERE name = 'own'", "belongs to another key"),
    ],
)
def test_a_foreign_store_is_left_alone(tmp_path: Path, change: str, said: str) -> None:
    path = tmp_path / "store.db"
    Store(path, OWN).close()
    db = sqlite3.connect(path, isolation_level=None)
    db.execute(change)
    db.close()
    before = path.read_bytes()
    with pytest.raises(UserError) as caught:
        Store(path, OWN)
    assert said in str(caught.value)
    assert path.read_bytes() == before


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    (tmp_path / "store.db").write_bytes(b"no database at all" * 100)
    with pytest.raises(UserError, match="cannot use the store"):
        Store(tmp_path / "store.db", OWN)
    with pytest.raises(UserError, match="call d2dfl peer init first"):
        Store(tmp_path / "none.db", OWN, read_only=True)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("UPDATE audit SET content = replace(content, 'line 3', 'line 9') WHERE line = 4", "line 4 was changed"),
        ("UPDATE audit SET hash = zeroblob(32) WHERE line = 2", "line 2 was changed"),
        ("DELETE FROM audit WHERE line = 3", "line 3 is missing or out of order"),
        ("DELETE FROM audit WHERE line = 6", "the last lines are missing"),
        ("UPDATE audit SET line = line + 100", "line 1 is missing or out of order"),
        ("UPDATE audit SET content = x'00' WHERE line = 5", "line 5 cannot be read"),
    ],
)
def test_the_audit_finds_what_was_changed(change: str, said: str) -> None:
    store = Store(":memory:", OWN)
    for number in range(6):
        store.apply([Note("note", text=f"line {number}")], NOON_S)
    assert store.audit_fault() is None
    store.db.execute(change)
    assert store.audit_fault() == said


def test_swapped_lines_are_found() -> None:
    store = Store(":memory:", OWN)
    for number in range(4):
        store.apply([Note("note", text=f"line {number}")], NOON_S)
    for one, other in ((2, 99), (3, 2), (99, 3)):
        store.db.execute("UPDATE audit SET line = ? WHERE line = ?", (other, one))
    assert store.audit_fault() == "line 2 was changed"


def test_two_stories_are_noticed() -> None:
    small = Small()
    small.wait(20.0)
    small.stores[1].db.execute("UPDATE heads SET hash = zeroblob(32) WHERE lines > 0")  # as if it had told another
    small.allow(0, rules(small.prints(1)))
    told = small.stores[1].db.execute("SELECT lines FROM heads").fetchall()
    assert told
    small.peers[0].store.head = (told[-1][0], bytes(31) + b"x")
    small.wait(30.0)
    assert "two-stories" in small.kinds(1)


def test_audit_lines_hold_no_data() -> None:
    small = Small()
    small.allow(0, rules(small.prints(1)))
    small.peers[0].giving.give(small.prints(1), {"a": 5}, small.now)
    small.pump()
    lines = b"".join(content for store in small.stores for _, content, _ in store.audit())
    assert bytes([4]) * 10 not in lines
    digests = [{json.loads(c).get("digest") for _, c, _ in s.audit() if b'"digest"' in c} for s in small.stores]
    assert digests[0] == digests[1] != set()  # the same story on both sides


def make(tmp_path: Path, inputs: np.ndarray, targets: np.ndarray) -> Home:
    (tmp_path / "data").mkdir(exist_ok=True)
    np.savez(tmp_path / "data" / "one.npz", inputs=inputs, targets=targets)
    make_home(tmp_path, "kitchen", "data", ("cat", "dog"), "127.0.0.1:7447")
    return Home(tmp_path)


def test_shards_come_in_once_and_out_as_a_dataset(tmp_path: Path) -> None:
    inputs = np.arange(24, dtype=np.float32).reshape(4, 2, 3)
    home = make(tmp_path, inputs, np.array([0, 1, 1, 0]))
    store = home.store()
    assert take_in(store, "data", tmp_path, home.settings.labels, NOON_S) == 4
    assert take_in(store, "data", tmp_path, home.settings.labels, NOON_S) == 0
    assert store.counts() == {"cat": 2, "dog": 2}
    found, targets, points = arrays(store)
    assert np.array_equal(found, inputs)
    assert targets.tolist() == [0, 1, 1, 0]
    assert [number for _, number in points] == [0, 1, 2, 3]
    data = dataset(store, use="first training")
    assert len(data) == 4  # type: ignore[arg-type]  # a dataset has a length to PyTorch
    assert data[1][0].tolist() == inputs[1].tolist()
    assert store.used_in(store.own, [2]) == ["first training"]
    np.savez(tmp_path / "data" / "one.npz", inputs=inputs + 1, targets=np.array([0, 1, 1, 0]))
    with pytest.raises(UserError, match="has changed since it was taken in"):
        take_in(store, "data", tmp_path, home.settings.labels, NOON_S)


def test_a_function_of_ones_own_gives_shards(tmp_path: Path) -> None:
    home = make(tmp_path, np.zeros((1, 2)), np.array([0]))
    (tmp_path / "mine.py").write_text(
        "import numpy as np\ndef shards():\n    yield 'x', np.ones((3, 5), dtype='>f8'), np.array([1, 1, 0])\n"
    )
    store = home.store()
    assert take_in(store, "mine.py:shards", tmp_path, home.settings.labels, NOON_S) == 3
    assert arrays(store)[0].tolist() == np.ones((3, 5)).tolist()
    with pytest.raises(UserError, match="no function 'other'"):
        take_in(store, "mine.py:other", tmp_path, home.settings.labels, NOON_S)


@pytest.mark.parametrize(
    ("inputs", "targets", "said"),
    [
        (np.zeros((3, 2)), np.array([0, 1]), "one target for each input"),
        (np.zeros((2, 2)), np.array([0, 2]), "give 0 to 1"),
        (np.zeros((2, 2)), np.array([0.5, 1.0]), "no numbers of labels"),
        (np.zeros((2, 2), dtype=complex), np.array([0, 1]), "give numbers"),
        (np.zeros((1, 1 << 18)), np.array([0]), "bytes: one may have"),
    ],
)
def test_odd_shards_are_one_sentence(tmp_path: Path, inputs: np.ndarray, targets: np.ndarray, said: str) -> None:
    home = make(tmp_path, inputs, targets)
    store = home.store()
    with pytest.raises(UserError, match=said):
        take_in(store, "data", tmp_path, home.settings.labels, NOON_S)
    assert store.counts() == {}


def test_exported_audits_are_compared(tmp_path: Path) -> None:
    home = make(tmp_path, np.zeros((1, 2)), np.array([0]))
    store = home.store()
    store.apply([Note("one"), Note("two")], NOON_S)
    path = tmp_path / "other.json"
    other = {
        "fingerprint": "aa" * 32,
        "lines": [],
        "heads": [[store.own.hex(), 1, exported_audit(home)["lines"][0][2]]],
    }
    path.write_text(json.dumps(other))
    assert verify_audit(home, [path]) == "2 lines are whole, and agree with 1 others"
    other["heads"] = [[store.own.hex(), 2, "00" * 32]]
    path.write_text(json.dumps(other))
    with pytest.raises(UserError, match="two stories: line 2"):
        verify_audit(home, [path])
    path.write_text(json.dumps({"lines": 3}))
    with pytest.raises(UserError, match="is no audit"):
        verify_audit(home, [path])
    store.db.execute("INSERT INTO heads VALUES (?, 7, ?)", (bytes(32), bytes(32)))  # a third one, which told the other
    other["heads"] = [[[], [1], {}]]
    path.write_text(json.dumps(other))
    assert verify_audit(home, [path])  # of nobody
    other["heads"] = [["00" * 32, 7, "11" * 32]]
    path.write_text(json.dumps(other))
    with pytest.raises(UserError, match="two stories: 0000000000000000 told others another line 7"):
        verify_audit(home, [path])


def test_a_clock_that_went_back_is_refused(tmp_path: Path) -> None:
    store = Store(":memory:", OWN)
    store.apply([Note("one")], NOON_S)
    check_clock(store, NOON_S + 5)
    with pytest.raises(UserError, match="the clock is 365.0 days behind"):
        check_clock(store, NOON_S - 365 * 86_400)


def test_two_processes_cannot_have_the_store_at_once(tmp_path: Path) -> None:
    store = Store(tmp_path / "store.db", OWN)
    reader = Store(tmp_path / "store.db", OWN, read_only=True)
    store.apply([Note("one")], NOON_S)
    assert reader.fact("audit_lines") == 1
    with pytest.raises(sqlite3.OperationalError):
        reader.db.execute("DELETE FROM audit")
    assert os.stat(tmp_path / "store.db").st_size > 0


def test_who_knows_two_heads_cannot_guess_the_line_between_them() -> None:
    """Heads are told to all members; lines say who was refused what."""
    store = Store(":memory:", OWN)
    heads = [store.head]
    for _ in range(2):
        store.apply([Note("not-given", b"x" * 32, points=10, text="3: the policy does not grant it")], NOON_S)
        heads.append(store.head)
    for (number, before), (_, after) in pairwise(heads):
        guess = {"line": number + 1, "time": NOON_S, "kind": "not-given", "peer": (b"x" * 32).hex(), "points": 10}
        guess["text"] = "3: the policy does not grant it"
        assert chained(before, json.dumps(guess, sort_keys=True, separators=(",", ":")).encode()) != after
    salts = [json.loads(content)["salt"] for _, content, _ in store.audit()]
    other = Store(":memory:", OWN)
    other.apply([Note("stopped")], NOON_S)
    salts += [json.loads(content)["salt"] for _, content, _ in other.audit()]
    assert len(set(salts)) == 3


def test_an_id_of_a_transfer_tells_nothing_of_what_it_carries() -> None:
    """Ids stand in audits that are handed out: two devices with the same datapoints and count have different ones."""
    one, other = Small().peers
    assert one.new_id(b"the same") == one.new_id(b"the same") != one.new_id(b"another")
    assert one.new_id(b"the same")[32:] != other.new_id(b"the same")[32:]


def test_nothing_is_forgotten_between_the_reading_of_a_training_and_its_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the answer to an order would list no training, and one would go on with the datapoint."""
    home = make(tmp_path, np.zeros((4, 2)), np.array([0, 1, 1, 0]))
    store, beside = home.store(), home.store()
    beside.db.execute("PRAGMA busy_timeout=0")
    take_in(store, "data", tmp_path, home.settings.labels, NOON_S)
    listed: list[list[str]] = []

    def forgotten() -> None:
        beside.apply([Erase(beside.own, (0,))], NOON_S)
        listed.append(beside.used_in(beside.own, [0]))

    def slow(store: Store) -> object:
        found = arrays(store)
        with suppress(StoreFullError):
            forgotten()
        return found

    monkeypatch.setattr("d2dfl.peer.datapoints.arrays", slow)
    dataset(store, use="first training")
    forgotten()
    assert listed == [["first training"]]


def test_a_training_that_cannot_be_noted_is_given_nothing(tmp_path: Path) -> None:
    home = make(tmp_path, np.zeros((4, 2)), np.array([0, 1, 1, 0]))
    store = home.store()
    take_in(store, "data", tmp_path, home.settings.labels, NOON_S)
    dataset(store)  # torch is there
    with no_more_files(), pytest.raises(UserError, match="cannot note the training 'first', so it is given nothing"):
        dataset(store, use="first")
    assert not store.db.in_transaction
    assert len(dataset(store)) == 4  # type: ignore[arg-type]  # a dataset has a length to PyTorch
