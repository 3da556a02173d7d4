"""Runs of a reproduction: on a GPU's road, with scripts of one's own, killed and resumed."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from d2dfl.errors import UserError
from d2dfl.experiment.cells import steps
from d2dfl.experiment.cells.files import stored
from d2dfl.experiment.folder.checkpoints import Checkpoints
from d2dfl.experiment.grid.gpu import run_on_gpu
from d2dfl.experiment.grid.grid import GridProgress, GridTask, run_grid
from d2dfl.federation import State
from d2dfl.paper import CONTENDERS
from d2dfl.paper.catalogue import claims_of, load_experiment
from d2dfl.paper.run import ReproductionRequest, _cells, reproduce
from d2dfl.paper.workload import tasks_of
from d2dfl.report.findings import Findings
from d2dfl.storage import TakenError

COMMAND = [sys.executable, "-c", "from d2dfl.cli.app import main; main()", "reproduce"]


def test_the_road_over_a_gpu_measures_the_same(tmp_path: Path) -> None:
    """Many prepare, one trains: without a card the arithmetic is the CPU's, and the road can be tested."""
    names = ["curve-regression"]
    experiments = {name: load_experiment(name) for name in names}
    cells, _ = _cells(experiments, ReproductionRequest(names, "tiny", tmp_path, seeds=1), lacking=())
    tasks = tasks_of(experiments, {"curve-regression": cells["curve-regression"][:4]})
    broken = GridTask("broken", {**tasks[0].payload, "cells": [{**tasks[0].payload["cells"][0], "method": "nothing"}]})
    seen: list[GridProgress] = []
    asked = [broken, *(replace(task, cost=float(number)) for number, task in enumerate(tasks, 1))]  # the cheapest first
    outcome = run_on_gpu(asked, tmp_path / "one", 2, seen.append)
    usual = run_grid(tasks, "d2dfl.paper.cells:run_task", tmp_path / "two", workers=2)
    assert [failure.key for failure in outcome.failures] == ["broken/nothing"]
    assert "there is no method 'nothing'" in outcome.failures[0].reason
    assert seen[-1].done == len(tasks) + 1  # the one of which no cell is left, too
    assert [progress.last_key for progress in seen] == [None, *(task.key for task in asked)]  # in the order asked for
    one, two = stored(tmp_path / "one"), stored(tmp_path / "two")
    assert one.keys() == two.keys()
    assert len(usual.results) == len(tasks)
    for key, item in one.items():
        assert item.values["scores"] == pytest.approx(two[key].values["scores"], rel=1e-5)
        assert item.values["joules"] == two[key].values["joules"]


def test_a_training_that_breaks_does_not_take_its_group_along(tmp_path: Path) -> None:
    experiments = {"curve-regression": load_experiment("curve-regression")}
    cells, _ = _cells(experiments, ReproductionRequest(["curve-regression"], "tiny", tmp_path, seeds=1), lacking=())
    first, second = tasks_of(experiments, {"curve-regression": cells["curve-regression"][:2]})
    (good,), (bad,) = first.payload["cells"], second.payload["cells"]
    bad = {**bad, "config": {**bad["config"], "federation": {**bad["config"]["federation"], "learning_rate": 1e6}}}
    group = GridTask("group", {**first.payload, "cells": [bad, good]})
    outcome = run_on_gpu([group], tmp_path, 2, lambda _: None)
    assert [failure.key for failure in outcome.failures] == [f"group/{bad['method']}"]
    assert "no longer a number" in outcome.failures[0].reason
    assert len(outcome.results["group"]["values"]) == len(stored(tmp_path)) == 1


class CutError(BaseException):
    """The power went off."""


@pytest.fixture
def task() -> GridTask:
    """Two contenders that train together."""
    experiments = {"curve-regression": load_experiment("curve-regression")}
    cells, _ = _cells(experiments, ReproductionRequest(["curve-regression"], "tiny", Path(), seeds=1), lacking=())
    first, second = tasks_of(experiments, {"curve-regression": cells["curve-regression"][:2]})
    return GridTask("two", {**first.payload, "cells": [*first.payload["cells"], *second.payload["cells"]]})


def _cut(task: GridTask, folder: Path, at: int) -> list[int]:
    """Rounds of the states with which the task went on; it is cut when it has saved this round."""
    began: list[int] = []
    save, load = Checkpoints.save, Checkpoints.state

    def dying(self: Checkpoints, states: Mapping[int, State], trainings: int, rounds: int) -> None:
        save(self, states, trainings, rounds)
        if max(state.round for state in states.values()) == at:
            raise CutError

    def noted(self: Checkpoints, number: int, devices: int) -> State:
        state = load(self, number, devices)
        began.append(state.round)
        return state

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(steps, "PAUSE_S", 0.0)
        patched.setattr(Checkpoints, "save", dying)
        patched.setattr(Checkpoints, "state", noted)
        with suppress(CutError):
            run_on_gpu([task], folder, 1, lambda _: None, resume=True)
    return began


def test_a_task_that_was_cut_goes_on_from_what_it_saved(tmp_path: Path, task: GridTask) -> None:
    run_on_gpu([task], tmp_path / "whole", 1, lambda _: None)
    cut = tmp_path / "cut"
    assert _cut(task, cut, at=2) == []
    assert len(list(cut.glob("checkpoints/*/checkpoint.json"))) == 1
    assert not stored(cut)
    went_on = _cut(task, cut, at=4)
    assert went_on
    assert set(went_on) == {2}
    (state,) = cut.glob("checkpoints/*/checkpoints/1-4-*.state")
    assert _cut(task, cut, at=0)[-1] == 4  # never cut again
    values = {key: item.values for key, item in stored(tmp_path / "whole").items()}
    assert {key: item.values for key, item in stored(cut).items()} == values
    assert not (cut / "checkpoints").exists()
    assert not state.exists()


def test_what_a_task_saved_is_set_aside_where_it_cannot_be_used(tmp_path: Path, task: GridTask) -> None:
    assert _cut(task, tmp_path, at=2) == []
    (switch,) = tmp_path.glob("checkpoints/*/checkpoint.json")
    switch.write_bytes(switch.read_bytes()[:-9])
    assert _cut(task, tmp_path, at=2) == []  # it began anew
    assert len(list(tmp_path.glob("checkpoints/*.aside-1/checkpoint.json"))) == 1
    run_on_gpu([task], tmp_path, 1, lambda _: None)  # a new run goes on with nothing
    assert len(list(tmp_path.glob("checkpoints/*.aside-2/checkpoint.json"))) == 1
    assert len(stored(tmp_path)) == 2


def test_a_script_of_ones_own(tmp_path: Path) -> None:
    script = tmp_path / "mine.py"
    script.write_text(
        "from d2dfl.paper import NONE, Experiment, Point, Shown, each, sweep_table\n"
        "def points(scale): return [Point('here', {}, contenders=(NONE,))]\n"
        "def measure(cell): return {'seed': cell.seed}\n"
        "def show(results): return Shown(tables=(sweep_table(results, 'Seeds', lambda cell: cell['seed']),))\n"
        "EXPERIMENT = Experiment('mine', points, show, each(measure))\n"
    )
    done = reproduce(ReproductionRequest([str(script)], "tiny", tmp_path / "out", workers=1))
    assert not done.failures
    assert done.findings[0].tables[0].rows == (("no exchange", "0.500 ± 0.707"),)
    assert Findings.load(tmp_path / "out" / "mine") == done.findings[0]


def test_resume_takes_what_is_there_and_a_new_run_nothing(tmp_path: Path) -> None:
    script, source, out = tmp_path / "mine.py", tmp_path / "value", tmp_path / "out"
    script.write_text(
        "from pathlib import Path\n"
        "from d2dfl.paper import NONE, Experiment, Point, Shown, each, sweep_table\n"
        "def points(scale): return [Point('here', {}, contenders=(NONE,))]\n"
        f"def measure(cell): return {{'value': float(Path({str(source)!r}).read_text())}}\n"
        "def show(results): return Shown(tables=(sweep_table(results, 'It', lambda cell: cell['value']),))\n"
        "EXPERIMENT = Experiment('mine', points, show, each(measure), random=False)\n"
    )

    def run(resume: bool) -> str:
        done = reproduce(ReproductionRequest([str(script)], "tiny", out, workers=1, resume=resume))
        return done.findings[0].tables[0].rows[0][1]

    source.write_text("1")
    assert run(resume=False) == "1.000"
    (cell,) = (out / "cells").iterdir()
    cell.rename(cell.with_name("of_another_grouping.json"))  # as a GPU or another experiment would name it
    source.write_text("2")
    assert run(resume=True) == "1.000"
    with pytest.raises(TakenError, match="holds measurements of .*mine.py: go on with --resume"):
        run(resume=False)
    (out / "cells" / "mine.json").write_text("{")  # somebody's own
    (out / "cells" / "of_another_grouping.json").write_text("{")
    assert run(resume=True) == "2.000"
    assert (out / "cells" / "mine.json").read_text() == "{"
    assert (out / "cells" / "of_another_grouping.json").read_text() == "{"


def test_what_ends_with_the_exchange_can_be_measured_alone(tmp_path: Path) -> None:
    """Claims that take a training are left out, and said to be; what has no other part is refused."""
    done = reproduce(
        ReproductionRequest(["trust", "curve-regression"], "tiny", tmp_path, seeds=1, workers=1, exchange_only=True)
    )
    (found,) = done.findings
    assert [item.key for item in done.failures] == ["curve-regression"]
    assert "all of it trains" in done.failures[0].reason
    assert len(stored(tmp_path)) == sum(not cell.trains for cell in load_experiment("trust").cells("tiny", 1))
    assert [table.title for table in found.tables] == ["Fall of the total variation to i.i.d."]
    assert {item.quantity for item in found.verdicts}.isdisjoint(
        {text.text for key, text in claims_of("trust").quantities.items() if "distance" not in key}
    )
    assert "Only what ends with the exchange was measured" in found.notes[0]
    assert found.command == "d2dfl reproduce trust --scale tiny --seeds 1 --exchange-only"


def test_a_folder_that_is_no_reproduction_stays_as_it_is(tmp_path: Path) -> None:
    for content in ({"notes.txt": "mine"}, {"cells/mine.json": "{"}, {"run.json": "{}"}):
        folder = tmp_path / next(iter(content)).replace("/", "-")
        for name, text in content.items():
            (folder / name).parent.mkdir(parents=True)
            (folder / name).write_text(text)
        for resume, show in ((False, False), (True, False), (False, True)):
            with pytest.raises(UserError, match="not a run folder"):
                reproduce(ReproductionRequest(["example"], "tiny", folder, resume=resume, show=show))
        assert {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()} == set(content)


def test_cells_that_train_together_do_not_take_the_place_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    experiments = {"curve-semi": load_experiment("curve-semi")}
    cells, _ = _cells(experiments, ReproductionRequest(["curve-semi"], "tiny", tmp_path, seeds=1), lacking=())
    (whole,) = tasks_of(experiments, cells)
    (rest,) = tasks_of(experiments, {"curve-semi": cells["curve-semi"][:3]})
    assert len(whole.payload["cells"]) == len(CONTENDERS)
    assert whole.key != rest.key


def _tables(folder: Path) -> dict[str, bytes]:
    files = [folder / "table.md", *folder.glob("*/findings.json")]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


FEW = """
from d2dfl.paper import NONE, OURS, UNIFORM, Experiment, Point, Shown, curve_chart, sweep_table, task

def points(scale):
    return [Point("few", task("california", scale), "regression", (OURS, UNIFORM, NONE))]

def show(results):
    return Shown(tables=(sweep_table(results, "Scores"),), charts=(curve_chart(results, results.points[0], "Curves"),))

EXPERIMENT = Experiment("few", points, show)
"""


def test_a_run_that_is_killed_and_resumed_gives_the_same_bytes(tmp_path: Path) -> None:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    script = tmp_path / "few.py"  # trains; the example has a measure of its own
    script.write_text(FEW)
    arguments = ["example", str(script), "--scale", "tiny", "--seeds", "3", "--no-figures", "--out"]
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    # Another number of workers too: it must not matter.
    subprocess.run(
        [*COMMAND, *arguments, str(whole), "--workers", "1"], env=environment, check=True, capture_output=True
    )
    process = subprocess.Popen(
        [*COMMAND, *arguments, str(cut)], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    number = len(list((whole / "cells").glob("*.json")))
    wanted = int(np.random.default_rng().integers(1, number - 5))  # any moment will do
    while process.poll() is None and len(list((cut / "cells").glob("*.json"))) < wanted:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    subprocess.run([*COMMAND, *arguments, str(cut), "--resume"], env=environment, check=True, capture_output=True)
    assert _tables(cut) == _tables(whole)
    assert stored(cut).keys() == stored(whole).keys()
    before = {path: path.stat().st_mtime_ns for path in (cut / "cells").iterdir()}
    subprocess.run([*COMMAND, *arguments, str(cut), "--show"], env=environment, check=True, capture_output=True)
    assert {path: path.stat().st_mtime_ns for path in (cut / "cells").iterdir()} == before
