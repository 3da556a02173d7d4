"""Single flipped bits in what a cut run goes on from: refused in one sentence, or results as if nothing had happened."""

import random
import shutil
from collections.abc import Iterator
from pathlib import Path

from attack.cases import Tell
from attack.folders import contents, difference
from attack.odd_fields import settings
from attack.sandbox import Job, Zygote, remove
from attack.verdict import LOST, SURVIVED, Tally, judged

TINY = ("network.devices=3", "data.samples=10", "federation.rounds=3", "federation.interval=2")
COMPARE = ("compare", "--methods", "closest", "--seeds", "1", "--out", "out", *settings(*TINY))
REPRODUCE = ("reproduce", "graphs", "--seeds", "1", "--no-figures", "--out", "out")
CELLS = 0.1  # share of the flips that go to cells of a reproduction, which has to measure them again
PLAIN = ("run.json", "config.toml")


def cut_run(zygote: Zygote, place: Path) -> Path | None:
    """A comparison that was killed as late as possible, but before its results were there."""
    folder = place / "uncut"
    folder.mkdir(parents=True)
    changes = zygote.run(Job(list(COMPARE), folder)).changes
    for at in range(changes - 1, 0, -2):
        half = place / f"cut-{at}"
        half.mkdir()
        zygote.run(Job(list(COMPARE), half, kill_at=at))
        out = half / "out"
        if (out / "checkpoint.json").exists() and not (out / "results.json").exists():
            return out
        remove(half)
    return None


def targets(folder: Path) -> tuple[list[Path], list[Path]]:
    """(states, small files) that a run goes on from."""
    small = [folder / name for name in ("checkpoint.json", *PLAIN) if (folder / name).exists()]
    return sorted((folder / "checkpoints").iterdir()), small


def measured(folder: Path, skip: tuple[str, ...]) -> dict[str, str]:
    """What a run folder holds, without damaged cells that were set aside when they were measured anew."""
    return {name: digest for name, digest in contents(folder, skip).items() if ".json.aside-" not in name}


def flip(path: Path, rng: random.Random) -> str:
    """Flip one bit of a file; which one, in words."""
    content = bytearray(path.read_bytes())
    byte, bit = rng.randrange(len(content)), rng.randrange(8)
    content[byte] ^= 1 << bit
    path.write_bytes(content)
    return f"bit {bit} of byte {byte}"


def attack(zygote: Zygote, count: int, seed: int, keep: Path, tell: Tell) -> list[Tally]:
    """That many flips."""
    place = zygote.place / "flips"
    tallies = [flip_states(zygote, count - int(CELLS * count), seed, place / "states", keep, tell)]
    if int(CELLS * count):
        tallies.append(flip_cells(zygote, int(CELLS * count), seed, place / "cells", keep, tell))
    remove(place)
    return tallies


def flip_states(zygote: Zygote, count: int, seed: int, place: Path, keep: Path, tell: Tell) -> Tally:
    """Bits of a checkpoint."""
    tally = Tally("flipped bits in checkpoints")
    half = cut_run(zygote, place)
    if half is None:
        tally.count("uncut", LOST, "no moment was found at which a cut run leaves a checkpoint", " ".join(COMPARE))
        return tally
    rng = random.Random(f"{seed} states")
    states, small = targets(half)

    def chosen(rng: random.Random) -> str:
        return str(rng.choice(states if rng.random() < 0.8 else small).relative_to(half))

    _flip(
        zygote, tally, half, (*COMPARE, "--resume"), (chosen(rng) for _ in range(count)), seed, count, place, keep, tell
    )
    return tally


def flip_cells(zygote: Zygote, count: int, seed: int, place: Path, keep: Path, tell: Tell) -> Tally:
    """Bits of the cells of a reproduction."""
    tally = Tally("flipped bits in cells")
    folder = place / "uncut"
    folder.mkdir(parents=True)
    zygote.run(Job(list(REPRODUCE), folder))
    rng = random.Random(f"{seed} cells")
    cells = sorted((folder / "out" / "cells").glob("*.json"))
    if not cells:
        tally.count("uncut", LOST, "no cells were measured", " ".join(REPRODUCE))
        return tally
    names = (str(rng.choice(cells).relative_to(folder / "out")) for _ in range(count))
    _flip(zygote, tally, folder / "out", (*REPRODUCE, "--resume"), names, seed, count, place, keep, tell)
    return tally


def _flip(
    zygote: Zygote, tally: Tally, source: Path, call: tuple[str, ...], names: Iterator[str], seed: int, count: int, place: Path,
    keep: Path, tell: Tell,
) -> None:  # fmt: skip
    unflipped = place / "unflipped"
    shutil.copytree(source, unflipped / "out")
    found, why = judged(zygote.run(Job(list(call), unflipped)))
    if found != SURVIVED:
        tally.count("unflipped", LOST, f"does not go on without a flip, either: {why}", " ".join(call))
        return
    whole = contents(unflipped / "out")

    def jobs() -> Iterator[tuple[tuple[Path, str, str], Job]]:
        for number, name in enumerate(names):
            folder = place / f"flip-{number}"
            shutil.copytree(source, folder / "out")
            what = flip(folder / "out" / name, random.Random(f"{seed} {tally.kind} {number}"))
            yield (folder, name, what), Job(list(call), folder)

    for (folder, name, what), outcome in zygote.run_all(jobs()):
        found, why = judged(outcome)
        if found == SURVIVED:
            skip = (name,) if name in PLAIN else ()  # the flip itself may still be there, and harm nobody
            flawed = difference(
                measured(folder / "out", skip), {key: value for key, value in whole.items() if key not in skip}
            )
            found, why = (LOST, f"other results: {flawed}") if flawed else (SURVIVED, "")
        case = f"{folder.name}-{Path(name).name}"
        replay = ""
        if found == LOST:
            kept = keep / case
            remove(kept)
            shutil.copytree(source, kept / "out")
            flip(kept / "out" / name, random.Random(f"{seed} {tally.kind} {folder.name.rpartition('-')[2]}"))
            replay = f"{what} of {name}: d2dfl {' '.join(call)}  (in {kept})"
        remove(folder)
        remove(outcome.temporary.parent)
        tally.count(case, found, why, replay)
        tell(tally.kind, tally.tried, count)
