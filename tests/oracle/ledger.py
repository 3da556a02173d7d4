"""The energy bill of a run by R28 and PAPER.md, "Who pays for what": every transmission by itself.

Joules are kept as joules[purpose][device]. x[i] is where device i stands, in metres; hears[i] are those whom i hears.
"""

import math
from dataclasses import dataclass, field

Place = tuple[float, float]


@dataclass
class Bill:
    """First-order radio: E_tx = E_elec k + eps k d^2 and E_rx = E_elec k for k bits over d metres."""

    x: list[Place]
    electronics_j: float = 50e-9
    amplifier_j_m2: float = 100e-12
    joules: dict[str, list[float]] = field(default_factory=dict)

    def charge(self, purpose: str, device: int, joules: float) -> None:
        self.joules.setdefault(purpose, [0.0] * len(self.x))[device] += joules

    def send(self, purpose: str, device: int, bits: float, metres: float) -> None:
        self.charge(purpose, device, bits * (self.electronics_j + self.amplifier_j_m2 * metres**2))

    def hear(self, purpose: str, device: int, bits: float) -> None:
        self.charge(purpose, device, bits * self.electronics_j)

    def between(self, purpose: str, i: int, j: int, bits: float) -> None:
        """From j to i."""
        self.send(purpose, j, bits, math.dist(self.x[i], self.x[j]))
        self.hear(purpose, i, bits)


def server_distance(x: list[Place], hears: list[list[int]], factor: float = 3.0) -> float:
    """Section VI-G: 3 times the mean D2D distance, over all links that there are."""
    links = [math.dist(x[i], x[j]) for i, heard in enumerate(hears) for j in heard]
    return factor * sum(links) / len(links)


def transmissions(drop: float) -> float:
    """A question is sent until its answer arrives, an answer whenever its question does (R28): the mean of both, at most 100."""
    arrives = max(1.0 - drop, 0.01)
    return min(100.0, (1.0 / arrives**2 + 1.0 / arrives) / 2.0)


def step_bits(devices: int, labels: int, steps: int, count_bits: int = 8, real_bits: int = 32) -> float:
    """The learner of the labelled case: V, Q and U of L counts each (Section IV-C: 8L bits), and r and d' to all."""
    return float(devices * steps * (3 * labels * count_bits + 2 * real_bits))


def partition(bill: Bill, to_server: float, up: list[float], down: list[float]) -> None:
    """PCA and the like: bits of every device to the server, and from it."""
    for i in range(len(bill.x)):
        bill.send("partition", i, up[i], to_server)
        bill.hear("partition", i, down[i])


def discovery(bill: Bill, hears: list[list[int]], P: list[list[float]], bits: float) -> None:
    """All bits of a discovery: the same for every device, at both ends, spread evenly over those whom it hears."""
    for i, heard in enumerate(hears):
        for j in heard:
            part = bits / len(hears) / len(heard) * transmissions(P[i][j])
            bill.send("discovery", i, part, math.dist(bill.x[i], bill.x[j]))
            bill.hear("discovery", i, part)


def datapoints(bill: Bill, attempts: list[tuple[int, int, int]], values: int) -> None:
    """attempts: (receiver, transmitter, transmissions); a datapoint is its values and its label, 8 bits each."""
    for i, j, times in attempts:
        for _ in range(times):
            bill.between("datapoints", i, j, 8.0 * (values + 1))


def through_server(bill: Bill, to_server: float, parameters: int, senders: list[int]) -> None:
    """An aggregation at the server: 32 bits a parameter up from the senders, down to everybody."""
    for i in senders:
        bill.send("models up", i, 32.0 * parameters, to_server)
    for i in range(len(bill.x)):
        bill.hear("models down", i, 32.0 * parameters)


def among_devices(bill: Bill, parameters: int, groups: list[list[int]]) -> None:
    """Device i averages the models of groups[i]: each of them but its own is sent to it."""
    for i, group in enumerate(groups):
        for j in group:
            if j != i:
                bill.between("models between", i, j, 32.0 * parameters)
