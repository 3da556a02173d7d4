"""What experiments show of the cells that are measured by now, while others are still measured."""

import warnings
from collections.abc import Sequence
from pathlib import Path

from d2dfl.errors import UserError
from d2dfl.experiment.cells.files import stored
from d2dfl.paper.catalogue import claims_of, load_experiment
from d2dfl.paper.results import Results
from d2dfl.paper.workload import key_of
from d2dfl.report.findings import Findings


def findings_so_far(names: Sequence[str], scale: str, seeds: int | None, out: Path) -> list[Findings]:
    """Charts, bars and tables of experiments that have cells enough for them; nothing is written."""
    found, shown = stored(out), []
    for name in names:
        experiment = load_experiment(name)
        cells = experiment.cells(scale, seeds)
        kept = {cell: found[key].values for cell in cells if (key := key_of(experiment, name, cell)) in found}
        if not kept:
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)  # means over cells that are not there yet
                results = Results.of(experiment, scale, len({cell.seed for cell in cells}), kept)
                drawn = experiment.show(results)
        except (UserError, ValueError, LookupError, StopIteration, TypeError, AttributeError, ArithmeticError):
            continue  # too few yet
        record = Findings(experiment.name, claims_of(name).title, charts=drawn.charts, bars=drawn.bars)
        shown.append(record)
    return shown
