"""One synchronous round: every device picks one link at once, Algorithm 1 runs, everyone is rewarded.

The paper's learner and the bandits play such rounds. Written for speed: no allocation, one pass over the devices for
demand and one for rewards.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from d2dfl.discovery.game import Board
from d2dfl.discovery.reward import OVER_ASK, budget_term, diversity_score, meets


class Round(NamedTuple):
    """Work space and outcome of one round."""

    slot: NDArray[np.int32]  # [device] choice of this round, -1 for no link
    drop: NDArray[np.float64]  # [device] loss probability of the chosen link
    request: NDArray[np.float64]  # [device, partition]
    demand: NDArray[np.float64]  # [device, partition]
    after: NDArray[np.float64]  # [partition]
    used: NDArray[np.float64]  # [cluster]
    local: NDArray[np.float64]  # [device] r
    reward: NDArray[np.float64]  # [device] R


def round_of(board: Board) -> Round:
    """Empty work space for rounds on this board."""
    devices, partitions = board.counts.shape
    return Round(
        slot=np.full(devices, -1, dtype=np.int32),
        drop=np.zeros(devices),
        request=np.zeros((devices, partitions)),
        demand=np.zeros((devices, partitions)),
        after=np.zeros(partitions),
        used=np.zeros(len(board.budget)),
        local=np.zeros(devices),
        reward=np.zeros(devices),
    )


@njit(cache=True)
def play_round(board: Any, terms: Any, work: Any) -> None:
    """Algorithm 1 and the rewards for the choices in work.slot, whose loss probabilities are in work.drop."""
    devices, partitions = board.counts.shape
    work.demand[:] = 0.0
    for device in range(devices):  # V and Q (eqs. avl_at_tx, req_at_dst)
        slot = work.slot[device]
        if slot < 0:
            continue
        transmitter = board.candidates[device, slot]
        stretch = 1.0 / max(1.0 - work.drop[device], 1e-12) if terms.rule == OVER_ASK else 1.0  # R1
        for label in range(partitions):
            asked = 0.0
            if board.trust[device, slot, label] and board.surplus[transmitter, label] > 0.0:
                asked = board.need[device, label] * stretch
                work.demand[transmitter, label] += asked
            work.request[device, label] = asked
    work.used[:] = board.spent
    total = 0.0
    for device in range(devices):  # U, D-hat and r (eqs. tx_buffer, final_diversity_vector, sup_local_reward)
        slot = work.slot[device]
        met = 0
        if slot >= 0:
            transmitter = board.candidates[device, slot]
            arrives = 1.0 - work.drop[device]
            whole = 0.0
        for label in range(partitions):
            held = board.counts[device, label] - min(work.demand[device, label], board.surplus[device, label])
            amount = 0.0
            if slot >= 0:
                amount = work.request[device, label]
                demand, surplus = work.demand[transmitter, label], board.surplus[transmitter, label]
                if demand > surplus:
                    amount *= surplus / demand
                whole += amount
                work.after[label] = held + amount * arrives
            else:
                work.after[label] = held
            if terms.gate > 0 and meets(terms, work.after[label], held + amount, board.threshold[device, label]):
                met += 1
        score = diversity_score(terms, board.counts[device], work.after, met, board.before[device], board.population)
        local = terms.diversity * score
        if slot >= 0:
            local -= terms.reliability * work.drop[device]
            if board.cluster[transmitter] != board.cluster[device]:
                work.used[board.cluster[device]] += whole
        work.local[device] = local
        total += local
    mean = total / devices
    for cluster in range(len(board.budget)):  # the budget term replaces d' in place
        work.used[cluster] = terms.budget * budget_term(terms, board.budget[cluster], work.used[cluster])
    for device in range(devices):  # R_i = r_i + gamma * r_k^G (eq. sup_global_reward)
        work.reward[device] = work.local[device] + terms.gamma * (mean + work.used[board.cluster[device]])
