"""Damaged and odd files of ours that are text: settings, findings, run folders, cells of a grid."""

import hashlib
import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from d2dfl.config import Config
from d2dfl.experiment.cells.files import Cells, stored
from d2dfl.experiment.folder.mark import RunPlan, comparison_in
from d2dfl.report.findings import Bars, Chart, Findings, Line, Table
from d2dfl.storage import read_text

Reader = Callable[[Path], object]
ODD: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 0.5, 2**31, 2**63, 10**30, 1e308, float("nan"), float("inf"), "", "x", "nan", "1", [], [[]], {}, [None],
    "x" * 1000, "\x00", "\ud800", "[bold]", "../..", [1, 2, 3], {"a": 1},
)  # fmt: skip
PIECES = (
    b"\x00",
    b"\xff",
    b"{",
    b"}",
    b"[" * 50,
    b"]",
    b'"',
    b"\\",
    b"nan",
    b"inf",
    b"-",
    b"e999",
    b"9" * 5000,
    b"\n",
    b"=",
    b"[[",
    b"\xed\xa0\x80",
)


def mutated(seed: int, count: int, folder: Path) -> Iterator[tuple[str, Path, Reader]]:
    """`count` files, one after another: what was done, the file, and the function that is to read it."""
    kinds = samples(folder)
    for number in range(count):
        rng = random.Random(f"{seed} {number}")
        name, (path, text, reader) = list(kinds.items())[number % len(kinds)]
        content = text.encode()
        what = []
        if path.suffix == ".json" and rng.random() < 0.6:
            what.append("odd value")
            content = json.dumps(_signed(_with_odd(json.loads(text), rng))).encode()
        if not what or rng.random() < 0.4:
            what.append("damaged")
            content = _harmed(content, rng)
        path.write_bytes(content)
        yield f"{name}: {' and '.join(what)}, {number}", path, reader
        path.write_bytes(text.encode())


def samples(folder: Path) -> dict[str, tuple[Path, str, Reader]]:
    """name → (path, whole content, reader). All of them are whole on the disk, too."""
    run = folder / "run"
    run.mkdir(parents=True, exist_ok=True)
    settings = Config().to_toml()
    findings = folder / "found"
    findings.mkdir(exist_ok=True)
    Findings(
        name="mine", title="T", setting="S", tables=(Table("t", ("a", "b"), (("x", "1"), ("y", "2"))),),
        charts=(Chart("c", "round", "score", (Line("marginal", "ours", (0.0, 1.0), (0.1, 0.2), (0.0, 0.1), (0.2, 0.3)),)),),
        bars=(Bars("b", "J", ("a", "b"), ("s",), ((1.0, 2.0),)),),
    ).save(findings)  # fmt: skip
    plan = RunPlan("comparison", settings, {"methods": ["closest", "none", "iid"], "seeds": [0]})
    payload = {"experiment": "graphs", "cells": [{"method": "marginal", "seed": 0, "config": Config().to_dict()}]}
    result = {"values": [{"scores": [0.1, 0.2]}], "seconds": 1.0}
    cells = Cells.open(folder / "grid")
    cells.keep("graphs/a/b/seed 0", json.dumps(payload), json.dumps(result))
    cell = next((folder / "grid" / "cells").glob("*.json"))
    found: dict[str, tuple[Path, str, Reader]] = {
        "config": (folder / "config.toml", settings, lambda path: Config().with_toml(read_text(path)).to_toml()),
        "findings": (
            findings / "findings.json",
            (findings / "findings.json").read_text(),
            lambda path: Findings.load(path.parent),
        ),
        "run.json": (run / "run.json", json.dumps(plan.mark()), lambda path: comparison_in(path.parent)),
        "cell": (cell, cell.read_text(), lambda path: stored(path.parent.parent)),
    }
    for path, text, _ in found.values():
        path.write_text(text)
    return found


def _signed(value: Any) -> Any:
    """With a checksum that is right: what it says must be looked at, too."""
    if not isinstance(value, dict) or "sha256" not in value:
        return value
    plain = {key: inner for key, inner in value.items() if key != "sha256"}
    return {**plain, "sha256": hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()}


def _with_odd(value: Any, rng: random.Random) -> Any:
    """One value anywhere inside another is exchanged, removed or doubled."""
    if isinstance(value, dict) and value and rng.random() < 0.85:
        key = rng.choice(list(value))
        if rng.random() < 0.1:
            return {name: inner for name, inner in value.items() if name != key}
        return {**value, key: _with_odd(value[key], rng)}
    if isinstance(value, list) and value and rng.random() < 0.8:
        at = rng.randrange(len(value))
        return [*value[:at], _with_odd(value[at], rng), *value[at + rng.choice((0, 1, 1, 1)) :]]
    return rng.choice(ODD)


def _harmed(content: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(content) + 1)
    kind = rng.randrange(5)
    if kind == 0 and content:
        flipped = bytearray(content)
        for _ in range(rng.randint(1, 4)):
            flipped[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
        return bytes(flipped)
    if kind == 1:
        return content[:at]
    if kind == 2:
        return content[:at] + rng.choice(PIECES) + content[at:]
    if kind == 3:
        other = rng.randrange(len(content) + 1)
        return content[:at] + content[other:]
    return content[:at] + rng.choice(PIECES) + content[at + rng.randint(1, 20) :]
