"""A chart as a figure of matplotlib, for notebooks and run folders."""

import itertools
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import matplotlib
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from d2dfl.report.drawing.saving import save_figure, suffix_among
from d2dfl.report.findings import Chart
from d2dfl.report.look import COLOURS, DASHED, GREY, IID_COLOUR

NO_DASHES: Mapping[str, str] = MappingProxyType({})
SUFFIXES = (".png", ".svg", ".pdf")
STYLE: Any = {"svg.hashsalt": "d2dfl", "axes.spines.top": False, "axes.spines.right": False}


def figure_of(chart: Chart, dashes: Mapping[str, str] = NO_DASHES) -> Figure:
    """Lines with their bands. `dashes` of a line, by its name; lines that have them are yardsticks."""
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(7.0, 4.2), layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.add_subplot()
        colours = itertools.cycle(COLOURS[:IID_COLOUR])
        for line in chart.lines:
            colour = next(colours) if line.name not in dashes else COLOURS[IID_COLOUR] if line.name == DASHED else GREY
            axes.plot(line.x, line.mean, label=line.title, lw=1.8, color=colour, ls=dashes.get(line.name, "-"))
            axes.fill_between(line.x, line.low, line.high, color=colour, alpha=0.12, linewidth=0)
        axes.set_xlabel(chart.x_name)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_ylabel(chart.y_name)
        axes.grid(alpha=0.25)
        if any(line.title for line in chart.lines):
            axes.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def figure_suffix(path: str | Path) -> str:
    """The format in which a figure is written, or a sentence that lists those there are."""
    return suffix_among(path, SUFFIXES)


def write_figure(figure: Figure, path: str | Path | None) -> Figure:
    """The same figure; with a path it is written there, and the same figure gives the same bytes."""
    if path is not None:
        figure_suffix(path)
        with matplotlib.rc_context(STYLE):
            save_figure(figure, Path(path), dpi=200)
    return figure
