"""The two masked sums of an attempt (partition/masked), with keys that are made for this attempt alone."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from d2dfl.discovery.methods.agreed import gain_words
from d2dfl.partition.masked.device import MaskedDevice
from d2dfl.partition.masked.messages import Kind, Message
from d2dfl.partition.masked.pads import KeyedPads
from d2dfl.partition.masked.plan import LEAST as FEWEST
from d2dfl.partition.masked.plan import SumPlan, balanced_tree, mask_graph
from d2dfl.partition.masked.words import WORD_BITS, FixedPoint, Words
from d2dfl.peer.identity.masks import MaskKey
from d2dfl.peer.wire import negotiation as say
from d2dfl.peer.wire.messages import WireError

MOST_POINTS = float(1 << 40)  # of a label at a device
__all__ = ["FEWEST", "Sums"]


@dataclass
class Sums:
    """This device's part of both."""

    number: int
    size: int
    labels: int
    seed: bytes
    session: bytes  # tells this attempt from all others
    order: (
        int  # draws who masks with whom: of the members' fingerprints, so that nobody chooses its place beside another
    )
    keys: dict[int, bytes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._key = MaskKey(self.seed)
        self._begun = 0
        self._said: list[tuple[int, say.Content]] = []
        if self.size >= FEWEST:
            self._plan = SumPlan(balanced_tree(self.size), mask_graph(self.size, self.order), WORD_BITS)
            pads = KeyedPads(self._pair_key, self.session, WORD_BITS)
            self._device = MaskedDevice(self.number, self._plan, pads)

    def _pair_key(self, one: int, other: int) -> bytes:
        return self.keys[other if one == self.number else one]

    def begin(self) -> list[tuple[int, say.Content]]:
        """A key for each neighbour in the mask graph."""
        return [(other, say.Key(self._key.public)) for other in self._plan.neighbours[self.number]]

    def go_on(self, number: int, words: Callable[[], Words]) -> list[tuple[int, say.Content]]:
        """Begin a sum if it can be; what the sums have to say."""
        if self._begun < number and len(self.keys) == len(self._plan.neighbours[self.number]):
            self._begun = number
            self._say(self._device.begin(number, words()))
        said, self._said = self._said, []
        return said

    def _say(self, messages: list[Message]) -> None:
        for message in messages:
            words = message.words.astype("<u8").tobytes()
            self._said.append((message.receiver, say.Summed(message.kind.value, message.number, words)))

    def receive(self, sender: int, content: say.Key | say.Summed) -> None:
        if isinstance(content, say.Key):
            if sender not in self._plan.neighbours[self.number] or sender in self.keys:
                raise WireError("a key of no neighbour")
            try:
                self.keys[sender] = self._key.shared(content.public)
            except ValueError:
                raise WireError("a key that is none") from None
            return
        # Nobody is left out of a sum: an attempt that somebody leaves begins anew.
        if content.step in (Kind.LOST.value, Kind.STANDING.value, Kind.FAILED.value) or len(content.words) % 8:
            raise WireError("a sum without somebody")
        words = np.frombuffer(content.words, dtype="<u8").astype(np.uint64)
        ignored = self._device.ignored
        self._say(self._device.receive(Message(Kind(content.step), sender, self.number, content.number, words)))
        if self._device.ignored > ignored:
            raise WireError("a step of a sum that does not fit")

    def count_words(self, counts: list[float]) -> Words:
        return self._count_words.words(counts)

    @property
    def _count_words(self) -> FixedPoint:
        return FixedPoint(self.size, MOST_POINTS, WORD_BITS)

    def counts(self) -> NDArray[np.float64] | None:
        """The population's, once the first sum is over."""
        return self._total(1, self._count_words)

    def gains(self) -> NDArray[np.float64] | None:
        return self._total(2, gain_words(self.size))

    def _total(self, number: int, word: FixedPoint) -> NDArray[np.float64] | None:
        outcome = self._device.outcome(number)
        return None if outcome is None or outcome.words is None else word.numbers(outcome.words)
