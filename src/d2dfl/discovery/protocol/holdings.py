"""What a device knows of itself and of those that it hears, and what its links are worth to it: one device, plain Python."""

from dataclasses import dataclass, field
from functools import cached_property

from d2dfl.config import RewardConfig
from d2dfl.discovery.constants import PRICED
from d2dfl.discovery.plain.reference import LEAST, plain_local_reward, plain_score

List = list[float]


@dataclass
class Neighbour:
    """A transmitter that a receiver hears, as it introduced itself."""

    device: int
    drop: float
    spare: List = field(default_factory=list)  # of labels that the receiver is trusted with
    giving: List = field(default_factory=list)  # worth of giving a datapoint while nobody asked
    cluster: int = -1

    @property
    def arrives(self) -> float:
        return 1.0 - self.drop


@dataclass
class Told:
    """What a transmitter has told last about one who asks, or would ask."""

    demand: List  # what others ask for
    giving: List  # worth to the transmitter of giving one datapoint
    taking: List  # worth to the others of one datapoint


@dataclass
class Link:
    """A link of a receiver, as the receiver knows it."""

    slot: int
    asked: List
    granted: List
    told: Told


@dataclass
class Holdings:
    """Counts, requests and links of one device."""

    reward: RewardConfig
    counts: List
    threshold: List
    population: List
    heard: dict[int, Neighbour]  # by slot
    links: list[Link | None]
    given: List  # what others get of it

    @property
    def weight(self) -> float:
        """What a device's reward counts in N times the objective."""
        return 1.0 + self.reward.global_weight

    @cached_property
    def need(self) -> List:
        return [max(b - d, 0.0) for d, b in zip(self.counts, self.threshold, strict=True)]

    @cached_property
    def surplus(self) -> List:
        return [max(d - b, 0.0) for d, b in zip(self.counts, self.threshold, strict=True)]

    def kept(self) -> List:
        """Its own datapoints that nobody gets."""
        return [count - given for count, given in zip(self.counts, self.given, strict=True)]

    def requests(self, slots: list[int]) -> list[List]:
        """Q for each link of a set of slots, -1 for none: the need, split by what transmitters can spare (R1, R16)."""
        requested = [[0.0] * len(self.counts) for _ in slots]
        for label, need in enumerate(self.need):
            spare = [self.heard[slot].spare[label] if slot >= 0 else 0.0 for slot in slots]
            whole = sum(spare)
            for edge, slot in enumerate(slots):
                if need > 0.0 and spare[edge] > 0.0:
                    stretch = max(self.heard[slot].arrives, 1e-12) if self.reward.over_ask else 1.0
                    requested[edge][label] = need * spare[edge] / whole / stretch
        return requested

    def expected(self, link: Link) -> List:
        """What a link will bring, by what its transmitter has told of itself and of others."""
        spare = self.heard[link.slot].spare
        return [
            asked if asked + demand <= there else asked * there / (asked + demand)
            for asked, demand, there in zip(link.asked, link.told.demand, spare, strict=True)
        ]

    def state(self, expected: bool = False) -> tuple[List, List, float]:
        """Counts after and before losses and what the links cost: as granted, or as expected."""
        after, sent, cost = self.kept(), self.kept(), 0.0
        for link in self.links:
            if link is not None:
                amounts = self.expected(link) if expected else link.granted
                for label, amount in enumerate(amounts):
                    sent[label] += amount
                    after[label] += amount * self.heard[link.slot].arrives
                if expected or sum(amounts) > LEAST:
                    cost += self.heard[link.slot].drop
        return after, sent, cost

    def worth(self, after: List, sent: List, cost: float) -> float:
        """r of the device."""
        score = plain_score(self.reward, self.counts, after, sent, self.threshold, self.population)
        return plain_local_reward(self.reward, score, cost)

    def standing(self) -> float:
        """r as it stands."""
        return self.worth(*self.state())

    def prices(self, link: Link, expected: bool = False) -> List:
        """What a datapoint less of each label over a link would cost, as things stand, or as they are expected."""
        after, sent, cost = self.state(expected)
        here, found = self.worth(after, sent, cost), [0.0] * len(after)
        for label, amount in enumerate(self.expected(link) if expected else link.granted):
            less = PRICED * amount
            if less > LEAST:
                fewer, fewer_sent = list(after), list(sent)
                fewer[label] -= less * self.heard[link.slot].arrives
                fewer_sent[label] -= less
                found[label] = self.weight * (here - self.worth(fewer, fewer_sent, cost)) / less
        return found

    def outside(self, cluster: int) -> float:
        """Datapoints that it gets from other clusters."""
        return sum(sum(link.granted) for link in self.links if link and self.heard[link.slot].cluster != cluster)
