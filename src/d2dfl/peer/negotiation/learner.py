"""One device of our learner as a peer sets it up: what it holds and hears, what it adds to the sums, which pairs of labels it claims."""

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from d2dfl.config import Config
from d2dfl.config.sections.graph import threshold_share
from d2dfl.discovery.constants import ALONE, LEARNER
from d2dfl.discovery.methods.agreed import (
    COLD,
    GAINS,
    LARGEST_GAIN,
    first_temperature,
    gain_words,
    restless,
    sums_cost,
    sure_costs,
)
from d2dfl.discovery.methods.costs import INTRODUCTIONS
from d2dfl.discovery.protocol.device import Device
from d2dfl.discovery.protocol.holdings import Holdings, List, Neighbour
from d2dfl.discovery.protocol.own_clock import OwnClock
from d2dfl.discovery.protocol.revision import Rules
from d2dfl.discovery.protocol.weighing import ReliableClusters
from d2dfl.peer.wire.negotiation import Agreed
from d2dfl.rng import device_keys


def threshold_of(counts: List, rule: str) -> List:
    """What a device wants to hold of each label, and never gives away: the same share of its data for each."""
    return [sum(counts) * threshold_share(rule, len(counts))] * len(counts)


@dataclass
class Seat:
    """A device's place in one attempt, and what it knows before anybody has spoken."""

    number: int
    size: int
    agreed: Agreed
    config: Config
    counts: List
    own: List  # of these, those that are its own to give
    losses: dict[int, float]  # of what others send
    trusts: dict[int, list[bool]]  # receiver → whether it may have each label
    asks_all: bool = True
    population: List = field(default_factory=list)

    def asks(self, other: int) -> bool:
        """Whether this device may ask another for something, which tells what it holds."""
        return self.asks_all or any(self.trusts[other])

    @property
    def budget(self) -> int:
        """Messages of a device; introductions by all must not take more of it than they may."""
        least = math.ceil((self.size - 1) / INTRODUCTIONS)
        least += int(INTRODUCTIONS * least) < self.size - 1  # rounding
        return max(self.agreed.messages * self.agreed.links, least)

    def take_population(self, sums: NDArray[np.float64]) -> None:
        total = float(sums.sum())
        self.population = (sums / max(total, 1.0) if total > 0 else sums).tolist()

    def device(self) -> Device:
        """Before its introductions."""
        agreed = self.agreed
        order: list[list[int]] = [[] for _ in agreed.budget]
        for place in range(self.size):
            order[agreed.cluster[place]].append(place)
        others = [place for place in range(self.size) if place != self.number]
        holdings = Holdings(
            self.config.reward,
            self.counts,
            threshold_of(self.counts, self.config.network.threshold),
            self.population,
            {slot: Neighbour(place, self.losses[place]) for slot, place in enumerate(others)},
            [None] * agreed.links,
            [0.0] * len(self.counts),
        )
        # What it was given by others is not its own to give.
        holdings.surplus = [min(spare, own) for spare, own in zip(holdings.surplus, self.own, strict=True)]
        kind = OwnClock if agreed.at_once else Device
        return kind(
            number=self.number,
            cluster=agreed.cluster[self.number],
            holdings=holdings,
            clusters=ReliableClusters(list(agreed.budget), order),
            trusts=self.trusts,
            claim={},
            free=True,
            key=int(device_keys(agreed.seed, LEARNER, 0, devices=self.size)[self.number]),
            account=0,
        )

    def gains(self, device: Device) -> list[float]:
        """What it adds to the second sum."""
        claims = Claiming.of(self, device)
        return [min(device.best_alone(), LARGEST_GAIN), float(len(device.useful)), float(claims.would_claim)]

    def prepare(self, device: Device, sums: NDArray[np.float64]) -> float:
        """Rules and account by the second sum; what claims are worth, 0 where nobody claims."""
        unit, choices = float(sums[0]) / self.size, 1.0 + float(sums[1]) / self.size
        marginal = self.config.marginal
        hot = first_temperature(marginal, unit, choices)
        # At once there is no moment that all would remember alike: one cooling.
        cycles = 1 if self.agreed.at_once else max(1, self.agreed.messages // marginal.cycle)
        device.rules = Rules(hot, COLD, restless(self.agreed.links), marginal.patience, self.size, cycles)
        device.free = self.config.discovery.no_link or len(device.useful) < len(device.holdings.heard)
        spread = marginal.spread * unit if sums[2] >= 1.0 and len(self.counts) > 2 else 0.0
        lists = 2.0 * self.agreed.links if spread > 0.0 else 0.0
        sums_bill = sums_cost(self.size, len(self.counts), [])
        cost = sure_costs(self.agreed.links, lists, sums_bill, self.size, cycles)
        device.account += self.budget - (self.size - 1) - cost
        return spread

    def sum_words(self, device: Device) -> NDArray[np.uint64]:
        found = gain_words(self.size).words(self.gains(device))
        assert len(found) == GAINS
        return found


@dataclass
class Claiming:
    """Pairs of labels that a device with a single label claims (game/pair_claims.py), one a round of the list."""

    label: int  # its only one, or -1
    open_to: list[int]  # labels that it could receive and has not claimed
    amounts: NDArray[np.float64]  # [slot, label] what it could get
    need: NDArray[np.float64]
    mine: list[int] = field(default_factory=list)

    @classmethod
    def of(cls, seat: Seat, device: Device) -> "Claiming":
        counts, need = np.array(seat.counts), np.array(device.holdings.need)
        main = int(counts.argmax())
        alone = counts[main] >= ALONE * max(counts.sum(), 1.0)
        # The list shows its neighbours which label a device holds: who keeps that to itself keeps off it.
        alone = alone and any(trusted[main] for trusted in seat.trusts.values())
        spare = np.array([there.spare for there in device.holdings.heard.values()])
        amounts = np.minimum(spare, need)
        offered = [place for place in range(len(counts)) if alone and place != main and (amounts[:, place] > 0).any()]
        return cls(main if alone else -1, offered, amounts, need)

    @property
    def would_claim(self) -> bool:
        return bool(self.open_to)

    def claim(self, claimed: dict[tuple[int, int], int]) -> None:
        """Its turn with the list: the least claimed pair of its label, of these the next one round the circle."""
        if not self.open_to:
            return
        labels = len(self.need)
        step = [(other - self.label) % labels for other in range(labels)]
        order = np.array([min(one, labels - one) for one in step], dtype=np.float64)
        rank = np.argsort(np.argsort(order, kind="stable")) / labels
        partner = min(self.open_to, key=lambda other: claimed.get(_pair(self.label, other), 0) + rank[other])
        claimed[_pair(self.label, partner)] = claimed.get(_pair(self.label, partner), 0) + 1
        self.open_to.remove(partner)
        self.mine.append(partner)

    def values(self, spread: float) -> dict[int, float]:
        """What a link is worth beyond the objective, by slot."""
        mine = np.zeros(len(self.need), dtype=bool)
        mine[self.mine] = True
        whole, claimed = self.amounts.sum(axis=1), (self.amounts * mine).sum(axis=1)
        share = claimed / np.where(whole > 0, whole, 1.0) * np.minimum(claimed / np.maximum(self.need.max(), 1e-9), 1.0)
        worth = (spread * share.astype(np.float32)).astype(np.float32)
        return {slot: float(value) for slot, value in enumerate(worth) if value}


def _pair(one: int, other: int) -> tuple[int, int]:
    return min(one, other), max(one, other)
