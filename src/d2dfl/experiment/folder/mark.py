"""What a run folder says that it is for: a mark with all settings, choices and versions, to refuse it or to run it again."""

import importlib.metadata
import os
import platform
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from d2dfl.config import Config
from d2dfl.config.seeds import are_seeds
from d2dfl.errors import UserError
from d2dfl.plugins import loaded_files
from d2dfl.storage import MARK, read_json

FORMAT = 2
PACKAGES = ("d2dfl", "numpy", "scipy", "numba", "torch", "scikit-learn")
FolderKind = Literal["comparison", "graph", "graphs", "reproduction", "figures"]


@dataclass(frozen=True)
class RunPlan:
    """What a run folder is for. Two runs with the same plan give the same results."""

    kind: FolderKind
    config: str = ""  # TOML
    choices: dict[str, Any] = field(default_factory=dict)  # plain values: methods, seeds, a scale

    def mark(self) -> dict[str, Any]:
        return {
            "made_by": "d2dfl",
            "format": FORMAT,
            "kind": self.kind,
            "plan": self.choices,
            "config": self.config,
            "versions": versions(),
            **({"plugins": plugins} if (plugins := loaded_files()) else {}),
        }


class NotARunFolderError(UserError):
    """A folder that no command of d2dfl made."""


def read_mark(path: Path) -> dict[str, Any]:
    """What the mark of a run folder says; a `UserError` for any other folder."""
    try:
        mark = read_json(path / MARK, "a run folder")
    except UserError:
        mark = None
    if not isinstance(mark, dict) or mark.get("made_by") != "d2dfl":
        raise NotARunFolderError(f"{path} is not a run folder of d2dfl: {_why(path)}")
    if mark.get("format") != FORMAT:
        raise UserError(f"{path} was written by another version of d2dfl: run it anew into another folder")
    if not isinstance(mark.get("plan"), dict) or not isinstance(mark.get("config"), str):
        raise UserError(f"{path / MARK} was changed by hand: it has no plan or no config")
    return mark


def _why(path: Path) -> str:
    """What is missing there."""
    if not os.path.lexists(path):
        return "there is nothing of that name"
    return f"its {MARK} is damaged, or not ours" if os.path.lexists(path / MARK) else f"it has no {MARK}"


def plugins_of(path: Path) -> list[str]:
    """Plug-ins that a run folder was made with, and that are not loaded now."""
    files = read_mark(path).get("plugins")
    here = {Path(file).name for file in loaded_files()}
    names = files if isinstance(files, list) else []
    return [name for name in names if isinstance(name, str) and Path(name).name not in here]


def comparison_in(path: Path) -> tuple[Config, list[str], list[int]]:
    """The configuration, the methods and the seeds of a run folder, to run it again."""
    mark = read_mark(path)
    if mark.get("kind") != "comparison":
        raise UserError(f"{path} holds no comparison: give a folder that `run` or `compare` made")
    methods, seeds = mark["plan"].get("methods"), mark["plan"].get("seeds")
    if not isinstance(methods, list) or not methods or not all(isinstance(name, str) for name in methods):
        raise UserError(f"{path / MARK} was changed by hand: its methods are not a list of names")
    if not are_seeds(seeds):
        raise UserError(f"{path / MARK} was changed by hand: its seeds are not a list of whole numbers")
    return Config().with_toml(mark["config"]), methods, seeds


def versions() -> dict[str, str]:
    """What the numbers were made with."""
    return {"python": platform.python_version(), **{name: _version(name) for name in PACKAGES}}


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"  # run from a source tree
