"""Several coolings, one after the other: warm up again from the best graph so far, and go back to it where that was in vain.

Going back takes no message but the one that says so: each device remembers its own side of every link, and all remember the same
moment.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from d2dfl.discovery.constants import REHEAT, SLIGHT
from d2dfl.discovery.game.learning import Cooling, LearnerState
from d2dfl.discovery.game.state import Play


class BestCycle:
    """How things stood at the end of the best cycle so far."""

    def __init__(self) -> None:
        self.gained = -np.inf
        self.remembered: list[NDArray[Any]] = []

    def stay_or_go_back(self, play: Play, learner: LearnerState) -> None:
        """Remember how things stand if that is the best so far; else go back to what is remembered."""
        now = list(_arrays((play, learner.told, learner.prices, learner.gained)))
        if float(learner.gained[0]) > self.gained + SLIGHT:
            self.gained, self.remembered = float(learner.gained[0]), [array.copy() for array in now]
            return
        for array, before in zip(now, self.remembered, strict=True):
            array[...] = before


def _arrays(record: Any) -> Iterator[NDArray[Any]]:
    if isinstance(record, tuple):
        for part in record:
            yield from _arrays(part)
    elif record is not None:
        yield record


def begin_cycle(learner: LearnerState, cooling: Cooling, whole: NDArray[np.int64], cycle: int, cycles: int) -> Cooling:
    """Give every device its part of what is left of its account, `whole`. Returns how this cycle cools."""
    learner.began[:] = learner.spent
    learner.account[:] = learner.spent + (whole - learner.spent) // (cycles - cycle)
    learner.quiet[0] = 0
    learner.taking_turns[:] = learner.useful.any(axis=1)
    if cycle == 0:
        return cooling
    return cooling._replace(hot=REHEAT * cooling.hot, restless=cooling.restless / REHEAT)  # as restless as before
