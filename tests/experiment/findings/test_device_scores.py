"""Scores by label add up to the score of the curve, for classes, encoders and regressions alike."""

import numpy as np
import pytest

from d2dfl import preset
from d2dfl.experiment.compare import compare
from d2dfl.experiment.findings.comparison import findings
from d2dfl.experiment.findings.device_scores import KEY, _labels, label_scores
from d2dfl.experiment.inputs import data_set
from d2dfl.experiment.pipeline import factory_of, federations_of, prepare
from d2dfl.experiment.setting import setting_of
from d2dfl.federation import State, train_many

SMALL = {"network.devices": 5, "data.samples": 40, "federation.rounds": 2, "federation.interval": 3}


@pytest.mark.parametrize("paradigm", ["supervised", "unsupervised", "regression"])
def test_labels_add_up_to_the_score_of_the_curve(paradigm: str) -> None:
    config = preset("best", paradigm).with_(**SMALL)
    dataset = data_set(config, seed=0)
    setting, factory, found = setting_of(config, 3, dataset), factory_of(config, dataset), []
    item = prepare(config, setting, "none")

    ready = federations_of(config, [item], dataset)

    def keep(_: int, state: State) -> None:
        found.append(label_scores(factory, ready.runs[0][0], state, dataset, config.federation, setting.truth))

    (curves,) = train_many(factory, ready.runs, config.federation, states=ready.starts, on_end=keep)
    (scores,) = found
    assert scores is not None
    wanted = _labels(dataset, setting.truth, np.arange(len(dataset.test_targets)))
    tests = np.bincount(wanted, minlength=scores.shape[1])
    assert (tests > 0).sum() > 2
    whole = (scores[0, tests > 0] * tests[tests > 0]).sum() / tests.sum()
    assert whole == pytest.approx(curves.scores[-1], rel=1e-4)


def test_targets_fall_into_the_ranges_of_the_training_part() -> None:
    config = preset("best", "regression").with_(**SMALL)
    dataset = data_set(config, seed=0)
    truth = setting_of(config, 0, dataset).truth
    found = _labels(dataset, truth, np.arange(len(dataset.test_targets)))
    for number in np.unique(truth):
        inside = dataset.test_targets.ravel()[found == number]
        known = dataset.train_targets.ravel()[truth == number]
        lower = dataset.train_targets.ravel()[truth < number]
        assert (inside <= known.max()).all() or number == truth.max()
        assert not len(lower) or (inside > lower.max()).all()


@pytest.mark.parametrize("paradigm", ["unsupervised", "regression"])
def test_devices_of_encoders_and_regressions_are_on_the_page(paradigm: str) -> None:
    result = compare(preset("best", paradigm).with_(**SMALL), ["closest"], [0])
    record = findings(result)
    table = next(table for table in record.tables if table.title == "By device")
    assert len(table.rows) == 5
    assert all(score not in ("–", "nan") for row in table.rows for score in row[3:])
    chart = next(chart for chart in record.charts if chart.title.startswith("Every device on its own"))
    line = chart.lines[0].mean
    worst_first = sorted(line, reverse=paradigm == "regression")
    assert list(line) == pytest.approx(worst_first)
    assert sorted(result.values[0][KEY]) == pytest.approx(sorted(line))
    assert bool(record.maps[0].layers[0].scores) is (paradigm == "unsupervised")
