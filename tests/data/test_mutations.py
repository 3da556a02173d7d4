"""Mutated dataset files end in one sentence or in a valid dataset, and take no memory that they only claim."""

import tracemalloc
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from attack import dataset_files as attack
from d2dfl.data.catalogue import CATALOGUE
from d2dfl.data.datasets import Dataset
from d2dfl.errors import UserError

CASES = 400
MEMORY = 1 << 26  # bytes; the files have 100,000 at most


def test_every_dataset_with_files_is_attacked(tmp_path: Path) -> None:
    kinds = attack.originals()
    assert {kind.dataset for kind in kinds.values()} == {name for name, entry in CATALOGUE.items() if entry.read}
    for name, kind in kinds.items():  # unharmed, each is read
        folder = tmp_path / name
        folder.mkdir()
        kind.write(folder)
        paths = {path.name: path for path in folder.iterdir()}
        assert isinstance(attack.read(name, kind, paths, next(iter(paths.values()))), Dataset)


def test_mutated_files_end_in_a_sentence_or_a_dataset(tmp_path: Path) -> None:
    ends: Counter[str] = Counter()
    tracemalloc.start()
    try:
        for name, path, reader in attack.mutated(1, CASES, tmp_path):
            tracemalloc.reset_peak()
            before = tracemalloc.get_traced_memory()[0]
            ends[end(name, path, reader)] += 1
            assert tracemalloc.get_traced_memory()[1] - before < MEMORY, name
    finally:
        tracemalloc.stop()
    assert ends.total() == CASES
    assert min(ends["dataset"], ends["sentence"]) > CASES // 20  # both were reached


def end(name: str, path: Path, reader: Callable[[Path], object]) -> str:
    sentence = ""
    try:
        assert isinstance(reader(path), Dataset)
    except UserError as error:
        sentence = str(error)
    except Exception as error:
        raise AssertionError(f"{name}: {error!r}") from error
    assert "\n" not in sentence, name
    assert len(sentence) < 600, name
    return "sentence" if sentence else "dataset"
