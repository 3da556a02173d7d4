"""What a comparison measured, as a record that shows itself."""

from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from d2dfl.config import Config
from d2dfl.data import Dataset
from d2dfl.discovery.methods import IID, IID_TITLE, METHODS
from d2dfl.energy.ledger import Ledger
from d2dfl.energy.purposes import PURPOSES
from d2dfl.experiment.cells.cell import Cell, Contender, Point, Values
from d2dfl.experiment.cells.results import Results, Row
from d2dfl.experiment.pipeline import PreparedCell
from d2dfl.experiment.training import Weights
from d2dfl.notebook import line, table_html
from d2dfl.words import counted

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure


@dataclass(frozen=True, repr=False)
class Comparison:
    """Everything that was measured."""

    config: Config
    dataset: Dataset
    cells: tuple[Cell, ...]
    values: tuple[Values, ...]  # of the cells
    prepared: tuple[PreparedCell, ...]
    ledgers: tuple[Ledger, ...]  # of the cells, with the radio of the configuration
    embeddings: tuple[tuple[str, NDArray[np.float32]], ...] = ()  # of test inputs, where models are encoders
    # Of the cells: the final model's state, or those of all devices. With a run folder they are files there, and not here.
    weights: tuple[Weights, ...] = ()

    @cached_property
    def point(self) -> Point:
        """The one place at which all of it was measured."""
        names = dict.fromkeys(cell.method for cell in self.cells)
        return Point("", {}, contenders=tuple(Contender(name, title_of(name), name) for name in names))

    @cached_property
    def results(self) -> Results:
        """The values by method and seed."""
        seeds = tuple(dict.fromkeys(cell.seed for cell in self.cells))
        found = Results.keyed(dict(zip(self.cells, self.values, strict=True)))
        return Results((self.point,), seeds, found, self.config.energy.radio)

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """One line a method."""
        return tuple(self.results.row(self.point, contender) for contender in self.point.contenders)

    @property
    def score_name(self) -> str:
        return self.results.score_name(self.point)

    def __repr__(self) -> str:
        scores = (f"{row.method} {row.score:.3f}" for row in self.rows)
        return line(f"Comparison by {self.score_name}", *scores, counted(len(self.results.seeds), "seed"))

    def _repr_html_(self) -> str:
        from d2dfl.experiment.findings.comparison import against_table, table_of

        tables = {"Comparison": table_of(self), "Against the best other method": against_table(self)}
        return "".join(table_html(title, table.columns, table.rows, table.words) for title, table in tables.items())

    def plot(self, path: "str | Path | None" = None) -> "Figure":
        """Score against rounds as a figure; with a path (.png, .svg, .pdf) it is drawn there, too."""
        from d2dfl.experiment.findings.comparison import curves_figure
        from d2dfl.report.drawing.lines import write_figure

        return write_figure(curves_figure(self), path)

    def to_dict(self) -> dict[str, Any]:
        """All measures, and where the joules went."""
        return {
            "score": self.score_name,
            "higher_is_better": self.results.sign(self.point) > 0,
            "rows": [asdict(row) for row in self.rows],
            "purposes": PURPOSES,
            "device_joules": [  # [device][purpose], of the whole run
                {"method": cell.method, "seed": cell.seed, "joules": book.spent_j().tolist()}
                for cell, book in zip(self.cells, self.ledgers, strict=True)
            ],
            "used": {  # where the settings leave that to the data
                "dataset": self.dataset.name,
                "training_datapoints": len(self.prepared[0].setting.truth),
                "datapoints_by_device": [len(held) for held in self.prepared[0].setting.holdings],
            },
            "partitions": [
                {"seed": item.setting.seed, **item.setting.partitioning.by_device}
                for item in self.prepared
                if item.method == IID and item.setting.partitioning.by_device
            ],
        }


def title_of(method: str) -> str:
    """What a method is called in figures."""
    return IID_TITLE if method == IID else METHODS[method].title
