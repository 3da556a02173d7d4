"""A case of the command line: arguments, what stands in its folder, and what must hold afterwards."""

import os
import shlex
import shutil
import socket
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from attack.sandbox import FILE_SIZE, LIMIT_S, Job, Outcome, Shot, Zygote, changes, remove, snapshot
from attack.verdict import LOST, REFUSED, SURVIVED, Tally, judged, left_behind, strict_json

Tell = Callable[[str, int, int], None]
Check = Callable[[Path, Outcome], str]  # what is wrong, or nothing
ALL = ("*",)


def nothing(folder: Path) -> None:
    """An empty folder."""


def content(path: str, text: str | bytes = "the user's own\n") -> Callable[[Path], None]:
    """A folder with one file."""

    def prepare(folder: Path) -> None:
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8", "surrogateescape"))

    return prepare


def copied(source: Path, name: str, then: Callable[[Path], None] = nothing) -> Callable[[Path], None]:
    """A folder with a copy of another, changed by `then`."""

    def prepare(folder: Path) -> None:
        shutil.copytree(source, folder / name, symlinks=True)
        then(folder)

    return prepare


def several(*steps: Callable[[Path], None]) -> Callable[[Path], None]:
    """One after the other."""

    def prepare(folder: Path) -> None:
        for step in steps:
            step(folder)

    return prepare


def fifo(path: str) -> Callable[[Path], None]:
    return lambda folder: os.mkfifo(folder / path)


def listening(path: str) -> Callable[[Path], None]:
    """A socket; bound by its short name, since such names are short."""

    def prepare(folder: Path) -> None:
        before = os.getcwd()
        os.chdir(folder)
        try:
            with socket.socket(socket.AF_UNIX) as item:
                item.bind(path)
        finally:
            os.chdir(before)

    return prepare


def link(path: str, target: str) -> Callable[[Path], None]:
    return lambda folder: os.symlink(target, folder / path)


@dataclass(frozen=True)
class Case:
    """One call and its conditions."""

    name: str
    arguments: tuple[str, ...]
    prepare: Callable[[Path], None] = nothing
    # Paths whose content the call was asked to replace; ALL: a run goes on in its folder.
    may_change: tuple[str, ...] = ()
    must_refuse: bool = False
    must_survive: bool = False
    may_leave: bool = False  # a refusal may leave whole files behind, as on a full disk
    codes: tuple[int, ...] = (0,)  # that mean that all is well
    check: Check | None = None  # of the folder, where the call survived
    limit: float = LIMIT_S
    file_size: int = FILE_SIZE
    encoding: str = "utf-8"

    @property
    def line(self) -> str:
        """The command, for a shell."""
        return cut(shlex.join(("d2dfl", *self.arguments)))


def cut(text: str, most: int = 400) -> str:
    """A text that fits in a report: what is odd stands at its end."""
    return text if len(text) <= most else f"{text[:60]} … {text[60 - most :]}"


def run_cases(zygote: Zygote, cases: Iterable[Case], total: int, tally: Tally, keep: Path, tell: Tell) -> None:
    """Run cases, count them; folders of lost ones are kept."""

    def jobs() -> Iterator[tuple[tuple[Case, Path, Shot], Job]]:
        for number, case in enumerate(cases):
            place = zygote.place / f"{tally.kind}-{number}"
            folder = place / "box"
            folder.mkdir(parents=True)
            case.prepare(folder)
            job = Job(list(case.arguments), folder, limit=case.limit, file_size=case.file_size, encoding=case.encoding)
            yield (case, place, snapshot(folder)), job

    for (case, place, before), outcome in zygote.run_all(jobs()):
        found, why = verdict_of(case, place / "box", before, outcome)
        replay = ""
        if found == LOST:
            kept = keep / case.name.replace("/", "_").replace("\0", "_")[:120]
            remove(kept)
            shutil.copytree(place, kept, symlinks=True, ignore=_only_plain)
            (kept / "stderr").write_text(outcome.stderr, errors="backslashreplace")
            (kept / "command").write_text(shlex.join(("d2dfl", *case.arguments)) + "\n", errors="surrogateescape")
            replay = f"{case.line!a}  (in {kept}: command, stderr, box)"
        remove(place)
        remove(outcome.temporary.parent)
        tally.count(case.name, found, why, replay)
        tell(tally.kind, tally.tried, total)


def _only_plain(folder: str, names: list[str]) -> list[str]:
    """Pipes and sockets cannot be copied."""
    paths = [(name, Path(folder) / name) for name in names]
    return [name for name, path in paths if not (path.is_symlink() or path.is_file() or path.is_dir())]


def verdict_of(case: Case, folder: Path, before: Shot, outcome: Outcome) -> tuple[str, str]:
    """What became of a case."""
    found, why = judged(outcome, case.codes)
    if found == LOST:
        return found, why
    after = snapshot(folder)
    if case.may_change != ALL:
        lost = changes(before, after, case.may_change)
        if lost:
            return LOST, f"the user's files: {'; '.join(lost[:3])}"
    if outcome.late:
        return (LOST, "accepted, and should have been refused") if case.must_refuse else (found, why)
    left = left_behind(before, after, folder, found == REFUSED and not case.may_leave)
    if left:
        return LOST, left
    if case.must_refuse and found != REFUSED:
        return LOST, "accepted, and should have been refused"
    if case.must_survive and found != SURVIVED:
        return LOST, f"refused, and should have been accepted: {why}"
    if found == SURVIVED:
        wrong = _bad_json(case, folder, outcome) or (case.check(folder, outcome) if case.check else "")
        if wrong:
            return LOST, wrong
    return found, why


def _bad_json(case: Case, folder: Path, outcome: Outcome) -> str:
    """What was written for machines must be JSON."""
    if case.arguments[0] not in ("discover", "compare-graphs") or "--json" not in case.arguments:
        return ""
    name = case.arguments[len(case.arguments) - 1 - case.arguments[::-1].index("--json") + 1]
    try:
        strict_json(outcome.stdout if name == "-" else (folder / name).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        return f"--json {name!r} wrote no JSON: {error}"
    return ""
