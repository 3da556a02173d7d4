"""What experiments found: the record of each, made from its cells alone."""

import shlex
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from d2dfl.config import Config
from d2dfl.data.catalogue import CATALOGUE
from d2dfl.experiment.cells.cell import Cell
from d2dfl.experiment.findings.charts import rounds_text
from d2dfl.paper.catalogue import claims_of
from d2dfl.paper.experiment import Experiment
from d2dfl.paper.results import Results, Shown
from d2dfl.paper.verdicts import LEARNER, RULE, verdicts
from d2dfl.report.findings import Findings, spanned
from d2dfl.storage import make_folder
from d2dfl.terminal import UNKNOWN
from d2dfl.words import counted


def save_findings(
    experiment: Experiment,
    name: str,
    scale: str,
    out: Path,
    cells: Sequence[Cell],
    values: Mapping[Cell, Mapping[str, Any]],
) -> Findings:
    """What an experiment makes of its cells, also as files in its folder below `out`."""
    seeds = len({cell.seed for cell in cells})
    results = Results.of(experiment, scale, seeds, values)
    with warnings.catch_warnings():
        # Where cells are missing there are means over nothing; they show as such.
        warnings.simplefilter("ignore", RuntimeWarning)
        shown = experiment.show(results)
    untrained = experiment.trains and not any(cell.trains for cell in cells)
    if untrained:  # what a training fills is left out, not shown empty
        shown = _filled(shown)
    claims = claims_of(name)
    folder = out / experiment.name
    make_folder(folder)
    if experiment.drawn is not None:
        experiment.drawn(results, folder)
    found = Findings(
        name=experiment.name,
        title=claims.title,
        setting=experiment.setting or _sentence(experiment, cells),
        figure=claims.figure,
        claim=claims.claim,
        scale=scale,
        config=cells[0].config.to_toml(),
        verdicts=verdicts(claims, shown) if claims.quantities else (),
        rule=RULE,
        learner=LEARNER,
        tables=shown.tables,
        charts=shown.charts,
        bars=shown.bars,
        maps=shown.maps,
        pictures=shown.pictures,
        notes=shown.notes,
        command=f"d2dfl reproduce {shlex.quote(name)} --scale {scale} --seeds {seeds}{' --exchange-only' * untrained}",
    )
    missing = len(cells) - len(values)
    notes = [f"{missing} of {len(cells)} cells were not measured"] if missing else []
    if untrained:
        notes.append("Only what ends with the exchange was measured: claims about what models learn are not here.")
    if scale == "tiny" and not experiment.setting:
        notes.append(
            "This scale shows that everything runs; its data stand in for the paper's, whose name they bear here."
        )
    found = replace(found, notes=(*found.notes, *notes))
    found.save(folder)
    return found


def _filled(shown: Shown) -> Shown:
    """Tables and charts with something in them."""
    tables = [table for table in shown.tables if any(cell != UNKNOWN for row in table.rows for cell in row[1:])]
    return replace(shown, tables=tuple(tables), charts=tuple(chart for chart in shown.charts if chart.lines))


def _sentence(experiment: Experiment, cells: Sequence[Cell]) -> str:
    """Data, devices and lengths over all cells, and the number of seeds."""
    trained = [cell for cell in cells if experiment.trains and cell.trains]
    sets = ", ".join(dict.fromkeys(_data_name(cell.config) for cell in cells))
    parts = [
        spanned((cell.config.network.devices for cell in cells), "device"),
        f"{spanned((cell.config.data.samples for cell in cells), 'datapoint')} each",
    ]
    if trained:
        models = " and ".join(dict.fromkeys(cell.config.federation.model for cell in trained))
        parts += [models, rounds_text(cell.config.federation for cell in trained)]
    return f"{sets}; {', '.join(parts)}; {_seeds(cells, trained)}"


def _seeds(cells: Sequence[Cell], trained: Sequence[Cell]) -> str:
    """How many; cells that end before training may have others."""
    learned, others = (len({cell.seed for cell in some}) for some in (trained, set(cells) - set(trained)))
    if not learned or others in (0, learned):
        return counted(max(learned, others), "seed")
    return f"{counted(learned, 'seed')}, {others} where nobody trains"


def _data_name(config: Config) -> str:
    """The set, and that it is generated where it is: results on such data are results on such data."""
    entry = CATALOGUE.get(config.data.dataset)
    return f"{config.data.dataset} (generated data)" if entry and entry.generated else config.data.dataset
