"""The paper's numbers, and the rule by which ours are held against them.

Every claim is a quantity with a null value (no effect) and mostly a number. Over seeds ours has a mean and a 95 %
confidence interval (Student's t), turned so that the claimed effect is upwards:

    reproduced       the whole interval is above the null, and either all of it reaches the paper's number, or the number is
                     inside and the interval is narrower than the claimed effect, |number - null|
    direction only   the whole interval is above the null, but the number is above the interval, or it is inside an
                     interval as wide as the claimed effect or wider
    not reproduced   the interval reaches down to the null or lies below it

R48: so a wide interval makes no claim hold. A claim without a number says nothing about widths: it is reproduced or not.
A claim that something equals a number has a band, fixed beforehand: it is reproduced if the whole interval lies inside,
and else not. Fewer than three seeds decide nothing. Ratios are averaged and judged in logarithms, widths too, in which twice
and half are equally far from no effect. Where two of ours meet, the verdict says who is ahead, or that nobody can tell.
"""

import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from d2dfl.errors import UserError
from d2dfl.experiment.measures import LEAST, Array, interval, known, standing
from d2dfl.paper.results import Shown
from d2dfl.paper.terms import LEARNERS
from d2dfl.report.findings import DIRECTION, FEW, NO_CLAIM, NOT, REPRODUCED, UNSAID, Verdict
from d2dfl.storage import read_text
from d2dfl.terminal import no_minus_zero

RULE = 2  # number of the rule above and of what quantities measure: records of another one are shown without a verdict
LEARNER = 1  # number of our learner, raised when it finds other graphs: records of an earlier one say so
FINER = 2  # more digits, at most, where an end of an interval would be rounded onto no effect
TITLES = {learner.name: learner.title for learner in LEARNERS}


@dataclass(frozen=True)
class Quantity:
    """One claim."""

    text: str
    paper: str  # as the paper says it
    value: float | None = None  # its number; None: the claim has none
    null: float = 0.0
    sign: int = 1  # -1: the claim is that it is small
    digits: int = 3
    ratio: bool = False
    bounds: Sequence[float] = (-math.inf, math.inf)  # what it can be at all; an interval does not reach beyond
    band: Sequence[float] = ()  # R48: the claim is an equality, and holds where the whole interval lies in here
    contest: bool = False  # a difference between two of ours: who is ahead


@dataclass(frozen=True)
class Expected:
    """What the paper says about one experiment."""

    figure: str
    title: str
    claim: str
    quantities: Mapping[str, Quantity]
    numbers: Mapping[str, Any]  # tables of the paper, as they are
    cost: Mapping[str, float]  # core seconds that we measured, by scale


@cache
def expected(folder: Path) -> Mapping[str, Expected]:
    """The paper's numbers, from expected.toml."""
    path = folder / "expected.toml"
    try:
        tables = tomllib.loads(read_text(path, "the paper's numbers"))
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{path} is not readable: {error}") from None
    return {name: _read(table, tables) for name, table in tables.items() if not name.startswith("_")}


def _read(table: Mapping[str, Any], tables: Mapping[str, Any]) -> Expected:
    fields = dict(table.get("quantities", {}))  # its own first: the first one is the claim as its author made it
    for name, values in tables.get(table.get("inherits", ""), {}).get("quantities", {}).items():
        fields.setdefault(name, values)
    quantities = {name: Quantity(**values) for name, values in fields.items()}
    texts = (table["figure"], table["title"], table["claim"])
    return Expected(*texts, quantities, table.get("numbers", {}), table.get("cost", {}))


def judge(quantity: Quantity, values: Sequence[float] | Array) -> str:
    """The verdict on values by seed."""
    if quantity.contest:
        return standing(values)
    if quantity.paper == UNSAID:
        return NO_CLAIM
    if len(known(values)) < LEAST:
        return FEW
    _, low, high = spread(quantity, values)
    if quantity.band:
        least, most = quantity.band
        return REPRODUCED if least <= low and high <= most else NOT
    return _judged(quantity, low, high)


def _judged(quantity: Quantity, low: float, high: float) -> str:
    """The verdict by an interval, turned so that the claimed effect is upwards."""
    low, high, null = (_turned(quantity, value) for value in (low, high, quantity.null))
    if quantity.sign < 0:
        low, high = high, low
    if not low > null:
        return NOT
    if quantity.value is None or low >= (number := _turned(quantity, quantity.value)):
        return REPRODUCED
    return REPRODUCED if number <= high and high - low < number - null else DIRECTION


def _turned(quantity: Quantity, value: float) -> float:
    return quantity.sign * (math.log(value) if quantity.ratio else value)


def spread(quantity: Quantity, values: Sequence[float] | Array) -> tuple[float, float, float]:
    """Mean and interval, of logarithms where it is a ratio."""
    found = [math.exp(value) for value in interval(np.log(known(values)))] if quantity.ratio else interval(values)
    least, most = quantity.bounds
    mean, low, high = (min(max(value, least), most) for value in found)
    return mean, low, high


def verdicts(claims: Expected, shown: Shown) -> tuple[Verdict, ...]:
    """All claims of an experiment, for each system that was measured.

    A quantity may be measured at several points, "name @ point", and the paper may say something else about each.
    """
    found = []
    order = [name.partition(" @ ")[0] for name in claims.quantities]
    for key, systems in sorted(shown.quantities.items(), key=lambda item: _place(order, item[0])):
        name, _, where = key.partition(" @ ")
        quantity = claims.quantities.get(key) or claims.quantities.get(name)
        if quantity is None:
            raise UserError(f"expected.toml has no quantity {name!r} for this experiment")
        for system, values in systems.items():
            if len(known(values)):
                text = f"{quantity.text} ({where})" if where else quantity.text
                numbers, verdict, seeds = as_text(quantity, values), judge(quantity, values), len(known(values))
                found.append(Verdict(text, TITLES.get(system, system), quantity.paper, numbers, verdict, seeds))
    return tuple(found)


def _place(order: Sequence[str], key: str) -> int:
    """Where a quantity stands among the claims."""
    name = key.partition(" @ ")[0]
    return order.index(name) if name in order else len(order)


def as_text(quantity: Quantity, values: Sequence[float] | Array) -> str:
    """Mean and interval, with as many digits as it takes to see on which side of no effect, and of the number, it ends."""
    found, digits = spread(quantity, values), quantity.digits
    while digits < quantity.digits + FINER and _hidden(quantity, found[1], found[2], digits):
        digits += 1
    mean, low, high = (_rounded(value, digits) for value in found)
    return f"{mean} (one seed)" if len(known(values)) < 2 else f"{mean} [{low}, {high}]"


def _hidden(quantity: Quantity, low: float, high: float, digits: int) -> bool:
    """Whether an interval that keeps clear of no effect would be printed as if it reached that, or the paper's number."""
    null = quantity.null
    if not (low > null or high < null):
        return False
    marks = [null] if quantity.value is None else [null, quantity.value]
    ends = [(mark, end) for mark in marks for end in (low, high)]
    return any(end != mark and _rounded(end, digits) == _rounded(mark, digits) for mark, end in ends)


def _rounded(value: float, digits: int) -> str:
    """A number without a minus before zero."""
    return no_minus_zero(f"{value:.{digits}f}")
