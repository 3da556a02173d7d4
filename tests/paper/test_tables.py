"""Tables of a reproduction say what they show: no minus before zero, and every dash and direction explained."""

from typing import Any

import numpy as np
import pytest

from d2dfl.paper import NONE, SHUFFLE, Point, Results, method_table, sweep_table
from d2dfl.paper.catalogue import load_experiment

POINT = Point("here", {}, contenders=(NONE, SHUFFLE))


def values(score: float, higher_is_better: bool = True) -> dict[str, Any]:
    return {
        "score_name": "accuracy" if higher_is_better else "error",
        "higher_is_better": higher_is_better,
        "rounds": [1, 2],
        "scores": [score, score],
        "spreads": [0.0, 0.0],
        "joules": {"first-order": [1.0, 2.0]},
        "moved": 0,
        "lost": 0,
        "after": {"total-variation": 0.5},
    }


def results(none: float, iid: float, higher_is_better: bool = True, points: tuple[Point, ...] = (POINT,)) -> Results:
    found = {
        ("here", name, seed): values(score, higher_is_better)
        for seed in range(3)
        for name, score in (("none", none), ("iid", iid))
    }
    return Results(points, (0, 1, 2), found, scale="tiny")


def test_dashes_and_directions_are_explained() -> None:
    table = method_table(results(0.5, 0.4), POINT, "title")  # i.i.d. is worse: no gap
    assert [row[2:4] for row in table.rows] == [("–", "–")] * 2
    assert "(–: all hold one)" in table.words
    assert "(–: the shuffle is not clearly better)" in table.words
    assert "lower is better" not in table.words
    table = method_table(results(0.5, 0.4, higher_is_better=False), POINT, "title")
    assert [row[3] for row in table.rows] == ["0.00", "1.00"]
    assert "(lower is better)" in table.words
    assert "the shuffle is not" not in table.words


def test_a_sweep_says_which_way_is_better_and_what_is_missing() -> None:
    missing = Point("there", {}, contenders=(NONE, SHUFFLE))
    table = sweep_table(results(0.5, 0.4, False, (missing, POINT)), "title")
    assert table.rows[0] == ("no exchange", "–", "0.500 ± 0.000")
    assert table.note == "mean ± deviation over seeds (lower is better); –: not measured"
    assert sweep_table(results(0.5, 0.4), "title").note == "mean ± deviation over seeds"


@pytest.mark.filterwarnings("error")
def test_no_minus_before_zero_and_no_nan_in_tables_of_experiments() -> None:
    agreement = load_experiment("agreement")
    points = tuple(agreement.points("tiny"))
    found = {(point.name, "none", seed): {"agreement": -0.001} for point in points for seed in range(3)}
    (table,) = agreement.show(Results(points, (0, 1, 2), found, scale="tiny")).tables
    assert all(cell.startswith("0.00 ± 0.00 (") for row in table.rows for cell in row[1:])
    propagation = load_experiment("propagation")
    points = tuple(propagation.points("tiny"))
    measured = {"measures": {"label accuracy": 0.5, "balanced label accuracy": 0.5}}
    found = {(point.name, "none", seed): measured for point in points[1:] for seed in range(3)}
    table, *_ = propagation.show(Results(points, (0, 1, 2), found, scale="tiny")).tables
    assert table.rows[0][1:] == ("–", "0.500 ± 0.000")
    assert "–: not measured" in table.words
    assert not np.isnan([float(cell.split()[0]) for row in table.rows[1:] for cell in row[1:]]).any()
