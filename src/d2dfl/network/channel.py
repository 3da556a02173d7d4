"""Radio links: who hears whom, how strongly, and how often a packet is lost (paper eq. prob_drop, R26)."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from d2dfl.config import ChannelConfig
from d2dfl.config.needs import FULL_MESH, SLOTS
from d2dfl.errors import UserError
from d2dfl.network.power_files import read_csv
from d2dfl.rng import stream

BOLTZMANN_J_K = 1.380649e-23
ROOM_TEMPERATURE_K = 290.0
LIGHT_SPEED_M_S = 299_792_458.0
HARSH_MEDIAN, HARSH_LOWEST = 0.1, 0.01  # losses from 2.7 % up to 77 %, median 14 %

Array = NDArray[np.float64]
MOST_TRANSMISSIONS = 100.0  # of a control message that must arrive


def drop_probability(rss: Any, rate: float, noise_power: float) -> Array:
    """Probability that a transmission is lost (paper eq. prob_drop).

        P_D = 1 - exp(-(2**r - 1) * sigma**2 / W)

    rss[receiver, slot] is the mean received power; any leading axes work. No power means a certain loss.
    """
    rss = np.asarray(rss, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        drop = -np.expm1(-(2.0**rate - 1.0) * noise_power / rss)
    return np.where(rss > 0, drop, 1.0)


def control_transmissions(drop: Any) -> Array:
    """How often a control message is sent in the mean until all has arrived, repeats counted (R28).

    A question is repeated until its answer is there, 1 / (1 - P_D)^2 times, and every question that arrives is answered,
    1 / (1 - P_D) times: the mean of both, at most 100.
    """
    arrives = np.maximum(1.0 - np.asarray(drop, dtype=np.float64), 1.0 / MOST_TRANSMISSIONS)
    return np.minimum((1.0 / arrives**2 + 1.0 / arrives) / 2.0, MOST_TRANSMISSIONS)


def noise_power(config: ChannelConfig) -> float:
    """Noise power in the unit of the received power: thermal noise in watts for a physical channel."""
    if config.kind != "physical":
        return config.noise_power
    return float(BOLTZMANN_J_K * ROOM_TEMPERATURE_K * config.bandwidth_hz * 10 ** (config.noise_figure_db / 10))


def place(devices: int, config: ChannelConfig, seed: int) -> Array:
    """Positions in metres, uniform in a square whose area grows with the devices; ordered along a curve.

    Neighbours in the list are neighbours in space (Morton order), which keeps large networks in the cache.
    """
    side = config.side_m * np.sqrt(max(devices, 1) / 25)
    unit = stream(seed, "positions").random((devices, 2))
    cell = (unit * 65536).astype(np.uint64)
    code = _spread(cell[:, 0]) | (_spread(cell[:, 1]) << np.uint64(1))
    return np.asarray(unit[np.argsort(code, kind="stable")] * side)


def _spread(bits: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Put a zero bit between any two of the 16 low bits."""
    for shift, mask in ((8, 0x00FF00FF), (4, 0x0F0F0F0F), (2, 0x33333333), (1, 0x55555555)):
        bits = (bits | (bits << np.uint64(shift))) & np.uint64(mask)
    return bits


def hear(positions: Array, slots: int) -> NDArray[np.int32]:
    """candidates[receiver, slot]: everybody else, or the `slots` nearest devices, in order of index."""
    devices = len(positions)
    if devices == 1:
        return np.full((1, 1), -1, dtype=np.int32)
    if slots == 0:
        slots = devices - 1 if devices <= FULL_MESH else SLOTS
    slots = min(slots, devices - 1)
    if slots == devices - 1:
        everyone = np.broadcast_to(np.arange(devices - 1, dtype=np.int32), (devices, devices - 1))
        return np.asarray(everyone + (everyone >= np.arange(devices)[:, None]), dtype=np.int32)
    from scipy.spatial import cKDTree  # takes half a second to import

    _, near = cKDTree(positions).query(positions, k=slots + 1)
    # A device is not always its own first neighbour: another may stand on the same spot.
    own = near == np.arange(devices)[:, None]
    own[~own.any(axis=1), -1] = True
    return np.asarray(np.sort(near[~own].reshape(devices, slots), axis=1), dtype=np.int32)


def received_power(positions: Array, candidates: NDArray[np.int32], config: ChannelConfig, seed: int) -> Array:
    """rss[receiver, slot] by the configured channel; 0 where there is no candidate."""
    if config.file and config.kind != "csv":
        raise UserError(
            f"channel.file names {config.file:.200}, which channel.kind={config.kind} does not read: set channel.kind=csv, or "
            "leave out channel.file"
        )
    generator = stream(seed, "received-power")
    heard = candidates >= 0
    if config.kind == "gaussian":
        power = generator.normal(config.mean, config.power_deviation, candidates.shape)
        return np.where(heard, power.clip(config.lowest, config.highest), 0.0)
    if config.kind == "csv":
        if not config.file:
            raise UserError("channel.kind is csv and channel.file empty: name a CSV table of received power there")
        return np.where(heard, _gather(read_csv(Path(config.file)), candidates, config.file), 0.0)
    distance = np.linalg.norm(positions[candidates] - positions[:, None, :], axis=2).clip(min=1.0)
    shadow = 10 ** (generator.normal(0.0, 1.0, candidates.shape) * config.shadowing_db / 10)
    if config.kind == "physical":
        wavelength = LIGHT_SPEED_M_S / config.frequency_hz
        at_one_metre = 10 ** ((config.transmit_power_dbm - 30) / 10) * (wavelength / (4 * np.pi)) ** 2
        return np.where(heard, at_one_metre * distance**-config.exponent * shadow, 0.0)
    harsh = config.kind == "harsh"
    median, lowest = (HARSH_MEDIAN, HARSH_LOWEST) if harsh else (config.median, config.lowest)
    power = distance**-config.exponent * shadow
    if heard.any():
        power *= median / np.median(power[heard])
    return np.where(heard, power.clip(lowest, config.highest), 0.0)


def _gather(table: Array, candidates: NDArray[np.int32], name: str) -> Array:
    devices = candidates.shape[0]
    if table.shape != (devices, devices):
        raise UserError(f"{name} describes {table.shape[0]} devices: the network has {devices}")
    return np.asarray(table[np.arange(devices)[:, None], candidates])


def quantise(rss: Any, config: ChannelConfig) -> NDArray[np.int64]:
    """Level of a received power on a uniform grid from `lowest` to `highest` (Section VI-N)."""
    span = config.highest - config.lowest
    if span <= 0:  # a single power
        return np.zeros(np.shape(rss), dtype=np.int64)
    share = (np.asarray(rss) - config.lowest) / span
    return np.clip((share * config.levels).astype(np.int64), 0, config.levels - 1)
