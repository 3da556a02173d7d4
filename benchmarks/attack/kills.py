"""`kill -9` at any moment, then --resume, again and again, until the run ends: it must equal one that was never cut."""

import random
import shutil
from dataclasses import dataclass, field
from pathlib import Path

from attack.cases import Tell
from attack.folders import contents, difference
from attack.fresh import kill_fresh
from attack.odd_fields import settings
from attack.sandbox import Job, Outcome, Zygote, remove
from attack.verdict import LOST, SURVIVED, Tally, judged

CUTS = 5  # of one run, at most
LIMIT_S = 600.0
TINY = ("network.devices=4", "data.samples=20", "federation.rounds=4", "federation.interval=3", "marginal.messages=20")
COMPARE = ("compare", "--methods", "closest,marginal", "--seeds", "1", "--log", "csv", "--out", "out", *settings(*TINY))
KINDS: dict[str, tuple[str, ...]] = {
    "compare": COMPARE,
    "compare-cnn": (*COMPARE, *settings("federation.model=cnn", "federation.rounds=2")),
    "reproduce": ("reproduce", "graphs", "curve-supervised", "edges", "--seeds", "1", "--out", "out"),
}


@dataclass
class Trial:
    """One run that is cut and resumed until it ends."""

    name: str
    folder: Path
    rng: random.Random
    reference: Outcome  # of the run that was never cut
    cuts: list[str] = field(default_factory=list)  # what was done to it

    def job(self, arguments: tuple[str, ...]) -> Job:
        """The next start, with the moment of its death."""
        given = [*arguments, *(["--resume"] if self.cuts else [])]
        after, at = 0.0, 0
        if len(self.cuts) < CUTS:
            if self.rng.random() < 0.5:
                after = max(0.02, self.rng.random() ** 1.5 * self.reference.seconds)
            else:
                at = self.rng.randint(1, max(1, self.reference.changes))
        self.cuts.append(f"after {after:.3f} s" if after else f"before change {at}" if at else "not at all")
        return Job(given, self.folder, limit=LIMIT_S, kill_after=after, kill_at=at)


def attack(zygote: Zygote, count: int, seed: int, keep: Path, tell: Tell, device: str, only: str = "") -> list[Tally]:
    """That many kills of every kind."""
    if device != "cpu":
        more = settings(f"federation.device={device}")
        return [
            kill_fresh(name, (*given, *(more if given[0] == "compare" else ())), count, seed, keep, tell, zygote.width)
            for name, given in KINDS.items()
            if only in ("", name)
        ]
    return [
        kill_kind(zygote, name, arguments, count, seed, keep, tell)
        for name, arguments in KINDS.items()
        if only in ("", name)
    ]


def kill_kind(
    zygote: Zygote,
    name: str,
    arguments: tuple[str, ...],
    count: int,
    seed: int,
    keep: Path,
    tell: Tell,
) -> Tally:
    """Kill one kind of run until enough were killed."""
    tally = Tally(f"kill -9 of {name}")
    place = zygote.place / f"kills-{name}"
    (place / "uncut").mkdir(parents=True)
    reference = zygote.run(Job(list(arguments), place / "uncut", limit=LIMIT_S))
    found, why = judged(reference)
    if found != SURVIVED:
        tally.count("uncut", LOST, why, f"d2dfl {' '.join(arguments)}")
        return tally
    whole = contents(place / "uncut" / "out")
    number = kills = 0
    while kills < count or zygote.under_way:
        while kills < count and zygote.under_way < zygote.width:
            number += 1
            trial = Trial(f"{name}-{number}", place / str(number), random.Random(f"{seed} {name} {number}"), reference)
            trial.folder.mkdir()
            zygote.submit(trial.job(arguments), trial)
        trial, outcome = zygote.result()
        remove(outcome.temporary.parent)
        if outcome.killed and not outcome.orphans:
            kills += 1
            tell(tally.kind, kills, count)
            zygote.submit(trial.job(arguments), trial)
            continue
        _settle(trial, outcome, whole, tally, keep, arguments)
    remove(place)
    return tally


def _settle(
    trial: Trial, outcome: Outcome, whole: dict[str, str], tally: Tally, keep: Path, arguments: tuple[str, ...]
) -> None:
    """Count the kills of a run that has ended."""
    found, why = judged(outcome)
    wrong = why if found != SURVIVED else difference(contents(trial.folder / "out"), whole)
    cuts = trial.cuts[:-1]
    for number in range(len(cuts) - bool(wrong)):
        tally.count(f"{trial.name}-{number}", SURVIVED)
    if wrong:
        kept = keep / trial.name
        remove(kept)
        shutil.copytree(trial.folder, kept)
        replay = f"d2dfl {' '.join(arguments)}, killed {', '.join(trial.cuts)}, with --resume from the second on  (in {kept})"
        tally.count(trial.name, LOST, wrong, replay)
    remove(trial.folder)
