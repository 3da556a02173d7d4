"""Data: the datasets by name, the radio-signal generator, and who holds what."""

from d2dfl.data.allocate import Allocation, allocate
from d2dfl.data.dataset import Dataset
from d2dfl.data.datasets import load, names

__all__ = ["Allocation", "Dataset", "allocate", "load", "names"]
