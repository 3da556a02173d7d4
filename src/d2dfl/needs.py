"""What a computation will need, from the shapes alone, before anything large is made. discovery/needs.py: of a discovery.

Constants are fitted to peaks of memory and to processor time on one core of an AMD EPYC (benchmarks/needs.py takes both and
prints them). Memory is predicted a little too high rather than too low; time within a factor of about 3, without
the first compilation.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
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
    return max(drawn, links * (20.0 + 3.2 * partitions) + played_bytes(devices, partitions, edges))


def played_bytes(devices: int, partitions: int, edges: int) -> float:
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


def dense_bytes(devices: int, partitions: int) -> float:
    """Peak of making a network of one's own from tables of all pairs, beside these tables."""
    return float(devices) ** 2 * (48.0 + 4.0 * partitions)


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
