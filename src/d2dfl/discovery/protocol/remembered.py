"""A device's own side of every link at the end of the best cycle so far, to which it goes back without asking anybody."""

from copy import deepcopy
from dataclasses import dataclass

from d2dfl.discovery.protocol.giving import Giving, Requester
from d2dfl.discovery.protocol.holdings import Holdings, Link, List


@dataclass(frozen=True)
class Remembered:
    links: list[Link | None]
    given: List
    requesters: dict[int, Requester]
    share: List

    @classmethod
    def of(cls, holdings: Holdings, giving: Giving) -> "Remembered":
        return cls(*deepcopy((holdings.links, holdings.given, giving.requesters, giving.share)))

    def restore(self, holdings: Holdings, giving: Giving) -> None:
        kept = deepcopy(self)  # it may have to go back once more
        holdings.links, holdings.given = kept.links, kept.given
        giving.requesters, giving.share = kept.requesters, kept.share
