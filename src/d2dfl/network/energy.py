"""Energy of radio transmissions, in joules (R28).

First-order radio model: sending k bits over d metres costs E_elec * k + eps * k * d**2, receiving them E_elec * k.
The server is 3 times as far as the mean link; what it spends itself is not charged.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from d2dfl.network.network import Network

ELECTRONICS_J_BIT = 50e-9
AMPLIFIER_J_BIT_M2 = 100e-12
SERVER_FACTOR = 3.0
UNKNOWN_DISTANCE_M = 100.0  # where a network has no positions


def send_j(bits: NDArray[np.float64] | float, distance_m: NDArray[np.float64] | float) -> NDArray[np.float64] | float:
    """Joules at the sender."""
    return bits * (ELECTRONICS_J_BIT + AMPLIFIER_J_BIT_M2 * np.square(distance_m))


def receive_j(bits: NDArray[np.float64] | float) -> NDArray[np.float64] | float:
    """Joules at the receiver."""
    return bits * ELECTRONICS_J_BIT


def link_distances_m(network: Network) -> NDArray[np.float64]:
    """[receiver, slot] metres; a fixed distance where positions are unknown, 0 for padded slots."""
    if network.positions is None:
        return np.where(network.candidates >= 0, UNKNOWN_DISTANCE_M, 0.0)
    gaps = np.linalg.norm(network.positions[network.candidates] - network.positions[:, None], axis=2)
    return np.where(network.candidates >= 0, gaps, 0.0)


@dataclass(frozen=True)
class Ledger:
    """Joules of all devices together, by purpose."""

    discovery_j: float  # partitions included
    datapoints_j: float
    models_j: float

    @property
    def total_j(self) -> float:
        return self.discovery_j + self.datapoints_j + self.models_j


def ledger(
    network: Network,
    message_bits: float,
    sent: list[tuple[float, float]],
    datapoint_bits: float,
    uploads: int,
    downloads: int,
    between: int,
    model_bits: float,
    partition_bits: tuple[float, float] = (0.0, 0.0),
) -> Ledger:
    """Charge messages, datapoints and models.

    Messages travel the mean link; `partition_bits` go up to the server and come down to every device; `sent` lists (datapoints, metres) per link; models go up to and come down from the
    server, or `between` devices over the mean link.
    """
    distances = link_distances_m(network)
    heard = network.candidates >= 0
    mean_m = float(distances[heard].mean()) if heard.any() else UNKNOWN_DISTANCE_M
    hop = float(send_j(1.0, mean_m)) + float(receive_j(1.0))
    datapoints = sum(number * datapoint_bits * float(send_j(1.0, metres) + receive_j(1.0)) for number, metres in sent)
    server = uploads * float(send_j(model_bits, SERVER_FACTOR * mean_m)) + downloads * float(receive_j(model_bits))
    up, down = partition_bits
    partition = float(send_j(up, SERVER_FACTOR * mean_m)) + float(receive_j(down * network.devices))
    return Ledger(message_bits * hop + partition, float(datapoints), server + between * model_bits * hop)
