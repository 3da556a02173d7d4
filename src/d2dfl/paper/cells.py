"""What a worker does for a task of the grid: measure cells. Plain values in, plain values out."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from d2dfl.experiment.cells.cell import Cell
from d2dfl.experiment.cells.files import measured
from d2dfl.experiment.cells.steps import run_cells
from d2dfl.paper.catalogue import load_experiment


def run_task(payload: Mapping[str, Any], place: Path | None = None) -> dict[str, Any]:
    """The cells of one task, by the measure of their experiment, and the seconds it took.

    Trainings are saved in `place` while they last; a measure of an experiment's own starts anew.
    """
    own = load_experiment(payload["experiment"]).measure if payload["experiment"] else None
    cells = [Cell.from_plain(values) for values in payload["cells"]]
    began = time.perf_counter()
    values = own(cells) if own else run_cells(cells, place)
    return measured(values, time.perf_counter() - began)
