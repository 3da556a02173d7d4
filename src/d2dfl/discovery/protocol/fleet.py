"""Devices of one network in one process: nothing passes between them but messages, each of which takes one unit of virtual time."""

import heapq
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from d2dfl.config import Config
from d2dfl.discovery.protocol.device import Device
from d2dfl.discovery.protocol.holdings import Holdings, Neighbour
from d2dfl.discovery.protocol.messages import Message, Token, Wake
from d2dfl.discovery.protocol.own_clock import OwnClock
from d2dfl.discovery.protocol.revision import Rules
from d2dfl.discovery.protocol.weighing import ReliableClusters
from d2dfl.network import Network


@dataclass
class Fleet:
    """All devices, how many messages they have sent, and how many of them in series."""

    devices: list[Device]
    clusters: int
    messages: int = 0
    depth: float = 0.0  # virtual time, in messages

    @classmethod
    def of(
        cls,
        network: Network,
        config: Config,
        keys: NDArray[np.uint64],
        account: NDArray[np.int64],
        free: NDArray[np.bool_],
        claim: NDArray[np.float32],
        known: NDArray[np.bool_] | None = None,
        kind: type[Device] = Device,
    ) -> "Fleet":
        """Each device gets what it holds, whom it hears and whom it trusts, and the population that a masked sum told it.

        known[receiver, slot]: over which links receivers are introduced, all if not given.
        """
        order = [np.flatnonzero(network.cluster == name).tolist() for name in range(len(network.budget))]
        clusters = ReliableClusters(network.budget.tolist(), order)
        met = network.candidates >= 0 if known is None else known
        trusts: list[dict[int, list[bool]]] = [{} for _ in range(network.devices)]
        for receiver, slot in zip(*np.nonzero(met), strict=True):
            trusts[network.candidates[receiver, slot]][int(receiver)] = network.trust[receiver, slot].tolist()
        devices = []
        for number in range(network.devices):
            heard = {
                slot: Neighbour(int(name), float(network.drop[number, slot]))
                for slot, name in enumerate(network.candidates[number])
                if met[number, slot]
            }
            holdings = Holdings(
                config.reward,
                network.counts[number].tolist(),
                network.threshold[number].tolist(),
                network.population.tolist(),
                heard,
                [None] * config.discovery.edges,
                [0.0] * network.partitions,
            )
            claims = {slot: float(value) for slot, value in enumerate(claim[number]) if value}
            devices.append(
                kind(
                    number=number,
                    cluster=int(network.cluster[number]),
                    holdings=holdings,
                    clusters=clusters,
                    trusts=trusts[number],
                    claim=claims,
                    free=bool(free[number]),
                    key=int(keys[number]),
                    account=int(account[number]),
                )
            )
        return cls(devices, len(network.budget))

    def introduce(self) -> None:
        """Everybody tells those that hear it what it can spare for them."""
        self._deliver([message for device in self.devices for message in device.introductions()])

    def run(self, rules: Rules) -> None:
        """The token goes round until the end is told."""
        for device in self.devices:
            device.rules = rules
        self._deliver([Message(0, 0, Token((0.0,) * self.clusters, 0, frozenset()))])

    def run_at_once(self, rules: Rules) -> None:
        """Everybody revises by its own clock (own_clock.py) until all have told that they are done: in one cycle, since
        there is no moment that all remember alike."""
        for device in self.devices:
            device.rules = rules._replace(cycles=1)
        clocks = [device for device in self.devices if isinstance(device, OwnClock)]
        self._deliver([message for device in clocks for message in device.first_wake()])

    def _deliver(self, messages: list[Message]) -> None:
        """Deliver messages until nobody sends any more. What is sent first arrives first."""
        line: list[tuple[float, int, Message]] = []
        sent = 0
        while messages or line:
            for message in messages:
                heapq.heappush(line, (self.depth + _takes(message), sent, message))
                sent += 1
                self.messages += message.sender != message.receiver  # who keeps the token sends nothing
            self.depth, _, message = heapq.heappop(line)
            messages = self.devices[message.receiver].receive(message)

    def slots(self) -> NDArray[np.int32]:
        """[receiver, edge] the links that devices have found."""
        return np.array(
            [[link.slot if link else -1 for link in device.holdings.links] for device in self.devices], dtype=np.int32
        )


def _takes(message: Message) -> float:
    if isinstance(message.content, Wake):
        return message.content.after
    return 0.0 if message.sender == message.receiver else 1.0
