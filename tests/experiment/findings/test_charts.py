"""Texts about measured cells."""

import pytest

from d2dfl.config import FederationConfig
from d2dfl.experiment.findings.charts import ratio_text, rounds_text


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ([{"rounds": 20, "interval": 10}], "20 rounds of 10 minibatches"),
        ([{"rounds": 1, "interval": 1}], "1 round of 1 minibatch"),
        (
            [{"rounds": 5, "scheme": "semi-decentralised", "interval": 10, "global_every": 8}],
            "5 rounds of 8 minibatches",
        ),
        ([{"rounds": 2000, "scheme": "fedsgd", "interval": 10}], "2,000 rounds of one full gradient"),
        ([{"interval": 10}, {"interval": 2}], "20 rounds of 2 to 10 minibatches"),
        ([{"rounds": 3, "scheme": "fedsgd"}, {"rounds": 9}], "3 to 9 rounds of one full gradient or 10 minibatches"),
    ],
)
def test_a_round_is_so_many_minibatches_or_one_full_gradient(settings: list[dict[str, object]], text: str) -> None:
    assert rounds_text(FederationConfig(**one) for one in settings) == text


def test_what_nobody_knows_is_a_dash() -> None:
    assert [ratio_text(None), ratio_text(2.04), ratio_text(-0.001, 2)] == ["–", "2.0", "0.00"]
