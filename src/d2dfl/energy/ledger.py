"""The energy ledger: joules by device, purpose and round (R28).

Whoever spends energy is charged: the sender for sending, the receiver for listening, also to what is lost. What the
server spends is not charged. It stands `server_factor` mean distances away from every device.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from d2dfl.config import EnergyConfig
from d2dfl.energy.purposes import PURPOSES
from d2dfl.energy.radios import Radio, radio_of
from d2dfl.errors import UserError
from d2dfl.network.channel import control_transmissions
from d2dfl.network.network import Network

Array = NDArray[np.float64]
UNKNOWN_DISTANCE_M = 100.0  # where a network has no positions


@dataclass(frozen=True)
class Ledger:
    """Joules that every device spent, before training and in each round."""

    before_j: Array  # [device, purpose of BEFORE]
    rounds_j: Array  # [round, device, purpose of TRAINING]

    def spent_j(self, rounds: int | None = None) -> Array:
        """[device, purpose of PURPOSES] joules when that many rounds are done; None: all."""
        last = len(self.rounds_j)
        done = last if rounds is None else rounds
        if not 0 <= done <= last:
            raise UserError(f"the ledger has {last} rounds: it cannot say what {done} rounds cost")
        return np.concatenate([self.before_j, self.rounds_j[:done].sum(axis=0)], axis=1)

    def until(self, rounds: int | None = None) -> float:
        """Joules of all devices when that many rounds are done, all that came before them included; None: all rounds."""
        return float(self.spent_j(rounds).sum())

    def by_purpose(self, rounds: int | None = None) -> dict[str, float]:
        """Joules of all devices for each of PURPOSES."""
        return dict(zip(PURPOSES, self.spent_j(rounds).sum(axis=0).tolist(), strict=True))

    def by_device(self, rounds: int | None = None) -> Array:
        """[device] joules."""
        return np.asarray(self.spent_j(rounds).sum(axis=1))


@dataclass(frozen=True)
class Meter:
    """Charges transmissions in a network to its devices. All results are [device] joules."""

    network: Network
    radio: Radio
    server_m: float

    @classmethod
    def of(cls, network: Network, settings: EnergyConfig, radio: str | None = None) -> Self:
        """A meter with the radio of this name, or else with that of the configuration."""
        return cls(network, radio_of(settings, radio), settings.server_factor * mean_distance_m(network))

    def up_j(self, bits: Array) -> Array:
        """bits[device] go to the server."""
        return self.radio.send_j(bits, self.server_m)

    def down_j(self, bits: Array) -> Array:
        """bits[device] come from the server."""
        return self.radio.receive_j(bits, self.server_m)

    def between_j(self, senders: NDArray[np.int64], receivers: NDArray[np.int64], bits: Array) -> Array:
        """bits[n] go from senders[n] to receivers[n], over their true distance."""
        metres = distances_m(self.network, senders, receivers)
        spent = np.zeros(self.network.devices)
        np.add.at(spent, senders, self.radio.send_j(bits, metres))
        np.add.at(spent, receivers, self.radio.receive_j(bits, metres))
        return spent

    def talk_j(self, bits: float) -> Array:
        """Control messages of `bits` in all, which must arrive.

        Learners count their messages for all devices together. So every device that has links sends and receives the
        same share, spread evenly over its own candidate links. Over each of them messages are repeated
        until they arrive (network.channel.control_transmissions).
        """
        network, heard = self.network, self.network.candidates >= 0
        metres = distances_m(network, np.arange(network.devices)[:, None], network.candidates)
        transmissions = control_transmissions(network.drop)
        costs = np.where(heard, (self.radio.send_j(1.0, metres) + self.radio.receive_j(1.0, metres)) * transmissions, 0)
        links, talking = heard.sum(axis=1), heard.any(axis=1)
        share = bits / max(int(talking.sum()), 1)
        return np.asarray(share * costs.sum(axis=1) / np.maximum(links, 1))


def distances_m(network: Network, one: NDArray[np.integer], other: NDArray[np.integer]) -> Array:
    """Metres between devices, or a fixed distance where positions are unknown."""
    if network.positions is None:
        return np.full(np.broadcast_shapes(one.shape, other.shape), UNKNOWN_DISTANCE_M)
    return np.asarray(np.linalg.norm(network.positions[one] - network.positions[other], axis=-1))


def mean_distance_m(network: Network) -> float:
    """Mean over all links from a device to one that it hears."""
    receivers, slots = np.nonzero(network.candidates >= 0)
    if not len(receivers):
        return UNKNOWN_DISTANCE_M
    return float(distances_m(network, receivers, network.candidates[receivers, slots]).mean())
