"""Curves of a few series as a figure of matplotlib, for notebooks and run folders."""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from d2dfl.errors import UserError
from d2dfl.report.look import COLOURS, GREY
from d2dfl.storage import write_whole

SUFFIXES = (".png", ".svg", ".pdf")
STYLE: Any = {"svg.hashsalt": "d2dfl", "axes.spines.top": False, "axes.spines.right": False}


class Line(NamedTuple):
    """One series: what it is called, its places and its values, a list for each seed."""

    title: str
    x: Sequence[float]
    values: Sequence[Sequence[float]]
    dashes: str = "-"  # yardsticks, drawn in grey, have other ones


def figure_of(lines: Sequence[Line], x_name: str, y_name: str) -> Figure:
    """Means over seeds with a band of one standard deviation."""
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(7.0, 4.2), layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.add_subplot()
        number = 0
        for one in lines:
            values = np.array(one.values)
            colour = COLOURS[number % len(COLOURS)] if one.dashes == "-" else GREY
            number += one.dashes == "-"
            mean, spread = values.mean(axis=0), values.std(axis=0)
            axes.plot(one.x, mean, label=one.title, linewidth=1.8, color=colour, linestyle=one.dashes)
            axes.fill_between(one.x, mean - spread, mean + spread, color=colour, alpha=0.12, linewidth=0)
        axes.set_xlabel(x_name)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_ylabel(y_name)
        axes.grid(alpha=0.25)
        if any(one.title for one in lines):
            axes.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def write_figure(figure: Figure, path: str | Path | None) -> Figure:
    """The same figure; with a path it is written there, and the same figure gives the same bytes."""
    if path is not None:
        suffix = Path(path).suffix.lower()
        if suffix not in SUFFIXES:
            raise UserError(f"cannot draw {str(path)!r}: name a file that ends in {', '.join(SUFFIXES)}")
        buffer = io.BytesIO()
        metadata = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(suffix, {})
        with matplotlib.rc_context(STYLE):
            figure.savefig(buffer, format=suffix[1:], dpi=200, metadata=metadata)
        write_whole(Path(path), buffer.getvalue())
    return figure
