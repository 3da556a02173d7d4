"""All comparisons: name, what checks a random case by its number, and how many of them `make test` runs."""

from collections.abc import Callable
from typing import NamedTuple

from oracle import (
    agree_federated,
    agree_labelled,
    agree_ledger,
    agree_policy,
    agree_subspace,
    agree_unlabelled,
    agree_whole,
)


class Agreement(NamedTuple):
    """`check(number)` raises an AssertionError that says what is not the same."""

    name: str
    check: Callable[[int], None]
    tested: int


AGREEMENTS: dict[str, Agreement] = {
    one.name: one
    for one in (
        Agreement("algorithm-1", agree_labelled.check, 80),
        Agreement("algorithm-2", agree_unlabelled.check, 30),
        Agreement("q-tables", agree_policy.check, 50),
        Agreement("q-tables-of-states", agree_policy.check_states, 30),
        Agreement("training", agree_federated.check, 40),
        Agreement("ledger", agree_ledger.check, 40),
        Agreement("pca", agree_subspace.check, 40),
        Agreement("whole-datapoints", agree_whole.check, 60),
    )
}
