"""How far a learner is ahead of others on its own terms: the numbers behind most verdicts, and the table of them.

R47: "up to x over the baselines" is over the weakest, "x over all baselines" over the best.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from d2dfl.experiment.cells.cell import Contender
from d2dfl.experiment.findings.charts import text, with_interval
from d2dfl.experiment.measures import Array, effort, effort_or_all, geometric_mean, known, standing
from d2dfl.paper.experiment import Point
from d2dfl.paper.results import Results
from d2dfl.paper.terms import NONE, ON_FIVE, ON_OURS, ON_PAPERS, RULES, TERMS, EqualTerms, terms_of
from d2dfl.report.findings import Table
from d2dfl.terminal import UNKNOWN

Quantities = dict[str, dict[str, Array]]
Value = Callable[[Any], float]  # of a cell
THE_RULES = ", ".join(RULES.values())  # what settings and links do is told of those that learn nothing


def lead(results: Results, point: Point, suffix: str = "") -> Quantities:
    """Scores of each learner above baselines on its terms, of ours above the next best, and what settings and links do."""
    found: Quantities = {key + suffix: {} for key in ("up-to", "over-best", "over-next")}
    for system in results.systems(point):
        ranked = results.baselines(point, system.name)
        found["up-to" + suffix][system.name] = results.gain(point, system.name, ranked[-1].name)
        found["over-best" + suffix][system.name] = results.gain(point, system.name, ranked[0].name)
        if system is terms_of(system.name).ours:
            rival = results.others(point, system.name)[0]
            found["over-next" + suffix][system.name] = results.gain(point, system.name, rival.name)
    for key, after, before in (("settings", ON_OURS, ON_PAPERS), ("links", ON_FIVE, ON_OURS)):
        found[key + suffix] = {THE_RULES: risen(results, point, after, before)}
    return found


def fall(cell: Mapping[str, Any]) -> float:
    """Share of the 1-Wasserstein distance of labels to i.i.d. that the exchange takes away."""
    return float(1.0 - cell["after"]["wasserstein"] / cell["before"]["wasserstein"])


def above_best(results: Results, point: Point, of: Value, sign: int = 1) -> dict[str, Array]:
    """[learner][seed] any value above that of the baseline on its terms which is best in the mean; sign -1: below."""
    return {
        system.name: sign * results.each(point, system.name, of)
        - best_of(results, point, terms_of(system.name).baselines, of, sign)
        for system in results.systems(point)
    }


def above_next(results: Results, point: Point, of: Value, sign: int = 1) -> dict[str, Array]:
    """[learner][seed] of ours alone: above the next best method on its terms, learners too."""
    found = {}
    for terms in TERMS:
        others = tuple(item for item in (NONE, *terms.contenders) if item is not terms.ours)
        if results.there(point, terms.ours.name) and any(results.there(point, item.name) for item in others):
            mine = sign * results.each(point, terms.ours.name, of)
            found[terms.ours.name] = mine - best_of(results, point, others, of, sign)
    return found


def best_of(results: Results, point: Point, contenders: Sequence[Contender], of: Value, sign: int = 1) -> Array:
    """[seed] a value of whoever is best in the mean over seeds: the best of each seed would be nobody's."""
    rows = [sign * results.each(point, item.name, of) for item in contenders if results.there(point, item.name)]
    rows = [row for row in rows if len(known(row))]
    return max(rows, key=lambda row: float(known(row).mean())) if rows else np.full(len(results.seeds), np.nan)


def risen(results: Results, point: Point, after: EqualTerms, before: EqualTerms) -> Array:
    """[seed] how much better the rules are on other terms, in the mean over them."""
    pairs = zip(after.rules, before.rules, strict=True)
    rows = np.stack([results.gain(point, one.name, other.name) for one, other in pairs])
    return np.asarray(rows.mean(axis=0))


def speed(results: Results, point: Point, suffix: str = "", radio: str | None = None) -> Quantities:
    """How many times fewer rounds (or joules) than the baselines until the score that each ends with."""

    def ratio(one: str, other: str) -> Array:
        return results.speedup(point, one, other, radio)

    return factors(results, point, "rounds" if radio is None else "joules", suffix, ratio)


def until(results: Results, point: Point, target: float, suffix: str = "") -> Quantities:
    """How many times fewer rounds than the baselines until a score; unknown where neither gets there."""

    def ratio(one: str, other: str) -> Array:
        mine, theirs = (results.each(point, name, lambda cell: effort_or_all(cell, target)) for name in (one, other))
        there = [results.each(point, name, lambda cell: effort(cell, target) is not None) for name in (one, other)]
        return np.where(np.maximum(*there) > 0, theirs / mine, np.nan)

    return factors(results, point, "until", suffix, ratio)


def factors(results: Results, point: Point, what: str, suffix: str, ratio: Callable[[str, str], Array]) -> Quantities:
    """A factor of every learner over the baselines on its terms: the most (up to), and the least (over every one)."""
    found: Quantities = {f"{what}-{way}{suffix}": {} for way in ("up-to", "over-best")}
    for system in results.systems(point):
        rows = [ratio(system.name, rival.name) for rival in results.baselines(point, system.name)]
        rows = sorted(filter(geometric_mean, rows), key=lambda row: geometric_mean(row) or 0.0) or rows
        found[f"{what}-up-to{suffix}"][system.name] = rows[-1]
        found[f"{what}-over-best{suffix}"][system.name] = rows[0]
    return found


def equal_table(results: Results, point: Point, title: str) -> Table:
    """What the learner buys: the best baseline, the paper's learner and ours, each line at equal links and settings."""
    rows = [_equal(results, point, terms) for terms in TERMS if results.there(point, terms.ours.name)]
    columns = ("terms", "best baseline", "paper's learner", "the same, tuned", "ours", "ours − next best", "ours is")
    better = lower_is_better(results, point)
    dash = f" {UNKNOWN}: our settings have it tuned." if any(UNKNOWN in row for row in rows) else ""
    note = (
        f"{results.score_name(point)}{better}, mean ± deviation over seeds.{dash} Next best: of all other methods on the same terms, found "
        "from the same seeds; the difference is paired over seeds, with its 95 % interval, above 0 where ours is better."
    )
    return Table(f"Equal links and settings: {title}", columns, tuple(rows), note)


def lower_is_better(results: Results, point: Point) -> str:
    """Words for a sentence about scores, where a lower one is better."""
    return "" if results.sign(point) > 0 else " (lower is better)"


def _equal(results: Results, point: Point, terms: EqualTerms) -> tuple[str, ...]:
    ours, best = terms.ours.name, results.baselines(point, terms.ours.name)[0]
    papers = [text(results.final(point, item.name)) for item in terms.papers]
    if len(papers) == 1:  # our settings have it tuned
        papers.insert(0, UNKNOWN)
    rival = results.others(point, ours)[0]
    ahead = results.gain(point, ours, rival.name)
    return (
        terms.title,
        f"{text(results.final(point, best.name))} {best.method}",
        *papers,
        text(results.final(point, ours)),
        f"{with_interval(ahead)} {rival.method}",
        standing(ahead),
    )
