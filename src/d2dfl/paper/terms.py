"""Contenders, and the terms on which they meet.

What a learner buys shows only at equal links and equal settings. Every method is therefore measured on three terms, and
held against the others on the same ones:

    paper's settings         preset `paper`, as many links as the paper has
    our settings             preset `best`, as many links as the paper has
    our settings, 5 links    preset `best`, five links

No exchange and the i.i.d. shuffle are the same on all of them, and stand once.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from d2dfl.discovery.methods import IID, IID_TITLE, NO_EXCHANGE
from d2dfl.experiment.cells.cell import Contender

# R3: the paper's learner at its best on the paper's settings, chosen on other networks than those it is measured on
# (benchmarks/choose.py); on ours it has the defaults, which were chosen in the same way.
TUNED: Mapping[str, Any] = {"qlearning.temperature": 0.2, "qlearning.temperature_end": 0.02}
FIVE_LINKS: Mapping[str, Any] = {"discovery.edges": 5}
RULES = {"closest": "closest", "most-trusted": "most trusted", "uniform": "uniform"}  # method: title

NONE = Contender(NO_EXCHANGE, "no exchange", NO_EXCHANGE)
SHUFFLE = Contender(IID, IID_TITLE, IID, "best")


@dataclass(frozen=True, eq=False)
class EqualTerms:
    """Settings and a number of links, and everybody who was measured with them."""

    title: str
    rules: tuple[Contender, ...]  # closest, most trusted, uniform
    gcn: Contender
    papers: tuple[Contender, ...]  # the paper's learner
    ours: Contender

    @property
    def baselines(self) -> tuple[Contender, ...]:
        """The paper's five."""
        return (NONE, *self.rules, self.gcn)

    @property
    def learners(self) -> tuple[Contender, ...]:
        return (*self.papers, self.ours)

    @property
    def contenders(self) -> tuple[Contender, ...]:
        """All who choose links."""
        return (*self.learners, *self.rules, self.gcn)


PAPERS = Contender("qlearning", "paper's learner", "qlearning")
PAPERS_TUNED = Contender("qlearning-tuned", "paper's learner, tuned", "qlearning", changes=TUNED)
OURS_PAPER = Contender("marginal-paper", "ours, paper's settings", "marginal")
GCN = Contender("gcn", "GCN", "gcn")
ON_PAPERS = EqualTerms(
    "paper's settings",
    tuple(Contender(name, title, name) for name, title in RULES.items()),
    GCN,
    (PAPERS, PAPERS_TUNED),
    OURS_PAPER,
)
CLOSEST, TRUSTED, UNIFORM = ON_PAPERS.rules


def _best(name: str, title: str, suffix: str, words: str, changes: Mapping[str, Any]) -> Contender:
    """A method on our settings."""
    return Contender(f"{name}{suffix}", f"{title}, {words}", name, "best", changes)


def _on_ours(title: str, words: str, suffix: str, changes: Mapping[str, Any], ours: Contender) -> EqualTerms:
    return EqualTerms(
        title,
        tuple(_best(rule, called, suffix, words, changes) for rule, called in RULES.items()),
        _best("gcn", "GCN", suffix, words, changes),
        (_best("qlearning", "paper's learner", suffix, words, changes),),
        ours,
    )


OURS = Contender("marginal", "ours, our settings", "marginal", "best")
FIVE = Contender("marginal-5", "ours, 5 links", "marginal", "best", FIVE_LINKS)
ON_OURS = _on_ours("our settings", "our settings", "-ours", {}, OURS)
ON_FIVE = _on_ours("our settings, 5 links", "5 links", "-5", FIVE_LINKS, FIVE)
(PAPERS_OURS,) = ON_OURS.papers

TERMS = (ON_PAPERS, ON_OURS, ON_FIVE)
LEARNERS = tuple(learner for terms in TERMS for learner in terms.learners)
# Rows that plot a curve have everybody. A sweep has many points: what the paper's claim needs, at equal links.
CONTENDERS = (NONE, *(item for terms in TERMS for item in terms.contenders), SHUFFLE)
SYSTEMS = (PAPERS, PAPERS_OURS, OURS)  # of a sweep
SWEEP = (NONE, PAPERS, *ON_PAPERS.rules, GCN, *ON_OURS.contenders)


def terms_of(contender: str) -> EqualTerms:
    """On which terms somebody was measured; those of the paper unless said otherwise."""
    return next((terms for terms in TERMS if any(item.name == contender for item in terms.contenders)), ON_PAPERS)
