"""Pictures and files for more devices than a map can show: how far all of them are from i.i.d., and where."""

import io
from collections.abc import Sequence
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from d2dfl.config.metrics import SHOWN
from d2dfl.discovery.discover import Discovery
from d2dfl.discovery.equations.diversity import distances_to
from d2dfl.discovery.methods import NO_EXCHANGE
from d2dfl.experiment.pipeline import PreparedCell
from d2dfl.report.drawing.saving import save_figure
from d2dfl.report.findings import Chart, Line
from d2dfl.transfer import held_counts

BINS, TILES = 40, 60  # of a histogram, and along the side of a density picture

Series = tuple[str, str, NDArray[np.float64]]  # name, title, [device] distance to i.i.d.


def distances(items: Sequence[tuple[str, PreparedCell]]) -> list[Series]:
    """Distances before the exchange, and after it by method; `items` are titles and cells of one setting."""
    setting = items[0][1].setting
    classes = int(setting.truth.max()) + 1
    before = held_counts(setting.holdings, setting.truth, classes)
    population = before.sum(axis=0)
    rows = [(NO_EXCHANGE, "before the exchange", distances_to(before, population, SHOWN))]
    for title, item in items:
        after = held_counts(item.holdings, setting.truth, classes)
        rows.append((item.method, title, distances_to(after, population, SHOWN)))
    return rows


def distance_chart(series: Sequence[Series]) -> Chart:
    """Share of the devices at each distance."""
    edges = np.linspace(0.0, 1.0, BINS + 1)
    centres = tuple(((edges[1:] + edges[:-1]) / 2).tolist())
    lines = []
    for name, title, values in series:
        shares = tuple((np.histogram(values, edges)[0] / len(values)).tolist())
        lines.append(Line(name, title, centres, shares, shares, shares))
    return Chart("Distance to i.i.d. of all devices", "total variation", "share of devices", tuple(lines))


def draw_crowd(series: Sequence[Series], positions: NDArray[np.float64] | None, path: Path) -> None:
    """Mean distance to i.i.d. over the area, before and after; without positions how many devices have which."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        figure = Figure(figsize=(3.4 * len(series), 3.4), layout="constrained")
        for axes, (_, title, values) in zip(np.atleast_1d(figure.subplots(1, len(series))), series, strict=True):
            axes.set_title(f"{title}: {values.mean():.3f}", fontsize=9)
            if positions is None:
                axes.hist(values, bins=BINS, range=(0.0, 1.0), color="#4477aa")
                continue
            count, x, y = np.histogram2d(positions[:, 0], positions[:, 1], bins=TILES)
            total, _, _ = np.histogram2d(positions[:, 0], positions[:, 1], bins=[x, y], weights=values)
            mean = np.where(count > 0, total / np.maximum(count, 1), np.nan)
            drawn = axes.pcolormesh(x, y, mean.T, cmap="viridis", vmin=0.0, vmax=1.0)
            axes.set_aspect("equal")
            axes.set_axis_off()
        if positions is not None:
            figure.colorbar(drawn, ax=figure.axes, label="distance to i.i.d. (total variation)", shrink=0.8)
        save_figure(figure, path, dpi=150)


def graph_arrays(found: Discovery) -> bytes:
    """The graph as .npz: what graphs/….json says, a thousand times faster to write and to read."""
    graph, network = found.graph, found.network
    receiver, edge = graph.links
    buffer = io.BytesIO()
    np.savez_compressed(
        buffer,
        transmitter=graph.transmitter[receiver, edge],
        receiver=receiver,
        expected_datapoints=graph.allocated[receiver, edge].astype(np.float32),
        drop=graph.drop[receiver, edge].astype(np.float32),
        cluster=network.cluster,
        counts_before=network.counts,
        expected_counts_after=found.evaluation.counts_after,
    )
    return buffer.getvalue()
