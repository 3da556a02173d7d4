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


@pytest.mark.parametrize("scheme", ["fedavg", "decentralised"])
def test_the_road_of_compare(scheme: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    kernels: list[list[str]] = []
    executors: list[list[str]] = []
    monkeypatch.setattr(marginal, "take_turns", seen_from(marginal.take_turns, kernels))
    monkeypatch.setattr(Dense, "train", seen_from(Dense.train, executors))
    small = ["--devices", "4", "--rounds", "1", "--set", "data.samples=20", "--set", "federation.interval=1"]
    settings = ["--set", "marginal.messages=60", "--set", "federation.model=mlp"]
    out = ["--out", str(tmp_path / "run"), "--set", f"federation.scheme={scheme}", "--set", "federation.neighbours=2"]
    assert call(monkeypatch, "compare", "--methods", "marginal", "--seeds", "1", *small, *settings, *out) == 0
    begin = ["compare", "compare_and_print", "compare"]  # the command, what it does, the function of the library
    shell = kernels[0].index("compare")
    assert {tuple(stack[shell:]) for stack in kernels} == {(*begin, "discover", "find")}
    assert {tuple(stack[shell:]) for stack in executors} == {
        (*begin, "train_many", "train")
    }  # the last is that of a Place


def test_the_roads_of_discover_and_compare_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    kernels: list[list[str]] = []
    monkeypatch.setattr(marginal, "take_turns", seen_from(marginal.take_turns, kernels))
    small = ["--devices", "4", "--set", "marginal.messages=60"]
    assert call(monkeypatch, "discover", "--method", "marginal", *small) == 0
    assert _road(kernels, "discover_and_print") == {("discover", "find")}
    kernels.clear()
    assert call(monkeypatch, "compare-graphs", "--methods", "marginal", *small) == 0
    assert _road(kernels, "compare_graphs_and_print") == {("compare_graphs", "discover", "find")}


def _road(stacks: list[list[str]], begin: str) -> set[tuple[str, ...]]:
    """Who is called between this function and a kernel; a warming up is another road."""
    return {tuple(stack[stack.index(begin) + 1 :]) for stack in stacks if "warm_up" not in stack}
