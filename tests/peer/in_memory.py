"""Frames between peers of one process: a board on which everybody has a queue."""

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from queue import Full, Queue

Lose = Callable[[bytes, bytes], bool]  # receiver and frame → whether it is lost


class Board:
    """Where the queues are."""

    def __init__(self, lose: Lose | None = None) -> None:
        self.queues: dict[bytes, Queue[bytes]] = {}
        self.lose = lose

    def join(self, own: bytes, inbox: "Queue[bytes]") -> "MemoryTransport":
        self.queues[own] = inbox
        return MemoryTransport(self, own)


class MemoryTransport:
    """One peer's end."""

    def __init__(self, board: Board, own: bytes) -> None:
        self.board, self.own, self.dropped = board, own, Counter[str]()

    def send(self, receiver: bytes, frame: bytes) -> None:
        queue = self.board.queues.get(receiver)
        if queue is None or (self.board.lose is not None and self.board.lose(receiver, frame)):
            return
        with suppress(Full):  # lost, as it would be on a network
            queue.put_nowait(frame)

    def renew(self) -> None:
        """A board knows no certificates."""

    def close(self) -> None:
        self.board.queues.pop(self.own, None)
