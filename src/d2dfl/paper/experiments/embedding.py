"""Fig. 10: test images as the encoders see them, Fashion-MNIST without labels: ours, the paper's, no exchange.

Measured on all test images of labels 5, 7 and 9: the share whose 10 nearest neighbours in the embedding have their label, two
links and five. The picture (t-SNE) is of the first seed. Training is what costs: linear evaluation comes at its end only.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from d2dfl.experiment.cells.steps import dataset_of
from d2dfl.paper import (
    FIVE,
    NONE,
    ON_FIVE,
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
from d2dfl.report.findings import Picture

CONTENDERS = (NONE, PAPERS, OURS, *ON_FIVE.papers, FIVE, SHUFFLE)
SHOWN = 1500  # test images of all labels in the picture
HARD = (5, 7, 9)
SEEDS = {"tiny": 2, "small": 10, "paper": 10}


def points(scale: str) -> list[Point]:
    settings = task("fmnist", scale, devices=10, paradigm="unsupervised")
    settings["federation.evaluate_every"] = settings["federation.rounds"]
    return [Point("Fashion-MNIST", settings, "unsupervised", CONTENDERS)]


def measure(cells: Sequence[Cell]) -> list[Values]:
    from d2dfl.experiment.pipeline import federations_of
    from d2dfl.federation import State, embeddings, train_many

    config, dataset = cells[0].config, dataset_of(cells[0].config)
    ready, shown = federations_of(config, [prepared(cell) for cell in cells], dataset), slice(SHOWN)
    hard = np.isin(dataset.test_targets, HARD)
    found: dict[int, Values] = {}

    def end(number: int, state: State) -> None:
        data, _ = ready.runs[number]
        places = embeddings(ready.factory, data, state, dataset.test_inputs[hard])
        values: Values = {"separation": separation(places, dataset.test_targets[hard])}
        if cells[number].seed == 0:
            places, labels = (
                embeddings(ready.factory, data, state, dataset.test_inputs[shown]),
                dataset.test_targets[shown],
            )
            values |= {
                "places": np.round(places, 4).tolist(),
                "labels": labels.tolist(),
                "names": list(dataset.class_names),
            }
        found[number] = values

    train_many(ready.factory, ready.runs, config.federation, states=ready.starts, on_end=end)
    return [found[number] for number in range(len(cells))]


def separation(places: np.ndarray, labels: np.ndarray) -> float:
    """Leave-one-out accuracy of the 10 nearest neighbours, images of the hard labels among themselves."""
    from sklearn.neighbors import KNeighborsClassifier

    near = KNeighborsClassifier(11).fit(places, labels).kneighbors(places, return_distance=False)[:, 1:]
    votes = np.stack([(labels[near] == label).sum(axis=1) for label in HARD], axis=1)
    return float((np.array(HARD)[votes.argmax(axis=1)] == labels).mean())


def show(results: Results) -> Shown:
    (point,) = results.points
    values = {item.name: results.each(point, item.name, lambda cell: cell["separation"]) for item in CONTENDERS}
    lead = {item.name: values[item.name] - values[NONE.name] for item in results.systems(point)}
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


EXPERIMENT = Experiment("embedding", points, show, measure, SEEDS, draw)
