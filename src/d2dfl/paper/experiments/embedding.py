"""Fig. 10: test images as the encoders see them (t-SNE), Fashion-MNIST without labels: ours, the paper's, no exchange.

Measured too: among labels 5, 7 and 9, the share of images whose 10 nearest neighbours in the embedding have their label.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from d2dfl.paper import (
    NONE,
    OURS,
    PAPERS,
    SHUFFLE,
    Cell,
    Experiment,
    Point,
    Results,
    Shown,
    Values,
    prepared,
    sweep_table,
    task,
)
from d2dfl.paper.cells import dataset_of
from d2dfl.report.findings import Picture

CONTENDERS = (NONE, PAPERS, OURS, SHUFFLE)
SHOWN = 1500
HARD = (5, 7, 9)


def points(scale: str) -> list[Point]:
    settings = task("fmnist", scale, devices=10, paradigm="unsupervised")
    return [Point("Fashion-MNIST", settings, "unsupervised", CONTENDERS)]


def measure(cells: Sequence[Cell]) -> list[Values]:
    from d2dfl.experiment.pipeline import factory_of, train
    from d2dfl.federation import embeddings

    config, dataset = cells[0].config, dataset_of(cells[0].config)
    factory, labels = factory_of(config, dataset), dataset.test_targets[:SHOWN]
    found = []
    for cell, done in zip(cells, train(config, [prepared(cell) for cell in cells], dataset), strict=True):
        places = embeddings(factory, done.data, done.state, dataset.test_inputs[:SHOWN])
        values: Values = {"separation": separation(places, labels)}
        if cell.seed == 0:
            values |= {
                "places": np.round(places, 4).tolist(),
                "labels": labels.tolist(),
                "names": list(dataset.class_names),
            }
        found.append(values)
    return found


def separation(places: np.ndarray, labels: np.ndarray) -> float:
    """Leave-one-out accuracy of the 10 nearest neighbours among the hard labels."""
    from sklearn.neighbors import KNeighborsClassifier

    chosen = np.isin(labels, HARD)
    places, labels = places[chosen], labels[chosen]
    near = KNeighborsClassifier(11).fit(places, labels).kneighbors(places, return_distance=False)[:, 1:]
    votes = np.stack([(labels[near] == label).sum(axis=1) for label in HARD], axis=1)
    return float((np.array(HARD)[votes.argmax(axis=1)] == labels).mean())


def show(results: Results) -> Shown:
    (point,) = results.points
    values = {item.name: results.each(point, item.name, lambda cell: cell["separation"]) for item in CONTENDERS}
    lead = {name: values[name] - values["none"] for name in ("qlearning", "marginal")}
    table = sweep_table(results, "Accuracy among labels 5, 7, 9 by 10 nearest", lambda cell: cell["separation"])
    return Shown({"separation": lead}, (table,), pictures=(Picture("Embeddings of test images", "embedding.png"),))


def draw(results: Results, folder: Path) -> None:
    """The picture."""
    from d2dfl.report.drawing.embedding import draw_embeddings

    (point,) = results.points
    cells = [(item, results.found.get((point.name, item.name, 0))) for item in CONTENDERS]
    shown = [(item, cell) for item, cell in cells if cell is not None]
    panels = [(item.title, np.array(cell["places"])) for item, cell in shown]
    draw_embeddings(panels, np.array(shown[0][1]["labels"]), shown[0][1]["names"], folder / "embedding.png")


EXPERIMENT = Experiment("embedding", points, show, measure, drawn=draw)
