"""The plain learners share nothing with the compiled ones, so that they can find a fault in them."""

import subprocess
import sys
from typing import get_args

import numpy as np
import pytest

from d2dfl import Network, preset
from d2dfl.config.sections.graph import BudgetRule, RewardKind, ThresholdRule
from d2dfl.discovery.equations.diversity import BUILT_IN
from d2dfl.discovery.equations.messages import LEAST, exchange
from d2dfl.discovery.equations.reward import Terms, budget_term, local_rewards
from d2dfl.discovery.plain import reference


def test_plain_python_loads_no_compiler() -> None:
    code = "import d2dfl.discovery.plain.reference, sys; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("metric", BUILT_IN)
@pytest.mark.parametrize("rule", get_args(ThresholdRule))
@pytest.mark.parametrize("kind", get_args(RewardKind))
def test_compiled_local_rewards_equal_the_loops(kind: str, rule: str, metric: str) -> None:
    config = preset("best").with_(
        **{
            "network.devices": 7,
            "network.labels_per_device": 2,
            "reward.kind": kind,
            "reward.threshold_rule": rule,
            "reward.metric": metric,
            "reward.gate": 2 if rule == "strict" else 3,  # to the letter no label is won over a lossy link (R1)
            "reward.diversity_weight": 0.7,
            "reward.reliability_weight": 0.3,
        }
    )
    network = Network.generate(config, 5)
    terms, generator, scored = Terms.of(config.reward), np.random.default_rng(1), 0
    for _ in range(10):
        slots = generator.integers(-1, network.slots, size=7).astype(np.int32)
        moved = reference.plain_exchange(network, config, slots.tolist())
        fast = exchange(network, slots[:, None], config.reward.over_ask)
        assert np.allclose(fast.allocated[:, 0], moved.sent)
        assert np.allclose(fast.after, moved.after)
        lost = generator.uniform(0, 1, size=7)
        found, _ = local_rewards(
            terms, network.counts, fast.after, np.array(moved.before_loss), network.threshold, network.population, lost
        )
        assert np.allclose(found, reference.plain_local_rewards(network, config, moved, lost.tolist()))
        scored += int((np.abs(found + 0.3 * lost) > 1e-9).sum())
    assert scored  # the gate lets some through


@pytest.mark.parametrize("rule", get_args(BudgetRule))
def test_compiled_budget_terms_equal_the_loops(rule: str) -> None:
    config = preset("best").with_(**{"network.devices": 7, "reward.budget_rule": rule})
    network = Network.generate(config, 5)
    outside = np.random.default_rng(0).uniform(0, 2 * network.budget.mean(), 7)
    used = np.bincount(network.cluster, weights=outside, minlength=len(network.budget))
    terms = Terms.of(config.reward)
    found = [budget_term(terms, own, asked) for own, asked in zip(network.budget, used, strict=True)]
    assert np.allclose(found, reference.plain_budget_terms(network, config.reward, outside.tolist()))


def test_nothing_is_the_same_to_both() -> None:
    assert reference.LEAST == LEAST
