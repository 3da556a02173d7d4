"""Which devices train at once."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from d2dfl.config import FederationConfig
from d2dfl.federation.executors.capacity import FLOAT, SHARE, bytes_per_device, free_bytes
from d2dfl.federation.executors.loop import Job
from d2dfl.federation.executors.stack import WIDTH

BYTES = 1 << 26  # of the models of a block on a CPU: enough that threads seldom wait for each other
WIDEST = 1024  # devices


@dataclass(frozen=True)
class Entries:
    """All devices that train in a round: those of a run beside each other, and in it those of a group."""

    devices: NDArray[np.int64]  # [entry]
    starts: NDArray[np.int64]  # [run + 1] where the entries of each run begin
    ends: NDArray[np.int64]  # [group] where each group of a run ends

    @classmethod
    def of_groups(cls, runs: Sequence[tuple[NDArray[np.int64], NDArray[np.int64]]]) -> "Entries":
        """Entries made of devices and the numbers of their groups, by run."""
        devices, ends, first = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)], 0
        for own, groups in runs:
            order = np.argsort(groups, kind="stable")
            devices.append(own[order])
            if len(own):
                ends.append(first + np.append(np.flatnonzero(np.diff(groups[order])) + 1, len(own)))
            first += len(own)
        starts = np.cumsum([0, *(len(own) for own, _ in runs)])
        return cls(np.concatenate(devices), starts, np.concatenate(ends))

    def __len__(self) -> int:
        return len(self.devices)

    @property
    def runs(self) -> int:
        """How many runs they are of."""
        return len(self.starts) - 1

    def places(self, run: int) -> slice:
        """Where the entries of a run are."""
        return slice(int(self.starts[run]), int(self.starts[run + 1]))

    def of(self, run: int) -> NDArray[np.int64]:
        """The devices of a run that train."""
        return self.devices[self.places(run)]

    def blocks(self, width: int) -> Iterator[tuple[int, int]]:
        """First and last + 1 entry of every block: at most `width` entries, but never less than a group."""
        first = 0
        while first < len(self):
            fitting = int(np.searchsorted(self.ends, first + width, side="right"))
            least = int(np.searchsorted(self.ends, first, side="right")) + 1
            last = int(self.ends[max(fitting, least) - 1])
            yield first, last
            first = last

    def parts(self, first: int, last: int) -> Iterator[tuple[int, slice, NDArray[np.int64]]]:
        """The parts of a block by run: number of the run, its rows of the block, its devices."""
        for run in range(self.runs):
            begin, end = max(first, int(self.starts[run])), min(last, int(self.starts[run + 1]))
            if begin < end:
                yield run, slice(begin - first, end - first), self.devices[begin:end]

    def between(self, first: int, last: int) -> "Entries":
        """Some neighbouring entries, as if there were no others; no group is cut."""
        ends = self.ends[(self.ends > first) & (self.ends <= last)] - first
        return Entries(self.devices[first:last], np.clip(self.starts - first, 0, last - first), ends)

    @property
    def largest(self) -> int:
        """Entries of the largest group."""
        return int(np.diff(self.ends, prepend=0).max(initial=1))


def block_width(job: Job, settings: FederationConfig, most: int) -> int:
    """Devices that train at once, of `most`: what was asked for; on a GPU all that fit; on a CPU some for each thread."""
    place = job.inputs.device
    if settings.block:
        wide = settings.block
    elif place.type == "cuda":
        room = int(SHARE * free_bytes(place) / bytes_per_device(job, stacked=True))
        wide = max(1, room if room < WIDTH else room // WIDTH * WIDTH)
    else:
        threads = torch.get_num_threads()
        wide = max(1, min(WIDEST, BYTES // (FLOAT * job.layout.parameters)) // threads) * threads
    return max(1, min(wide, most))
