"""The one definition of each measure."""

from pathlib import Path

import numpy as np
import pytest

import d2dfl
from d2dfl.experiment.findings.charts import text
from d2dfl.experiment.measures import effort, final, interval, share_of_gap, spread


def test_a_final_score_is_the_mean_of_the_last_fifth() -> None:
    assert final({"scores": list(range(10))}) == 8.5
    assert final({"scores": [0.1, 0.2, 0.6]}) == 0.6


def test_the_direction_of_a_score_decides_when_it_is_reached() -> None:
    rising = {"rounds": [1, 2, 3], "scores": [0.2, 0.6, 0.5], "higher_is_better": True}
    assert [effort(rising, target) for target in (0.1, 0.2, 0.4, 0.7)] == [1, 1, 1.5, None]
    falling = {"rounds": [1, 2, 3], "scores": [0.8, 0.4, 0.5], "higher_is_better": False}
    assert [effort(falling, target) for target in (1.0, 0.8, 0.6, 0.3)] == [1, 1, pytest.approx(1.5), None]


def test_a_spread_is_that_of_a_sample() -> None:
    assert spread([0.0, 1.0]) == pytest.approx(0.5**0.5)
    assert spread([0.5, np.nan]) is None
    assert text(np.array([0.0, 1.0])) == "0.500 ± 0.707"
    assert text(np.array([0.5])) == "0.500"
    _, low, high = interval([0.0, 0.5, 1.0])  # t(0.975, 2) = 4.3027
    assert high - low == pytest.approx(2 * 4.3027 * 0.5 / 3**0.5, rel=1e-4)


def test_no_other_file_has_a_deviation_over_seeds_of_its_own() -> None:
    package = Path(d2dfl.__file__).parent
    files = [path for folder in ("experiment", "paper") for path in (package / folder).rglob("*.py")]
    assert [path.name for path in files if ".std(" in path.read_text(encoding="utf-8")] == ["measures.py"]


def share(mine: list[float], none: list[float], iid: list[float], higher_is_better: bool = True) -> float | None:
    return share_of_gap(np.array(mine), np.array(none), np.array(iid), higher_is_better)


def test_one_seed_closes_a_gap_only_where_it_is_plain() -> None:
    assert share([0.9], [0.8], [0.8001]) is None  # it was 1,000
    assert share([0.81], [0.8], [0.82]) is None
    assert share([0.86], [0.8], [0.88]) == pytest.approx(0.75)
    assert share([0.9, 0.9], [0.8, 0.8], [0.8001, 0.8001]) is None  # two that happen to agree
    assert share([5.0], [100.0], [99.0], higher_is_better=False) is None  # 1 % of an error in units of its own
    assert share([95.0], [100.0], [90.0], higher_is_better=False) == pytest.approx(0.5)


def test_a_gap_within_its_standard_error_is_none() -> None:
    none, iid = [0.70, 0.80, 0.90], [0.75, 0.86, 0.94]  # the way is 0.05; deviations are 0.1 and 0.095
    assert share(iid, none, iid) is None
    steady = [0.799, 0.800, 0.801], [0.804, 0.805, 0.806]
    assert share([0.8025] * 3, *steady) == pytest.approx(0.5)  # three seeds say so: no least gap
