"""Algorithm 2 and the rewards of Section V-B: clusters of each device's own, one after the other.

i receives, j transmits, Y[i] is the transmitter that i has chosen (None: no link). n[i][l] datapoints lie around mu[i][l] with
covariance Sigma[i][l]; i asks for Q[i] datapoints (R24) and gives no cluster away below b[i][l].
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass
class Unlabelled:
    """Everything that one step of the unlabelled case is computed from."""

    n: list[list[float]]
    b: list[list[float]]
    mu: list[list[Array]]
    Sigma: list[list[Array]]
    Q: list[float]
    T: list[list[list[int]]]
    P: list[list[float]]
    cluster: list[int]
    B: list[float]
    points: list[list[Array]]  # of cluster l at j: equally likely points in place of a sample from N(mu, Sigma) (R23)
    ridge: float = 0.0  # R11: on the diagonal of every covariance
    agreement: str = "ratio"  # R11
    agreement_weight: float = 1.0
    budget_rule: str = "ratio"  # R9
    alpha1: float = 1.0
    alpha2: float = 1.0
    alpha3: float = 1.0
    gamma: float = 0.5
    dead_links_cost: bool = True  # as in labelled.py

    @property
    def devices(self) -> range:
        return range(len(self.n))

    @property
    def clusters(self) -> range:
        return range(len(self.n[0]))


@dataclass
class Clusters:
    """Datapoints, means and covariances of the data clusters of one device."""

    n: list[float]
    mu: list[Array]
    Sigma: list[Array]


@dataclass
class Step:
    """One step: what is sent from each cluster of its transmitter to i, clusters after, rewards."""

    asked: list[list[float]]
    sent: list[list[float]]
    after: list[Clusters]
    gain: list[float]
    agreement: float
    outside: list[float]
    local: list[float]
    overall: list[float]


def sendable(case: Unlabelled, i: int, j: int, cluster: int) -> bool:
    """eq. avl_at_tx: trusted with it, and more of it than must be kept."""
    return case.T[j][i][cluster] == 1 and case.n[j][cluster] > case.b[j][cluster]


def asked_of(case: Unlabelled, i: int, j: int, cluster: int) -> float:
    """Q-tilde (eq. usp_mp): more from clusters that lie further from all of the receiver's centroids.

    R24 (PAPER.md): the request is split over the clusters that may be sent.
    """

    def distance(of: int) -> float:
        return sum(math.dist(case.mu[i][own], case.mu[j][of]) for own in case.clusters)

    if not sendable(case, i, j, cluster):
        return 0.0
    return case.Q[i] * distance(cluster) / sum(distance(of) for of in case.clusters if sendable(case, i, j, of))


def sent_to(case: Unlabelled, Y: list[int | None], i: int, cluster: int) -> float:
    """D_{j,l -> i} = min(V, Q-tilde), where V is one's part of the surplus in proportion to demand (R18)."""
    j = Y[i]
    if j is None:
        return 0.0
    asked = asked_of(case, i, j, cluster)
    if asked == 0.0:
        return 0.0
    demand = sum(asked_of(case, k, j, cluster) for k in case.devices if Y[k] == j)
    surplus = case.n[j][cluster] - case.b[j][cluster]
    return min(asked, surplus * asked / demand)


def updated(case: Unlabelled, Y: list[int | None], sent: list[list[float]], i: int) -> Clusters:
    """Lines 8 and 9: what arrives joins the nearest centroid, then mean and covariance are computed anew.

    What i gives away was drawn at random within its clusters (R22), so it changes their sizes and nothing else.
    """
    j = Y[i]
    n, mu, Sigma = [], [], []
    for own in case.clusters:
        points = [case.mu[i][own]]
        weights = [case.n[i][own] - sum(sent[k][own] for k in case.devices if Y[k] == i)]
        spreads = [case.Sigma[i][own]]  # of the datapoints that were here
        for remote in case.clusters if j is not None else ():
            assert j is not None
            arrived = (1.0 - case.P[i][j]) * sent[i][remote]  # R20: loss in expectation
            drawn = case.points[j][remote]
            for point in drawn:
                nearest = min(case.clusters, key=lambda other: math.dist(case.mu[i][other], point))
                if nearest == own and arrived > 0.0:
                    points.append(point)
                    weights.append(arrived / len(drawn))
                    spreads.append(np.zeros_like(case.Sigma[i][own]))
        whole = sum(weights)
        mean = sum((w * p for w, p in zip(weights, points, strict=True)), np.zeros_like(points[0])) / whole
        spread = np.zeros_like(case.Sigma[i][own])
        for weight, point, inner in zip(weights, points, spreads, strict=True):
            spread += weight / whole * (inner + np.outer(point - mean, point - mean))
        n.append(whole)
        mu.append(mean)
        Sigma.append(spread)
    return Clusters(n, mu, Sigma)


def diversity_gain(case: Unlabelled, before: Clusters, after: Clusters) -> float:
    """Line 10, as the mean ratio of traces minus 1 (R10); R11: of regularised covariances, as a single point has none."""
    more = case.ridge * len(before.mu[0])
    ratios = [
        float((np.trace(a) + more) / (np.trace(c) + more)) for a, c in zip(after.Sigma, before.Sigma, strict=True)
    ]
    return sum(ratios) / len(ratios) - 1.0


def share_of_variance(case: Unlabelled, share: float) -> float:
    """R11's epsilon as the setting `reward.ridge` gives it: a share of the mean variance of all data, over directions."""
    whole = sum(sum(row) for row in case.n)
    pairs = [(i, cluster) for i in case.devices for cluster in case.clusters]
    middle = sum((case.n[i][c] * case.mu[i][c] for i, c in pairs), np.zeros_like(case.mu[0][0])) / whole
    spread = sum(case.n[i][c] * (np.trace(case.Sigma[i][c]) + math.dist(case.mu[i][c], middle) ** 2) for i, c in pairs)
    return share * float(spread) / whole / len(middle)


def divergence(mu_p: Array, Sigma_p: Array, mu_q: Array, Sigma_q: Array) -> float:
    """KL(N(mu_p, Sigma_p) || N(mu_q, Sigma_q))."""
    inverse = np.linalg.inv(Sigma_q)
    apart = mu_q - mu_p
    logs = np.linalg.slogdet(Sigma_q)[1] - np.linalg.slogdet(Sigma_p)[1]
    return float(np.trace(inverse @ Sigma_p) + apart @ inverse @ apart - len(apart) + logs) / 2.0


def divergences(case: Unlabelled, of: list[Clusters]) -> list[float]:
    """h[l, l'] of all pairs of different devices, one after the other."""
    more = case.ridge * np.eye(len(of[0].mu[0]))
    return [
        divergence(of[i].mu[p], of[i].Sigma[p] + more, of[j].mu[q], of[j].Sigma[q] + more)
        for i in case.devices
        for j in case.devices
        if i != j
        for p in case.clusters
        for q in case.clusters
    ]


def system_agreement(case: Unlabelled, before: list[Clusters], after: list[Clusters]) -> float:
    """The system agreement of eq. usp_global_reward, by the four readings of R11."""
    h_before, h_after = divergences(case, before), divergences(case, after)
    if case.agreement == "ratio":
        return (sum(h_before) / len(h_before)) / (sum(h_after) / len(h_after)) - 1.0
    ratios = [b / a for b, a in zip(h_before, h_after, strict=True)]
    if case.agreement == "literal":
        return sum(ratios)
    if case.agreement == "mean":
        return sum(ratios) / len(ratios) - 1.0
    return float(np.median(ratios)) - 1.0


def budget_term(case: Unlabelled, k: int, outside: float) -> float:
    """R9."""
    left = case.B[k] - outside
    return {"literal": left, "ratio": left / case.B[k], "hinge": min(0.0, left) / case.B[k]}[case.budget_rule]


def step(case: Unlabelled, Y: list[int | None]) -> Step:
    """One step with the links Y: Algorithm 2, then r_i^L (eq. usp_local_reward), r_k^G (eq. usp_global_reward) and R_i."""
    asked = [
        [0.0 if (j := Y[i]) is None else asked_of(case, i, j, cluster) for cluster in case.clusters]
        for i in case.devices
    ]
    sent = [[sent_to(case, Y, i, cluster) for cluster in case.clusters] for i in case.devices]
    before = [Clusters(case.n[i], case.mu[i], case.Sigma[i]) for i in case.devices]
    after = [updated(case, Y, sent, i) for i in case.devices]
    gain = [diversity_gain(case, before[i], after[i]) for i in case.devices]
    local = []
    for i in case.devices:
        j = Y[i]
        dead = sum(sent[i]) == 0.0 and not case.dead_links_cost
        loss = 0.0 if j is None or dead else case.P[i][j]
        local.append(case.alpha1 * gain[i] - case.alpha2 * loss)
    outside = [0.0 for _ in case.B]
    for i in case.devices:
        j = Y[i]
        if j is not None and case.cluster[i] != case.cluster[j]:
            outside[case.cluster[i]] += sum(sent[i])
    agreement = system_agreement(case, before, after)
    r_global = [
        case.agreement_weight * agreement + case.alpha3 * budget_term(case, k, outside[k]) for k in range(len(case.B))
    ]
    overall = [local[i] + case.gamma * r_global[case.cluster[i]] for i in case.devices]
    return Step(asked, sent, after, gain, agreement, outside, local, overall)
