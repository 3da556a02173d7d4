"""Data: the datasets by name, the radio-signal generator, data of one's own, and who holds what."""

from d2dfl.data.dataset import Dataset

__all__ = ["Dataset"]
