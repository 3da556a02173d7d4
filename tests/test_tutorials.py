"""Every tutorial runs as it stands, as the notebook that is on the site, and prints what it says."""

import json
from pathlib import Path

import pytest
import torch

from d2dfl.discovery.methods import METHODS
from docsite.notebooks import blocks, notebook
from docsite.tutorials import alike, empty_folder, executed, outputs, rewritten, tutorials

torch.set_num_threads(1)  # two threads on busy cores are slower


@pytest.fixture
def same_methods() -> object:
    """A tutorial adds one; nobody else should meet it."""
    before = dict(METHODS)
    yield
    for name in set(METHODS) - set(before):
        del METHODS[name]


@pytest.mark.usefixtures("same_methods")
@pytest.mark.filterwarnings("default")  # of packages that tutorials show
@pytest.mark.parametrize("path", tutorials(), ids=lambda path: path.stem)
def test_a_tutorial_prints_what_it_says(path: Path) -> None:
    if path.stem == "policy-gradient":
        pytest.importorskip("stable_baselines3", reason="no Stable-Baselines3: pip install 'd2dfl[docs]'")
    text, compared, cells = path.read_text(encoding="utf-8"), 0, 0
    with empty_folder():
        for _, told, printed in executed(json.loads(notebook(text, path.name))):
            cells += 1
            if told is not None:
                assert alike(told, printed), f"call python -m docsite tutorials; it prints\n{printed}"
                compared += 1
    kinds = [block.kind for block in blocks(text)]
    assert compared == kinds.count("output") > 0
    assert cells == kinds.count("python") + kinds.count("console")


def test_what_is_alike() -> None:
    assert alike("accuracy 0.91, 1,200 rows", "accuracy 0.92, 1,210 rows\n")
    assert not alike("accuracy 0.91", "accuracy 0.81")
    assert not alike("accuracy 0.91", "loss 0.91")
    assert not alike("3 links", "3 links, 4 devices")


def test_outputs_are_written_where_they_belong() -> None:
    text = "# T\n\n```python\nprint(1 + 1)\n```\n\n```\nold\n```\n\nwords\n\n```python\nx = 3\n```\n\n```python\nprint(x)\n```\n\n```\n```\n"
    new = rewritten(text)
    assert [block.content for block in blocks(new) if block.kind == "output"] == ["2\n", "3\n"]
    assert rewritten(new) == new


def test_only_our_own_command_is_called() -> None:
    with pytest.raises(SystemExit, match="can only call d2dfl"):
        list(outputs("```console\nrm -rf something\n```\n"))
