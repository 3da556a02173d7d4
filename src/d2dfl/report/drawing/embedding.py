"""Pictures of embeddings in the plane (t-SNE), in the manner of the paper's Fig. 10: .png, .svg or .pdf."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from d2dfl.errors import UserError
from d2dfl.partition.threads import one_thread
from d2dfl.report.drawing.lines import figure_suffix, write_figure
from d2dfl.rng import stream

# Ten colours after Okabe and Ito, set apart in lightness too; from the eleventh class on the marks change instead.
COLOURS = (
    *("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e3a100"),
    *("#56b4e9", "#7b3294", "#333f4d", "#a6761d", "#8bbf3f"),
)
MARKS = ("o", "^", "s", "D")
MOST = 2_000  # points in a panel: t-SNE takes seconds, and more would hide each other


def draw_embeddings(
    panels: Sequence[tuple[str, NDArray[Any]]],
    labels: NDArray[Any],
    class_names: Sequence[str],
    path: Path,
    seed: int = 0,
) -> None:
    """Embeddings [n, size] of the same n datapoints under several methods, side by side, coloured by class.

    `panels` are (title, embeddings). All show the same datapoints, at most MOST of them, drawn by the seed.
    """
    _check(panels, labels, class_names, path)
    chosen = np.sort(stream(seed, "t-sne").permutation(len(labels))[:MOST])
    shown = labels[chosen]
    with matplotlib.rc_context({"svg.hashsalt": "d2dfl"}):
        figure = Figure(figsize=(3.1 * len(panels) + 1.3, 3.4), layout="constrained")
        for axes, (title, embeddings) in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
            places = in_the_plane(np.asarray(embeddings, dtype=np.float64)[chosen], seed)
            for number in range(len(class_names)):
                own = places[shown == number]
                axes.scatter(*own.T, s=5, linewidths=0, alpha=0.75, rasterized=True, **_look(number))
            axes.set_title(title, fontsize=10)
            axes.set_xticks([])
            axes.set_yticks([])
            for spine in axes.spines.values():
                spine.set_color("#c9ced4")
        keys = [
            Line2D([], [], linestyle="", markersize=5, markeredgewidth=0, label=name, **_look(number))
            for number, name in enumerate(class_names)
        ]
        figure.legend(handles=keys, frameon=False, fontsize=8, loc="outside right center", handletextpad=0.2)
    write_figure(figure, path)


def in_the_plane(embeddings: NDArray[np.float64], seed: int = 0) -> NDArray[np.float64]:
    """Places [n, 2] by t-SNE, from the two main components on; the same for the same seed."""
    from sklearn.manifold import TSNE  # slow to import, and only pictures need it

    centred = embeddings - embeddings.mean(axis=0)
    scale = np.abs(centred).max()
    if scale == 0:
        return np.zeros((len(embeddings), 2))  # a collapsed encoder: all are one point
    start = 1e-4 * _main_components(centred / scale)
    perplexity = min(30.0, (len(embeddings) - 1) / 3)
    with one_thread():  # on busy cores several threads wait for each other
        places = TSNE(perplexity=perplexity, init=start, random_state=seed).fit_transform(centred / scale)
    return np.asarray(places, dtype=np.float64)


def _main_components(centred: NDArray[np.float64]) -> NDArray[np.float64]:
    """Projections [n, 2] on the two main components, the first with deviation 1; a second may be missing."""
    left, sizes, right = np.linalg.svd(centred, full_matrices=False)
    largest = np.take_along_axis(right, np.abs(right).argmax(axis=1)[:, None], axis=1)[:, 0]
    projected = (left * sizes * np.sign(largest))[:, :2]  # a component's sign is nobody's choice: fixed here
    both = np.zeros((len(centred), 2))
    both[:, : projected.shape[1]] = projected / projected[:, 0].std()
    return both


def _look(number: int) -> dict[str, Any]:
    colour, mark = COLOURS[number % len(COLOURS)], MARKS[number // len(COLOURS) % len(MARKS)]
    return {"color": colour, "marker": mark}


def _check(
    panels: Sequence[tuple[str, NDArray[Any]]], labels: NDArray[Any], class_names: Sequence[str], path: Path
) -> None:
    figure_suffix(path)
    if not panels:
        raise UserError("there are no embeddings to draw: give at least one panel")
    if len(labels) < 4:
        raise UserError(f"t-SNE cannot place {len(labels)} datapoints: give at least 4")
    if not 0 <= labels.min() <= labels.max() < len(class_names):
        raise UserError(
            f"labels run from {labels.min()} to {labels.max()}: give whole numbers from 0 to {len(class_names) - 1}"
        )
    for title, embeddings in panels:
        if np.ndim(embeddings) != 2 or len(embeddings) != len(labels):
            raise UserError(
                f"the embeddings of {title!r} have the shape {np.shape(embeddings)}: give one row for each of the {len(labels)} labels"
            )
        if not np.isfinite(embeddings).all():
            raise UserError(
                f"the embeddings of {title!r} hold values that are not numbers: train with a lower learning rate"
            )
