"""Files of the user's: nothing that is not a plain file is opened or replaced, and nothing half-written stays."""

import os
import stat
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest

from d2dfl.errors import UserError
from d2dfl.experiment.folder.mark import RunPlan
from d2dfl.experiment.folder.store import run_folder
from d2dfl.storage import (
    LOCK,
    TakenError,
    check_output,
    locked,
    make_folder,
    open_plain,
    read_bytes,
    read_json,
    read_text,
    remove_parts,
    write_whole,
    written_whole,
)


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_writing_follows_links_and_keeps_modes(tmp_path: Path) -> None:
    truth, link, new = tmp_path / "truth", tmp_path / "link", tmp_path / "new"
    truth.write_bytes(b"old")
    truth.chmod(0o600)
    link.symlink_to(truth)
    write_whole(link, b"new")
    assert link.is_symlink()
    assert truth.read_bytes() == b"new"
    assert mode_of(truth) == 0o600
    before = os.umask(0o027)
    try:
        write_whole(new, b"")
    finally:
        os.umask(before)
    assert mode_of(new) == 0o640
    lost = tmp_path / "lost"
    lost.symlink_to(tmp_path / "not-there-yet")
    write_whole(lost, b"x")
    assert (tmp_path / "not-there-yet").read_bytes() == b"x"
    assert {path.name for path in tmp_path.iterdir()} == {"truth", "link", "new", "lost", "not-there-yet"}


def test_what_is_no_plain_file_is_neither_read_nor_replaced(tmp_path: Path) -> None:
    pipe, folder, circle = tmp_path / "pipe", tmp_path / "folder", tmp_path / "circle"
    os.mkfifo(pipe)
    folder.mkdir()
    circle.symlink_to(circle)
    for path, kind in ((pipe, "a pipe"), (folder, "a folder"), (Path("/dev/null"), "a device")):
        with pytest.raises(UserError, match=f"is {kind}: name a file"):
            write_whole(path, b"x")
        with pytest.raises(UserError, match=f"is {kind}: give a table"):
            open_plain(path, "a table")
    for odd in (circle, Path("a\0b"), Path("n" * 300)):
        with pytest.raises(UserError, match="cannot write"):
            write_whole(odd, b"x")
        with pytest.raises(UserError, match="cannot read"):
            read_bytes(odd)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert len(list(tmp_path.iterdir())) == 3


def test_a_read_only_file_stays(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"mine")
    file.chmod(0o444)
    with pytest.raises(UserError, match="read-only"):
        write_whole(file, b"yours")
    assert file.read_bytes() == b"mine"


def test_what_breaks_while_it_is_written_leaves_the_old_file_alone(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"old")

    def broken() -> None:
        with written_whole(file) as target:
            target.write(b"half")
            (part,) = set(tmp_path.iterdir()) - {file}
            assert mode_of(part) == 0o600
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        broken()
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert file.read_bytes() == b"old"


def test_outputs_are_checked_before_work(tmp_path: Path) -> None:
    check_output(tmp_path / "fine.json")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(UserError, match="there is no folder"):
        check_output(tmp_path / "none" / "x.json")
    with pytest.raises(UserError, match="is a folder"):
        check_output(tmp_path)
    with pytest.raises(UserError, match="is a folder"):
        check_output(Path("/"))
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(UserError, match="there is a file of this name"):
        make_folder(tmp_path / "file")


def test_a_folder_that_can_be_made_half_is_not_made_at_all(tmp_path: Path) -> None:
    for name in ("n" * 300, f"deep/{'n' * 300}/x"):
        with (
            pytest.raises(UserError, match="cannot make the folder"),
            run_folder(tmp_path / "new" / name, RunPlan("graph")),
        ):
            pytest.fail("it was made")
        assert list(tmp_path.iterdir()) == []


def test_files_of_others_stay_theirs(tmp_path: Path) -> None:
    """What another user may not write is refused, also where its folder would let it be replaced."""
    os.chmod(tmp_path, 0o1777)
    (tmp_path / "file").write_text("theirs")
    (tmp_path / "file").chmod(0o666)
    code = (
        "import os, sys, pathlib\n"
        "from d2dfl.storage import check_output\n"
        "from d2dfl.errors import UserError\n"
        "os.geteuid = lambda: 4242424\n"
        "try: check_output(pathlib.Path(sys.argv[1]))\n"
        "except UserError as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "file")], capture_output=True, text=True, check=True
    )
    assert "somebody else's" in done.stdout


def test_texts_and_json_are_bounded_and_said_to_be_wrong_in_one_sentence(tmp_path: Path) -> None:
    file = tmp_path / "file"
    with pytest.raises(UserError, match="there is no file .*: give a TOML file"):
        read_text(file, "a TOML file")
    file.write_bytes(b"\xff")
    with pytest.raises(UserError, match="UTF-8"):
        read_text(file)
    file.write_bytes(b"x" * 100)
    with pytest.raises(UserError, match="100 bytes"):
        read_bytes(file, limit=99)
    for text, reason in (
        ('{"a": 1, "b": {"c": 1, "c": 2}}', "'c' stands twice"),
        ("[" * 100_000, "nested too deeply"),
        ("1" * 5000, "JSON"),
        ("{", "JSON"),
    ):
        file.write_text(text)
        with pytest.raises(UserError, match=reason) as caught:
            read_json(file)
        assert "\n" not in str(caught.value)
    file.write_text('{"a": [1, {"b": null}]}')
    assert read_json(file) == {"a": [1, {"b": None}]}


HOLDER = """
import sys, pathlib
from d2dfl.storage import locked
with locked(pathlib.Path(sys.argv[1])):
    print("inside", flush=True)
    sys.stdin.read()
"""


def test_one_process_at_a_time_works_in_a_folder(tmp_path: Path) -> None:
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", HOLDER, str(tmp_path)], **pipes) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"inside\n"
        with pytest.raises(TakenError, match="another d2dfl works in"), locked(tmp_path):
            pytest.fail("two at a time")
        other.kill()  # the lock ends with its holder
    assert (tmp_path / LOCK).exists()
    with locked(tmp_path):
        pass
    assert list(tmp_path.iterdir()) == []


def test_only_our_own_leavings_are_removed(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    ours = tmp_path / "deep" / ".d2dfl-0123456789abcdef.part"
    theirs = [tmp_path / name for name in (".d2dfl-mine.part", "x.part", ".d2dfl-0123456789abcdef.part.old")]
    for path in (ours, *theirs):
        path.write_bytes(b"")
    remove_parts(tmp_path)
    assert not ours.exists()
    assert all(path.exists() for path in theirs)


def test_reading_a_small_file_takes_little_memory(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"small")
    tracemalloc.start()
    try:
        assert read_bytes(tmp_path / "a") == b"small"  # it may have 16 GiB
        assert tracemalloc.get_traced_memory()[1] < 1 << 24
    finally:
        tracemalloc.stop()


def test_the_mark_that_some_editors_put_first_is_no_part_of_a_text(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    path.write_bytes(b"\xef\xbb\xbf[network]\ndevices = 5\n")
    assert read_text(path) == "[network]\ndevices = 5\n"
