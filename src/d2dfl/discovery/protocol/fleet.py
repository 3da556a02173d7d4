"""Devices of one network in one process, with every message delivered in turn: nothing else passes between them."""

from collections import deque
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from d2dfl.config import Config
from d2dfl.discovery.protocol.device import Device, Rules
from d2dfl.discovery.protocol.holdings import Holdings, Neighbour
from d2dfl.discovery.protocol.messages import Message, Token
from d2dfl.discovery.protocol.weighing import Clusters
from d2dfl.network import Network


@dataclass
class Fleet:
    """All devices, and how many messages they have sent."""

    devices: list[Device]
    clusters: int
    messages: int = 0

    @classmethod
    def of(
        cls,
        network: Network,
        config: Config,
        keys: NDArray[np.uint64],
        account: NDArray[np.int64],
        free: NDArray[np.bool_],
        claim: NDArray[np.float32],
    ) -> "Fleet":
        """Each device gets what it holds, whom it hears and whom it trusts, and the population that a masked sum told it."""
        members = np.bincount(network.cluster, minlength=len(network.budget))
        clusters = Clusters(network.budget.tolist(), members.tolist())
        trusts: list[dict[int, list[bool]]] = [{} for _ in range(network.devices)]
        for receiver, slot in zip(*np.nonzero(network.candidates >= 0), strict=True):
            trusts[network.candidates[receiver, slot]][int(receiver)] = network.trust[receiver, slot].tolist()
        devices = []
        for number in range(network.devices):
            heard = {
                slot: Neighbour(int(name), float(network.drop[number, slot]))
                for slot, name in enumerate(network.candidates[number])
                if name >= 0
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
                Device(
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
        going = [device for device in self.devices if device.may_go_on]
        if not going:
            return
        stopped = frozenset(device.number for device in self.devices if not device.may_go_on)
        first = going[0].number
        self._deliver([Message(first, first, Token((0.0,) * self.clusters, 0, stopped))])

    def _deliver(self, messages: list[Message]) -> None:
        line = deque(messages)
        while line:
            message = line.popleft()
            self.messages += message.sender != message.receiver  # who keeps the token sends nothing
            line.extend(self.devices[message.receiver].receive(message))

    def slots(self) -> NDArray[np.int32]:
        """[receiver, edge] the links that devices have found."""
        return np.array(
            [[link.slot if link else -1 for link in device.holdings.links] for device in self.devices], dtype=np.int32
        )
