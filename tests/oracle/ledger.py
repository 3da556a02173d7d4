"""The energy bill of a run by R28 and PAPER.md, "Who pays for what": every transmission by itself.

Joules are kept as bill[purpose][device]. x[i] is where device i stands, in metres; the server is `factor` mean distances away.
"""

import math
from dataclasses import dataclass, field
from itertools import permutations


@dataclass
class Bill:
    """First-order radio: E_tx = E_elec k + eps k d^2 and E_rx = E_elec k for k bits over d metres."""

    devices: int
    electronics_j: float = 50e-9
    amplifier_j_m2: float = 100e-12
    joules: dict[str, list[float]] = field(default_factory=dict)

    def charge(self, purpose: str, device: int, joules: float) -> None:
        self.joules.setdefault(purpose, [0.0] * self.devices)[device] += joules

    def send(self, purpose: str, device: int, bits: float, metres: float) -> None:
        self.charge(purpose, device, bits * (self.electronics_j + self.amplifier_j_m2 * metres**2))

    def hear(self, purpose: str, device: int, bits: float) -> None:
        self.charge(purpose, device, bits * self.electronics_j)


def mean_distance(x: list[tuple[float, float]]) -> float:
    pairs = [math.dist(x[i], x[j]) for i, j in permutations(range(len(x)), 2)]
    return sum(pairs) / len(pairs)


def server_distance(x: list[tuple[float, float]], factor: float = 3.0) -> float:
    """Section VI-G: the server is 3 times the mean distance between devices away."""
    return factor * mean_distance(x)


def transmissions(drop: float) -> float:
    """A message is sent until it arrives: 1 / (1 - P_D) times in expectation, at most 100."""
    return min(100.0, math.inf if drop >= 1.0 else 1.0 / (1.0 - drop))


def messages(bill: Bill, x: list[tuple[float, float]], P: list[list[float]], bits: float) -> None:
    """All bits of a discovery, spread evenly over devices and, at each, over the links from those it can hear."""
    for i in range(bill.devices):
        heard = [j for j in range(bill.devices) if j != i]
        for j in heard:
            part = bits / bill.devices / len(heard) * transmissions(P[i][j])
            bill.send("discovery", i, part, math.dist(x[i], x[j]))
            bill.hear("discovery", i, part)


def datapoints(bill: Bill, x: list[tuple[float, float]], attempts: list[tuple[int, int, int]], values: int) -> None:
    """attempts: (receiver, transmitter, transmissions); a datapoint is its values and its label, 8 bits each."""
    for i, j, times in attempts:
        bits = times * 8.0 * (values + 1)
        bill.send("datapoints", j, bits, math.dist(x[i], x[j]))
        bill.hear("datapoints", i, bits)


def server_round(bill: Bill, to_server: float, parameters: int, senders: list[int], receivers: list[int]) -> None:
    """A round with a server: 32 bits a parameter up from those present, down to everybody."""
    for i in senders:
        bill.send("models", i, 32.0 * parameters, to_server)
    for i in receivers:
        bill.hear("models", i, 32.0 * parameters)


def peer_round(bill: Bill, x: list[tuple[float, float]], parameters: int, pairs: list[tuple[int, int]]) -> None:
    """Models between devices: (receiver, transmitter) pairs."""
    for i, j in pairs:
        bill.send("models", j, 32.0 * parameters, math.dist(x[i], x[j]))
        bill.hear("models", i, 32.0 * parameters)
