"""Recorded losses of links over time: what a changing channel replays (`channel.trace`)."""

from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from d2dfl.config import ChannelConfig
from d2dfl.data.arrays import read_npz
from d2dfl.errors import UserError
from d2dfl.network import channel

ARRAYS = ("loss", "seconds")
LEAST_LOSS = 1e-9  # the power at which nothing is ever lost has no end
MOST_LOSS = 1.0 - 1e-12


def read_trace(path: Path) -> NDArray[np.float64]:
    """loss[moment, receiver, transmitter] from 0 to 1, checked; the diagonal is ignored."""
    arrays = read_npz(path, ARRAYS)
    loss = np.asarray(arrays["loss"]) if "loss" in arrays else None
    if loss is None or loss.ndim != 3 or loss.shape[1] != loss.shape[2] or not len(loss) or loss.dtype.kind != "f":
        raise UserError(
            f"{path} holds no trace: give loss[moment, receiver, transmitter], as `d2dfl fleet network --trace` writes"
        )
    loss = loss.astype(np.float64)
    loss[:, np.arange(loss.shape[1]), np.arange(loss.shape[1])] = 0.0
    if not ((loss >= 0.0) & (loss <= 1.0)).all():
        raise UserError(f"{path} holds losses that are none: give numbers from 0 to 1")
    return loss


def traced_power(config: ChannelConfig, candidates: NDArray[np.int32]) -> NDArray[np.float64]:
    """[moment, receiver, slot] the received power that loses as much as was recorded (eq. prob_drop, turned round).

    W = -(2**r - 1) * sigma**2 / ln(1 - P_D)
    """
    loss = _kept_trace(config.trace, Path(config.trace).stat().st_mtime_ns if Path(config.trace).exists() else 0)
    devices = len(candidates)
    if loss.shape[1] != devices:
        raise UserError(f"{config.trace} was recorded with {loss.shape[1]} devices: the network has {devices}")
    seen = loss[:, np.arange(devices)[:, None], candidates].clip(LEAST_LOSS, MOST_LOSS)
    factor = (2.0**config.rate - 1.0) * channel.noise_power(config)
    return np.asarray(-factor / np.log1p(-seen))


@lru_cache(maxsize=1)
def _kept_trace(path: str, changed: int) -> NDArray[np.float64]:
    """The last trace that was read, as long as its file stays as it is: a game asks for it at every step."""
    return read_trace(Path(path))
