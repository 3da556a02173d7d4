"""Draw README's first picture: what devices hold before the exchange, who sends to whom, what they hold after it.

python dev/first_picture.py            (writes docs/images/exchange.png, and exchange-tall.png for a narrow screen)
"""

from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, Patch

import d2dfl
from d2dfl.experiment.inputs import data_set
from d2dfl.experiment.pipeline import prepare
from d2dfl.experiment.setting import setting_of
from d2dfl.transfer import held_counts

IMAGES = Path(__file__).resolve().parent.parent / "docs" / "images"
DEVICES = 12
SEED = 50  # in which no two devices stand on top of each other
COLOURS = matplotlib.colormaps["tab10"].colors
INK = "#334"


def bars(axes: Axes, counts: np.ndarray, title: str) -> None:
    """Datapoints of every device, a colour for each label."""
    left = np.zeros(len(counts))
    for label, colour in zip(range(counts.shape[1]), COLOURS, strict=False):
        axes.barh(range(len(counts)), counts[:, label], left=left, color=colour, height=0.72)
        left += counts[:, label]
    axes.set_ylim(len(counts) - 0.4, -0.6)
    axes.set_yticks(range(len(counts)))
    axes.tick_params(length=0, labelsize=7, colors=INK)
    axes.set_title(title, fontsize=9, color=INK)
    axes.set_xlabel("datapoints", fontsize=7.5, color=INK)
    axes.set_ylabel("device", fontsize=7.5, color=INK)


def graph(axes: Axes, result: d2dfl.Discovery, before: np.ndarray) -> None:
    """Devices where they stand, in the colour of their main label, and the links."""
    places = result.network.positions
    for transmitter, receiver in result.graph.edges:
        arrow = FancyArrowPatch(
            places[transmitter],
            places[receiver],
            arrowstyle="-|>",
            mutation_scale=8,
            shrinkA=8,
            shrinkB=8,
            lw=0.8,
            color="#99a",
            connectionstyle="arc3,rad=0.12",
        )
        axes.add_patch(arrow)
    main = [COLOURS[label] for label in before.argmax(axis=1)]
    axes.scatter(*places.T, s=190, color=main, zorder=3)
    for number, place in enumerate(places):
        axes.text(*place, str(number), ha="center", va="center", fontsize=7, color="white", weight="bold", zorder=4)
    axes.set_aspect("equal")
    axes.margins(0.12)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.set_title(f"exchange: {len(result.graph.edges)} links over lossy radio", fontsize=9, color=INK)


def drawn(found: d2dfl.Discovery, before: np.ndarray, after: np.ndarray, tall: bool) -> Figure:
    """The three side by side, or one below the other."""
    with matplotlib.rc_context({"axes.spines.top": False, "axes.spines.right": False, "axes.edgecolor": "#ccd"}):
        figure = Figure(figsize=(4.2, 9.6) if tall else (9.0, 3.4), layout="constrained")
        if tall:
            one, two, three = figure.subplots(3, 1, height_ratios=(1, 1.5, 1))
        else:
            one, two, three = figure.subplots(1, 3, width_ratios=(1, 1.15, 1))
        bars(one, before, "before: one label a device")
        graph(two, found, before)
        bars(three, after, "after")
        keys = [Patch(color=colour, label=str(label)) for label, colour in enumerate(COLOURS)]
        figure.legend(
            handles=keys,
            title="label, and what a device holds most of",
            loc="outside lower center",
            ncols=len(keys),
            frameon=False,
            fontsize=7.5,
            title_fontsize=7.5,
            labelcolor=INK,
            handlelength=0.8 if tall else 1.2,
            columnspacing=0.8 if tall else 1.4,
        ).get_title().set_color(INK)
    return figure


def main() -> None:
    config = d2dfl.preset("best").with_(
        **{
            "network.devices": DEVICES,
            "data.allocation": "labels:1",
            "data.samples": 60,
            "discovery.edges": 3,
        }
    )
    setting = setting_of(config, SEED, data_set(config, 0))
    item = prepare(config, setting, "marginal")
    assert item.discovery is not None
    before, after = (held_counts(held, setting.truth, 10) for held in (setting.holdings, item.holdings))
    drawn(item.discovery, before, after, tall=False).savefig(IMAGES / "exchange.png", dpi=160)
    drawn(item.discovery, before, after, tall=True).savefig(IMAGES / "exchange-tall.png", dpi=160)


if __name__ == "__main__":
    main()
