"""Attack the package: odd inputs, outputs on what is the user's, damaged files, flipped bits, `kill -9`.

    python benchmarks/attack/run.py                      (everything: hours of two cores)
    python benchmarks/attack/run.py --quick              (a tenth of everything)
    python benchmarks/attack/run.py odd --count 200 --seed 7
    python benchmarks/attack/run.py odd --case set-reward.gate-3

Prints a table. A case is lost when it ends in a traceback, an internal fault, a signal, a hang, too much memory, other
results than those of the same run uncut, or with a file of the user's changed. Exit code 1 if any is lost.
"""

import argparse
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from attack import files, flips, kills, odd, outputs
from attack.cases import run_cases
from attack.sandbox import Zygote
from attack.verdict import Tally, table


@dataclass(frozen=True)
class Request:
    """What to do."""

    count: int
    seed: int
    case: str
    keep: Path
    device: str
    tell: Callable[[str, int, int], None]


def odd_inputs(zygote: Zygote, request: Request) -> list[Tally]:
    tally = Tally("odd inputs")
    cases = odd.generated(request.seed, request.count, *odd.templates(zygote))
    chosen = [case for case in cases if request.case in ("", case.name)]
    run_cases(zygote, chosen, len(chosen), tally, request.keep, request.tell)
    return [tally]


def outputs_kept(zygote: Zygote, request: Request) -> list[Tally]:
    tally = Tally("outputs where something stands")
    chosen = [case for case in outputs.cases(*odd.templates(zygote)) if request.case in ("", case.name)][
        : request.count
    ]
    run_cases(zygote, chosen, len(chosen), tally, request.keep, request.tell)
    if not request.case:
        outputs.together(zygote, tally, request.keep)
    return [tally]


def damaged_files(zygote: Zygote, request: Request) -> list[Tally]:
    return files.attack(zygote, request.count, request.seed, request.keep, request.tell)


def flipped_bits(zygote: Zygote, request: Request) -> list[Tally]:
    return flips.attack(zygote, request.count, request.seed, request.keep, request.tell)


def killed_runs(zygote: Zygote, request: Request) -> list[Tally]:
    return kills.attack(zygote, request.count, request.seed, request.keep, request.tell, request.device, request.case)


KINDS: dict[str, tuple[Callable[[Zygote, Request], list[Tally]], int]] = {
    "odd": (odd_inputs, 2_000),
    "outputs": (outputs_kept, 1_000_000),
    "files": (damaged_files, 10_000),
    "flips": (flipped_bits, 1_000),
    "kills": (killed_runs, 100),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"some of {', '.join(KINDS)}; all without one")
    parser.add_argument("--count", type=int, help="cases of each kind")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="a tenth of everything")
    parser.add_argument("--case", default="", help="only the case of this name (kills: only one command)")
    parser.add_argument("--keep", type=Path, default=Path("runs/attack"), help="folder for what lost cases leave")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"), help="where killed runs train")
    parser.add_argument("--width", type=int, default=2, help="cases at a time")
    asked = parser.parse_args()
    unknown = sorted(set(asked.kinds) - set(KINDS))
    if unknown:
        parser.error(f"there is no kind {unknown[0]!r}: choose from {', '.join(KINDS)}")
    tallies = []
    with Zygote(width=asked.width) as zygote:
        try:
            for name in asked.kinds or KINDS:
                attack, usual = KINDS[name]
                count = asked.count or (max(usual // 10, 1) if asked.quick else usual)
                keep = asked.keep.resolve() / name
                began = time.monotonic()
                tallies += attack(zygote, Request(count, asked.seed, asked.case, keep, asked.device, tell))
                say(f"{name}: {time.monotonic() - began:.0f} s")
        finally:
            shutil.rmtree(zygote.place, ignore_errors=True)
    return report(tallies)


def report(tallies: list[Tally]) -> int:
    """Print the table and every loss; the exit code."""
    for tally in tallies:
        for loss in tally.losses:
            print(f"LOST  {tally.kind}: {loss.case}\n      {loss.why!a}\n      {loss.replay}", flush=True)
    print(table(tallies))
    return int(any(tally.losses for tally in tallies))


def tell(kind: str, done: int, total: int) -> None:
    """A line that renews itself, on a terminal."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{kind}: {done:,} of {total:,}")
        sys.stderr.flush()
    elif done % 100 == 0:
        say(f"{kind}: {done:,} of {total:,}")


def say(text: str) -> None:
    clear = "\r\x1b[K" if sys.stderr.isatty() else ""
    sys.stderr.write(f"{clear}{text}\n")


if __name__ == "__main__":
    sys.exit(main())
