"""What docs/own-data.md shows works as it stands there, as the notebook that is on the site."""

import json
import re
from pathlib import Path

import pytest
import torch

from docsite.notebooks import blocks, notebook
from docsite.tutorials import alike, empty_folder, executed

torch.set_num_threads(1)  # two threads on busy cores are slower
PAGE = Path(__file__).parents[1] / "docs" / "own-data.md"
FILES = ("models/marginal-seed-0.pt", "holdings/marginal-seed-0.npz", "graphs/marginal-seed-0.graphml")


@pytest.mark.filterwarnings("default")  # of packages that the page shows
def test_the_page_runs() -> None:
    text = PAGE.read_text(encoding="utf-8")
    told: dict[str, str] = {}
    with empty_folder() as folder:
        for source, said, printed in executed(json.loads(notebook(text, "docs/own-data.md"))):
            if said is not None:
                assert alike(said, printed)
                told[said.split()[0]] = printed
                if said.startswith("marginal found"):
                    assert said == printed
            if source.startswith("!"):
                assert len(source.splitlines()) == 3
        for name in ("graph.png", "curves.png"):
            assert (folder / name).stat().st_size > 1000
        runs = sorted((folder / "runs").iterdir())
        assert len(runs) == 3
        assert all((run / place).exists() for run in runs for place in FILES)
    outputs = [block.content for block in blocks(text) if block.kind == "output"]
    assert len(told) == len(outputs) == 2
    shown = next(content for content in outputs if content.startswith("<Comparison"))
    here, there = (dict(re.findall(r"(\w+) (0\.\d+)", line)) for line in (told["<Comparison"], shown))
    for method, score in there.items():
        assert abs(float(here[method]) - float(score)) < 0.015
    gap = float(there["iid"]) - float(there["none"])
    assert float(there["marginal"]) - float(there["none"]) > 0.7 * gap > 0.02, "an example in which the exchange helps"
