"""Rewards in the game: what one device earns from the links in force, with labels or with data clusters.

Which of the two it is, the compiler knows: `gauss` is None where partitions are labels, and the other branch is not
compiled.
"""

from typing import Any

import numpy as np

from d2dfl.compiled import kernel, leaf, part
from d2dfl.discovery.equations.agreement import agreement_of, give_away, renew_clusters, renew_ratios, take_in
from d2dfl.discovery.equations.gaussian import RATIO as RATIO_OF_MEANS
from d2dfl.discovery.equations.messages import LEAST
from d2dfl.discovery.equations.reward import diversity_score, local_reward, meets


@kernel
def evaluate_all(board: Any, terms: Any, play: Any) -> None:
    """Rewards of all devices, and what their clusters have in common."""
    for device in range(len(board.counts)):
        play.local[device], play.outside[device] = reward_of(board, terms, play, board.gauss, device)
    agree_anew(board.gauss, play.shape, terms)


@part
def agree_anew(gauss: Any, shape: Any, terms: Any) -> None:
    """The system agreement with all pairs of devices compared anew."""
    if gauss is not None:
        if terms.agreement_kind != RATIO_OF_MEANS:
            for device in range(len(shape.log)):
                renew_ratios(gauss, shape, device)
        shape.agreement[0] = agreement_of(gauss, shape, terms.agreement_kind)


@part
def agreement_change(gauss: Any, shape: Any, terms: Any, devices: Any) -> Any:
    """By how much N times the objective changes as the system agreement does; it is brought up to date."""
    if gauss is None:
        return 0.0
    agreement = agreement_of(gauss, shape, terms.agreement_kind)
    change = devices * terms.agreement * (agreement - shape.agreement[0])
    shape.agreement[0] = agreement
    return change


@leaf
def agreement_in(shape: Any) -> Any:
    """The system agreement as it stands; 0 where partitions are labels."""
    if shape is None:
        return 0.0
    return shape.agreement[0]


@part
def reward_of(board: Any, terms: Any, play: Any, gauss: Any, device: Any) -> Any:
    """r of one device and the datapoints allocated to it from other clusters, from the links in force."""
    if gauss is None:
        return _labelled_reward(board, terms, play, device)
    return _clustered_reward(board, terms, play, gauss, device)


@part
def _clustered_reward(board: Any, terms: Any, play: Any, gauss: Any, device: Any) -> Any:
    moments = np.empty(gauss.own.shape[1:])
    cost, outside = clustered_after(board, play, gauss, device, moments)
    gain = renew_clusters(gauss, play.shape, device, moments, terms.agreement_kind)
    return local_reward(terms, gain, cost), outside


@part
def clustered_after(board: Any, play: Any, gauss: Any, device: Any, moments: Any) -> Any:
    """Moments of a device's data clusters from the links in force; what its links cost and bring from outside."""
    clusters, edges = moments.shape[0], play.slots.shape[1]
    amounts = np.empty(clusters)
    for cluster in range(clusters):
        given = min(play.demand[device, cluster], board.surplus[device, cluster])
        amounts[cluster] = board.counts[device, cluster] - given
    give_away(gauss, device, amounts, moments)
    cost = outside = 0.0
    for edge in range(edges):
        slot = np.int64(play.slots[device, edge])
        if slot < 0:
            continue
        transmitter = board.candidates[device, slot]
        arrives = 1.0 - board.drop[device, slot]
        whole = 0.0
        for cluster in range(clusters):
            amount = play.request[device, edge, cluster] * play.share[transmitter, cluster]
            whole += amount
            amounts[cluster] = amount * arrives
        take_in(gauss, device, slot, amounts, moments)
        if whole > LEAST:
            cost += board.drop[device, slot]
        if board.cluster[transmitter] != board.cluster[device]:
            outside += whole
    return cost, outside


@part
def _labelled_reward(board: Any, terms: Any, play: Any, device: Any) -> Any:
    partitions = board.counts.shape[1]
    after, sent = np.empty(partitions), np.empty(partitions)
    cost, outside = labelled_after(board, play, device, after, sent)
    return labelled_score(board, terms, device, after, sent, cost), outside


@leaf
def labelled_after(board: Any, play: Any, device: Any, after: Any, sent: Any) -> Any:
    """A device's counts after and before losses from the links in force; what its links cost and bring from outside."""
    # Fields are taken out of the records once: each access counts references.
    counts, surplus, drop, candidates = board.counts, board.surplus, board.drop, board.candidates
    demand, request, share, slots = play.demand, play.request, play.share, play.slots
    partitions, edges = counts.shape[1], slots.shape[1]
    for label in range(partitions):
        after[label] = counts[device, label] - min(demand[device, label], surplus[device, label])
        sent[label] = after[label]
    cost = outside = 0.0
    for edge in range(edges):
        slot = slots[device, edge]
        if slot < 0:
            continue
        transmitter = candidates[device, slot]
        arrives = 1.0 - drop[device, slot]
        whole = 0.0
        for label in range(partitions):
            amount = request[device, edge, label] * share[transmitter, label]
            sent[label] += amount
            after[label] += amount * arrives
            whole += amount
        if whole > LEAST:  # a link over which nothing moves is no link
            cost += drop[device, slot]
        if board.cluster[transmitter] != board.cluster[device]:
            outside += whole
    return cost, outside


@leaf
def labelled_score(board: Any, terms: Any, device: Any, after: Any, sent: Any, cost: Any) -> Any:
    """r of a device with these counts after and before losses."""
    met, mass, everyone = 0, 0.0, 0.0
    for label in range(len(after)):
        mass += after[label]
        everyone += board.population[label]
        if terms.gate > 0 and meets(terms, after[label], sent[label], board.threshold[device, label]):
            met += 1
    score = diversity_score(
        terms, board.counts, device, after, mass, met, board.before[device], board.population, everyone
    )
    return local_reward(terms, score, cost)
