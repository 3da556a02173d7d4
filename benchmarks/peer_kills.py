"""Real processes, real kill -9: a sender and a receiver are killed at every tenth of a transfer and at random, and go on.

    python benchmarks/peer_kills.py --kills 1000

After each round of kills both stores are compared, byte by byte, with what there was at the start: lost, doubled and sent without
a grant must be 0. A round that goes wrong prints the line that runs it again and keeps its folder.
"""

import argparse
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from d2dfl.peer.datapoints import take_in
from d2dfl.peer.home import Home, make_home
from d2dfl.peer.owner import FleetFolder, read_request
from d2dfl.peer.transports.zenoh import free_ports
from d2dfl.rng import stream

LABELS = ("granted", "granted too", "kept")
POINTS, SIDE = 240, 4096  # datapoints, and numbers in each: 16 KiB
RATE = 3_000_000  # bytes a second: a transfer takes a second or more, so that there is a middle to be killed in
PIECE = 64 * 1024
LONGEST_S = 300.0
Front = Callable[[int], int]  # the port where a peer listens → the one where others reach it


@dataclass
class Round:
    """What a round of kills led to."""

    seed: int
    kills: Counter[str] = field(default_factory=Counter)
    lost: int = 0
    doubled: int = 0
    without_grant: int = 0
    unfinished: int = 0

    @property
    def wrong(self) -> int:
        return self.lost + self.doubled + self.without_grant + self.unfinished


class Pair:
    """Two peers in folders, and their processes."""

    def __init__(self, folder: Path, seed: int, points: int = POINTS, front: Front | None = None) -> None:
        self.folder, self.points, self.front = folder, points, front
        self.homes = self._make(seed)
        self.running: list[subprocess.Popen[bytes] | None] = [None, None]

    def _make(self, seed: int) -> list[Home]:
        draws, fleet = stream(seed, "peer-kills"), FleetFolder(self.folder / "fleet")
        fleet.create()
        names = ["sender", "receiver"]
        for name, port in zip(names, free_ports(2), strict=True):
            home = self.folder / name
            (home / "data").mkdir(parents=True)
            if name == "sender":
                inputs = draws.integers(0, 1 << 30, (self.points, SIDE)).astype(np.int32)
                with (home / "data" / "shard.npz").open("wb") as file:
                    np.savez(file, inputs=inputs, targets=np.arange(self.points) % len(LABELS))
            address = f"127.0.0.1:{port if self.front is None else self.front(port)}"
            make_home(home, name, "data", LABELS, f"127.0.0.1:{port}", graph="../graph.json", address=address)
            text = (
                (home / "peer.toml")
                .read_text()
                .replace("bytes_a_second = 100000000", f"bytes_a_second = {RATE}\npiece_bytes = {PIECE}")
            )
            (home / "peer.toml").write_text(text)
            fleet.approve(read_request(home / f"{name}.request"))
        homes = [Home(self.folder / name) for name in names]
        for home in homes:
            fleet.approve(read_request(home.folder / f"{home.settings.name}.request"))
            home.join(self.folder / "fleet" / f"{home.settings.name}.admission")
        grant = '[[grant]]\nto = "{}"\nlabels = ["granted", "granted too"]\nnumber = 1000000\nuntil = 2099-01-01\n'
        (homes[0].folder / "policy.toml").write_text(grant.format(homes[1].key().fingerprint.hex()))
        homes[0].sign_policy()
        graph = {"edges": [[0, 1]], "expected_datapoints": [[self.points] * len(LABELS)]}
        (self.folder / "graph.json").write_text(json.dumps(graph))
        store = homes[0].store()
        take_in(store, "data", homes[0].folder, LABELS, time.time())
        store.close()
        return homes

    def start(self, which: int) -> None:
        command = [sys.executable, "-m", "d2dfl", "peer", "run", "--stay", "--home", str(self.homes[which].folder)]
        with (self.homes[which].folder / "run.log").open("ab") as log:
            self.running[which] = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)

    def stop(self, which: int, how: signal.Signals) -> None:
        process = self.running[which]
        if process is not None:
            process.send_signal(how)
            process.wait(timeout=LONGEST_S)
            self.running[which] = None

    def ask(self, which: int, question: str) -> list[tuple[object, ...]]:
        """Look into a store while its process works, or after it was killed: then whoever opens it rolls back what it had begun."""
        path = self.homes[which].folder / "store.db"
        mode = "rw" if self.running[which] is None else "ro"
        for _ in range(int(LONGEST_S / 0.05)):
            db = sqlite3.connect(f"{path.absolute().as_uri()}?mode={mode}", uri=True, timeout=10.0)
            try:
                return db.execute(question).fetchall()
            except sqlite3.OperationalError:  # its process was killed in the middle: the next start rolls back
                time.sleep(0.05)
            finally:
                db.close()
        raise RuntimeError(f"{path} cannot be read")

    def progress(self) -> float:
        """Share of the transfer that the receiver has."""
        rows = self.ask(1, "SELECT phase, next, pieces FROM incoming WHERE phase != 'refused'")
        done = [1.0 if phase == "committed" else int(str(got)) / int(str(all_)) for phase, got, all_ in rows]
        return sum(done) / len(done) if done else 0.0

    def finished(self) -> bool:
        return self.ask(0, "SELECT phase FROM outgoing ORDER BY id") != [] and not self.ask(
            0, "SELECT 1 FROM outgoing WHERE phase IN ('open', 'cancelling')"
        )

    def points_of(self, which: int) -> Counter[tuple[object, ...]]:
        return Counter(self.ask(which, "SELECT origin, number, label, form, content FROM points"))


def kill_round(folder: Path, seed: int, kills: int, points: int = POINTS) -> Round:
    """A transfer during which processes are killed so many times; then it must end well."""
    result, draws = Round(seed), stream(seed, "peer-kill-times")
    pair = Pair(folder, seed, points)
    first = pair.points_of(0)
    try:
        for which in (0, 1):
            pair.start(which)
        for number in range(kills):
            end = time.monotonic() + LONGEST_S
            if draws.random() < 0.3:  # at random, also while a process starts
                wait = float(draws.random())
                while wait > 0 and not pair.finished():
                    time.sleep(0.02)
                    wait -= 0.02
            else:
                while pair.progress() < (number + 1) / (kills + 1) and time.monotonic() < end:
                    time.sleep(0.005)
            if pair.finished():
                break  # only kills in the middle count
            which = int(draws.integers(2))
            result.kills[f"{('sender', 'receiver')[which]} at {pair.progress():.1f}"] += 1
            pair.stop(which, signal.SIGKILL)
            pair.start(which)
        end = time.monotonic() + LONGEST_S
        while not pair.finished() and time.monotonic() < end:
            time.sleep(0.02)
        result.unfinished = int(not pair.finished())
    finally:
        for which in (0, 1):
            if pair.running[which] is not None:
                pair.stop(which, signal.SIGTERM if not result.unfinished else signal.SIGKILL)
    _count(result, first, pair)
    return result


def _count(result: Round, first: Counter[tuple[object, ...]], pair: Pair) -> None:
    here, there = pair.points_of(0), pair.points_of(1)
    after = here + there
    result.lost = sum((first - after).values())
    result.doubled = sum((after - first).values())
    result.without_grant = sum(number for point, number in there.items() if point[2] == "kept")
    moved = sum(there.values())
    wanted = sum(1 for point in first if point[2] != "kept")
    result.unfinished |= int(moved != wanted)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--each", type=int, default=20, help="kills during one transfer")
    parser.add_argument("--seed", type=int, default=0, help="of the first round")
    options = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    began, kills, wrong = time.perf_counter(), 0, 0
    places: Counter[str] = Counter()
    sums = Counter(lost=0, doubled=0, without_grant=0, unfinished=0)
    seed = options.seed
    while kills < options.kills:
        folder = Path(tempfile.mkdtemp(prefix="d2dfl-kills-"))
        found = kill_round(folder, seed, min(options.each, options.kills - kills))
        kills += found.kills.total()
        places += found.kills
        sums.update(
            lost=found.lost, doubled=found.doubled, without_grant=found.without_grant, unfinished=found.unfinished
        )
        if found.wrong:
            wrong += 1
            print(
                f"WRONG {found}; kept {folder}; again: python benchmarks/peer_kills.py --seed {seed} --kills {options.each}"
            )
        else:
            shutil.rmtree(folder)
        print(f"{kills} kills, {time.perf_counter() - began:.0f} s: {dict(sums)}", flush=True)
        seed += 1
    print(json.dumps({"kills": kills, **sums, "where": dict(sorted(places.items()))}))
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
