"""Links are measured: each peer sends the others numbered probes; who hears them counts what is missing and tells the way back.

Loss is that of one direction, as a network file wants it: `lost[receiver, transmitter]` is what the receiver did not hear.
"""

from collections import deque
from dataclasses import dataclass, field
from statistics import median

KEPT = 100  # probes of a series before a new one begins, and round trips that are remembered
MOST = 1 << 40  # probes of one process: ten a second for 3,000 years


@dataclass
class Link:
    """What one peer knows of its link with another."""

    number: int = 0  # the last probe that was sent there
    first: int = 1  # where the series that is sent began
    series: int = 0  # where the series that is heard began
    start: int = 0  # its first number that counts: what was sent before anything was heard is no loss
    last: int = 0  # its last number that was heard
    heard: int = 0  # how many of it were heard
    done: tuple[int, int] = (0, 0)  # sent and heard of the series before
    counted: tuple[int, int] = (0, 0)  # probes sent and heard in all, when they were last asked for
    total: tuple[int, int] = (0, 0)  # in all
    ahead_s: float = 0.0  # the other's clock, when its last probe came
    round_trips_s: deque[float] = field(default_factory=lambda: deque(maxlen=KEPT))

    @property
    def probes(self) -> tuple[int, int]:
        """Probes that the other has sent, and how many of them were heard: of this series and the one before."""
        sent = self.last - self.start + 1 if self.heard else 0
        return sent + self.done[0], self.heard + self.done[1]

    @property
    def loss(self) -> float | None:
        sent, heard = self.probes
        return None if sent == 0 else 1.0 - heard / sent

    @property
    def round_trip_s(self) -> float | None:
        return median(self.round_trips_s) if self.round_trips_s else None

    def next_probe(self) -> tuple[int, int]:
        """Number and start of the series of the next probe."""
        self.number += 1
        if self.number - self.first >= KEPT:
            self.first = self.number
        return self.number, self.first

    def hear(self, number: int, first: int) -> None:
        """A probe of the other came; frames come in order or not at all."""
        if not 0 <= number - first < KEPT or number > MOST:  # nobody who counts as above says this
            return
        before, again = self.last, number <= self.last  # again: its process has started anew, and its series with it
        if first != self.series or again:
            began = self.heard and not again and first > self.last
            self.done = (first - self.start, self.heard) if began else (0, 0)
            self.series, self.start, self.heard = first, first if began else number, 0
            before = before if began else self.start - 1  # the end of the series before may have been lost, too
        self.total = self.total[0] + number - before, self.total[1] + 1
        self.last, self.heard = number, self.heard + 1

    def since_last(self) -> float | None:
        """Share of the probes that was lost since this was last asked; None where none came."""
        sent, heard = (now - before for now, before in zip(self.total, self.counted, strict=True))
        self.counted = self.total
        return None if sent == 0 else 1.0 - heard / sent

    def as_dict(self) -> dict[str, float | int | None]:
        sent, heard = self.probes
        return {"probes": sent, "heard": heard, "loss": self.loss, "round_trip_s": self.round_trip_s}
