"""What a device can estimate without asking: its gain from each transmitter that nobody else asks (see marginal.py)."""

from typing import Any

import numpy as np

from d2dfl.compiled import kernel, leaf, part
from d2dfl.discovery.equations.agreement import lone_agreement, shape_of, take_in
from d2dfl.discovery.equations.gaussian import RATIO as RATIO_OF_MEANS
from d2dfl.discovery.equations.reward import OVER_ASK, diversity_score, local_reward, meets
from d2dfl.discovery.game.rewards import clustered_after

HOPELESS = -1e300


@part
def own_gains(board: Any, terms: Any, play: Any, gauss: Any, known: Any, receiver: Any, gains: Any) -> None:
    """What the receiver itself would gain from each transmitter if nobody else asked it; HOPELESS if nothing would move.

    Needs no message: trusted surplus was told at the introduction, everything else is the receiver's own. With data
    clusters it is the whole network's gain but for what other requesters lose: centroids and covariances were told
    at the introduction, and sums over all devices are kept up to date by broadcasts.
    """
    if gauss is None:
        _labelled_gains(board, terms, play, known, receiver, gains)
    else:
        _clustered_gains(board, terms, play, gauss, known, receiver, gains)


@part
def _labelled_gains(board: Any, terms: Any, play: Any, known: Any, receiver: Any, gains: Any) -> None:
    # Fields are taken out of the records once: each access counts references.
    candidates, drop, trust, surplus = board.candidates, board.drop, board.trust, board.surplus
    counts, threshold, population = board.counts, board.threshold, board.population
    partitions, slots = counts.shape[1], candidates.shape[1]
    held, sent, need, after = np.empty(partitions), np.empty(partitions), np.empty(partitions), np.empty(partitions)
    cost = _standing(board, play, receiver, held, sent, need)
    everyone, before = population.sum(), board.before[receiver]
    for slot in range(slots):
        gains[slot] = HOPELESS
        if not known[receiver, slot]:
            continue
        transmitter = candidates[receiver, slot]
        arrives = 1.0 - drop[receiver, slot]
        stretch = 1.0 / max(arrives, 1e-12) if terms.rule == OVER_ASK else 1.0  # R1
        whole = mass = 0.0
        met = 0
        for label in range(partitions):
            asked = 0.0
            if need[label] > 0.0 and trust[receiver, slot, label]:
                asked = min(need[label] * stretch, surplus[transmitter, label])
                whole += asked
            after[label] = held[label] + asked * arrives
            mass += after[label]
            if terms.gate > 0 and meets(terms, after[label], sent[label] + asked, threshold[receiver, label]):
                met += 1
        if whole <= 0.0:
            continue
        score = diversity_score(terms, counts, receiver, after, mass, met, before, population, everyone)
        local = local_reward(terms, score, cost + drop[receiver, slot])
        gains[slot] = terms.own * (local - play.local[receiver])


@part
def _clustered_gains(board: Any, terms: Any, play: Any, gauss: Any, known: Any, receiver: Any, gains: Any) -> None:
    """What joining each transmitter would be worth if nobody else asked it (Algorithm 2)."""
    shape = play.shape
    clusters, components = shape.mean.shape[1:]
    standing, moments = np.empty(gauss.own.shape[1:]), np.empty(gauss.own.shape[1:])
    cost, _ = clustered_after(board, play, gauss, receiver, standing)
    amounts = np.empty(clusters)
    mean, spread = np.empty((clusters, components)), np.empty((clusters, components, components))
    inverse, log = np.empty((clusters, components, components)), np.empty(clusters)
    for slot in range(board.candidates.shape[1]):
        gains[slot] = HOPELESS
        if not known[receiver, slot]:
            continue
        transmitter = board.candidates[receiver, slot]
        arrives = 1.0 - board.drop[receiver, slot]
        whole = 0.0
        for cluster in range(clusters):
            amount = min(gauss.request[receiver, slot, cluster], board.surplus[transmitter, cluster])
            amounts[cluster] = amount * arrives
            whole += amount
        if whole <= 0.0:
            continue
        moments[:] = standing
        take_in(gauss, receiver, slot, amounts, moments)
        gain = shape_of(gauss, receiver, moments, mean, spread)
        local = local_reward(terms, gain, cost + board.drop[receiver, slot])
        gains[slot] = terms.own * (local - play.local[receiver])
        if terms.agreement != 0.0 and terms.agreement_kind == RATIO_OF_MEANS:
            agreement = lone_agreement(gauss, shape, receiver, mean, spread, inverse, log)
            gains[slot] += len(play.local) * terms.agreement * (agreement - shape.agreement[0])


@leaf
def _standing(board: Any, play: Any, receiver: Any, held: Any, sent: Any, need: Any) -> Any:
    """What the receiver has with its other links: counts after and before loss, and what it still needs.

    Returns the loss probabilities of those links, summed.
    """
    cost = 0.0
    for label in range(len(held)):
        given = min(play.demand[receiver, label], board.surplus[receiver, label])
        held[label] = board.counts[receiver, label] - given
        sent[label] = held[label]
        need[label] = board.need[receiver, label]
    for edge in range(play.slots.shape[1]):
        slot = play.slots[receiver, edge]
        if slot < 0:
            continue
        transmitter = board.candidates[receiver, slot]
        arrives = 1.0 - board.drop[receiver, slot]
        cost += board.drop[receiver, slot]
        for label in range(len(held)):
            amount = play.request[receiver, edge, label] * play.share[transmitter, label]
            sent[label] += amount
            held[label] += amount * arrives
            need[label] -= amount * arrives
    return cost


@kernel
def expected_bonus(board: Any, terms: Any, known: Any, bonus: Any) -> None:
    """What each transmitter expects to gain itself by serving each receiver, before it knows the receiver's need.

    It takes the receiver for one like itself that holds nothing: min(surplus, own threshold) of every trusted partition.
    A loss counts as 0: the estimate must not scare a receiver off before it has asked.
    """
    counts, surplus, threshold, trust = board.counts, board.surplus, board.threshold, board.trust
    partitions, population = counts.shape[1], board.population
    everyone = population.sum()
    after = np.empty(partitions)
    devices, slots = known.shape
    for receiver in range(devices):
        for slot in range(slots):
            if not known[receiver, slot]:
                continue
            device = np.int64(board.candidates[receiver, slot])
            met = before = 0
            mass = held = 0.0
            for label in range(partitions):
                share = min(surplus[device, label], threshold[device, label]) if trust[receiver, slot, label] else 0.0
                after[label] = counts[device, label] - share
                mass += after[label]
                held += counts[device, label]
                if meets(terms, after[label], after[label], threshold[device, label]):
                    met += 1
                if meets(terms, counts[device, label], counts[device, label], threshold[device, label]):
                    before += 1
            own, start = counts[device], board.before[device]
            gain = diversity_score(terms, counts, device, after, mass, met, start, population, everyone)
            gain -= diversity_score(terms, counts, device, own, held, before, start, population, everyone)
            bonus[receiver, slot] = max(0.0, terms.own * terms.diversity * gain)
