"""How far preparing the cells of a comparison is: each counts by the time that it is expected to take, not alike."""

from collections.abc import Sequence

from d2dfl.config import Config
from d2dfl.config.needs import NetworkShape
from d2dfl.discovery.methods import IID, NO_EXCHANGE
from d2dfl.discovery.needs import discovery_seconds
from d2dfl.experiment.cells.cell import Cell
from d2dfl.progress import Share, Step

EXCHANGE_S = 2e-4  # of a device's exchange, or of dealing out its datapoints
FINDING = "discover, exchange"  # how these steps are called, before what cell they are of


class Pace:
    """Tells shares of the whole that never fall."""

    def __init__(self, config: Config, cells: Sequence[Cell], progress: Step) -> None:
        self.cells, self.progress = cells, progress
        shape = NetworkShape.planned(config)
        found = {cell.method: discovery_seconds(cell.method, config, shape) for cell in cells}
        known = [seconds for seconds in found.values() if seconds]
        unknown = sum(known) / len(known) if known else 1.0  # of a method of somebody's own
        finding = [0.0 if cell.method in (NO_EXCHANGE, IID) else found[cell.method] or unknown for cell in cells]
        self.parts = [(seconds, EXCHANGE_S * shape.devices) for seconds in finding]
        self.whole = sum(map(sum, self.parts))

    def of(self, number: int) -> tuple[Share, Share]:
        """Who hears how far the discovery of a cell is, and its exchange."""
        finding, moving = self.parts[number]
        before = sum(map(sum, self.parts[:number]))
        return self._teller(number, before, finding), self._teller(number, before + finding, moving)

    def _teller(self, number: int, before: float, own: float) -> Share:
        what = f"{FINDING}: {self.cells[number].method}, seed {self.cells[number].seed}"
        return lambda share: self.progress(what, min(1.0, (before + share * own) / self.whole))
