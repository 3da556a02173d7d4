"""Limits on what leaves: bytes a second and bytes a day. The day's account is in the store, the second's is not."""

import math
from dataclasses import dataclass
from typing import Protocol

from d2dfl.peer.store.operations import Spend

DAY_S = 86_400.0


@dataclass(frozen=True)
class Limits:
    """What a peer may do; every number has a bound in peer.toml."""

    points_a_day: int = 1_000_000
    bytes_a_day: int = 1 << 40
    bytes_a_second: float = math.inf
    piece_bytes: int = 512 * 1024
    window: int = 8  # pieces on their way
    timeout_s: float = 3.0
    longest_timeout_s: float = 60.0
    transfer_points: int = 1000  # of one transfer, at most
    memory_bytes: int = 16 << 20  # of one transfer, at most: it is in memory when it is checked
    open_from_one: int = 8  # transfers that one sender may have open here
    hello_s: float = 10.0


class Account(Protocol):
    """Who knows what was spent today."""

    def spent(self, day: int, what: str) -> int: ...


class Meter:
    """Says when the next piece may leave."""

    def __init__(self, limits: Limits, account: Account) -> None:
        self.limits, self.account = limits, account
        self.free_s = 0.0  # from when on the line is free

    def take(self, sizes: list[int], size: int, now: float) -> float:
        """0 if a piece of this size may leave now, after those of `sizes` in the same event; else from when on."""
        day = int(now // DAY_S)
        if self.account.spent(day, "sent bytes") + sum(sizes) + size > self.limits.bytes_a_day:
            return (day + 1) * DAY_S
        if self.free_s > now:
            return self.free_s
        self.free_s = max(now, self.free_s) + size / self.limits.bytes_a_second
        return 0.0

    @staticmethod
    def bill(sizes: list[int], now: float) -> list[Spend]:
        return [Spend(int(now // DAY_S), "sent bytes", sum(sizes))] if sizes else []
