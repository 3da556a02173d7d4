"""Run folders: configuration, versions, results, and a checkpoint from which a cut run goes on.

A checkpoint is a folder of states, one per training, all at the same round. A small file names the current one and is
replaced only when all of them are on the disk, so that a run cut at any moment finds a whole checkpoint.
"""

import importlib.metadata
import json
import platform
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from d2dfl.config import Config
from d2dfl.errors import UserError
from d2dfl.federation import State
from d2dfl.storage import write_whole

FORMAT = 1
PACKAGES = ("d2dfl", "numpy", "scipy", "numba", "torch", "scikit-learn")


@dataclass(frozen=True)
class RunFolder:
    """A folder that holds everything needed to rerun a comparison, and to go on after a crash."""

    path: Path

    @classmethod
    def open(cls, path: Path, config: Config, plan: dict[str, Any], resume: bool) -> "RunFolder":
        """Make the folder, or go on in one that was made for the same configuration and plan."""
        folder, mine = cls(path), {"format": FORMAT, "plan": plan}
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(f"cannot make the folder {str(path)!r}: {error.strerror}") from None
        if (path / "run.json").exists() and resume:
            folder._check(config, mine)
            return folder
        folder._clear_checkpoints()
        (path / "results.json").unlink(missing_ok=True)
        write_whole(path / "config.toml", config.to_toml().encode())
        write_whole(path / "run.json", json.dumps({**mine, "versions": versions()}, indent=1).encode())
        return folder

    @classmethod
    def plan_of(cls, path: Path) -> tuple[Config, dict[str, Any]]:
        """The configuration and the plan (methods, seeds) of a run folder, to run it again."""
        try:
            theirs = json.loads((path / "run.json").read_text(encoding="utf-8"))
            settings = (path / "config.toml").read_text(encoding="utf-8")
        except (OSError, ValueError):
            raise UserError(f"{path} is not a readable run folder: give one that `run` or `compare` made") from None
        if not isinstance(theirs, dict) or theirs.get("format") != FORMAT or not isinstance(theirs.get("plan"), dict):
            raise UserError(f"{path} was written by another version of d2dfl: it cannot be run again")
        return Config().with_toml(settings), theirs["plan"]

    def _check(self, config: Config, mine: dict[str, Any]) -> None:
        try:
            theirs = json.loads((self.path / "run.json").read_text(encoding="utf-8"))
            settings = (self.path / "config.toml").read_text(encoding="utf-8")
        except (OSError, ValueError):
            raise UserError(f"{self.path} is not a readable run folder: start anew without --resume") from None
        if not isinstance(theirs, dict) or theirs.get("format") != FORMAT:
            raise UserError(f"{self.path} was written by another version of d2dfl: start anew without --resume")
        if theirs.get("plan") != mine["plan"] or settings != config.to_toml():
            raise UserError(
                f"{self.path} holds another run: give the same settings as then, or start anew without --resume"
            )

    def save_states(self, states: Sequence[State]) -> None:
        """Replace the checkpoint."""
        name = f"checkpoint-{states[0].round}"
        target = self.path / name
        shutil.rmtree(target, ignore_errors=True)
        try:
            target.mkdir()
        except OSError as error:
            raise UserError(f"cannot make the folder {str(target)!r}: {error.strerror}") from None
        try:
            for number, state in enumerate(states):
                state.save(target / f"{number}.pt")
        except UserError:
            shutil.rmtree(target, ignore_errors=True)  # the checkpoint before it is still whole
            raise
        write_whole(self.path / "checkpoint", name.encode())
        for other in self.path.glob("checkpoint-*"):
            if other.name != name:
                shutil.rmtree(other, ignore_errors=True)

    def load_states(self, number: int) -> list[State] | None:
        """The states of the checkpoint, or None where there is none."""
        try:
            name = (self.path / "checkpoint").read_text(encoding="utf-8")
        except OSError:
            return None
        return [State.load(self.path / Path(name).name / f"{index}.pt") for index in range(number)]

    def finish(self, results: dict[str, Any]) -> None:
        """Write the results; the checkpoint is not needed any more."""
        write_whole(self.path / "results.json", json.dumps(results, allow_nan=False).encode())
        self._clear_checkpoints()

    def _clear_checkpoints(self) -> None:
        (self.path / "checkpoint").unlink(missing_ok=True)
        for other in self.path.glob("checkpoint-*"):
            shutil.rmtree(other, ignore_errors=True)


def versions() -> dict[str, str]:
    """What the numbers were made with."""
    return {"python": platform.python_version(), **{name: _version(name) for name in PACKAGES}}


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"  # run from a source tree
