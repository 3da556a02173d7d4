"""The rule of the verdicts: ours over seeds, held against the paper's numbers."""

import numpy as np
import pytest

from d2dfl.paper import Shown
from d2dfl.paper.verdicts import (
    DIRECTION,
    FEW,
    NO_CLAIM,
    NOT,
    REPRODUCED,
    Expected,
    Quantity,
    as_text,
    judge,
    verdicts,
)


@pytest.mark.parametrize(
    ("values", "quantity", "verdict"),
    [
        ([0.08, 0.09, 0.10], Quantity("", "", 0.08), REPRODUCED),
        ([0.30, 0.31, 0.32], Quantity("", "", 0.08), REPRODUCED),  # more than the paper says
        ([0.02, 0.021, 0.022], Quantity("", "", 0.08), DIRECTION),
        ([0.02, 0.021, 0.022], Quantity("", ""), REPRODUCED),  # no number to reach
        ([-0.1, 0.0, 0.2], Quantity("", "", 0.08), NOT),
        ([-0.02, -0.021, -0.022], Quantity("", "", 0.08), NOT),
        ([2.0, 2.1, 2.2], Quantity("", "", 3.0, null=1.0), DIRECTION),
        ([0.14, 0.15, 0.13], Quantity("", "", 0.14, null=0.2, sign=-1), REPRODUCED),
        ([0.17, 0.171, 0.172], Quantity("", "", 0.14, null=0.2, sign=-1), DIRECTION),
        ([0.21, 0.22, 0.23], Quantity("", "", 0.14, null=0.2, sign=-1), NOT),
        ([0.5, 0.5], Quantity("", "", 0.08), FEW),  # two equal seeds have an interval without width
        ([0.5], Quantity("", "", 0.08), FEW),
        ([0.5, 0.6, 0.7], Quantity("", "not said"), NO_CLAIM),
        ([0.5, np.nan, 0.5], Quantity("", "", 0.08), FEW),  # a missing cell is no seed
    ],
)
def test_verdicts_follow_the_stated_rule(values: list[float], quantity: Quantity, verdict: str) -> None:
    assert judge(quantity, values) == verdict


def test_texts_have_no_minus_before_zero() -> None:
    assert as_text(Quantity("", ""), [-0.0001, 0.0, 0.0001]) == "0.000 [0.000, 0.000]"
    assert as_text(Quantity("", ""), [0.5, np.nan]) == "0.500 (one seed)"


def test_ratios_are_judged_in_logarithms() -> None:
    ratio = Quantity("", "", null=1.0, ratio=True, digits=2)
    assert as_text(ratio, [0.5, 2.0]).startswith("1.00 [")  # twice and half are no effect
    assert judge(ratio, [0.5, 2.0, 1.3]) == NOT
    assert judge(ratio, [1.9, 2.0, 2.1]) == REPRODUCED


def test_a_verdict_says_over_how_many_seeds_it_is() -> None:
    claims = Expected("", "", "", {"gain": Quantity("gain", "more")}, {}, {})
    shown = Shown(quantities={"gain": {"marginal": np.array([0.1, np.nan, 0.2, 0.3])}})
    assert [(item.verdict, item.seeds) for item in verdicts(claims, shown)] == [(NOT, 3)]
