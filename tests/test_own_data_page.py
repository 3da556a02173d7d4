"""What docs/own-data.md shows works as it stands there."""

import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "own-data.md"


def test_the_page_runs(tmp_path: Path) -> None:
    text = PAGE.read_text(encoding="utf-8")
    code = "\n".join(re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL))
    (tmp_path / "page.py").write_text(f"import torch\ntorch.set_num_threads(1)\n{code}", encoding="utf-8")
    done = subprocess.run([sys.executable, "page.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "device  before  sent  received  lost  after" in done.stdout
    assert "<Comparison by accuracy: marginal 0." in done.stdout
    for name in ("graph.png", "curves.png"):
        assert (tmp_path / name).stat().st_size > 1000
    (tmp_path / "mine.csv").write_text("a,species,site\n" + "\n".join(f"{n},{n % 2},{n % 3}" for n in range(60)))
    commands = re.findall(r"^d2dfl (compare .*?)(?: +#.*)?$", text, flags=re.MULTILINE)
    assert len(commands) == 3
    short = ["--seeds", "1", "--rounds", "1", "--methods", "marginal", "--set", "data.allocation=iid"]
    for number, command in enumerate(commands):
        line = [sys.executable, "-m", "d2dfl", *command.split(), *short, "--out", f"run-{number}"]
        done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        for place in ("models/marginal-seed-0.pt", "holdings/marginal-seed-0.npz", "graphs/marginal-seed-0.graphml"):
            assert (tmp_path / f"run-{number}" / place).exists()
