"""What was not tested is said, and fails the tests where all must run."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SOME = """
import pytest

@pytest.mark.parametrize("number", range(3))
def test_skips(number):
    pytest.skip("no Unicorn: catch one")

@pytest.mark.xfail(strict=True)
def test_is_known_to_fail():
    raise ValueError

def test_passes():
    pass
"""
NONE = 'import pytest\npytest.importorskip("unicorn", reason="no Horn: grow one")\n'
SAID = "3 tests (no Unicorn: catch one)"


def tests_of(folder: Path, every: bool, *arguments: str) -> tuple[int, str]:
    """Run the tests of a folder beside our hooks: exit code, and the last words."""
    command = [sys.executable, "-m", "pytest", "-p", "conftest", "-p", "no:cacheprovider", *arguments, str(folder)]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(HERE), *sys.path]),
        "D2DFL_ALL_TESTS": str(int(every)),
    }
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


def test_skipped_tests_are_said(tmp_path: Path) -> None:
    (tmp_path / "test_some.py").write_text(SOME)
    code, said = tests_of(tmp_path, False)
    assert code == 0
    assert f"\nnot tested here: {SAID}\n" in said


@pytest.mark.parametrize("arguments", [(), ("-n", "2")], ids=["alone", "workers"])
def test_skipped_tests_fail_where_all_must_run(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    (tmp_path / "test_some.py").write_text(SOME)
    (tmp_path / "test_none.py").write_text(NONE)
    code, said = tests_of(tmp_path, True, *arguments)
    assert code == 1
    (line,) = [line for line in said.splitlines() if line.startswith("FAILED, since all tests must run")]
    assert SAID in line
    assert "1 test (no Horn: grow one)" in line


def test_all_that_run_and_pass_are_fine_where_all_must_run(tmp_path: Path) -> None:
    (tmp_path / "test_some.py").write_text(SOME.replace('pytest.skip("no Unicorn: catch one")', "pass"))
    code, said = tests_of(tmp_path, True)
    assert code == 0
    assert "not tested" not in said
