"""What a receiver expects of a link before it tries it: by what transmitters have told (offers.py), and by the rules of Algorithm 1."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from d2dfl.compiled import leaf, part
from d2dfl.discovery.equations.reward import OVER_ASK, budget_term, cluster_weight
from d2dfl.discovery.game.rewards import labelled_score


@leaf
def watched(terms: Any) -> Any:
    """Whether what a cluster takes from outside counts at all."""
    return terms.budget != 0.0 and terms.gamma != 0.0


class Standing(NamedTuple):
    """A receiver's own links but the one that it thinks about, as it reckons with them."""

    after: NDArray[np.float64]  # [label] counts after losses
    sent: NDArray[np.float64]  # [label] the same before losses
    arrived: NDArray[np.float64]  # [label] of it, what the links bring
    amount: NDArray[np.float64]  # [label] what is sent over them
    worth: NDArray[np.float64]  # [label] what that is worth to transmitters and their other receivers
    outside: NDArray[np.float64]  # [label] part of the amount that comes from other clusters
    cost: NDArray[np.float64]  # [1] loss probabilities
    receiver: np.int64
    edge: np.int64  # the link that it thinks about
    used: float  # what its cluster takes from outside now
    new_after: NDArray[np.float64]  # [label] `after` with the choice that was looked at last
    new_sent: NDArray[np.float64]  # [label] the same before losses


@part
def standing_of(board: Any, terms: Any, play: Any, told: Any, receiver: Any, edge: Any, used: Any) -> Any:
    """What the receiver has without this link. `used` is what its cluster takes from outside now."""
    partitions, edges = board.counts.shape[1], play.slots.shape[1]
    standing = Standing(
        after=np.empty(partitions),
        sent=np.empty(partitions),
        arrived=np.empty(partitions),
        amount=np.empty(partitions),
        worth=np.empty(partitions),
        outside=np.empty(partitions),
        cost=np.zeros(1),
        receiver=receiver,
        edge=edge,
        used=used,
        new_after=np.empty(partitions),
        new_sent=np.empty(partitions),
    )
    nobody = (np.zeros(partitions), np.zeros(partitions), np.zeros(partitions))
    for label in range(partitions):
        kept = board.counts[receiver, label] - min(play.demand[receiver, label], board.surplus[receiver, label])
        arrived, amount, worth, outside = split_label(
            board, terms, play, told, receiver, edge, np.int64(-1), nobody, label
        )
        standing.arrived[label], standing.amount[label] = arrived, amount
        standing.worth[label], standing.outside[label] = worth, outside
        standing.after[label], standing.sent[label] = kept + arrived, kept + amount
    for other in range(edges):
        slot = play.slots[receiver, other]
        if other != edge and slot >= 0:
            standing.cost[0] += board.drop[receiver, slot]
    return standing


@leaf
def split_label(
    board: Any, terms: Any, play: Any, told: Any, receiver: Any, edge: Any, slot: Any, offer: Any, label: Any
) -> Any:
    """What the receiver's links bring of one label, with `slot` in place of a link: what arrives, what is sent, what that is
    worth to others, what comes from outside. By the rules of Algorithm 1 (R1, R16) and by what transmitters have told."""
    need = board.need[receiver, label]
    arrived = amount = worth = outside = 0.0
    if need <= 0.0:
        return arrived, amount, worth, outside
    whole = 0.0
    edges = play.slots.shape[1]
    for other in range(edges):
        link = slot if other == edge else np.int64(play.slots[receiver, other])
        if link >= 0 and board.trust[receiver, link, label]:
            whole += board.surplus[board.candidates[receiver, link], label]
    if whole <= 0.0:
        return arrived, amount, worth, outside
    for other in range(edges):
        link = slot if other == edge else np.int64(play.slots[receiver, other])
        if link < 0 or not board.trust[receiver, link, label]:
            continue
        transmitter = board.candidates[receiver, link]
        surplus = board.surplus[transmitter, label]
        if surplus <= 0.0:
            continue
        if other == edge:
            demand, giving, taking = offer[0][label], offer[1][label], offer[2][label]
        else:
            demand = told.demand[receiver, other, label]
            giving, taking = told.giving[receiver, other, label], told.taking[receiver, other, label]
        arrives = 1.0 - board.drop[receiver, link]
        asked = need * surplus / whole
        if terms.rule == OVER_ASK:
            asked /= max(arrives, 1e-12)
        sent = asked
        if demand + asked > surplus:
            sent = asked * surplus / (demand + asked)
            worth -= taking * (min(demand, surplus) - demand * surplus / (demand + asked))
        worth += giving * (min(demand + asked, surplus) - min(demand, surplus))
        arrived += sent * arrives
        amount += sent
        if board.cluster[transmitter] != board.cluster[receiver]:
            outside += sent
    return arrived, amount, worth, outside


@leaf
def expected_worth(board: Any, terms: Any, play: Any, told: Any, standing: Any, slot: Any, offer: Any) -> Any:
    """What the receiver expects N times the objective to be, up to a constant, with `slot` (or none) in place of the link
    that it thinks about. Its counts are written down in `standing`."""
    receiver, edge, after, sent = standing.receiver, standing.edge, standing.new_after, standing.new_sent
    cost, worth, outside = standing.cost[0], 0.0, 0.0
    for label in range(len(after)):
        after[label], sent[label] = standing.after[label], standing.sent[label]
        worth += standing.worth[label]
        outside += standing.outside[label]
    if slot >= 0:
        cost += board.drop[receiver, slot]
        transmitter = board.candidates[receiver, slot]
        for label in range(len(after)):
            if (
                board.need[receiver, label] <= 0.0
                or board.surplus[transmitter, label] <= 0.0
                or not board.trust[receiver, slot, label]
            ):
                continue
            arrived, amount, more, crossing = split_label(board, terms, play, told, receiver, edge, slot, offer, label)
            after[label] += arrived - standing.arrived[label]
            sent[label] += amount - standing.amount[label]
            worth += more - standing.worth[label]
            outside += crossing - standing.outside[label]
    worth += terms.own * labelled_score(board, terms, receiver, after, sent, cost)
    if watched(terms):
        cluster, taken = board.cluster[receiver], standing.used + outside - play.outside[receiver]
        worth += cluster_weight(terms, board.members[cluster]) * budget_term(terms, board.budget[cluster], taken)
    return worth
