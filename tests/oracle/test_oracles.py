"""The oracles themselves: by hand, without the package, and noticing a wrong reading."""

import ast
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from d2dfl.config import FederationConfig
from d2dfl.federation.schemes import SCHEMES, Moment
from oracle import agree_whole, federated, labelled, ledger, policy, subspace, unlabelled, whole
from oracle.agreements import AGREEMENTS
from oracle.labelled import Labelled
from oracle.policy import Learner
from oracle.unlabelled import Unlabelled

WITH_PACKAGE = ("agree_", "agreements", "test_")


def test_oracles_know_nothing_of_the_package() -> None:
    for path in Path(__file__).parent.glob("*.py"):
        if path.name.startswith(WITH_PACKAGE):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not any(name.split(".")[0] == "d2dfl" for name in names), path.name


def test_example_of_appendix_a() -> None:
    """Receivers 0 and 2 ask device 1; nothing is lost."""
    trust = np.zeros((3, 3, 5), dtype=int)
    trust[1, 0], trust[1, 2] = [1, 0, 1, 1, 0], [1, 1, 1, 0, 0]
    held = [[20, 0, 0, 0, 20], [20, 20, 20, 20, 20], [0, 20, 0, 20, 0]]
    case = Labelled(
        D=[[Fraction(count) for count in row] for row in held],
        b=[[Fraction(10)] * 5] * 3,
        T=trust.tolist(),
        P=[[Fraction(0)] * 3] * 3,
        cluster=[0, 0, 0],
        B=[Fraction(1)],
    )
    after = labelled.step(case, [1, None, 1]).after
    assert after == [[20, 0, 5, 10, 20], [10, 20, 10, 10, 20], [10, 20, 5, 20, 0]]


def test_request_for_data_clusters_by_hand() -> None:
    """Clusters of j at 3 and 4; i's at 0 and 0: distances 6 and 8, so 7 datapoints are split into 3 and 4."""
    one = [np.eye(1), np.eye(1)]
    case = Unlabelled(
        n=[[10.0, 10.0]] * 2,
        b=[[0.0, 8.0]] * 2,
        mu=[[np.zeros(1), np.zeros(1)], [np.array([3.0]), np.array([4.0])]],
        Sigma=[one, one],
        Q=[7.0, 0.0],
        T=[[[1, 1]] * 2] * 2,
        P=[[0.5] * 2] * 2,
        cluster=[0, 0],
        B=[1.0],
        points=[[np.zeros((1, 1))] * 2, [np.array([[3.0]]), np.array([[4.0]])]],
    )
    found = unlabelled.step(case, [1, None])
    assert found.asked[0] == pytest.approx([3.0, 4.0])
    assert found.sent[0] == pytest.approx([3.0, 2.0])  # j keeps 8 of its second cluster
    # 1.5 points at 3 and 1 at 4 join the first of two equal centroids, 10 points around 0 with variance 1.
    mean = (1.5 * 3 + 4) / 12.5
    assert found.after[0].Sigma[0][0, 0] == pytest.approx((10 + 1.5 * 9 + 16) / 12.5 - mean**2)


def test_tables_by_hand() -> None:
    learner = Learner(actions=2, buffer=2, reduction=0.5, update="per-action", reduction_rule="multiply")
    for action, reward in [(0, 1.0), (1, 0.5), (0, 1.0), (0, 0.2)]:  # 0.5 < 1 is halved; 0.2 < (0.25 + 1) / 2, too
        learner.learn(0, action, reward)
    assert learner.omega == [1.0, 0.25, 1.0, 0.1]
    assert learner.psi_r == pytest.approx({(0, 0): 1.1, (0, 1): 0.25})
    assert learner.psi_c == {(0, 0): 2, (0, 1): 1}


def _floor(shares: list[Fraction], surplus: Fraction) -> list[tuple[int, int]]:
    floors = [int(share) for share in shares]
    return [(floor, floor) for floor in [*floors, sum(floors)]]


WRONG: dict[str, tuple[Any, str, Any]] = {
    "algorithm-1": (labelled, "available", lambda case, i, j, label: int(case.D[j][label] > case.b[j][label])),
    "algorithm-2": (unlabelled, "diversity_gain", lambda case, before, after: 0.0),
    "q-tables": (policy.Learner, "reduced", lambda learner, reward: reward),
    "q-tables-of-states": (policy.Learner, "reduced", lambda learner, reward: reward),
    "training": (federated, "mean_of", lambda models, weights: sum(models[i] for i in weights) / len(weights)),
    "ledger": (ledger, "transmissions", lambda drop: 1.0),
    "pca": (subspace, "shared_mean", lambda parts: 0.0 * parts[0][0]),
    "whole-datapoints": (agree_whole, "whole_datapoints", _floor),
}


@pytest.mark.parametrize("name", AGREEMENTS)
def test_another_reading_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(*WRONG[name])
    noticed = 0
    for case in range(8):
        try:
            AGREEMENTS[name].check(case)
        except AssertionError:
            noticed += 1
    assert noticed


def test_halves_and_equal_remainders_may_go_either_way() -> None:
    third = Fraction(1, 3)
    assert whole.whole_datapoints([third, third, third], Fraction(9)) == [(0, 1), (0, 1), (0, 1), (1, 1)]
    assert whole.whole_datapoints([Fraction(5, 2)], Fraction(9)) == [(2, 3), (2, 3)]
    assert whole.whole_datapoints([Fraction(9, 4), Fraction(7, 4)], Fraction(4)) == [(2, 2), (2, 2), (4, 4)]


def test_neighbours_and_heads_are_drawn_anew_and_evenly() -> None:
    """R33: over 300 rounds everybody is drawn about equally often (5 standard deviations)."""
    settings = FederationConfig(scheme="decentralised", interval=1, neighbours=7)
    drawn = np.zeros((12, 12))
    for step in range(1, 301):
        mixing = SCHEMES["decentralised"].mix(Moment(settings, 0, step, np.ones(12)))
        assert mixing is not None
        drawn += mixing.matrix() > 0
    chance = 7 / 11
    others = drawn[~np.eye(12, dtype=bool)] / 300
    assert np.abs(others - chance).max() < 5 * (chance * (1 - chance) / 300) ** 0.5
    heads = np.zeros(12)
    settings = FederationConfig(scheme="semi-decentralised", subset=4, global_every=1, subset_every=1)
    for step in range(1, 301):
        mixing = SCHEMES["semi-decentralised"].mix(Moment(settings, 0, step, np.ones(12)))
        assert mixing is not None
        heads += mixing.uploads
    assert np.abs(heads / 300 - 1 / 4).max() < 5 * (0.25 * 0.75 / 300) ** 0.5
