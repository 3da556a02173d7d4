"""What is special about an entry of a registry is said where it is made: nobody else asks for it by its name."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import d2dfl
from d2dfl.config import FederationConfig
from d2dfl.config.metrics import METRICS
from d2dfl.config.section import words_of
from d2dfl.config.sections import learning
from d2dfl.data.catalogue import CATALOGUE
from d2dfl.discovery.methods import METHODS
from d2dfl.energy.radios import RADIOS
from d2dfl.federation import SCHEMES
from d2dfl.federation.losses import LOSSES
from d2dfl.federation.models import MODELS
from d2dfl.federation.optimisers import OPTIMISERS
from d2dfl.network.trust import RULES
from d2dfl.partition.paradigms import PARADIGMS

SOURCE = Path(d2dfl.__file__).parent
NAMES = {*METHODS, *CATALOGUE, *RADIOS, *SCHEMES, *LOSSES, *MODELS, *OPTIMISERS, *RULES, *PARADIGMS, *METRICS}
# The same words for other things, or the place itself where an entry is described.
ALLOWED = {
    ("env/vector.py", "marginal"),  # a kind of reward
    ("paper/tasks.py", "unsupervised"),  # what the paper sets for its tasks without labels
    ("discovery/plain/reference.py", "total-variation"),  # the metrics a second time, without the compiler
    ("discovery/plain/reference.py", "wasserstein"),
}


def _asked(file: Path) -> Iterator[str]:
    """Words that a file compares something with, or asks for the beginning of."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "startswith":
            sides = node.args
        elif isinstance(node, ast.MatchValue):
            sides = [node.value]
        else:
            continue
        for side in sides:
            for one in ast.walk(side):
                if isinstance(one, ast.Constant) and isinstance(one.value, str):
                    yield one.value


def test_nobody_asks_for_an_entry_by_its_name() -> None:
    found = {
        (file.relative_to(SOURCE).as_posix(), word)
        for file in SOURCE.rglob("*.py")
        for word in _asked(file)
        if word in NAMES
    }
    assert found - ALLOWED == set()


@pytest.mark.parametrize("word", ["marginal", "radio", "mse", "sgd"])
def test_a_question_by_name_is_seen(tmp_path: Path, word: str) -> None:
    file = tmp_path / "one.py"
    file.write_text(f"if name == {word!r} or name in ({word!r}, 'other'):\n    pass\n")
    assert list(_asked(file)) == [word, word, "other"]
    assert word in NAMES


def test_words_that_settings_write_without_a_registry_are_those_of_the_registry() -> None:
    """Settings load no PyTorch, and cannot ask it for names."""
    assert tuple(SCHEMES) == learning.SCHEMES
    assert tuple(PARADIGMS) == learning.PARADIGMS
    assert set(words_of(FederationConfig, "optimiser")) == {*OPTIMISERS}
