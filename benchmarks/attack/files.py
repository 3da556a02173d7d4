"""Damaged and odd files, read under a limit of memory: one sentence, or something whole."""

import importlib
import importlib.util
import json
import math
import shutil
import time
import traceback
from pathlib import Path
from typing import Any

from attack.cases import Tell
from attack.sandbox import FILE_SIZE, GIB, Job, Zygote, remove
from attack.verdict import LONGEST, LOST, REFUSED, SURVIVED, Tally

KINDS = {
    "attack.network_files": "damaged network files",
    "attack.dataset_files": "damaged dataset and pickle files",
    "attack.text_files": "damaged settings and records",
    "attack.peer_files": "damaged files of a peer",
}
SHARES = {"attack.network_files": 4, "attack.dataset_files": 4, "attack.text_files": 2, "attack.peer_files": 2}
BATCH = 200
MEMORY = 2 * GIB
SLOW_S = 20.0  # of CPU time, for one small file: other processes do not count


def attack(zygote: Zygote, count: int, seed: int, keep: Path, tell: Tell) -> list[Tally]:
    """That many files of all kinds together."""
    total = sum(SHARES.values())
    return [
        read_kind(zygote, name, title, math.ceil(count * SHARES[name] / total), seed, keep, tell)
        for name, title in KINDS.items()
    ]


def read_kind(zygote: Zygote, module: str, title: str, count: int, seed: int, keep: Path, tell: Tell) -> Tally:
    """Files of one kind, in batches; a batch that dies goes on after the file that killed it."""
    tally = Tally(title)
    place = zygote.place / module
    waiting = [(first, min(BATCH, count - first), 0) for first in range(0, count, BATCH)]
    while waiting or zygote.under_way:
        while waiting and zygote.under_way < zygote.width:
            first, number, skip = waiting.pop(0)
            folder = place / f"{first}-{skip}"
            folder.mkdir(parents=True)
            given = {
                "module": module, "seed": seed * 1_000_003 + first, "count": number, "skip": skip, "folder": str(folder / "files"),
                "report": str(folder / "report"), "keep": str(keep),
            }  # fmt: skip
            job = Job(given, folder, "attack.files:batch", BATCH * SLOW_S / 4, MEMORY, FILE_SIZE)
            zygote.submit(job, (first, number, skip, folder))
        (first, number, skip, folder), outcome = zygote.result()
        report = folder / "report"
        lines = [json.loads(line) for line in report.read_text().splitlines()] if report.exists() else []
        done = [line for line in lines if "found" in line]
        for line in done:
            tally.count(line["name"], line["found"], line["why"], line["replay"])
        if outcome.code != 0 or outcome.late:
            dead = lines[-1]["name"] if lines else "before the first file"
            why = (
                f"hangs for {outcome.seconds:.0f} s"
                if outcome.late
                else f"ended with code {outcome.code}: {outcome.stderr[-200:]}"
            )
            tally.count(
                dead, LOST, why, f"{module}, seed {seed * 1_000_003 + first}, file {skip + len(done)} of {number}"
            )
            if skip + len(done) + 1 < number and lines:
                waiting.append((first, number, skip + len(done) + 1))
        remove(folder)
        remove(outcome.temporary.parent)
        tell(title, tally.tried, count)
    return tally


def batch(module: str, seed: int, count: int, skip: int, folder: str, report: str, keep: str) -> None:
    """Read files, in a child; a line before and after each."""
    from d2dfl.errors import UserError

    Path(folder).mkdir(parents=True)
    source = importlib.import_module(module).mutated(seed, count, Path(folder))
    with Path(report).open("w", encoding="utf-8") as out:
        for number, (name, path, reader) in enumerate(source):
            if number < skip:
                continue
            out.write(json.dumps({"name": name}) + "\n")
            out.flush()
            began, line = time.process_time(), {"name": name, "found": SURVIVED, "why": "", "replay": ""}
            try:
                reader(path)
            except UserError as error:
                line.update(_refused(str(error)))
            except BaseException as error:
                frames = traceback.extract_tb(error.__traceback__)
                last = next((frame for frame in reversed(frames) if "d2dfl/" in frame.filename), frames[-1])
                line.update(
                    found=LOST, why=f"{type(error).__name__}: {error!s:.200} ({Path(last.filename).name}:{last.lineno})"
                )
            spent = time.process_time() - began
            if spent > SLOW_S:
                line.update(found=LOST, why=f"took {spent:.0f} s of CPU time")
            if line["found"] == LOST:
                line["replay"] = _kept(module, seed, number, path, Path(keep))
            out.write(json.dumps(line) + "\n")
            out.flush()


def _refused(sentence: str) -> dict[str, Any]:
    if "\n" in sentence or len(sentence) > LONGEST or not sentence.strip():
        return {"found": LOST, "why": f"not one sentence: {sentence[:200]!r}"}
    return {"found": REFUSED, "why": sentence}


def _kept(module: str, seed: int, number: int, path: Path, keep: Path) -> str:
    """Keep a file that did harm."""
    keep.mkdir(parents=True, exist_ok=True)
    target = keep / f"{module.rpartition('.')[2]}-{seed}-{number}-{path.name}"
    shutil.copyfile(path, target)
    return f"{module}, seed {seed}, file {number}: {target}"
