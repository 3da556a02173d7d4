"""The paper's experiments: their cells, the grid of all of them, and a run that is cut."""

import json
import warnings
from pathlib import Path

import numpy as np
import pytest

from d2dfl.cli.reproduce import Lines
from d2dfl.discovery.equations.diversity import BUILT_IN
from d2dfl.energy.purposes import PURPOSES
from d2dfl.energy.radios import RADIOS
from d2dfl.errors import UserError
from d2dfl.experiment.cells.cell import Cell
from d2dfl.experiment.grid.grid import GridProgress
from d2dfl.experiment.measures import final
from d2dfl.paper import (
    SCALES,
    Results,
    Shown,
    interval,
)
from d2dfl.paper.catalogue import claims_of, experiment_names, load_experiment, scripts_folder
from d2dfl.paper.run import ReproductionRequest, _cells, reproduce
from d2dfl.paper.verdicts import (
    Quantity,
    as_text,
    expected,
    verdicts,
)
from d2dfl.paper.workload import rate_of, tasks_of


def test_the_interval_by_hand() -> None:
    mean, low, high = interval([1.0, 2.0, 3.0])
    assert mean == 2.0
    # t(0.975, 2) = 4.3027, deviation 1, over the root of 3
    assert np.allclose([low, high], [2 - 4.3027 / 3**0.5, 2 + 4.3027 / 3**0.5], atol=1e-4)
    assert interval([5.0])[1:] == (-np.inf, np.inf)


def test_an_interval_stays_within_what_can_be() -> None:
    quantity = Quantity("rank correlation", "rises", bounds=[-1, 1])
    assert as_text(quantity, [-0.9, 0.9, 0.2]) == "0.067 [-1.000, 1.000]"
    assert as_text(Quantity("difference", "rises"), [-0.9, 0.9, 0.2]) == "0.067 [-2.187, 2.321]"


def test_the_estimate_is_in_seconds_that_were_measured() -> None:
    for seeds in (None, 1, 4):
        experiment = load_experiment("curve-supervised")
        cells = experiment.cells("tiny", seeds)
        rate = rate_of(experiment, "curve-supervised", cells, "tiny")
        tasks = tasks_of({"curve-supervised": experiment}, {"curve-supervised": cells}, {"curve-supervised": rate})
        expected = claims_of("curve-supervised").cost["tiny"] * (seeds or 2) / 2
        assert sum(task.cost for task in tasks) == pytest.approx(expected)


def test_the_estimate_weighs_cells_by_what_they_handle() -> None:
    costs = {}
    for name in ("example", "graphs", "curve-supervised", "fedprox", "fedsgd"):
        experiment = load_experiment(name)
        tasks = tasks_of({name: experiment}, {name: experiment.cells("paper")})
        costs[name] = sum(task.cost for task in tasks) / sum(len(task.payload["cells"]) for task in tasks)
    assert costs["example"] <= costs["graphs"] < costs["fedprox"] / 10  # nobody trains
    assert costs["fedprox"] < costs["fedsgd"] < 50 * costs["fedprox"]  # 200 times 6,000 datapoints, not 40 times 640
    assert costs["fedsgd"] > 40 * costs["fedprox"]


def test_a_log_gets_a_line_a_minute_and_failures_at_once() -> None:
    now, lines = [0.0], []
    tell = Lines(lines.append, lambda: now[0])
    for second, failed in ((0, 0), (30, 0), (61, 0), (70, 1), (80, 1), (131, 1)):
        now[0] = float(second)
        tell(GridProgress(second, 200, failed, None if second < 60 else 125.0, f"cell {second}"))
    assert lines == [
        "61 of 200, about 2 min left; cell 61",
        "70 of 200, 1 failed, about 2 min left; cell 70",
        "131 of 200, 1 failed, about 2 min left; cell 131",
    ]


def test_every_row_has_a_script_and_claims() -> None:
    names = experiment_names()
    scripts = {path.stem.replace("_", "-") for path in scripts_folder().glob("[a-z]*.py")}
    assert set(names) == scripts
    for name in names:
        claims = claims_of(name)
        assert claims.figure
        assert claims.claim
        assert claims.quantities
        assert load_experiment(name).name == name


@pytest.mark.parametrize("scale", SCALES)
def test_every_cell_has_a_valid_configuration(scale: str) -> None:
    """Settings are checked when a configuration is built, so building all of them is the test."""
    for name in experiment_names():
        experiment = load_experiment(name)
        cells = experiment.cells(scale)
        assert len({(cell.point, cell.contender, cell.seed) for cell in cells}) == len(cells) == experiment.count(scale)
        if scale == "tiny":
            assert {cell.config.data.dataset for cell in cells} <= {"digits", "radio", "diabetes"}


def _made_up(cell: Cell, draws: np.random.Generator) -> dict[str, object]:
    """Values such as a measurement gives, of every kind."""
    rounds = [2, 4, 6, 8, 10]
    joules = np.cumsum(draws.uniform(1, 2, 5)).tolist()
    return {
        "score_name": "accuracy",
        "higher_is_better": cell.config.partition.paradigm != "regression",
        "rounds": rounds,
        "scores": np.sort(draws.uniform(0.2, 0.9, 5)).tolist(),
        "spreads": [0.0] * 5,
        "joules": dict.fromkeys(RADIOS, joules),
        "purposes": dict.fromkeys(RADIOS, dict.fromkeys(PURPOSES, 1.0)),
        "before": dict.fromkeys(BUILT_IN, 1.0),
        "after": dict.fromkeys(BUILT_IN, float(draws.uniform(0.5, 1))),
        "labels": draws.integers(1, 9, cell.config.network.devices).tolist(),
        "moved": int(draws.integers(1, 99)),
        "lost": 1,
        "measures": {"label accuracy": float(draws.uniform()), "balanced label accuracy": float(draws.uniform())},
        "five": draws.integers(1, 9, cell.config.network.devices).tolist(),
        "met": draws.integers(1, 9, cell.config.network.devices).tolist(),
        "lacked": float(draws.uniform(50, 99)),
        "arrived": float(draws.uniform(1, 49)),
        "success": float(draws.uniform()),
        "inter": float(draws.uniform()),
        "messages": 1.0,
        "agreement": float(draws.normal()),
        "separation": float(draws.uniform()),
    }


@pytest.mark.parametrize("name", [name for name in experiment_names() if name != "example"])
def test_a_missing_cell_costs_a_seed_and_no_more(name: str) -> None:
    """Whichever cell fails: everything else is shown, and no seed is paired with another one."""
    experiment, draws = load_experiment(name), np.random.default_rng(0)
    cells = experiment.cells("tiny", 3)
    found = {cell: _made_up(cell, draws) for cell in cells}
    whole = experiment.show(Results.of(experiment, "tiny", 3, found))
    for missing in [cells[n] for n in draws.permutation(len(cells))[:15]]:
        rest = {cell: values for cell, values in found.items() if cell is not missing}
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            shown = experiment.show(Results.of(experiment, "tiny", 3, rest))
        assert verdicts(claims_of(name), shown)
        for key, systems in shown.quantities.items():
            for system, values in systems.items():
                kept = [seed for seed in range(3) if seed != missing.seed]
                full = whole.quantities[key][system]
                # Other seeds are as before, unless another baseline is now the best or the weakest of them.
                alone = name in ("pca", "embedding") or key.split(" ")[0] in ("one", "five", "falls", "first", "second")
                if len(values) == 3 and np.isnan(values[missing.seed]) and alone:
                    assert values[kept].tolist() == full[kept].tolist()
        texts = [text for table in shown.tables for row in table.rows for text in row]
        assert not any("nan" in text.split() for text in texts)


def test_the_final_score_is_the_mean_of_the_last_fifth() -> None:
    assert final({"scores": [0.0] * 8 + [0.4, 0.6]}) == pytest.approx(0.5)
    assert final({"scores": [0.1, 0.7]}) == 0.7
    with pytest.raises(UserError, match="does not train"):
        final({"moved": 3})


def test_an_unknown_quantity_is_refused() -> None:
    claims = expected(scripts_folder())["interval"]
    with pytest.raises(UserError, match="no quantity 'height'"):
        verdicts(claims, Shown({"height": {"marginal": np.ones(3)}}))


def test_cells_travel_as_plain_values_and_shared_ones_are_measured_once(tmp_path: Path) -> None:
    names = ["curve-semi", "energy"]  # the same cells, shown in two ways
    experiments = {name: load_experiment(name) for name in names}
    cells, failures = _cells(experiments, ReproductionRequest(names, "tiny", tmp_path), lacking=())
    assert not failures
    tasks = tasks_of(experiments, cells)
    assert len(tasks) == len(cells["curve-semi"]) == len(cells["energy"])
    sent = json.loads(json.dumps(tasks[0].payload))["cells"][0]
    assert Cell.from_plain(sent).config == cells["curve-semi"][0].config


@pytest.mark.parametrize(
    ("names", "scale", "sentence"),
    [
        (["nothing"], "tiny", "there is no experiment 'nothing'"),
        (["example"], "huge", "there is no scale 'huge'"),
        (["missing.py"], "tiny", "there is no file 'missing.py': give a Python file"),
    ],
)
def test_bad_requests_end_in_one_sentence(tmp_path: Path, names: list[str], scale: str, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        reproduce(ReproductionRequest(names, scale, tmp_path / "out"))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("content", "sentence"), [("1 / 0", "fails with ZeroDivisionError"), ("x = 1", "has no EXPERIMENT")]
)
def test_a_script_that_breaks_is_one_sentence(tmp_path: Path, content: str, sentence: str) -> None:
    script = tmp_path / "broken.py"
    script.write_text(content)
    with pytest.raises(UserError, match=sentence):
        reproduce(ReproductionRequest([str(script)], "tiny", tmp_path / "out"))


def test_nothing_to_show_is_said(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="not a run folder"):
        reproduce(ReproductionRequest(["example"], "tiny", tmp_path, show=True))
