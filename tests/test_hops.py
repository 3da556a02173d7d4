"""How many calls lie between a command and arithmetic: as docs/architecture.md says."""

import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from calling import call
from d2dfl.discovery.methods import marginal
from d2dfl.federation.executors.dense import Dense


def seen_from(function: Callable[..., Any], stacks: list[list[str]]) -> Callable[..., Any]:
    """The same function, which notes who called it: functions of ours, from the outermost on."""

    def spy(*arguments: Any, **options: Any) -> Any:
        stacks.append([frame.name for frame in traceback.extract_stack()[:-1] if "/d2dfl/" in frame.filename])
        return function(*arguments, **options)

    return spy


def test_four_hops(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    kernels: list[list[str]] = []
    executors: list[list[str]] = []
    monkeypatch.setattr(marginal, "run_cycle", seen_from(marginal.run_cycle, kernels))
    monkeypatch.setattr(Dense, "train", seen_from(Dense.train, executors))
    small = ["--devices", "4", "--rounds", "1", "--set", "data.samples=20", "--set", "federation.interval=1"]
    settings = ["--set", "marginal.messages=60", "--set", "federation.model=mlp"]
    out = ["--out", str(tmp_path / "run")]
    assert call(monkeypatch, "compare", "--methods", "marginal", "--seeds", "1", *small, *settings, *out) == 0
    begin = ["compare", "compare_and_print", "compare"]  # the command, what it does, the function of the library
    shell = kernels[0].index("compare")
    assert {tuple(stack[shell:]) for stack in kernels} == {(*begin, "prepare", "discover", "find")}
    assert {tuple(stack[shell:]) for stack in executors} == {(*begin, "train", "train_many", "round")}
