"""The data of all devices."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from d2dfl.config import FederationConfig
from d2dfl.errors import UserError
from d2dfl.federation.losses import Loss, loss_named
from d2dfl.federation.models import Shape, outputs_for

if TYPE_CHECKING:
    from d2dfl.data import Dataset


@dataclass(frozen=True)
class Federated:
    """The pooled set, which of it each device holds, and the common test set."""

    inputs: NDArray[np.float32]
    targets: NDArray[Any]
    members: Sequence[NDArray[np.int64]]  # of each device, indices into the pooled set
    test_inputs: NDArray[np.float32]
    test_targets: NDArray[Any]
    outputs: int  # of the model: classes, values for regression, or size of the embedding
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
        loss = self.objective()
        for targets in (self.targets, self.test_targets):
            if loss.targets == "values":
                self._check_values(targets)
            elif loss.targets is not None:
                self._check_labels(targets, self.outputs if loss.targets == "outputs" else None)

    def _check_labels(self, labels: NDArray[Any], below: int | None) -> None:
        if labels.dtype.kind not in "iu" or labels.min() < 0 or (below is not None and labels.max() >= below):
            right = "from 0 on" if below is None else f"from 0 to {below - 1}"
            raise UserError(f"labels run from {labels.min()} to {labels.max()}: give whole numbers {right}")

    def _check_values(self, values: NDArray[Any]) -> None:
        if values.dtype.kind not in "iuf" or not np.isfinite(values).all():
            raise UserError("a target of the regression is no number: give finite numbers")
        if int(np.prod(values.shape[1:])) != self.outputs:
            raise UserError(
                f"the model has {self.outputs} outputs and a target {int(np.prod(values.shape[1:]))} values: "
                "give as many outputs as values"
            )

    @classmethod
    def of(
        cls,
        dataset: "Dataset",
        members: Iterable[NDArray[np.int64]],
        *,
        targets: NDArray[Any] | None = None,
        loss: str | Loss | None = None,
        outputs: int | None = None,
    ) -> "Federated":
        """A dataset and who holds what of it: classification or regression, as the dataset is, unless told otherwise.

        `targets` (pseudo-labels) take the place of the training targets; test targets stay. With a loss that has a
        probe ("triplet") the model is an encoder: targets are not trained on, linear evaluation learns from them.
        """
        loss = loss or ("cross-entropy" if dataset.classes else "mse")
        encodes = (loss_named(loss) if isinstance(loss, str) else loss).probe is not None
        if encodes and not dataset.classes:
            raise UserError(f"{dataset.name} has no classes, which linear evaluation needs: give a classification set")
        return cls(
            dataset.train_inputs,
            dataset.train_targets if targets is None else targets,
            tuple(members),
            dataset.test_inputs,
            dataset.test_targets,
            outputs or outputs_for(dataset.classes, encodes),
            loss,
        )

    @property
    def devices(self) -> int:
        return len(self.members)

    @property
    def shape(self) -> Shape:
        """Shape of one input."""
        return tuple(self.inputs.shape[1:])

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """[device] datapoints."""
        return np.array([len(held) for held in self.members], dtype=np.int64)

    def objective(self, settings: FederationConfig | None = None) -> Loss:
        """What the devices minimise under these settings."""
        return loss_named(self.loss, settings) if isinstance(self.loss, str) else self.loss
