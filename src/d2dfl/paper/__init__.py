"""Every figure and table of the paper as an experiment: what to measure, and the paper's number beside ours."""

from d2dfl.experiment.cell import Cell, Contender, Values
from d2dfl.experiment.charts import curve_chart, energy_bars, line, text, times
from d2dfl.experiment.measures import Array, effort_or_all, final, interval, known
from d2dfl.paper.cells import each, exchange_only, exchange_values, prepared, train
from d2dfl.paper.charts import Quantities, curves, lead, method_table, speed, sweep_chart, sweep_lines, sweep_table
from d2dfl.paper.experiment import (
    BASELINES,
    CONTENDERS,
    CONTROL,
    FIVE,
    GCN,
    NONE,
    OURS,
    PAPERS,
    SCALES,
    SHUFFLE,
    SYSTEMS,
    UNIFORM,
    Experiment,
    Point,
)
from d2dfl.paper.results import Results, Shown
from d2dfl.paper.tasks import task

__all__ = [
    "BASELINES",
    "CONTENDERS",
    "CONTROL",
    "FIVE",
    "GCN",
    "NONE",
    "OURS",
    "PAPERS",
    "SCALES",
    "SHUFFLE",
    "SYSTEMS",
    "UNIFORM",
    "Array",
    "Cell",
    "Contender",
    "Experiment",
    "Point",
    "Quantities",
    "Results",
    "Shown",
    "Values",
    "curve_chart",
    "curves",
    "each",
    "effort_or_all",
    "energy_bars",
    "exchange_only",
    "exchange_values",
    "final",
    "interval",
    "known",
    "lead",
    "line",
    "method_table",
    "prepared",
    "speed",
    "sweep_chart",
    "sweep_lines",
    "sweep_table",
    "task",
    "text",
    "times",
    "train",
]
