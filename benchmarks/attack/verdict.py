"""What an outcome is worth: refused in one sentence, survived, or lost. And the table of them."""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from attack.sandbox import GIB, LOCK, Outcome, Shot

REFUSED, SURVIVED, LOST = "refused", "survived", "lost"
SENTENCE = "d2dfl: "
LONGEST = 1_500  # characters of a sentence
PART = re.compile(r"\.d2dfl-[0-9a-f]{16}\.part")
MOST = 6 * GIB  # resident


@dataclass(frozen=True)
class Loss:
    """A case that was lost, and what is needed to see it again."""

    case: str
    why: str
    replay: str


@dataclass
class Tally:
    """One line of the table."""

    kind: str
    tried: int = 0
    refused: int = 0
    survived: int = 0
    losses: list[Loss] = field(default_factory=list)

    def count(self, case: str, found: str, why: str = "", replay: str = "") -> None:
        """Add a case."""
        self.tried += 1
        self.refused += found == REFUSED
        self.survived += found == SURVIVED
        if found == LOST:
            self.losses.append(Loss(case, why, replay))


def table(tallies: Iterable[Tally]) -> str:
    """The table, in Markdown."""
    lines = ["| kind | tried | refused in one sentence | survived | lost |", "|---|---:|---:|---:|---:|"]
    for each in tallies:
        lines.append(f"| {each.kind} | {each.tried:,} | {each.refused:,} | {each.survived:,} | {len(each.losses):,} |")
    return "\n".join(lines)


def judged(outcome: Outcome, codes: Iterable[int] = (0,)) -> tuple[str, str]:
    """(refused, survived or lost, why), by exit code and words alone. `codes` are those that mean that all is well."""
    said = outcome.stderr
    if outcome.late:
        if "takes about" in said:
            return SURVIVED, "it said how long it would take"
        return LOST, f"hangs: nothing after {outcome.seconds:.0f} s"
    if outcome.orphans:
        return LOST, f"{outcome.orphans} processes outlive it"
    if outcome.code < 0:
        return LOST, f"ended by signal {-outcome.code}"
    if "Traceback (most recent call last)" in said:
        return LOST, f"traceback: {_raised(said)}"
    if outcome.code == 3:
        return LOST, f"internal fault: {_fault(outcome)}"
    if outcome.peak > MOST:
        return LOST, f"took {outcome.peak / GIB:.1f} GiB"
    if outcome.code == 2:
        return _sentence(said)
    if outcome.code in codes:
        return SURVIVED, ""
    return LOST, f"exit code {outcome.code}: {_last(said)}"


def _sentence(said: str) -> tuple[str, str]:
    lines = said.rstrip("\n").split("\n")
    starts = [number for number, line in enumerate(lines) if line.startswith(SENTENCE)]
    if not starts:
        return LOST, f"exit code 2 without a sentence: {_last(said)}"
    last = lines[-1]
    if starts != [len(lines) - 1]:
        return LOST, f"more than one line: {said[-300:]!r}"
    if len(last) > LONGEST:
        return LOST, f"a sentence of {len(last)} characters: {last[:120]!r}"
    if any(ord(letter) < 32 or ord(letter) == 127 for letter in last):
        return LOST, f"a sentence with control characters: {last[:200]!r}"
    if len(last) <= len(SENTENCE) + 5:
        return LOST, f"a sentence without words: {last!r}"
    return REFUSED, last


def _last(said: str) -> str:
    lines = said.strip().splitlines()
    return lines[-1][:300] if lines else "(it said nothing)"


def _raised(text: str) -> str:
    """The error at the end of a traceback, and the last place of ours."""
    trace = text.rpartition("Traceback (most recent call last)")[2]
    places = re.findall(r'File ".*?(d2dfl/[\w/]+\.py)", line (\d+)', trace)
    error = next((line for line in trace.splitlines()[1:] if line and not line.startswith(" ")), "?")
    return f"{error[:300]} ({':'.join(places[-1]) if places else '?'})"


def _fault(outcome: Outcome) -> str:
    """The error that an internal fault is about: from the traceback that it wrote, or from what it said."""
    for path in outcome.temporary.rglob("*"):
        if path.is_file() and "Traceback" in (text := path.read_text(errors="replace")):
            return _raised(text)
    return _last(outcome.stderr)


def left_behind(before: Shot, after: Shot, folder: Path, refused: bool) -> str:
    """What a call should not have left: halves of files, locks, and after a refusal anything that cannot be resumed."""
    new = sorted(set(after) - set(before))
    for path in new:
        if PART.search(Path(path).name) or Path(path).name == LOCK:
            return f"left {path!r} behind"
    if refused and new and not _resumable(folder, new):
        return f"refused, but left {', '.join(map(repr, new[:3]))} behind"
    return ""


def _resumable(folder: Path, new: list[str]) -> bool:
    """Whether all that is new belongs to run folders that can go on."""
    homes = [
        Path(path).parent
        for path in new
        if Path(path).name == "checkpoint.json" and (folder / path).with_name("run.json").is_file()
    ]
    return bool(homes) and all(
        any(home == Path(path) or home in Path(path).parents or Path(path) in home.parents for home in homes)
        for path in new
    )


def strict_json(text: str) -> Any:
    """JSON as other programs read it: no NaN, no Infinity."""

    def refuse(name: str) -> None:
        raise ValueError(f"{name} is not JSON")

    return json.loads(text, parse_constant=refuse)
