"""The data of all devices."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from d2dfl.data import Dataset
from d2dfl.errors import UserError
from d2dfl.federation.losses import Loss, loss_named
from d2dfl.federation.models import Shape


@dataclass(frozen=True)
class Federated:
    """The pooled set, which of it each device holds, and the common test set."""

    inputs: NDArray[np.float32]
    targets: NDArray[Any]
    members: Sequence[NDArray[np.int64]]  # of each device, indices into the pooled set
    test_inputs: NDArray[np.float32]
    test_targets: NDArray[Any]
    outputs: int  # of the model: classes, or 1 for regression
    loss: str | Loss = "cross-entropy"

    def __post_init__(self) -> None:
        if len(self.inputs) != len(self.targets) or len(self.test_inputs) != len(self.test_targets):
            raise UserError("inputs and targets differ in number: give one target for each input")
        if not len(self.test_inputs):
            raise UserError("the test set is empty: give at least one datapoint")
        if not any(len(held) for held in self.members):
            raise UserError("no device holds any data: there is nothing to train on")
        for device, held in enumerate(self.members):
            if len(held) and not 0 <= held.min() <= held.max() < len(self.inputs):
                raise UserError(
                    f"device {device} holds datapoints {held.min()} to {held.max()}: "
                    f"give numbers from 0 to {len(self.inputs) - 1}"
                )
        if self.objective.name == "cross-entropy":
            self._check_labels(self.targets)
            self._check_labels(self.test_targets)

    def _check_labels(self, labels: NDArray[Any]) -> None:
        if labels.dtype.kind not in "iu" or not 0 <= labels.min() <= labels.max() < self.outputs:
            raise UserError(
                f"labels run from {labels.min()} to {labels.max()}: give whole numbers from 0 to {self.outputs - 1}"
            )

    @classmethod
    def of(cls, dataset: Dataset, members: Iterable[NDArray[np.int64]]) -> "Federated":
        """A dataset and who holds what of it."""
        return cls(
            dataset.train_inputs,
            dataset.train_targets,
            tuple(members),
            dataset.test_inputs,
            dataset.test_targets,
            dataset.classes or 1,
            "cross-entropy" if dataset.classes else "mse",
        )

    @property
    def devices(self) -> int:
        return len(self.members)

    @property
    def shape(self) -> Shape:
        """Shape of one input."""
        return tuple(self.inputs.shape[1:])

    @property
    def sizes(self) -> NDArray[np.int64]:
        """[device] datapoints."""
        return np.array([len(held) for held in self.members], dtype=np.int64)

    @property
    def objective(self) -> Loss:
        """What the devices minimise."""
        return loss_named(self.loss) if isinstance(self.loss, str) else self.loss
