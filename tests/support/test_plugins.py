"""What docs/extending.md shows works as it stands there."""

import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "extending.md"


def d2dfl(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "d2dfl", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_the_page_runs(tmp_path: Path) -> None:
    text = PAGE.read_text(encoding="utf-8")
    (tmp_path / "mine.py").write_text(text.split("```python\n")[1].split("```")[0], encoding="utf-8")
    command = text.split("```\n")[1].split("```")[0].split()[1:]
    short = ("--seeds", "1", "--rounds", "2", "--devices", "6", "--set", "data.allocation=labels:1")
    done = d2dfl(tmp_path, *command, *short)
    assert done.returncode == 0, done.stderr
    assert "richest" in done.stderr
    assert (tmp_path / "runs" / "compare" / "table.md").exists()


def test_the_metric_on_the_page_runs(tmp_path: Path) -> None:
    text = PAGE.read_text(encoding="utf-8").split("## A metric of one's own")[1]
    (tmp_path / "metric.py").write_text(text.split("```python\n")[1].split("```")[0], encoding="utf-8")
    command = text.split("```\n")[1].split("```")[0].split()[1:]
    done = d2dfl(tmp_path, *command, "--no-reference")
    assert done.returncode == 0, done.stderr
    assert "hellinger distance to i.i.d. before the exchange" in done.stderr
    assert "Warning" not in done.stderr
    without = d2dfl(tmp_path, *command[2:])
    assert without.returncode == 2
    assert without.stderr == (
        "d2dfl: reward.metric cannot be 'hellinger': give one of total-variation, wasserstein, jensen-shannon\n"
    )


def test_a_plugin_that_fails_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text("1 / 0")
    (tmp_path / "x.txt").write_text("")
    for name, words in (
        ("bad.py", "ZeroDivisionError"),
        ("none.py", "there is no file 'none.py': give a Python file"),
        ("x.txt", "'x.txt' does not end in .py: give a Python file"),
        (".", "'.' is a folder: give a Python file"),
    ):
        done = d2dfl(tmp_path, "--plugin", name, "methods")
        assert done.returncode == 2
        assert words in done.stderr
        assert done.stderr.count("\n") == 1
