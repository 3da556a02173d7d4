"""Fleets of peers under schedules of faults, one after the other; a schedule that fails prints the line that runs it again.

    python benchmarks/peer_schedules.py --schedules 100000 --jobs 2
    python benchmarks/peer_schedules.py --seed 57            (one schedule, with its figures)

Loss, delay, doubled, reordered, replayed and changed frames, partitions of one direction, slow and full disks, crashes before
any store operation and before a transaction ends, policies that change, orders to forget. After every event the invariants of
d2dfl.peer.simulator.invariants are checked, and after the last fault everything must settle.
"""

import argparse
import json
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor

from d2dfl.peer.simulator.fleet import Fleet
from d2dfl.peer.simulator.schedule import draw

AT_ONCE = 200


def figures(fleet: Fleet) -> Counter[str]:
    return Counter(
        schedules=1,
        events=fleet.handled,
        frames=fleet.frames,
        pieces=fleet.checks.pieces,
        crashes=fleet.crashes,
        waited=fleet.waited,  # for a slow disk
        transfers=sum(d.store.db.execute("SELECT count(*) FROM outgoing").fetchone()[0] for d in fleet.devices),
        forgotten=len(fleet.checks.gone),
    )


def run_many(first: int, number: int, real_keys: bool) -> tuple[Counter[str], list[str]]:
    """Figures of all, and a line for each that failed."""
    sums: Counter[str] = Counter()
    wrong = []
    for seed in range(first, first + number):
        fleet = Fleet(draw(seed, real_keys))
        try:
            sums += figures(fleet.run())
        except Exception as error:
            wrong.append(f"{type(error).__name__}: {error}; {fleet.schedule.line}")
    return sums, wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--schedules", type=int, default=100_000)
    parser.add_argument("--first", type=int, default=0, help="seed of the first")
    parser.add_argument("--seed", type=int, help="this one alone")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--real-keys", action="store_true", help="Ed25519 and AES-SIV instead of a keyed hash")
    options = parser.parse_args()
    if options.seed is not None:
        fleet = Fleet(draw(options.seed, options.real_keys))
        print(fleet.schedule)
        print(dict(figures(fleet.run())))
        return 0
    began, sums, failed = time.perf_counter(), Counter[str](), 0
    starts = range(options.first, options.first + options.schedules, AT_ONCE)
    numbers = [min(AT_ONCE, options.first + options.schedules - start) for start in starts]
    with ProcessPoolExecutor(options.jobs) as pool:
        for found, wrong in pool.map(run_many, starts, numbers, [options.real_keys] * len(numbers)):
            sums += found
            failed += len(wrong)
            for line in wrong:
                print(line, flush=True)
    print(json.dumps({"failed": failed, **sums, "seconds": round(time.perf_counter() - began, 1)}))
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
