"""Run folders: a mark that they are ours, the configuration, versions, results, and a checkpoint to go on from.

Whatever else stands at a path, a user's own folder or another run, is refused and stays as it is. One process at a
time works in a run folder.
"""

import itertools
import json
import os
import re
import shlex
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from d2dfl.config import Config
from d2dfl.errors import UserError
from d2dfl.experiment.cells.files import CELLS, FAILURES
from d2dfl.experiment.folder.logs import LOG
from d2dfl.experiment.folder.mark import NotARunFolderError, RunPlan, read_mark
from d2dfl.storage import (
    LOCK,
    MARK,
    PART,
    TakenError,
    json_checksum,
    locked,
    make_folder,
    read_json,
    read_text,
    remove_parts,
    write_whole,
)

if TYPE_CHECKING:
    from d2dfl.experiment.folder.checkpoints import Checkpoints

CONFIG, RESULTS, TABLE = "config.toml", "results.json", "table.md"
Again = Literal["refuse", "resume", "add"]  # where the folder holds a run of this kind already


@dataclass(frozen=True)
class RunFolder:
    """A folder that holds everything needed to run again what it holds, and to go on after a crash."""

    path: Path
    plan: RunPlan

    @cached_property
    def checkpoints(self) -> "Checkpoints":
        from d2dfl.experiment.folder.checkpoints import Checkpoints  # imports PyTorch, which most commands do without

        return Checkpoints(self.path)

    @property
    def finished(self) -> bool:
        """Whether all results of a comparison are there."""
        return (self.path / RESULTS).exists() and not self.checkpoints.there

    def finish(self) -> None:
        """Everything is written: the checkpoint is not needed any more."""
        self.checkpoints.clear()

    def note(self, **more: Any) -> None:
        """Write the mark anew, with more in it."""
        write_whole(self.path / MARK, json.dumps({**self.plan.mark(), **more}, indent=1).encode())

    def _discard(self) -> None:
        """Empty a folder in which nothing was measured yet; only of what we wrote, the mark last."""
        for name in (CELLS, FAILURES, "checkpoints"):
            with suppress(OSError):
                (self.path / name).rmdir()
        with suppress(OSError):  # what cannot be removed must not hide why the run failed
            if {path.name for path in self.path.iterdir()} <= {MARK, CONFIG, LOCK, LOG}:
                for name in (CONFIG, LOG, MARK):
                    (self.path / name).unlink(missing_ok=True)


@contextmanager
def run_folder(path: Path, plan: RunPlan, again: Again = "refuse") -> Iterator[RunFolder]:
    """Work in a run folder: a new one, or one that holds the same run (`resume`) or more of its kind (`add`).

    A run that fails before anything was measured leaves nothing behind.
    """
    if path == Path():
        raise UserError("the run folder has an empty name, or is the current folder: name a folder")
    made = [folder for folder in (path, *path.parents) if not os.path.exists(folder)]  # also of a name too long
    try:
        make_folder(path)
        with _opened(path, plan, again) as folder:
            yield folder
    except (Exception, KeyboardInterrupt):
        for folder_made in made:
            with suppress(OSError):  # it was never made, or is not empty
                folder_made.rmdir()
        raise


@contextmanager
def _opened(path: Path, plan: RunPlan, again: Again) -> Iterator[RunFolder]:
    """The same for a folder that is there."""
    with locked(path):
        folder, new = RunFolder(path, plan), is_free(path)
        if not new:
            _check(path, plan, again)
        remove_parts(path)
        try:
            if new:
                folder.note()
            if not (_text(path / CONFIG) or "").endswith(plan.config):  # it is for readers: run.json is what counts
                write_whole(path / CONFIG, plan.config.encode())
            yield folder
        except (Exception, KeyboardInterrupt):
            if new:
                folder._discard()
            raise


def _text(path: Path) -> str | None:
    try:
        return read_text(path)
    except UserError:
        return None


def write_results(path: Path, results: dict[str, Any]) -> None:
    """Write what came of a comparison, with a checksum among it."""
    content = {**results, "sha256": json_checksum(results)}
    write_whole(path / RESULTS, json.dumps(content, allow_nan=False).encode())


def check_results(path: Path) -> None:
    """Refuse a run folder whose results are no longer those that were written; one without results is not looked at."""
    if not os.path.lexists(path / RESULTS) or not (path / MARK).exists():
        return
    try:
        results = read_json(path / RESULTS)
        told = results.pop("sha256", None) if isinstance(results, dict) else ""
        whole = told in (json_checksum(results), None)  # None: written before there was one
    except UserError:
        whole = False
    if not whole:
        again = f"d2dfl run --from {shlex.quote(str(path))}"
        raise UserError(f"{path / RESULTS} is damaged: measure anew into another folder with {again}")


def is_free(path: Path) -> bool:
    """Whether a folder may be made here: nothing stands there, or an empty folder."""
    try:
        names = [entry.name for entry in os.scandir(path)]
    except FileNotFoundError:
        return not path.is_symlink()
    except OSError:
        return False
    return all(name == LOCK or PART.fullmatch(name) for name in names)


def numbered(default: Path) -> Iterator[Path]:
    """runs/compare, runs/compare-2, runs/compare-3, …"""
    yield default
    for number in itertools.count(2):
        yield default.with_name(f"{default.name}-{number}")


def free_folder(default: Path) -> Path:
    """The first of the numbered folders that holds nothing."""
    return next(path for path in numbered(default) if is_free(path) and not (path / LOCK).exists())


@contextmanager
def new_run_folder(default: Path, plan: RunPlan) -> Iterator[RunFolder]:
    """Work in the first of the numbered folders that nobody has, nor takes at the same moment."""
    with ExitStack() as stack:
        while True:
            try:
                folder = stack.enter_context(run_folder(free_folder(default), plan))
                break
            except TakenError:
                continue
        yield folder


def folder_to_resume(default: Path, plan: RunPlan) -> Path | None:
    """The last of the numbered folders that holds this run, or None; numbers may be missing."""
    pattern = re.compile(rf"{re.escape(default.name)}(?:-([0-9]{{1,9}}))?")
    there = [(match, path) for path in _entries(default.parent) if (match := pattern.fullmatch(path.name))]
    for _, path in sorted(there, key=lambda item: -int(item[0][1] or 1)):
        with suppress(UserError):
            _check(path, plan, "resume")
            return path
    return None


def unfinished(path: Path) -> bool:
    """Whether a run was cut in this folder after some rounds, and nobody works in it now."""
    from d2dfl.experiment.folder.checkpoints import Checkpoints

    try:
        with locked(path):
            return Checkpoints(path).there
    except UserError:
        return False


def _entries(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def _check(path: Path, plan: RunPlan, again: Again) -> None:
    """Refuse a folder that is not ours, or holds something else."""
    try:
        mark = read_mark(path)
    except NotARunFolderError:
        raise TakenError(
            f"{path} is not a run folder of d2dfl, and not empty: give another folder; nothing was changed"
        ) from None
    except UserError as error:
        raise TakenError(f"{error}; nothing was changed") from None
    if mark.get("kind") != plan.kind:
        raise TakenError(f"{path} holds a run of another kind: give another folder")
    same = mark["plan"] == plan.choices and mark["config"] == plan.config
    if again == "refuse":
        way = (
            "go on with --resume, or give another folder"
            if plan.kind == "comparison" and same
            else "give another folder"
        )
        raise TakenError(f"{path} holds {'this' if same else 'another'} run already: {way}")
    if not same and again == "resume":
        raise TakenError(f"{_difference(path, mark['config'], plan.config)}, or another folder")
    if not same:
        raise TakenError(f"{path} holds another run, {_named(mark['plan'])}: give another folder")


def _difference(path: Path, then: str, now: str) -> str:
    """A sentence about the first setting in which two configurations differ; a file that was changed comes first."""
    other = ""
    with suppress(UserError):
        before, after = (Config().with_toml(text).to_dict() for text in (then, now))
        for section, file in (("data", "dataset"), ("network", "file")):
            one, two = before[section], after[section]
            if one[file] == two[file] and one["sha256"] != two["sha256"]:
                return f"{one[file]} has changed since {path} began: give it as it was"
        for section, fields in before.items():
            for name, value in fields.items():
                if after[section][name] != value and not other:
                    other = f", whose {section}.{name} was {value!r:.80}"
    return f"{path} holds another run{other}: give the same settings as then, or none"


def _named(choices: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in choices.items())[:80]
