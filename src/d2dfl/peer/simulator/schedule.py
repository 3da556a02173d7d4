"""What goes wrong in one run of the simulator: drawn from a seed before it begins."""

from dataclasses import dataclass

import numpy as np

from d2dfl.peer.store.records import Keeping
from d2dfl.rng import stream

LABELS = ("a", "b", "c")


@dataclass(frozen=True)
class Schedule:
    """One fleet and its misfortunes; all of it follows from the seed."""

    seed: int
    peers: int
    points: int  # of each peer
    keep: Keeping
    window: int
    piece_points: int
    loss: float
    duplicates: float
    replays: float
    mutations: float
    delay_s: float
    faults_end_s: float
    crash: float  # probability before each store operation
    full: float  # probability that a peer's disk is full in a given second
    partitions: int
    gifts: int
    revocations: int
    forgets: int
    bytes_a_second: float
    bytes_a_day: int
    graph: float  # probability of a link between two peers of a graph that they follow
    expels: bool  # one of them is thrown out
    slow_s: float  # what a transaction takes on the slowest disk, at most; everything else waits meanwhile
    real_keys: bool = False

    @property
    def line(self) -> str:
        """What runs this schedule again."""
        return f"python benchmarks/peer_schedules.py --seed {self.seed}" + (" --real-keys" if self.real_keys else "")


def draw(seed: int, real_keys: bool = False) -> Schedule:
    """The schedule of a seed."""
    generator = stream(seed, "peer-schedule")
    calm = generator.random() < 0.2  # some fleets have no crash at all, so that other faults are seen alone

    def up_to(highest: float) -> float:
        return float(generator.random() ** 2 * highest)

    return Schedule(
        seed=seed,
        peers=int(generator.integers(2, 5)),
        points=int(generator.integers(3, 13)),
        keep="copy" if generator.random() < 0.2 else "move",
        window=int(generator.integers(1, 4)),
        piece_points=int(generator.integers(1, 4)),
        loss=up_to(0.6),
        duplicates=up_to(0.4),
        replays=up_to(0.2),
        mutations=up_to(0.1),
        delay_s=0.01 + up_to(3.0),
        faults_end_s=float(generator.uniform(5.0, 40.0)),
        crash=0.0 if calm else up_to(0.08),
        full=0.0 if calm else up_to(0.3),
        partitions=int(generator.integers(0, 4)),
        gifts=int(generator.integers(2, 12)),
        revocations=int(generator.integers(0, 3)),
        forgets=int(generator.integers(0, 3)),
        bytes_a_second=np.inf if generator.random() < 0.7 else float(generator.uniform(20, 400)),
        bytes_a_day=1 << 40 if generator.random() < 0.8 else int(generator.integers(500, 1500)),
        graph=0.0 if generator.random() < 0.5 else 0.5,
        expels=bool(generator.random() < 0.2),
        slow_s=0.0 if generator.random() < 0.7 else up_to(4.0),
        real_keys=real_keys,
    )
