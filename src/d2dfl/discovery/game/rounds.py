"""One synchronous round: every device picks one link at once, Algorithm 1 runs, everyone is rewarded.

The paper's learner and the bandits play such rounds. Written for speed: no allocation, one pass over the devices for
demand and one for rewards.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from d2dfl.compiled import leaf, part
from d2dfl.discovery.equations.agreement import agreement_of, give_away, renew_clusters, take_in
from d2dfl.discovery.equations.diversity import sum_of
from d2dfl.discovery.equations.gaussian import ClusterState, shape_before
from d2dfl.discovery.equations.reward import OVER_ASK, Terms, diversity_score, local_reward, meets, overall_rewards
from d2dfl.discovery.game.board import Board

GATHER = 256  # devices whose scattered rows are fetched together


class GameRound(NamedTuple):
    """Work space and outcome of one round."""

    slot: NDArray[np.int32]  # [device] choice of this round, -1 for no link
    drop: NDArray[np.float64]  # [device] loss probability of the chosen link
    transmitter: NDArray[np.int32]  # [device] device behind the chosen slot, filled by the round
    request: NDArray[np.float64]  # [device, partition]
    demand: NDArray[np.float64]  # [device, partition]
    after: NDArray[np.float64]  # [partition]
    used: NDArray[np.float64]  # [cluster]
    local: NDArray[np.float64]  # [device] r
    reward: NDArray[np.float64]  # [device] R
    shape: ClusterState | None  # data clusters after the round; None where partitions are labels


def round_of(board: Board, terms: Terms) -> GameRound:
    """Empty work space for rounds on this board."""
    devices, partitions = board.counts.shape
    return GameRound(
        slot=np.full(devices, -1, dtype=np.int32),
        drop=np.zeros(devices),
        transmitter=np.zeros(devices, dtype=np.int32),
        request=np.zeros((devices, partitions)),
        demand=np.zeros((devices, partitions)),
        after=np.zeros(partitions),
        used=np.zeros(len(board.budget)),
        local=np.zeros(devices),
        reward=np.zeros(devices),
        shape=shape_before(board.gauss, devices, terms.agreement_kind),
    )


@part
def _ask(board: Any, terms: Any, work: Any) -> None:
    """V and Q of every device (eqs. avl_at_tx, req_at_dst), and the demand that they add up to."""
    candidates, trust, surplus, need = board.candidates, board.trust, board.surplus, board.need
    slots, drop, request, demand = work.slot, work.drop, work.request, work.demand
    behind = work.transmitter
    devices, partitions = need.shape
    demand[:] = 0.0
    offered = np.empty((GATHER, partitions), np.bool_)
    for begin in range(0, devices, GATHER):
        end = min(begin + GATHER, devices)
        # Rows are scattered over memory. A short loop of nothing but loads has many of them under way at once.
        for device in range(begin, end):
            behind[device] = candidates[device, max(slots[device], 0)]
        for device in range(begin, end):
            slot = max(slots[device], 0)
            for label in range(partitions):
                offered[device - begin, label] = trust[device, slot, label]
        for device in range(begin, end):
            if slots[device] < 0:
                continue
            transmitter = behind[device]
            stretch = 1.0 / max(1.0 - drop[device], 1e-12) if terms.rule == OVER_ASK else 1.0  # R1
            for label in range(partitions):
                asked = 0.0
                if offered[device - begin, label] and surplus[transmitter, label] > 0.0:
                    asked = need[device, label] * stretch
                    demand[transmitter, label] += asked
                request[device, label] = asked


@leaf
def _copy(source: Any, target: Any) -> None:
    """target[:] = source, without the message that Numba compiles for lengths that differ: 3 s."""
    for at in range(len(target)):
        target[at] = source[at]


@part
def _clustered_round(board: Any, terms: Any, work: Any, gauss: Any) -> None:
    """Algorithm 2 and its rewards: the demand, then each device's clusters, then what all of them have in common."""
    candidates, surplus, counts, request = board.candidates, board.surplus, board.counts, gauss.request
    slots, drop, demand, used, shape = work.slot, work.drop, work.demand, work.used, work.shape
    devices, clusters = counts.shape
    demand[:] = 0.0
    for device in range(devices):
        if slots[device] >= 0:
            transmitter = candidates[device, slots[device]]
            for cluster in range(clusters):
                if surplus[transmitter, cluster] > 0.0:
                    demand[transmitter, cluster] += request[device, slots[device], cluster]
    _copy(board.spent, used)
    moments, amounts = np.empty(gauss.own.shape[1:]), np.empty(clusters)
    for device in range(devices):
        for cluster in range(clusters):
            given = min(demand[device, cluster], surplus[device, cluster])
            amounts[cluster] = counts[device, cluster] - given
        give_away(gauss, device, amounts, moments)
        slot = np.int64(slots[device])
        whole = lost = 0.0
        if slot >= 0:
            lost = drop[device]
            transmitter = candidates[device, slot]
            for cluster in range(clusters):
                spare, asked = surplus[transmitter, cluster], demand[transmitter, cluster]
                amount = request[device, slot, cluster] * (min(1.0, spare / asked) if asked > 0.0 else 0.0)
                whole += amount
                amounts[cluster] = amount * (1.0 - drop[device])
            take_in(gauss, device, slot, amounts, moments)
            if board.cluster[transmitter] != board.cluster[device]:
                used[board.cluster[device]] += whole
        gain = renew_clusters(gauss, shape, device, moments, terms.agreement_kind)
        work.local[device] = local_reward(terms, gain, lost)
    shape.agreement[0] = agreement_of(gauss, shape, terms.agreement_kind)
    overall_rewards(terms, work.local, shape.agreement[0], board.cluster, board.budget, used, work.reward)


@part
def play_round(board: Any, terms: Any, work: Any, gauss: Any) -> None:
    """Algorithm 1 or 2 and the rewards for the choices in work.slot, whose loss probabilities are in work.drop.

    `gauss` is that of the board: where it is None, what data clusters need is not compiled.
    """
    if gauss is None:
        _labelled_round(board, terms, work)
    else:
        _clustered_round(board, terms, work, gauss)


@part
def _labelled_round(board: Any, terms: Any, work: Any) -> None:
    """Algorithm 1 and its rewards."""
    _ask(board, terms, work)
    counts, surplus, threshold, behind = board.counts, board.surplus, board.threshold, work.transmitter
    cluster, before, population = board.cluster, board.before, board.population
    slots, drop, request, demand = work.slot, work.drop, work.request, work.demand
    after, used, local = work.after, work.used, work.local
    devices, partitions = counts.shape
    _copy(board.spent, used)
    everyone = sum_of(population)
    for device in range(devices):  # U, D-hat and r (eqs. tx_buffer, final_diversity_vector, sup_local_reward)
        slot = slots[device]
        transmitter = behind[device]
        arrives = 1.0 - drop[device]
        whole = mass = lost = 0.0
        met = 0
        for label in range(partitions):
            held = counts[device, label] - min(demand[device, label], surplus[device, label])
            amount = 0.0
            if slot >= 0:
                amount = request[device, label]
                if demand[transmitter, label] > surplus[transmitter, label]:
                    amount *= surplus[transmitter, label] / demand[transmitter, label]
                whole += amount
            after[label] = held + amount * arrives
            mass += after[label]
            if terms.gate > 0 and meets(terms, after[label], held + amount, threshold[device, label]):
                met += 1
        if slot >= 0:  # to the letter, a chosen link costs its loss even when nothing moves over it
            lost = drop[device]
            if cluster[transmitter] != cluster[device]:
                used[cluster[device]] += whole
        score = diversity_score(terms, counts, device, after, mass, met, before[device], population, everyone)
        local[device] = local_reward(terms, score, lost)
    overall_rewards(terms, local, 0.0, cluster, board.budget, used, work.reward)
