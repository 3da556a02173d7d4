"""The package against the oracles on random cases; `python benchmarks/oracle.py` runs many more."""

import pytest

from oracle.agreements import AGREEMENTS


@pytest.mark.parametrize(
    ("name", "case"), [(one.name, case) for one in AGREEMENTS.values() for case in range(one.tested)]
)
def test_package_agrees_with_the_oracle(name: str, case: int) -> None:
    AGREEMENTS[name].check(case)
