"""Contenders on equal terms, and the numbers behind the verdicts."""

import numpy as np
import pytest

from d2dfl.config import Config
from d2dfl.paper import (
    CONTENDERS,
    SWEEP,
    SYSTEMS,
    TERMS,
    Point,
    Results,
    equal_table,
    lead,
    speed,
    task,
)
from d2dfl.paper.terms import RULES, TUNED, terms_of


@pytest.mark.parametrize("paradigm", ["supervised", "semi", "unsupervised", "regression"])
def test_contenders_share_the_task_and_differ_in_the_terms(paradigm: str) -> None:
    point = Point("here", {**task("cifar10", "paper"), "network.trust": "block"}, paradigm)
    configs = {item.name: point.config(item) for item in CONTENDERS}
    assert len(configs) == len(CONTENDERS) == 21
    assert {config.federation for config in configs.values()} == {configs["none"].federation}
    assert {config.network.trust for config in configs.values()} == {"block"}
    links = 2 if paradigm == "unsupervised" else 1
    for terms, kind, edges in zip(TERMS, ("change", "gain", "gain"), (links, links, 5), strict=True):
        assert {item.method for item in terms.contenders} == {*RULES, "gcn", "qlearning", "marginal"}
        assert {configs[item.name].discovery.edges for item in terms.contenders} == {edges}
        assert {configs[item.name].reward.kind for item in terms.contenders} == {kind}
        # Whoever meets on the same terms differs in the method alone, and the paper's learner in its temperature.
        assert len({configs[item.name].with_(**TUNED) for item in terms.contenders}) == 1
    assert configs["qlearning"].qlearning.temperature == 1.0
    assert configs["qlearning-tuned"].qlearning.temperature == TUNED["qlearning.temperature"]
    assert configs["qlearning-ours"].qlearning == configs["qlearning-5"].qlearning == Config().qlearning


def _values(scores: list[float], joules: float = 1.0) -> dict[str, object]:
    return {
        "score_name": "accuracy",
        "higher_is_better": True,
        "rounds": list(range(1, 1 + len(scores))),
        "scores": scores,
        "joules": {"first-order": [10.0 + joules * n for n in range(1, 1 + len(scores))]},
    }


def _results() -> Results:
    point = Point("p", {})
    slow, fast = [0.1, 0.2, 0.3, 0.4, 0.5], [0.3, 0.5, 0.6, 0.7, 0.8]
    found = {("p", "none", seed): _values(slow) for seed in range(2)}
    found |= {("p", "marginal", seed): _values(fast, joules=2.0) for seed in range(2)}
    found |= {("p", "iid", seed): _values([score + 0.1 for score in fast]) for seed in range(2)}
    found["p", "closest", 1] = _values([0.1, 0.2, 0.2, 0.3, 0.4])  # its first seed failed
    return Results((point,), (0, 1), found, scale="tiny")


def test_numbers_over_seeds_by_hand() -> None:
    results = _results()
    (point,) = results.points
    assert results.gain(point, "marginal", "none").tolist() == pytest.approx([0.3, 0.3])
    gain = results.gain(point, "marginal", "closest")  # only the seed that both have, in its place
    assert np.isnan(gain[0])
    assert gain[1] == pytest.approx(0.4)
    assert [item.name for item in results.baselines(point)] == ["none", "closest"]
    assert results.gap_closed(point, "marginal") == pytest.approx(0.3 / 0.4)
    # No exchange ends with 0.5, after 5 rounds and 15 J; ours is there after 2 rounds and 14 J.
    assert results.speedup(point, "marginal", "none").tolist() == pytest.approx([2.5, 2.5])
    assert results.speedup(point, "marginal", "none", "first-order").tolist() == pytest.approx([15 / 14] * 2)
    # Closest ends with 0.4, which ours passes half way between rounds 1 and 2: 5 / 1.5.
    assert results.speedup(point, "marginal", "closest")[1] == pytest.approx(5 / 1.5)
    # Never there: it is charged for all its rounds.
    assert results.speedup(point, "none", "marginal").tolist() == [1.0, 1.0]


def _equal_results() -> tuple[Point, Results]:
    """Everybody at one point: a score, and the differences of three seeds around it."""
    ends = {
        "none": 0.30,
        "closest": 0.40,
        "most-trusted": 0.42,
        "uniform": 0.35,
        "gcn": 0.38,
        "qlearning": 0.45,
        "qlearning-tuned": 0.50,
        "marginal-paper": 0.48,
        "closest-ours": 0.50,
        "most-trusted-ours": 0.52,
        "uniform-ours": 0.45,
        "gcn-ours": 0.20,
        "qlearning-ours": 0.55,
        "marginal": 0.60,
        "closest-5": 0.70,
        "most-trusted-5": 0.72,
        "uniform-5": 0.68,
        "gcn-5": 0.66,
        "qlearning-5": 0.71,
        "marginal-5": 0.72,
        "iid": 0.80,
    }
    point, found = Point("p", {}, contenders=CONTENDERS), {}
    for place, (name, end) in enumerate(ends.items()):
        for seed in range(3):
            close = end + 0.01 * seed + 0.001 * ((place + seed) % 3)  # seeds differ alike for all, but for a little
            found["p", name, seed] = _values([close * share for share in (0.2, 0.4, 0.6, 0.8, 1.0)])
    return point, Results((point,), (0, 1, 2), found, scale="tiny")


def test_a_learner_is_held_against_baselines_on_its_own_terms() -> None:
    point, results = _equal_results()
    leads = {key: {name: values.mean() for name, values in own.items()} for key, own in lead(results, point).items()}
    assert set(leads["over-best"]) == {item.name for terms in TERMS for item in terms.learners}
    expected = {
        "qlearning": 0.03,
        "marginal-paper": 0.06,
        "qlearning-ours": 0.03,
        "marginal": 0.08,
        "qlearning-5": -0.01,
    }
    for name, value in expected.items():
        assert leads["over-best"][name] == pytest.approx(value, abs=0.002)
    assert leads["up-to"]["marginal"] == pytest.approx(0.40, abs=0.002)  # the weakest on its terms is its GCN
    assert leads["up-to"]["qlearning"] == pytest.approx(0.15, abs=0.002)
    # The next best counts the paper's learner, tuned too, and whoever else is there; not the shuffle.
    next_best = {"marginal-paper": -0.02, "marginal": 0.05, "marginal-5": 0.00}
    assert leads["over-next"] == {name: pytest.approx(value, abs=0.002) for name, value in next_best.items()}
    (settings,), (links,) = leads["settings"].values(), leads["links"].values()
    assert settings == pytest.approx(0.10, abs=0.002)
    assert links == pytest.approx((0.20 + 0.20 + 0.23) / 3, abs=0.002)
    rows = equal_table(results, point, "here").rows
    assert [(row[0], row[1].split(" ")[-1], row[-1]) for row in rows] == [
        ("paper's settings", "most-trusted", "behind"),
        ("our settings", "most-trusted", "ahead"),
        ("our settings, 5 links", "most-trusted", "nobody can tell"),
    ]


def test_factors_are_over_every_baseline_or_up_to() -> None:
    point, results = _equal_results()
    found = {key: values["marginal"].mean() for key, values in speed(results, point).items()}
    by_hand = {  # rounds of a baseline until its end over ours until then, on a straight line
        name: results.speedup(point, "marginal", name).mean() for name in ("none", "gcn-ours", "most-trusted-ours")
    }
    assert found["rounds-up-to"] == pytest.approx(by_hand["gcn-ours"])
    assert found["rounds-over-best"] == pytest.approx(by_hand["most-trusted-ours"])
    assert by_hand["most-trusted-ours"] < by_hand["none"] < by_hand["gcn-ours"]


def test_a_sweep_meets_at_equal_links() -> None:
    names = {item.name for item in SWEEP}
    for system in SYSTEMS:
        assert {item.name for item in terms_of(system.name).baselines} <= names
