"""Who hears what a run does while it does it. What is told is kept anyway: nothing is computed for a listener."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from d2dfl.config import Config
from d2dfl.discovery.trace import Trace
from d2dfl.experiment.cells.cell import Cell

if TYPE_CHECKING:  # PyTorch waits until something trains
    from d2dfl.experiment.pipeline import PreparedCell
    from d2dfl.experiment.setting import Setting
    from d2dfl.federation import State


class Observer:
    """This one listens to nothing. Methods are called by the thread that computes: they keep what they get, and return."""

    def begin(self, config: Config, cells: Sequence[Cell]) -> None:
        """What will be measured."""

    def step(self, what: str, share: float) -> None:
        """What is being done, and how much of it is."""

    def place(self, setting: "Setting") -> None:
        """The data and the network of a seed are there."""

    def negotiate(self, trace: Trace) -> None:
        """A discovery has come so far; the trace grows."""

    def prepare(self, number: int, item: "PreparedCell") -> None:
        """The graph of a cell is found, and its datapoints have moved."""

    def train(self, states: "Mapping[int, State]") -> None:
        """Cells, by number, have finished a round together."""


NOBODY = Observer()
