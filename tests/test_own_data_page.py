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
    shown = re.findall(r"```\n(marginal found.*?|<Comparison.*?)\n```", text, flags=re.DOTALL)
    assert len(shown) == 2
    assert shown[0] in done.stdout
    said = re.search(r"<Comparison by accuracy: .*>", done.stdout)
    assert said is not None
    here, there = (dict(re.findall(r"(\w+) (0\.\d+)", line)) for line in (said[0], shown[1]))
    for method, score in there.items():
        assert abs(float(here[method]) - float(score)) < 0.015
    gap = float(there["iid"]) - float(there["none"])
    assert float(there["marginal"]) - float(there["none"]) > 0.7 * gap > 0.02, "an example in which the exchange helps"
    for name in ("graph.png", "curves.png"):
        assert (tmp_path / name).stat().st_size > 1000
    commands = re.findall(r"^d2dfl (compare .*?)(?: +#.*)?$", text, flags=re.MULTILINE)
    assert len(commands) == 3
    short = ["--seeds", "1", "--rounds", "1", "--methods", "marginal", "--set", "data.allocation=iid"]
    for number, command in enumerate(commands):
        line = [sys.executable, "-m", "d2dfl", *command.split(), *short, "--out", f"run-{number}"]
        done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        for place in ("models/marginal-seed-0.pt", "holdings/marginal-seed-0.npz", "graphs/marginal-seed-0.graphml"):
            assert (tmp_path / f"run-{number}" / place).exists()
