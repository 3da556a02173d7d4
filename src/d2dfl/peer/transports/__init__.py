"""How frames travel: a transport takes (receiver, frame) and puts what comes into a queue; it promises nothing else."""

from collections import Counter
from typing import Protocol


class Transport(Protocol):
    """The seam. Frames may be lost, doubled or late: the hand-over expects no more."""

    dropped: Counter[str]  # frames that came and were not handed on, by reason, since it was made

    def send(self, receiver: bytes, frame: bytes) -> None: ...
    def renew(self) -> None:
        """The certificate has been replaced: go on with the new one. Frames on their way may be lost."""
        ...

    def close(self) -> None: ...
