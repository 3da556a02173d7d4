"""Mutated dataset files: originals of every kind, small, with bytes flipped, cut, spliced, or made to claim too much.

Each must end in one sentence or in a valid dataset, in bounded memory. `tests/data/test_mutations.py` runs a few
hundred of them, the attack many more.
"""

import bz2
import gzip
import importlib.util
import pickletools
import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType

import numpy as np

from d2dfl.data import datasets, files
from d2dfl.data.catalogue import CATALOGUE
from d2dfl.data.datasets import Dataset

Mutation = Callable[[bytes, np.random.Generator], bytes]
HUGE = (b"\xff" * 8, b"\xff\xff\xff\x7f", b"\x00\x00\x00\x80", b"\x7f\xff\xff\xff", b"\xff\xff", b"\0" * 8, b"\0" * 4)
NUMBERS = (b"99999999999999999999", b"-1", b"1e999", b"nan", b"0", b"2147483648", b"9" * 5000, b"-9223372036854775808")
# Opcodes and short programs that a file should not have, or not there.
PROGRAMS = (
    *(b"(", b"t", b"]", b"}", b")", b"a", b"e", b"s", b"u", b"d", b"l", b"R", b"b", b"N", b".", b"0", b"1", b"2"),
    *(b"\x81", b"\x85", b"\x86", b"\x87", b"\x93", b"\x94", b"h\x00", b"h\x01", b"q\x01", b"g1\n", b"p1\n", b"P1\n"),
    *(b"\x8a\xff", b"\x8b\xff\xff\xff\x7f", b"\x8e" + b"\xff" * 8, b"X\xff\xff\xff\x7f", b"T\xff\xff\xff\xff"),
    *(b"\x82\x01", b"\x92", b"\x8f", b"\x96" + b"\xff" * 8, b"\x97", b"I" + b"9" * 5000 + b"\n", b"Fnan\n"),
    *(b"cos\nsystem\n", b"cbuiltins\neval\n", b"cnumpy\nndarray\n", b"cnumpy\ndtype\n", b"ios\nsystem\n"),
    *(b"cnumpy\ndtype\n(S'V16'\nI0\nI1\ntR", b"cnumpy\ndtype\n(S'O8'\nI0\nI1\ntR", b"S'\\x'\n", b"V\\U00110000\n"),
)


def _originals() -> ModuleType:
    """The writers of the tests."""
    path = Path(__file__).parents[2] / "tests" / "data" / "originals.py"
    spec = importlib.util.spec_from_file_location("d2dfl_originals", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@dataclass(frozen=True)
class Original:
    """One set of files in one form: its dataset in the catalogue, who writes it, how a file is packed."""

    dataset: str
    write: Callable[[Path], object]
    pickled: bool = False
    archive: bool = False


def originals() -> dict[str, Original]:
    """All forms in which the datasets come."""
    o = _originals()
    found = {
        "fmnist": Original("fmnist", partial(o.write_fmnist, train=4, test=2)),
        "fmnist unpacked": Original("fmnist", partial(o.write_fmnist, train=4, test=2, packed=False)),
        "svhn": Original("svhn", partial(o.write_svhn, train=4, test=2)),
        "svhn unpacked": Original("svhn", partial(o.write_svhn, train=4, test=2, packed=False)),
        "usps": Original("usps", partial(o.write_usps, rows=4)),
        "usps zip": Original("usps", partial(o.write_usps, rows=4, libsvm=False)),
        "california": Original("california", partial(o.write_california, form="pkz", rows=12)),
        "california text": Original("california", partial(o.write_california, form="data", rows=12)),
        "california archive": Original("california", partial(o.write_california, form="tgz", rows=12), archive=True),
        "radioml archive": Original("radioml", partial(_radioml_archive, o), archive=True),
        "cifar10": Original("cifar10", partial(o.write_cifar10, each=2), pickled=True),
    }
    for protocol in (-1, 0, 2, 4, 5):
        found[f"cifar10 {protocol}"] = Original("cifar10", partial(o.write_cifar10, each=2, protocol=protocol), True)
        found[f"radioml {protocol}"] = Original("radioml", partial(o.write_radioml, each=2, protocol=protocol), True)
    return found


def _radioml_archive(o: ModuleType, folder: Path) -> None:
    o.write_radioml(folder, each=1, protocol=4)
    plain = folder / "RML2016.10a_dict.pkl"
    o.pack(folder / "RML2016.10a.tar.bz2", {plain.name: plain.read_bytes()})
    plain.unlink()


def mutated(seed: int, count: int, folder: Path) -> Iterator[tuple[str, Path, Callable[[Path], object]]]:
    """Name, mutated file, and the reader to call on it. A file is gone when the next one is asked for."""
    kinds = originals()
    for name, kind in kinds.items():
        (folder / "whole" / name).mkdir(parents=True, exist_ok=True)
        kind.write(folder / "whole" / name)
    for number in range(count):
        rng = np.random.default_rng([seed, number])
        name = list(kinds)[number % len(kinds)]
        paths = {path.name: path for path in sorted((folder / "whole" / name).iterdir())}
        chosen = str(rng.choice(list(paths)))
        mutations = {**BYTES, **(OPCODES if kinds[name].pickled else {})}
        how = str(rng.choice(list(mutations)))
        place = folder / f"{number:06d}"
        place.mkdir()
        path = place / chosen
        path.write_bytes(_inside(paths[chosen], mutations[how], rng))
        yield f"{name}: {chosen}, {how}, {number}", path, partial(read, name, kinds[name], paths)
        for left in sorted(place.rglob("*"), reverse=True):
            left.rmdir() if left.is_dir() else left.unlink()
        place.rmdir()


def read(name: str, kind: Original, whole: Mapping[str, Path], path: Path) -> Dataset:
    """Read a dataset of which one file was exchanged, as `datasets.load` does where files are not verified."""
    entry = CATALOGUE[kind.dataset]
    paths = {**whole, path.name: path}
    if kind.archive:
        form = next(form for form in entry.forms if form.archive is not None and form.archive.name == path.name)
        paths = files.unpack(form, path, path.parent / "unpacked")
    assert entry.read is not None
    raw = entry.read(paths)
    datasets._check(entry, raw, verify=False)
    data = datasets._prepare(entry, raw, "own", 0, "")
    assert all(np.all(np.isfinite(part)) for part in (data.train_inputs, data.test_inputs)), name
    return data


def _inside(path: Path, mutation: Mutation, rng: np.random.Generator) -> bytes:
    """Mutate the file as it is, or what is packed in it."""
    content = path.read_bytes()
    packers: dict[str, tuple[Callable[[bytes], bytes], Callable[[bytes], bytes]]] = {
        ".gz": (gzip.decompress, gzip.compress),
        ".tgz": (gzip.decompress, gzip.compress),
        ".bz2": (bz2.decompress, bz2.compress),
        ".pkz": (zlib.decompress, zlib.compress),
    }
    if path.suffix in packers and rng.random() < 0.7:
        unpack, pack = packers[path.suffix]
        return pack(mutation(unpack(content), rng))
    return mutation(content, rng)


def _flip(content: bytes, rng: np.random.Generator) -> bytes:
    changed = bytearray(content)
    for place in _places(content, rng, int(rng.integers(1, 9))):
        changed[place] ^= 1 << int(rng.integers(8))
    return bytes(changed)


def _places(content: bytes, rng: np.random.Generator, count: int) -> list[int]:
    """Where to change something: half of all changes are near one of the ends, where headers are."""
    near = min(len(content), 300)
    spans = [(0, len(content)), (0, near), (len(content) - near, len(content))]
    return [int(rng.integers(*spans[int(rng.choice(3, p=[0.5, 0.4, 0.1]))])) for _ in range(count)]


def _cut(content: bytes, rng: np.random.Generator) -> bytes:
    (place,) = _places(content, rng, 1)
    return content[:place] if rng.random() < 0.7 else content[place:]


def _splice(content: bytes, rng: np.random.Generator) -> bytes:
    """Move, double or drop a piece."""
    start, target = _places(content, rng, 2)
    piece = content[start : start + int(rng.integers(1, 200))]
    rest = content[:start] + content[start + len(piece) :] if rng.random() < 0.5 else content
    return rest if rng.random() < 0.3 else rest[:target] + piece + rest[target:]


def _claim(content: bytes, rng: np.random.Generator) -> bytes:
    """Overwrite what may be a length."""
    (place,) = _places(content, rng, 1)
    huge = HUGE[int(rng.integers(len(HUGE)))]
    return content[:place] + huge + content[place + len(huge) :]


def _number(content: bytes, rng: np.random.Generator) -> bytes:
    """Exchange a piece of text for an odd number."""
    (place,) = _places(content, rng, 1)
    return content[:place] + NUMBERS[int(rng.integers(len(NUMBERS)))] + content[place + int(rng.integers(9)) :]


def _steps(content: bytes) -> list[bytes]:
    """A pickle, opcode by opcode; `pickletools` runs nothing."""
    # It cannot read Python 2's texts of other than ASCII: look at a copy of the same length that has none.
    ascii_only = content if content[:1] == b"\x80" else re.sub(rb"\\x[0-9a-f]{2}", rb"\\x41", content)
    starts = [place for _, _, place in pickletools.genops(ascii_only) if place is not None]
    return [content[a:b] for a, b in zip(starts, [*starts[1:], len(content)], strict=True)]


def _opcodes(how: str, content: bytes, rng: np.random.Generator) -> bytes:
    steps = _steps(content)
    a, b = (int(rng.integers(len(steps))) for _ in range(2))
    if how == "drop":
        del steps[a]
    elif how == "double":
        steps[a:a] = [steps[a]] * int(rng.choice([1, 2, 1000]))
    elif how == "swap":
        steps[a], steps[b] = steps[b], steps[a]
    elif how == "move":
        steps.insert(b, steps.pop(a))
    else:
        steps.insert(a, PROGRAMS[int(rng.integers(len(PROGRAMS)))])
    return b"".join(steps)


BYTES: Mapping[str, Mutation] = {"flip": _flip, "cut": _cut, "splice": _splice, "claim": _claim, "number": _number}
OPCODES: Mapping[str, Mutation] = {
    f"opcodes {how}": partial(_opcodes, how) for how in ("drop", "double", "swap", "move", "insert")
}
