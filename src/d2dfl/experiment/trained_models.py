"""What is taken from a training when it ends: its models, how they do on each label, and what encoders make of test inputs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from d2dfl.config import Config
from d2dfl.data import Dataset
from d2dfl.experiment.cells.cell import Cell
from d2dfl.experiment.findings.device_scores import label_scores
from d2dfl.experiment.folder.logs import run_name
from d2dfl.experiment.folder.store import RunFolder
from d2dfl.experiment.pipeline import Federations
from d2dfl.experiment.setting import paradigm_of
from d2dfl.experiment.training import Weights, save_weights, weights_in
from d2dfl.federation import Federated, State, embeddings
from d2dfl.federation.models import Factory
from d2dfl.report.look import slugs
from d2dfl.storage import make_folder

MODELS = "models"  # folder of the models in a run folder
SHOWN = 600  # test inputs whose embeddings are kept for a picture


@dataclass
class TrainedModels:
    """What is taken from a state when its training has ended: the state itself is not kept."""

    config: Config
    dataset: Dataset
    factory: Factory
    cells: Sequence[Cell]
    datas: Sequence[Federated]  # what they train on
    record: RunFolder | None
    truths: Mapping[int, NDArray[np.int64]]  # by seed: labels of the training part, or ranges of its targets
    weights: dict[int, Weights] = field(default_factory=dict)  # empty with a run folder: they are in a file by now
    embeddings: dict[int, NDArray[np.float32]] = field(default_factory=dict)
    label_scores: dict[int, NDArray[np.float64] | None] = field(default_factory=dict)

    @classmethod
    def of(
        cls, ready: Federations, config: Config, dataset: Dataset, cells: Sequence[Cell], record: RunFolder | None
    ) -> "TrainedModels":
        """What will be taken, before any training has ended."""
        truths = {item.setting.seed: item.setting.truth for item in ready.items}
        return cls(config, dataset, ready.factory, cells, [data for data, _ in ready.runs], record, truths)

    def keep(self, number: int, state: State) -> None:
        """Its models, how they do on each label, and what an encoder of the first seed makes of test inputs."""
        data = self.datas[number]
        encodes = paradigm_of(self.config).loss is not None
        settings, truth = self.config.federation, self.truths[self.cells[number].seed]
        self.label_scores[number] = label_scores(self.factory, data, state, self.dataset, settings, truth)
        if encodes and self.cells[number].seed == self.cells[0].seed:
            self.embeddings[number] = embeddings(self.factory, data, state, self.dataset.test_inputs[:SHOWN])
        weights = weights_in(self.factory, data, state)
        if self.record is None:
            self.weights[number] = weights
        else:
            make_folder(self.record.path / MODELS)
            save_weights(weights, self.record.path / MODELS / f"{file_names(self.cells)[number]}.pt")


def file_names(cells: Sequence[Cell]) -> list[str]:
    """What the files of cells are called."""
    return slugs(run_name(cell.method, cell.seed) for cell in cells)
