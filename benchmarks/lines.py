"""Long measurements: each result is kept as a line of JSON as soon as it is there, and what is kept is not measured again."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed

Line = dict[str, Any]  # a task's own entries, and what was measured


def kept_in(path: Path | None) -> list[Line]:
    """All whole lines of a file; the last one may have been cut off."""
    if path is None or not path.exists():
        return []
    return [json.loads(line) for line in _whole(path.read_text()).splitlines()]


def _whole(text: str) -> str:
    return text[: text.rfind("\n") + 1]


def measure(
    function: Callable[..., Mapping[str, Any]],
    tasks: Sequence[Mapping[str, Any]],
    jobs: int,
    out: Path | None,
    show_only: bool = False,
) -> list[Line]:
    """A line for each task, in the order of tasks: those that `out` has, and function(**task) for the others.

    show_only: nothing is measured; tasks that are not in `out` are left out.
    """
    known = {_name(line, tasks): line for line in kept_in(out)} if tasks else {}
    if not show_only:
        if out and out.exists() and not out.read_text().endswith("\n"):
            out.write_text(_whole(out.read_text()))
        left = [task for task in tasks if _name(task, tasks) not in known]
        for line in Parallel(n_jobs=jobs, return_as="generator_unordered")(
            delayed(_line)(function, one) for one in left
        ):
            known[_name(line, tasks)] = line
            if out:
                with out.open("a") as file:
                    file.write(json.dumps(line) + "\n")
    names = [_name(task, tasks) for task in tasks]
    return [known[name] for name in names if name in known]


def _line(function: Callable[..., Mapping[str, Any]], task: Mapping[str, Any]) -> Line:
    return {**task, **function(**task)}


def _name(line: Mapping[str, Any], tasks: Sequence[Mapping[str, Any]]) -> str:
    """What is the same of a task and its line: the entries that tasks have."""
    return json.dumps([line.get(key) for key in tasks[0]])
