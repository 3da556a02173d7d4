"""The Dataset record: data that is ready to train on, and who holds what of it where the data says so."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from d2dfl.notebook import facts_html, line
from d2dfl.words import counted

Kind = Literal["image", "signal", "table"]
ROWS = 4096  # read at a time, where a whole array of float64 would be large


@dataclass(frozen=True)
class Owners:
    """Who holds what, where the data says so."""

    names: tuple[str, ...]  # of the devices
    holdings: tuple[NDArray[np.int64], ...]  # per device, numbers of datapoints in the training part


@dataclass(frozen=True)
class Dataset:
    """Data that is ready to train on: inputs are standardised by mean and deviation of the training part."""

    name: str
    train_inputs: NDArray[np.float32]  # [n, ...] channels first
    train_targets: NDArray[Any]  # int64 classes, or float32 values for regression
    test_inputs: NDArray[np.float32]
    test_targets: NDArray[Any]
    class_names: tuple[str, ...]
    kind: Kind
    note: str = ""
    owners: Owners | None = None  # None: the data is dealt out to the devices
    rows: NDArray[np.int64] | None = None  # [datapoint of the training part] its row in a user's own arrays

    @property
    def classes(self) -> int:
        """Number of classes; 0 for regression."""
        return len(self.class_names)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one input."""
        return tuple(self.train_inputs.shape[1:])

    def _facts(self) -> dict[str, str]:
        held = f"{counted(len(self.train_inputs), 'datapoint')} and {len(self.test_inputs):,} for tests"
        facts = {
            "datapoints": held,
            "shape": " x ".join(map(str, self.shape)),
            "targets": counted(self.classes, "class") if self.classes else "numbers",
        }
        return facts if self.owners is None else {**facts, "devices": counted(len(self.owners.names), "device")}

    def __repr__(self) -> str:
        return line(f"Dataset {self.name}", *self._facts().values())

    def _repr_html_(self) -> str:
        return facts_html(f"Dataset {self.name}", self._facts())


def standardise(train: NDArray[np.float32], test: NDArray[np.float32]) -> None:
    """Take the training part's mean off both parts and divide by its deviation, in place."""
    mean, deviation = _moments(train)
    for array in (train, test):
        array -= mean
        array /= deviation


def _moments(inputs: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Mean and standard deviation of each channel (or feature), in double precision, some rows at a time."""
    axes = (0, *range(2, inputs.ndim))
    count = inputs.size / inputs.shape[1]
    total, squares = np.zeros(inputs.shape[1]), np.zeros(inputs.shape[1])
    for start in range(0, len(inputs), ROWS):
        part = inputs[start : start + ROWS].astype(np.float64)
        total += part.sum(axis=axes)
        squares += (part * part).sum(axis=axes)
    mean = total / count
    deviation = np.sqrt(np.maximum(squares / count - mean**2, 0.0))
    deviation[deviation < 1e-12] = 1.0  # a channel that never changes stays at zero
    shape = (-1, *([1] * (inputs.ndim - 2)))
    return mean.reshape(shape).astype(np.float32), deviation.reshape(shape).astype(np.float32)
