"""Frames that were refused, by reason: written into the audit once a minute, so that nobody fills a disk with them."""

import math
from collections import Counter

from d2dfl.peer.store.operations import Note
from d2dfl.peer.store.store import Store

EVERY_S = 60.0


class Refusals(Counter[str]):
    """Those that are not written down yet."""

    due_s = -math.inf

    def add(self, reason: str, now: float, number: int = 1) -> None:
        if not self:
            self.due_s = max(now, self.due_s)
        self[reason] += number

    def write(self, store: Store, now: float) -> None:
        """Into the audit, if there are any."""
        if self:
            text = ", ".join(f"{number} {reason}" for reason, number in sorted(self.items()))
            store.apply([Note("refused-frames", points=self.total(), text=text)], now)
            self.clear()
            self.due_s = now + EVERY_S

    def timer(self) -> float:
        return self.due_s if self else math.inf
