"""The rule of the verdicts: ours over seeds, held against the paper's numbers."""

import numpy as np
import pytest

from d2dfl.paper import Shown
from d2dfl.paper.verdicts import (
    DIRECTION,
    NO_CLAIM,
    NOT,
    REPRODUCED,
    Expected,
    Quantity,
    as_text,
    judge,
    verdicts,
)
from d2dfl.report.findings import AHEAD, BEHIND, FEW, UNDECIDED


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
        # R48: [0.013, 0.127] has 0.06 inside, but is wider than that; 0.12 is a larger effect.
        ([0.05, 0.065, 0.095], Quantity("", "", 0.06), DIRECTION),
        ([0.05, 0.065, 0.095], Quantity("", "", 0.12), REPRODUCED),
        ([-0.05, -0.065, -0.095], Quantity("", "", -0.06, sign=-1), DIRECTION),
        ([-0.05, -0.065, -0.095], Quantity("", "", -0.12, sign=-1), REPRODUCED),
        ([0.20, 0.30, 0.40], Quantity("", "", 0.04), REPRODUCED),  # [0.05, 0.55] is wide, and all of it reaches 0.04
        # Equality: the whole interval in the band, however near its mean is to the number.
        ([0.95, 1.0, 1.05], Quantity("", "", 1.0, band=[0.5, 1.5]), REPRODUCED),
        ([0.6, 1.0, 1.4], Quantity("", "", 1.0, band=[0.5, 1.5]), NOT),  # [0.01, 1.99]
        ([0.2, 0.21, 0.22], Quantity("", "", 1.0, band=[0.5, 1.5]), NOT),  # far below 1.5, and not linear
        # Where two of ours meet.
        ([0.1, 0.11, 0.12], Quantity("", "not said", contest=True), AHEAD),
        ([-0.1, -0.11, -0.12], Quantity("", "not said", contest=True), BEHIND),
        ([-0.1, 0.1, 0.12], Quantity("", "not said", contest=True), UNDECIDED),
        ([0.1, 0.11], Quantity("", "not said", contest=True), FEW),
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
    # [1.41, 2.84] is twice as wide as from 1 to 2 in numbers, and as wide in logarithms: 0.70 against 0.69.
    values = np.exp(np.log(2.0) + np.array([-0.14, 0.0, 0.14]))
    assert judge(Quantity("", "", 2.0, null=1.0, ratio=True), values) == DIRECTION
    assert judge(Quantity("", "", 2.1, null=1.0, ratio=True), values) == REPRODUCED


def test_claims_come_in_the_order_of_the_paper_s_page() -> None:
    claims = Expected("", "", "", {"first": Quantity("one", "more"), "second": Quantity("two", "more")}, {}, {})
    values = {"marginal": np.array([0.1, 0.2, 0.3])}
    shown = Shown(quantities={"second @ a": values, "first @ a": values, "second @ b": values, "first @ b": values})
    assert [item.quantity for item in verdicts(claims, shown)] == ["one (a)", "one (b)", "two (a)", "two (b)"]


def test_a_verdict_says_over_how_many_seeds_it_is() -> None:
    claims = Expected("", "", "", {"gain": Quantity("gain", "more")}, {}, {})
    shown = Shown(quantities={"gain": {"marginal": np.array([0.1, np.nan, 0.2, 0.3])}})
    assert [(item.verdict, item.seeds) for item in verdicts(claims, shown)] == [(NOT, 3)]


def test_digits_show_the_side() -> None:
    """An end that is above no effect is not printed as no effect; one that is no effect stays so."""
    ratio = Quantity("", "fewer", null=1.0, digits=1, ratio=True)
    above = [1.03, 1.2, 1.21, 1.19]
    assert judge(ratio, above) == REPRODUCED
    assert as_text(ratio, above) == "1.16 [1.02, 1.30]"
    whole = Quantity("", "12", 12.0, digits=1)
    below = [10.0, 12.0, 11.0, 11.0, 11.0, 10.0, 12.0, 11.0, 9.0, 12.0]
    assert judge(whole, below) == DIRECTION
    assert as_text(whole, below) == "10.9 [10.2, 11.6]"
    assert as_text(whole, [11.94, 11.95, 11.96]) == "11.95 [11.93, 11.97]"
    assert as_text(ratio, [1.2, 1.21, 1.19]) == "1.2 [1.2, 1.2]"
    assert as_text(Quantity("", "rises", bounds=(0.0, 1.0)), [0.0, 0.0, 0.0]) == "0.000 [0.000, 0.000]"
