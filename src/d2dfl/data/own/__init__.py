"""A user's own data on own devices: whatever they bring, checked, becomes a Dataset that says who holds what."""

from d2dfl.data.own.checked import OwnData, own_data
from d2dfl.data.own.targets import TargetKind

__all__ = ["OwnData", "TargetKind", "own_data"]
