"""Algorithm 1 and the rewards of Section V-A, one device and one label after the other.

Numbers are fractions, so that "at least the threshold" means just that. The paper's letters: i receives, j transmits,
l is a label, Y[i] the transmitter that i has chosen (None: no link, R12), T[j][i][l], P[i][j], D[i][l], b[i][l].
"""

import math
from dataclasses import dataclass
from fractions import Fraction

Vector = list[Fraction]


@dataclass
class Labelled:
    """Everything that one step of the labelled case is computed from."""

    D: list[Vector]
    b: list[Vector]
    T: list[list[list[int]]]
    P: list[list[Fraction]]
    cluster: list[int]
    B: list[Fraction]
    kind: str = "change"  # R7
    metric: str = "wasserstein"  # R8
    threshold_rule: str = "before-loss"  # R1
    budget_rule: str = "ratio"  # R9
    tolerance: Fraction = Fraction(1, 5)
    gate: int = 5  # L-hat
    alpha1: float = 1.0
    alpha2: float = 1.0
    alpha3: float = 1.0
    gamma: float = 0.5
    dead_links_cost: bool = (
        True  # to the letter a chosen link costs P_D; a finished graph has only links that move something
    )

    @property
    def devices(self) -> range:
        return range(len(self.D))

    @property
    def labels(self) -> range:
        return range(len(self.D[0]))


@dataclass
class Step:
    """One step: U[i][l] of what i has asked its transmitter for, what arrives, counts after, rewards."""

    V: list[list[int]]
    Q: list[Vector]
    U: list[Vector]
    arrived: list[Vector]
    before_loss: list[Vector]
    after: list[Vector]
    met: list[int]
    outside: list[Fraction]
    local: list[float]
    overall: list[float]


def available(case: Labelled, i: int, j: int, label: int) -> int:
    """V (eq. avl_at_tx), for an i among those that ask j."""
    return int(case.T[j][i][label] == 1 and case.D[j][label] > case.b[j][label])


def requested(case: Labelled, i: int, j: int, label: int) -> Fraction:
    """Q (eq. req_at_dst): what i lacks, R = b - D, where j may send it."""
    lacking = case.b[i][label] - case.D[i][label]
    if not (lacking > 0 and available(case, i, j, label) == 1):
        return Fraction(0)
    if case.threshold_rule == "over-ask":
        return lacking / (1 - case.P[i][j])  # R1: so that b - D arrive in expectation
    return lacking


def allocated(case: Labelled, Y: list[int | None], i: int, label: int) -> Fraction:
    """U (eq. tx_buffer): what was asked for, or one's part of the surplus in proportion to demand."""
    j = Y[i]
    if j is None:
        return Fraction(0)
    asked = requested(case, i, j, label)
    demand = sum((requested(case, k, j, label) for k in case.devices if Y[k] == j), Fraction(0))
    surplus = case.D[j][label] - case.b[j][label]
    if demand <= surplus:
        return asked
    return asked / demand * surplus if asked > 0 else Fraction(0)


def total_variation(p: Vector, q: Vector) -> float:
    return float(sum((abs(a - c) for a, c in zip(p, q, strict=True)), Fraction(0)) / 2)


def wasserstein(p: Vector, q: Vector) -> float:
    """R8: labels are points on a line, one apart: the mass that has to cross each gap."""
    return float(
        sum((abs(sum(p[:gap], Fraction(0)) - sum(q[:gap], Fraction(0))) for gap in range(1, len(p))), Fraction(0))
    )


def jensen_shannon(p: Vector, q: Vector) -> float:
    """R8: the distance, which is the root of the divergence in bits."""

    def relative_entropy(a: Vector, c: Vector) -> float:
        return sum(float(x) * math.log2(x / y) for x, y in zip(a, c, strict=True) if x > 0)

    middle = [(a + c) / 2 for a, c in zip(p, q, strict=True)]
    return math.sqrt(max(0.0, (relative_entropy(p, middle) + relative_entropy(q, middle)) / 2))


METRICS = {"total-variation": total_variation, "wasserstein": wasserstein, "jensen-shannon": jensen_shannon}


def distribution(counts: Vector) -> Vector:
    whole = sum(counts, Fraction(0))
    return [count / whole for count in counts]


def labels_met(case: Labelled, i: int, before_loss: Vector, after: Vector) -> int:
    """Labels that count for the gate (eq. data_diversity), by the four readings of R1."""
    met = 0
    for label in case.labels:
        threshold = case.b[i][label]
        if case.threshold_rule == "tolerance":
            met += after[label] >= (1 - case.tolerance) * threshold
        elif case.threshold_rule == "before-loss":
            met += before_loss[label] >= threshold
        else:  # strict and over-ask
            met += after[label] >= threshold
    return met


def score(case: Labelled, i: int, before_loss: Vector, after: Vector) -> float:
    """g (eq. diversity_function): the distance moved, or the distance to the population's labels won (R7)."""
    if labels_met(case, i, before_loss, after) < case.gate:
        return 0.0
    distance = METRICS[case.metric]
    if case.kind == "change":
        return distance(distribution(case.D[i]), distribution(after))
    everybody = distribution([sum((row[label] for row in case.D), Fraction(0)) for label in case.labels])
    return distance(distribution(case.D[i]), everybody) - distance(distribution(after), everybody)


def budget_term(case: Labelled, k: int, outside: Fraction) -> float:
    """The cluster budget's part of r_k^G (eq. sup_global_reward), by the three readings of R9."""
    budget = case.B[k]
    if case.budget_rule == "literal":
        return float(budget - outside)
    if case.budget_rule == "ratio":
        return float((budget - outside) / budget)
    return -float(max(Fraction(0), outside - budget) / budget)


def step(case: Labelled, Y: list[int | None]) -> Step:
    """One step of Section IV with the links Y: Algorithm 1, then r_i^L, r_k^G and R_i."""
    devices, labels = case.devices, case.labels
    nothing = [Fraction(0) for _ in labels]
    V = [[0 if (j := Y[i]) is None else available(case, i, j, label) for label in labels] for i in devices]
    Q = [[nothing[0] if (j := Y[i]) is None else requested(case, i, j, label) for label in labels] for i in devices]
    U = [[allocated(case, Y, i, label) for label in labels] for i in devices]
    arrived = [[u if (j := Y[i]) is None else (1 - case.P[i][j]) * u for u in U[i]] for i in devices]
    given = [[sum((U[k][label] for k in devices if Y[k] == i), Fraction(0)) for label in labels] for i in devices]
    # D-hat (eq. final_diversity_vector): the sender deletes what it sent, lost or not (R21).
    after = [[case.D[i][label] + arrived[i][label] - given[i][label] for label in labels] for i in devices]
    before_loss = [[case.D[i][label] + U[i][label] - given[i][label] for label in labels] for i in devices]

    local = []
    for i in devices:
        j = Y[i]
        # PAPER.md, below "Symbols": in the measure of a finished graph, a link over which nothing moves is no link.
        dead = sum(U[i]) == 0 and not case.dead_links_cost
        loss = 0.0 if j is None or dead else float(case.P[i][j])
        local.append(case.alpha1 * score(case, i, before_loss[i], after[i]) - case.alpha2 * loss)

    # d'_k counts what is allocated over links from outside the cluster (R9).
    outside = [Fraction(0) for _ in case.B]
    for i in devices:
        j = Y[i]
        if j is not None and case.cluster[i] != case.cluster[j]:
            outside[case.cluster[i]] += sum(U[i], Fraction(0))
    average = sum(local) / len(local)
    r_global = [average + case.alpha3 * budget_term(case, k, outside[k]) for k in range(len(case.B))]
    overall = [local[i] + case.gamma * r_global[case.cluster[i]] for i in devices]
    met = [labels_met(case, i, before_loss[i], after[i]) for i in devices]
    return Step(V, Q, U, arrived, before_loss, after, met, outside, local, overall)
