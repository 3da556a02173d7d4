"""Memory: how much this process can still have, and a sentence where something would not fit."""

import os
from collections.abc import Iterator
from pathlib import Path

from d2dfl.errors import UserError

GIB = 1 << 30
SMALL = 1 << 26  # bytes that are never refused


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


def free_bytes() -> float | None:
    """Memory that this process can still have; None where the system does not tell."""
    known = [value for value in (_available(), *_groups(), _addresses()) if value is not None]
    return max(0.0, min(known)) if known else None


def _available() -> float | None:
    """What the machine has left."""
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
    """What the control groups that the process is in leave, version 1 or 2, up to the outermost."""
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
    """What the limit on addresses leaves (ulimit -v)."""
    try:
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        if limit == resource.RLIM_INFINITY:
            return None
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        return float(limit) - pages * resource.getpagesize()
    except (ImportError, OSError, ValueError, IndexError):
        return None
