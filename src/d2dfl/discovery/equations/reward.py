"""Rewards: what a device, a cluster and the network earn from an exchange (paper Section V-A3, R1, R7 to R9).

    r_i   = alpha_1 * g_i - alpha_2 * sum of P_D over the device's links        (eq. sup_local_reward)
    r_k^G = mean of r over all devices + alpha_3 * budget term of cluster k     (eq. sup_global_reward)
    R_i   = r_i + gamma * r_k^G

The *objective* of the network is the mean of R_i over the devices:

    J = (1 + gamma) * mean(r) + gamma * alpha_3 * sum over k of (n_k / N) * budget term of k

Where partitions are data clusters (Section V-B3), r_k^G has the system agreement in place of the mean of r
(eq. usp_global_reward), so J = mean(r) + gamma * (agreement + alpha_3 * the same sum).

Every equation stands here once. Learners, the game and the measure of a finished graph all call these functions; they
differ only in how they come by counts, losses and requests. What needs no compiler (devices that talk, the twin that tests
hold this against) calls plain/reference.py, where they stand a second time.
"""

from typing import Any, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from d2dfl.compiled import inlined, kernel, leaf
from d2dfl.config import RewardConfig
from d2dfl.config.sections.graph import Agreement, BudgetRule, RewardKind, ThresholdRule
from d2dfl.discovery.equations.diversity import MetricCode, distance, distance_of, metric_code, sum_of

# Places of the words in the lists of the settings.
GAIN, CHANGE = range(len(get_args(RewardKind)))
HINGE, RATIO, LITERAL = range(len(get_args(BudgetRule)))
OVER_ASK, TOLERANCE, BEFORE_LOSS, STRICT = range(len(get_args(ThresholdRule)))
ROUNDING = 1e-9  # a threshold met up to this share of a datapoint is met


class Terms(NamedTuple):
    """RewardConfig as numbers, for compiled code."""

    metric: MetricCode
    kind: int
    gate: int
    rule: int
    tolerance: float
    diversity: float  # alpha_1
    reliability: float  # alpha_2
    budget: float  # alpha_3
    budget_rule: int
    gamma: float
    own: float  # weight of the sum of r in N times the objective
    agreement: float  # weight of the system agreement in the objective; 0 where partitions are labels
    agreement_kind: int
    clustered: bool  # partitions are data clusters

    @classmethod
    def of(cls, config: RewardConfig, clustered: bool = False) -> "Terms":
        return cls(
            metric=metric_code(config.metric),
            kind=get_args(RewardKind).index(config.kind),
            gate=config.gate,
            rule=get_args(ThresholdRule).index(config.threshold_rule),
            tolerance=config.tolerance,
            diversity=config.diversity_weight,
            reliability=config.reliability_weight,
            budget=config.budget_weight,
            budget_rule=get_args(BudgetRule).index(config.budget_rule),
            gamma=config.global_weight,
            own=1.0 if clustered else 1.0 + config.global_weight,
            agreement=config.global_weight * config.agreement_weight if clustered else 0.0,
            agreement_kind=get_args(Agreement).index(config.agreement),
            clustered=clustered,
        )


@leaf
def meets(terms: Any, after: Any, before_loss: Any, threshold: Any) -> Any:
    """Whether a label meets its threshold after the exchange.

    R1: to the letter (strict), a receiver that asks for exactly b - D never reaches b over a lossy link.
    """
    if terms.rule == BEFORE_LOSS:
        return before_loss >= threshold - ROUNDING
    if terms.rule == TOLERANCE:
        return after >= (1.0 - terms.tolerance) * threshold - ROUNDING
    return after >= threshold - ROUNDING


@inlined
def diversity_score(
    terms: Any, counts: Any, device: Any, after: Any, mass: Any, met: Any, start: Any, population: Any, everyone: Any
) -> Any:
    """g: the distance moved, or the distance to the population won (R7); 0 below the gate of L-hat labels.

    `start` is the distance of counts[device] to the population; `mass` and `everyone` are the sums of `after` and
    `population`, which callers have at hand.
    """
    if met < terms.gate:
        return 0.0
    if terms.kind == CHANGE:
        return distance(terms.metric, counts[device], after)
    return start - distance_of(terms.metric, after, mass, population, everyone)


@leaf
def local_reward(terms: Any, score: Any, lost: Any) -> Any:
    """r_i (eqs. sup_local_reward, usp_local_reward).

    `score` is g, or the gain of data clusters; `lost` the sum of loss probabilities over the device's links.
    """
    return terms.diversity * score - terms.reliability * lost


@kernel
def budget_term(terms: Any, budget: Any, requested: Any) -> Any:
    """What a cluster earns for what its devices request from outside (R9)."""
    if terms.budget_rule == LITERAL:
        return budget - requested
    scale = max(budget, 1.0)
    if terms.budget_rule == RATIO:
        return (budget - requested) / scale
    return -max(0.0, requested - budget) / scale


@leaf
def overall_rewards(terms: Any, local: Any, agreement: Any, cluster: Any, budget: Any, used: Any, rewards: Any) -> None:
    """R of every device (eqs. sup_global_reward, usp_global_reward); `used` gives way to alpha_3 times budget terms."""
    total = 0.0
    for device in range(len(local)):
        total += local[device]
    mean = total / len(local)
    for number in range(len(used)):
        used[number] = terms.budget * budget_term(terms, budget[number], used[number])
    for device in range(len(local)):
        earned = used[cluster[device]]
        if terms.clustered:
            rewards[device] = local[device] + (terms.agreement * agreement + terms.gamma * earned)
        else:
            rewards[device] = local[device] + terms.gamma * (mean + earned)


@leaf
def cluster_weight(terms: Any, members: Any) -> Any:
    """What the budget term of a cluster with so many devices counts in N times the objective."""
    return terms.gamma * terms.budget * members


@kernel
def total_reward(terms: Any, local: Any, agreement: Any, members: Any, budget: Any, used: Any) -> Any:
    """N times the objective J, as learners and searches add it up."""
    value = terms.own * sum_of(local)
    if terms.clustered:
        value += len(local) * terms.agreement * agreement
    for number in range(len(budget)):
        value += cluster_weight(terms, members[number]) * budget_term(terms, budget[number], used[number])
    return value


@kernel
def local_rewards(
    terms: Any, counts: Any, after: Any, before_loss: Any, threshold: Any, population: Any, lost: Any
) -> Any:
    """r_i and the number of labels that meet their threshold, for every device.

    `lost` is the sum of loss probabilities over the links of each device.
    """
    devices, partitions = counts.shape
    rewards = np.empty(devices)
    satisfied = np.zeros(devices, np.int64)
    everyone = sum_of(population)
    for device in range(devices):
        mass = 0.0
        for label in range(partitions):
            mass += after[device, label]
            if meets(terms, after[device, label], before_loss[device, label], threshold[device, label]):
                satisfied[device] += 1
        start = distance(terms.metric, counts[device], population)
        met = satisfied[device]
        score = diversity_score(terms, counts, device, after[device], mass, met, start, population, everyone)
        rewards[device] = local_reward(terms, score, lost[device])
    return rewards, satisfied


def objective(
    terms: Terms,
    local: NDArray[np.float64],
    agreement: float,
    members: NDArray[np.float64],
    budget: NDArray[np.float64],
    used: NDArray[np.float64],
) -> float:
    """J, the mean overall reward."""
    return float(total_reward(terms, local, agreement, members, budget, used)) / len(local)
