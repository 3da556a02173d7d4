"""How a discovery went: the links in force at some moments of it, thinned so that it stays small however long it took.

A learner tells the links that it has between two calls of compiled code, where progress is told too: nothing inside of a kernel
knows of it, and a graph is the same whether somebody listens or not.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from d2dfl.network import Network
from d2dfl.progress import silent

Slots = NDArray[np.int32]
# Called with slots[receiver, edge], the share of the work that is done, the temperature (None: there is none), and messages.
Hear = Callable[[Slots, float, float | None, float], None]
MOST_MOMENTS = 120


@dataclass(frozen=True)
class Moment:
    """The links in force after a part of the work."""

    share: float  # of the work that is done
    messages: float  # that all devices have sent so far
    temperature: float | None  # of the learner, where it has one
    stages: tuple[Slots, ...]  # [receiver, edge] of every stage of the paper's greedy sequence (R16) until now


class Trace:
    """Hears one discovery. Where moments become too many, every second one is let go."""

    def __init__(self, told: Callable[[], None] = silent) -> None:
        self.network: Network | None = None  # as the method knows it; None until it begins
        self.method, self.seed = "", 0
        self.moments: list[Moment] = []
        self._told = told  # called after every moment that is kept, and when the last one is agreed on
        self._settled: tuple[Slots, ...] = ()
        self._before = 0.0  # messages of earlier stages
        self._heard, self._every = 0, 1

    def begin(self, network: Network, method: str, seed: int, edges: int = 1) -> None:
        """What is to be heard; it begins without any link."""
        self.network, self.method, self.seed = network, method, seed
        self._keep(np.full((network.devices, edges), -1, dtype=np.int32), 0.0, None, 0.0)

    def stage(self, number: int, stages: int) -> Hear:
        """Whom the learner of one stage tells."""

        def hear(slots: Slots, share: float, temperature: float | None, messages: float) -> None:
            self._heard += 1
            if self._heard % self._every == 0 and not self._same(slots):
                self._keep(slots, (number + share) / stages, temperature, self._before + messages)

        return hear

    def settle(self, slots: Slots, messages: float, share: float) -> None:
        """The end of a stage: this moment is always kept."""
        self._keep(slots, share, None, self._before + messages)
        self._settled = (*self._settled, slots.copy())
        self._before += messages

    def agree(self, messages: float) -> None:
        """What moves over the final links is agreed on: so many messages were sent in all."""
        self.moments[-1] = replace(self.moments[-1], messages=messages)
        self._told()

    def _same(self, slots: Slots) -> bool:
        """Whether the last moment had these links."""
        last = self.moments[-1].stages if self.moments else ()
        return len(last) == len(self._settled) + 1 and np.array_equal(last[-1], slots)

    def _keep(self, slots: Slots, share: float, temperature: float | None, messages: float) -> None:
        if temperature is None and self.moments:
            temperature = self.moments[-1].temperature
        self.moments.append(Moment(share, messages, temperature, (*self._settled, slots.copy())))
        if len(self.moments) > MOST_MOMENTS:
            self.moments = [self.moments[0], *self.moments[2::2]]
            self._every *= 2
        self._told()
