"""The side of a device that receives: what it expects of a link that it does not have yet."""

from collections.abc import Set
from dataclasses import dataclass

from d2dfl.discovery.plain.reference import plain_budget_term
from d2dfl.discovery.protocol.holdings import Holdings, List, Told


@dataclass(frozen=True)
class ReliableClusters:
    """What everybody knows of the reliable clusters."""

    budget: List
    order: list[list[int]]  # the members of each; the first keeps its account, the next one if that is gone

    def head(self, cluster: int, gone: Set[int]) -> int:
        """Who keeps a cluster's account."""
        return next(name for name in self.order[cluster] if name not in gone)

    def matter(self, holdings: Holdings) -> bool:
        """Whether what clusters take from outside is worth anything."""
        return holdings.reward.global_weight * holdings.reward.budget_weight != 0.0

    def term(self, holdings: Holdings, cluster: int, use: float) -> float:
        """What a cluster's budget term is worth in N times the objective when it takes so much from outside."""
        reward = holdings.reward
        earned = plain_budget_term(reward, self.budget[cluster], use)
        return reward.global_weight * reward.budget_weight * len(self.order[cluster]) * earned


def nothing_told(holdings: Holdings, slot: int) -> Told:
    """What a receiver takes for granted before it has asked: nobody else asks, and giving is worth what was introduced."""
    zero = [0.0] * len(holdings.counts)
    return Told(zero, holdings.heard[slot].giving, zero)


def expected_worth(
    holdings: Holdings, clusters: ReliableClusters, cluster: int, use: float, slots: list[int], told: list[Told]
) -> float:
    """What a device expects N times the objective to be, up to a constant, with links over these slots (-1: none)."""
    after, sent, cost, worth, outside = holdings.kept(), holdings.kept(), 0.0, 0.0, 0.0
    for slot, requested, known in zip(slots, holdings.requests(slots), told, strict=True):
        if slot < 0:
            continue
        there = holdings.heard[slot]
        cost += there.drop
        for label, asked in enumerate(requested):
            if asked <= 0.0:
                continue
            spare, demand, moved = there.spare[label], known.demand[label], asked
            if demand + asked > spare:
                moved = asked * spare / (demand + asked)
                worth -= known.taking[label] * (min(demand, spare) - demand * spare / (demand + asked))
            worth += known.giving[label] * (min(demand + asked, spare) - min(demand, spare))
            after[label] += moved * there.arrives
            sent[label] += moved
            outside += moved if there.cluster != cluster else 0.0
    worth += holdings.weight * holdings.worth(after, sent, cost)
    return worth + clusters.term(holdings, cluster, use + outside - holdings.outside(cluster))
