"""Settings of a network of eight devices."""

from d2dfl.config import Config
from d2dfl.config.presets import preset


def small(**changes: object) -> Config:
    return preset("best").with_(**{"network.devices": 8, **changes})
