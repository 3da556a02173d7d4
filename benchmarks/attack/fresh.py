"""`kill -9` of processes that start anew: for a GPU, which no fork survives."""

import random
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from attack.cases import Tell
from attack.folders import contents, difference
from attack.verdict import LOST, SURVIVED, Tally

CUTS = 5  # of one run, at most
LIMIT_S = 300.0


def kill_fresh(
    name: str, arguments: tuple[str, ...], count: int, seed: int, keep: Path, tell: Tell, width: int
) -> Tally:
    """Kill one kind of run until enough were killed, several runs at a time."""
    tally, place = Tally(f"kill -9 of {name} on a GPU"), Path(keep, f"kills-{name}")
    shutil.rmtree(place, ignore_errors=True)
    for again in ("first", "uncut"):  # the first one also compiles
        (place / again).mkdir(parents=True)
        began = time.monotonic()
        code, _ = _started(arguments, place / again, None)
    if code != 0:
        tally.count("uncut", LOST, f"exit code {code}", f"d2dfl {' '.join(arguments)}")
        return tally
    usual, whole = time.monotonic() - began, contents(place / "uncut" / "out")
    with ThreadPoolExecutor(width) as pool:
        for number, (cuts, wrong) in enumerate(
            pool.map(
                lambda trial: _trial(arguments, place / str(trial), f"{seed} {name} {trial}", usual, whole),
                range(-(-count // (CUTS - 1))),
            )
        ):
            for cut in range(cuts - bool(wrong)):
                tally.count(f"{name}-{number}-{cut}", SURVIVED)
            if wrong:
                tally.count(f"{name}-{number}", LOST, wrong, f"d2dfl {' '.join(arguments)}  (in {place / str(number)})")
            tell(tally.kind, tally.tried, count)
    return tally


def _trial(arguments: tuple[str, ...], folder: Path, seed: str, usual: float, whole: dict[str, str]) -> tuple[int, str]:
    """One run, cut several times and then left alone: how often it was cut, and what is wrong with it."""
    folder.mkdir()
    draws, cuts = random.Random(seed), 0
    code, given = -9, arguments
    while code == -9 and cuts < CUTS:
        code, said = _started(given, folder, draws.random() * 1.1 * usual)
        cuts, given = cuts + (code == -9), (*arguments, "--resume")
    if code == -9:
        code, said = _started(given, folder, None)
    wrong = f"exit code {code}: {said[-300:]}" if code else difference(contents(folder / "out"), whole)
    if not wrong:
        shutil.rmtree(folder)
    return cuts, wrong


def _started(arguments: tuple[str, ...], folder: Path, kill_after: float | None) -> tuple[int, str]:
    """Exit code and last words; without a kill a finished run answers with 0 again."""
    process = subprocess.Popen(
        [sys.executable, "-m", "d2dfl", *arguments],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        said = process.communicate(timeout=LIMIT_S if kill_after is None else kill_after)[1]
    except subprocess.TimeoutExpired:
        process.kill()
        said = process.communicate()[1]
    return process.returncode, said
