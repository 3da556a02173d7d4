"""What a transmitted bit costs, in joules at the sender and at the receiver (R28).

The paper does not say which model it uses, so there are four. A new radio is one function and one line in `RADIOS`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from d2dfl.config import EnergyConfig
from d2dfl.config.sections.learning import FIRST_ORDER
from d2dfl.registry import entry_named

Array = NDArray[np.float64]
NANO, PICO = 1e-9, 1e-12
NEAREST_M = 1.0  # path loss is measured from here


class BitCost(NamedTuple):
    """Joules of one bit."""

    sender_j: Array | float
    receiver_j: Array | float


def first_order(settings: EnergyConfig, distance_m: Array) -> BitCost:
    """First-order radio: electronics at both ends, an amplifier whose energy grows with the squared distance.

    send = E_elec + eps * d**2,   receive = E_elec
    """
    electronics = settings.electronics_nj_bit * NANO
    return BitCost(electronics + settings.amplifier_pj_bit_m2 * PICO * distance_m**2, electronics)


def two_slope(settings: EnergyConfig, distance_m: Array) -> BitCost:
    """Free space up to the crossover distance, two rays beyond; the two meet there.

    d0 = sqrt(eps_fs / eps_mp),   send = E_elec + (eps_fs * d**2 if d < d0 else eps_mp * d**4),   receive = E_elec
    """
    electronics = settings.electronics_nj_bit * NANO
    free_space, multipath = settings.free_space_pj_bit_m2 * PICO, settings.multipath_pj_bit_m4 * PICO
    near = distance_m < np.sqrt(free_space / multipath)
    return BitCost(electronics + np.where(near, free_space * distance_m**2, multipath * distance_m**4), electronics)


def shannon(settings: EnergyConfig, distance_m: Array) -> BitCost:
    """Constant transmit power at the rate that the channel carries; circuits at both ends run as long as that takes.

    SNR = P_tx / (loss * d**exponent * N0 * B),   rate = B * log2(1 + SNR)
    send = (P_tx + P_circuit) / rate,   receive = P_circuit / rate
    """
    loss = 10 ** (settings.loss_at_1_m_db / 10) * np.maximum(distance_m, NEAREST_M) ** settings.loss_exponent
    noise_w = 10 ** ((settings.noise_dbm_hz - 30) / 10) * settings.bandwidth_hz
    # log1p: far away the ratio is too small to be seen beside 1.
    rate_bit_s = settings.bandwidth_hz * np.log1p(settings.transmit_power_w / (loss * noise_w)) / np.log(2)
    return _powers(settings, rate_bit_s)


def fixed_power(settings: EnergyConfig, distance_m: Array) -> BitCost:
    """Constant power and constant rate: the same at any distance.

    send = (P_tx + P_circuit) / rate,   receive = P_circuit / rate
    """
    return _powers(settings, np.full_like(distance_m, settings.rate_bit_s))


def _powers(settings: EnergyConfig, rate_bit_s: Array) -> BitCost:
    circuit_w = settings.circuit_power_w
    return BitCost((settings.transmit_power_w + circuit_w) / rate_bit_s, circuit_w / rate_bit_s)


@dataclass(frozen=True)
class Radio:
    """One model of what transmissions cost."""

    name: str
    title: str
    cost: Callable[[EnergyConfig, Array], BitCost]  # of a bit over [...] metres
    settings: EnergyConfig = field(default_factory=EnergyConfig)  # its constants

    def send_j(self, bits: Array | float, distance_m: Array | float) -> Array:
        """Joules at the sender."""
        return np.asarray(bits * self.cost(self.settings, np.asarray(distance_m, dtype=np.float64)).sender_j)

    def receive_j(self, bits: Array | float, distance_m: Array | float) -> Array:
        """Joules at the receiver."""
        return np.asarray(bits * self.cost(self.settings, np.asarray(distance_m, dtype=np.float64)).receiver_j)


RADIOS: dict[str, Radio] = {
    radio.name: radio
    for radio in (
        Radio(FIRST_ORDER, "First-order radio", first_order),
        Radio("two-slope", "Two slopes", two_slope),
        Radio("shannon", "Shannon rate", shannon),
        Radio("fixed-power", "Fixed power and rate", fixed_power),
    )
}


def radio_of(settings: EnergyConfig, name: str | None = None) -> Radio:
    """The radio of this name, or else of the configuration, with the configuration's constants."""
    return replace(entry_named("radio", name or settings.radio, RADIOS), settings=settings)
