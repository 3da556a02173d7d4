"""What a computation will need, from the shapes alone: memory before anything large is made, and time before it is spent.

Constants are fitted to processor time on one core of an AMD EPYC and to peaks of memory (benchmarks/needs.py takes both and
prints them). Memory is predicted a little too high rather than too low; time within a factor of about 3, without
the first compilation.
"""

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from d2dfl.config import Config, RadioConfig
from d2dfl.errors import UserError

GIB = 1 << 30
SMALL = 1 << 26  # bytes that are never refused
DENSE = 1000  # devices up to which everybody hears everybody, and candidates beyond: channel.py
DEFAULT_SLOTS = 64
LINKAGE = 2000  # devices up to which clusters come from a table of all pairs: clusters.py
POINTS = 64  # that stand for a remote data cluster: gaussian.py
FOREVER = 1e12  # seconds


@dataclass(frozen=True)
class Shape:
    """What a network's arrays look like."""

    devices: int
    slots: int
    partitions: int
    components: int = 0  # of data clusters; 0: partitions are labels

    @classmethod
    def planned(cls, config: Config) -> Self:
        """Of the network that a configuration would generate."""
        return cls(config.network.devices, slots_of(config.network.devices, config), config.network.partitions)

    @property
    def moments(self) -> int:
        """Length of a vector of moments of a data cluster."""
        return 1 + self.components + self.components * (self.components + 1) // 2


def slots_of(devices: int, config: Config) -> int:
    """Candidates that a receiver of a generated network hears."""
    wanted = config.channel.slots or (devices if devices <= DENSE else DEFAULT_SLOTS)
    return max(1, min(wanted, devices - 1))


# Memory


def check_memory(needed: float, what: str, advice: str) -> None:
    """Refuse what does not fit into the memory that is free; `what` ends in a verb, such as "100 devices need"."""
    if needed < SMALL:
        return
    free = free_bytes()
    if free is not None and needed > free:
        raise UserError(f"{what} about {in_gib(needed)} GiB of memory, and {in_gib(free)} are free: {advice}")


def in_gib(number: float) -> str:
    """Bytes for people."""
    return f"{number / GIB:,.0f}" if number >= 10 * GIB else f"{number / GIB:.1f}"


def network_bytes(devices: int, slots: int, partitions: int, edges: int = 5) -> float:
    """Peak of generating a network and of our learner's discovery in it, beyond what the process holds already."""
    links = float(devices) * slots
    table = 45.0 * devices**2 if devices <= LINKAGE else 0.0
    drawn = links * (65.0 + 3.2 * partitions) + table
    return max(drawn, links * (20.0 + 3.2 * partitions) + _played(devices, partitions, edges))


def _played(devices: int, partitions: int, edges: int) -> float:
    """Of a game, its graph and its evaluation, beside the network."""
    return devices * (500.0 + partitions * (30.0 + 30.0 * edges))


def check_network(devices: int, slots: int, partitions: int, edges: int) -> None:
    """Refuse a network that is too large to be generated and worked with."""
    fewer = f"fewer candidates with --set channel.slots={slots // 4}" if slots >= 32 else "fewer partitions"
    check_memory(
        network_bytes(devices, slots, partitions, edges),
        f"{devices:,} devices with {slots:,} candidates each need",
        f"take fewer devices, or {fewer}",
    )


def check_discovery(method: str, config: Config, shape: Shape) -> None:
    """Refuse a discovery that does not fit beside its network."""
    needed = discovery_bytes(method, config, shape)
    parts = f", {shape.partitions:,} partitions" if acted(method, config, shape) != shape or shape.components else ""
    what = f"{method} in a network of {shape.devices:,} devices with {shape.slots:,} candidates each{parts} needs"
    steps = ", or fewer steps with --set qlearning.steps=1000" if method == "qlearning" else ""
    check_memory(needed, what, f"take a smaller network, or another method{steps}")


def dense_bytes(devices: int, partitions: int) -> float:
    """Peak of making a network of one's own from tables of all pairs, beside these tables."""
    return float(devices) ** 2 * (48.0 + 4.0 * partitions)


def discovery_bytes(method: str, config: Config, shape: Shape) -> float:
    """Peak of a discovery in a network that is there already."""
    whole, shape = shape, acted(method, config, shape)
    links, devices = float(shape.devices) * shape.slots, float(shape.devices)
    needed = links * (10.0 + 2.2 * shape.partitions) + _played(shape.devices, shape.partitions, config.discovery.edges)
    if shape != whole:
        needed += links * (20.0 + 2.0 * shape.partitions)  # by_partition
    if method == "qlearning":
        if config.channel.dynamic:
            rows = config.qlearning.steps + 1 if config.qlearning.state == "vector" else config.channel.levels
            needed += 12.0 * rows * (links + devices)
        else:
            logged = config.qlearning.steps if config.qlearning.steps > config.qlearning.buffer else 0
            ring = min(config.qlearning.buffer, config.qlearning.steps)
            needed += 28.0 * links + devices * (12.0 * logged + 8.0 * ring)
    if method in ("marginal", "optimum") and not shape.components:
        needed += 48.0 * float(whole.partitions) ** 2  # which labels meet: tables of all pairs of them
    if method == "bandit":
        needed += 40.0 * links
    if method in ("greedy", "optimum"):
        needed += 120.0 * links  # a heap of Python's own numbers
    if method == "gcn":
        needed += 150.0 * links
    if shape.components:
        clusters = float(shape.partitions)
        needed += 8.0 * links * clusters * (clusters * shape.moments + 2.0)
        needed += 8.0 * (devices * clusters) ** 2 * (1.0 if config.reward.agreement == "ratio" else 3.0)
    return needed


def acted(method: str, config: Config, shape: Shape) -> Shape:
    """R17: a learner that chooses partitions has a slot for each partition of each candidate."""
    split = config.discovery.action == "partition" and method in LEARNERS
    return replace(shape, slots=shape.slots * shape.partitions) if split else shape


LEARNERS = ("marginal", "qlearning", "bandit", "greedy", "optimum")


def radio_bytes(settings: RadioConfig) -> float:
    """Peak of generated radio signals: 11 modulations at every ratio, 2 x 128 numbers each, and their copies when split."""
    ratios = max(0, settings.highest_snr_db // 2 + -(settings.lowest_snr_db // 2) + 1)
    return 11.0 * ratios * settings.per_cell * (2 * 128 * 4 * 2.75 + 64) + 64e6


def free_bytes() -> float | None:
    """Memory that this process can still have; None where the system does not tell."""
    known = [value for value in (_available(), *_groups(), _addresses()) if value is not None]
    return max(0.0, min(known)) if known else None


def _available() -> float | None:
    """Of the machine."""
    try:
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return float(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    try:
        return float(os.sysconf("SC_PHYS_PAGES")) * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


def _groups(proc: Path = Path("/proc/self/cgroup"), root: Path = Path("/sys/fs/cgroup")) -> Iterator[float]:
    """Of the control groups that the process is in, version 1 or 2, up to the outermost."""
    try:
        lines = proc.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return
    for line in lines:
        _, _, rest = line.partition(":")
        controllers, _, name = rest.partition(":")
        if controllers and "memory" not in controllers.split(","):
            continue
        base = root / "memory" if controllers else root
        names = ("memory.limit_in_bytes", "memory.usage_in_bytes") if controllers else ("memory.max", "memory.current")
        group = base / name.strip("/")
        # In a container the group's own name may not be visible: the root is then the container's.
        for folder in [group, *group.parents]:
            if folder == base or base in folder.parents:
                left = _left(folder, *names)
                if left is not None:
                    yield left


def _left(folder: Path, limit: str, used: str) -> float | None:
    try:
        highest = float((folder / limit).read_text(encoding="ascii"))  # "max" is no number
        taken = float((folder / used).read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None
    try:  # files that were read stay in memory as long as nobody wants it
        fields = dict(line.split() for line in (folder / "memory.stat").read_text(encoding="ascii").splitlines())
        taken -= float(fields.get("total_inactive_file", fields.get("inactive_file", 0)))
    except (OSError, ValueError):
        pass
    return highest - max(taken, 0.0)


def _addresses() -> float | None:
    """Of the limit on addresses (ulimit -v)."""
    try:
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        if limit == resource.RLIM_INFINITY:
            return None
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        return float(limit) - pages * resource.getpagesize()
    except (ImportError, OSError, ValueError, IndexError):
        return None


# Time


def discovery_seconds(method: str, config: Config, shape: Shape) -> float:
    """About how long a discovery takes on one core, compilation apart; 0 for a method that is not ours."""
    if method not in COSTS:
        return 0.0
    work = discovery_work(method, config, shape)
    return min(sum(cost * amount for cost, amount in zip(COSTS[method], work, strict=True)) + OVERHEAD, FOREVER)


OVERHEAD = 0.01


def discovery_work(method: str, config: Config, shape: Shape) -> tuple[float, ...]:
    """Amounts of each kind of work that a method does, in the order of its costs in COSTS."""
    shape = acted(method, config, shape)
    edges = config.discovery.edges
    devices, slots, partitions = float(shape.devices), float(shape.slots), float(shape.partitions)
    at_once = edges if config.discovery.edge_mode == "joint" and method in ("marginal", "greedy", "optimum") else 1
    stages = edges // at_once
    clusters = partitions * shape.components**2
    points = POINTS * (shape.components**2 + partitions * shape.components) / 4  # gaussian.py lays data clusters out
    layout = stages * devices * slots * partitions * (1.0 + points)
    actions = slots + 1.0
    if method == "marginal":
        return layout, *_revisions(config.marginal.messages, devices, at_once, stages, slots, partitions, clusters)
    if method in ("qlearning", "bandit"):
        steps = float((config.qlearning if method == "qlearning" else config.bandit).steps)
        rounds = devices * stages * steps
        search = actions if method == "bandit" or config.channel.dynamic else math.sqrt(actions)
        return layout, rounds, rounds * search, rounds * partitions, rounds * clusters
    pairs = devices * slots * edges
    if method == "greedy":
        return layout, pairs, pairs * partitions, pairs * clusters
    if method == "optimum":
        effort = max(1.0, slots / 24) / at_once / (10.0 if clusters else 1.0)
        proposals = config.optimum.starts * max(1.0, config.optimum.sweeps * effort) * devices * edges
        proposals += 4.0 * (config.optimum.starts + 2) * pairs
        long = _revisions(config.optimum.messages, devices, at_once, stages, slots, partitions, clusters)
        exact = float(config.optimum.nodes) * stages if devices <= 12 and at_once == 1 else 0.0
        return layout, *long, pairs, pairs * partitions, pairs * clusters, proposals, proposals * partitions, exact
    if method == "gcn":
        systems, epochs = float(config.gcn.systems), float(config.gcn.epochs)
        steps, links = epochs * min(systems, 128.0), stages * devices * slots
        return layout, systems, systems * partitions, steps, epochs * systems, links
    return (layout,)


def _revisions(
    messages: int, devices: float, at_once: int, stages: int, slots: float, partitions: float, clusters: float
) -> tuple[float, ...]:
    """Of our learner: messages, candidates looked at for them, and data clusters made anew."""
    spent = (
        float(messages) * devices * stages * math.sqrt(at_once)
    )  # with several links one revision takes more of them
    known = min(slots, max(1.0, 0.1 * messages * at_once))
    return spent, spent * known * partitions, spent * clusters


COSTS: dict[str, tuple[float, ...]] = {
    "marginal": (1.9e-08, 3.2e-06, 0, 2e-08),
    "qlearning": (2.4e-08, 5.2e-07, 0, 0, 2.8e-08),
    "bandit": (1.4e-08, 3.2e-07, 3.8e-09, 4.3e-10, 9.1e-08),
    "closest": (5.4e-09,),
    "most-trusted": (1.1e-08,),
    "uniform": (9.6e-09,),
    "none": (4.9e-09,),
    "greedy": (1.8e-08, 1.8e-05, 2e-07, 1.2e-07),
    "optimum": (0, 6.4e-06, 3.7e-09, 0, 8.9e-05, 0, 1.4e-06, 3.1e-06, 2.3e-08, 3.7e-06),
    "gcn": (3e-07, 0.036, 0.00017, 0.0034, 0, 0),
}
