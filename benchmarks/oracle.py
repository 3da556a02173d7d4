"""The package against the oracles of tests/oracle at length: plain computations from the paper's text, on random cases.

Case number n of an oracle is the same case whenever and wherever it is run. A mismatch is printed with the line that runs
it again, with its traceback.

    python benchmarks/oracle.py --cases 100000 --jobs 2            # of all oracles together; 40 min of CPU time
    python benchmarks/oracle.py --minutes 8 --first 1000           # other cases, until the time is over
    python benchmarks/oracle.py --only algorithm-1 --replay 1234   # one case again
"""

import argparse
import itertools
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from oracle.agreements import AGREEMENTS

AT_ONCE = 20  # cases that a process takes at a time
SHOWN = 20  # mismatches that are printed; all are counted


def checked(name: str, first: int, number: int) -> list[tuple[int, str]]:
    """Cases `first` and following: number and sentence of each mismatch. Any other error is one, too."""
    wrong = []
    for case in range(first, first + number):
        try:
            AGREEMENTS[name].check(case)
        except Exception as error:
            wrong.append((case, f"{type(error).__name__}: {error}".splitlines()[0]))
    return wrong


def pieces(names: list[str], cases: int, first: int) -> Iterator[tuple[str, int, int]]:
    """(oracle, first case, number), the oracles in turn, each as often as its share says."""
    whole = sum(AGREEMENTS[name].tested for name in names)
    left = {name: cases * AGREEMENTS[name].tested // whole for name in names}
    left[names[0]] += cases - sum(left.values())
    begun = dict.fromkeys(names, first)
    order = sorted((at / -(-left[name] // AT_ONCE), name) for name in names for at in range(-(-left[name] // AT_ONCE)))
    for _, name in order:
        number = min(AT_ONCE, left[name])
        yield name, begun[name], number
        begun[name] += number
        left[name] -= number


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=100_000, help="of all oracles together")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no more cases after that")
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--only", nargs="+", choices=AGREEMENTS, default=list(AGREEMENTS), metavar="ORACLE")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--replay", type=int, help="run this one case, with its traceback")
    options = parser.parse_args()
    if options.replay is not None:
        for name in options.only:
            AGREEMENTS[name].check(options.replay)
            print(f"{name}: case {options.replay} agrees")
        return

    began, done, wrong = time.monotonic(), Counter[str](), Counter[str]()
    with ProcessPoolExecutor(options.jobs) as pool:
        work = pieces(options.only, options.cases, options.first)
        # A few pieces ahead: what waits in the queue is still run when the time is over.
        for group in iter(lambda: list(itertools.islice(work, 4 * options.jobs)), []):
            if time.monotonic() - began > 60 * options.minutes:
                break
            for (name, _, number), mismatches in zip(group, pool.map(checked, *zip(*group, strict=True)), strict=True):
                done[name] += number
                for case, sentence in mismatches:
                    wrong[name] += 1
                    if wrong.total() <= SHOWN:
                        print(f"\n{name}: {sentence}\n  python benchmarks/oracle.py --only {name} --replay {case}")
            seconds = time.monotonic() - began
            line = f"{done.total():,} of {options.cases:,} cases, {wrong.total():,} mismatches, {seconds:,.0f} s"
            print(f"\r{line}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    for name in options.only:
        print(f"{name:20} {done[name]:9,} cases  {wrong[name]:6,} mismatches")
    print(f"{'all':20} {done.total():9,} cases  {wrong.total():6,} mismatches")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
