"""How much memory is free, whatever limits it, and the sentence of a refusal."""

import subprocess
import sys
from pathlib import Path

import pytest

from d2dfl import UserError, memory
from d2dfl.memory import check_memory, free_bytes


def group(folder: Path, limit: str, used: str, **files: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in {
        **files,
        limit.partition(" ")[0]: limit.partition(" ")[2],
        used.partition(" ")[0]: used.partition(" ")[2],
    }.items():
        (folder / name.replace("_stat", ".stat")).write_text(content + "\n")


def test_control_groups_of_both_versions(tmp_path: Path) -> None:
    proc, root = tmp_path / "cgroup", tmp_path / "fs"
    proc.write_text("0::/a/b\n")
    group(root / "a", "memory.max 5000", "memory.current 1000", memory_stat="anon 3\ninactive_file 400")
    group(root / "a" / "b", "memory.max max", "memory.current 700")
    assert list(memory._groups(proc, root)) == [4400]  # the inner group has no limit of its own
    group(root, "memory.max 90", "memory.current 100")
    assert min(memory._groups(proc, root)) == -10
    proc.write_text("12:cpu,cpuacct:/x\n5:memory:/docker/77\n0::/\n")
    old = tmp_path / "old"
    group(
        old / "memory", "memory.limit_in_bytes 3000", "memory.usage_in_bytes 500", memory_stat="total_inactive_file 100"
    )
    assert list(memory._groups(proc, old)) == [2600]  # a container sees its group as the root
    for content in ("", "nonsense", "0::"):
        proc.write_text(content)
        assert list(memory._groups(proc, tmp_path / "nothing")) == []
    assert list(memory._groups(tmp_path / "missing", root)) == []


def test_free_memory_is_known_here_and_has_limits() -> None:
    code = "import resource; from d2dfl.memory import free_bytes; resource.setrlimit(resource.RLIMIT_AS, (1 << 31,) * 2); print(free_bytes())"
    if sys.platform == "linux":
        free = free_bytes()
        assert free is not None
        assert 1 << 20 < free < 1 << 50
        left = float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
        assert 0 < left < 1 << 31


def test_a_refusal_is_one_sentence_with_numbers() -> None:
    check_memory(0, "nothing needs", "")
    check_memory(1 << 20, "a little needs", "")
    with pytest.raises(UserError, match=r"much needs about 1,000,000 GiB of memory, and [0-9.,]+ are free: take less"):
        check_memory(1e6 * 2**30, "much needs", "take less")
