"""The grid engine: the same bytes from any number of workers, after any crash; what fails takes nothing else along."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
from joblib.parallel import BACKENDS
from threadpoolctl import threadpool_info

from d2dfl.errors import MissingExtraError, UserError
from d2dfl.experiment.cells.files import Cells, file_name, read_cell
from d2dfl.experiment.grid.grid import (
    GridOutcome,
    GridProgress,
    GridTask,
    pace_of,
    run_grid,
    time_left,
    time_of,
)

TESTS = Path(__file__).parent


def work(payload: dict[str, Any], place: Path | None = None) -> Any:
    """What tasks of these tests do; workers import it by name."""
    if "log" in payload:
        with open(payload["log"], "a") as log:
            log.write(payload.get("name", "") + "\n")
    time.sleep(payload.get("sleep", 0.0))
    match payload.get("do"):
        case "fail":
            raise ValueError("it is\nbroken")
        case "exit":
            sys.exit("enough")
        case "die":
            os._exit(1)
        case "die once" if not Path(payload["mark"]).exists():
            Path(payload["mark"]).touch()
            os._exit(1)
        case "nan":
            return {"scores": [1.0, float("nan")]}
        case "array":
            return {"rows": [{"score": np.float32(1.0)}]}
        case "threads":
            return threads_here()
    matrix = np.random.default_rng(payload.get("seed", 0)).normal(size=(200, 200))
    return {"norm": float(np.linalg.norm(np.linalg.inv(matrix) @ matrix.T)), "zero": -0.0, "none": None}


def threads_here() -> dict[str, Any]:
    import numba
    import torch

    libraries = sorted({entry["num_threads"] for entry in threadpool_info()})
    return {"libraries": libraries, "numba": numba.get_num_threads(), "torch": torch.get_num_threads()}


def seeds(number: int, **more: Any) -> list[GridTask]:
    return [GridTask(f"seed-{seed}", {"seed": seed, **more}, cost=1.0 + seed) for seed in range(number)]


def grid(tasks: list[GridTask], folder: Path, **options: Any) -> GridOutcome:
    return run_grid(tasks, "test_grid:work", folder, **{"workers": 2, **options})


def resumed(tasks: list[GridTask], folder: Path, resume: bool = True) -> tuple[int, GridOutcome]:
    """How many results were found in the folder, and all of them."""
    told: list[GridProgress] = []
    outcome = grid(tasks, folder, resume=resume, on_progress=told.append)
    return told[0].done, outcome


def cells(folder: Path) -> dict[str, bytes]:
    """All files of the cells, hidden ones too."""
    return {path.name: path.read_bytes() for path in (folder / "cells").iterdir()}


def test_no_flipped_bit_in_a_cell_goes_unnoticed(tmp_path: Path) -> None:
    Cells.open(tmp_path).keep("a", '{"seed": 1}', '{"scores": [0.25, 1e-17], "name": "x"}')
    (file,) = (tmp_path / "cells").iterdir()
    content, whole = file.read_bytes(), read_cell(file)
    assert whole is not None
    for bit in range(8 * len(content)):
        flipped = bytearray(content)
        flipped[bit // 8] ^= 1 << bit % 8
        file.write_bytes(flipped)
        assert read_cell(file) in (None, whole), flipped  # a space may become another kind of space


def test_workers_use_as_many_threads_as_asked_for_and_we_as_before(tmp_path: Path) -> None:
    before = threadpool_info(), dict(os.environ)
    outcome = grid([GridTask("threads", {"do": "threads"})], tmp_path, workers=1, threads=2)
    assert outcome.results["threads"] == {"libraries": [2], "numba": 2, "torch": 2}
    assert (threadpool_info(), dict(os.environ)) == before


def test_the_number_of_workers_changes_no_byte(tmp_path: Path) -> None:
    tasks = seeds(5)
    one, two = grid(tasks, tmp_path / "1", workers=1), grid(tasks, tmp_path / "2", workers=2)
    assert cells(tmp_path / "1") == cells(tmp_path / "2")
    assert one.results == two.results
    assert list(one.results) == [task.key for task in tasks]
    # This process may compute with more threads, and round otherwise.
    assert one.results["seed-3"]["norm"] == pytest.approx(work({"seed": 3})["norm"])
    cell = json.loads(cells(tmp_path / "1")[f"{file_name('seed-3')}.json"])
    assert cell.pop("sha256")
    assert cell == {"format": 2, "key": "seed-3", "payload": {"seed": 3}, "result": one.results["seed-3"]}


def test_failures_stand_alone(tmp_path: Path) -> None:
    odd = {name: GridTask(name, {"do": name}) for name in ("fail", "exit", "nan", "array")}
    outcome = grid([*odd.values(), *seeds(2)], tmp_path)
    assert list(outcome.results) == ["seed-0", "seed-1"]
    assert {failure.key: failure.reason for failure in outcome.failures} == {
        "fail": "ValueError: it is broken",
        "exit": "SystemExit: enough",
        "nan": "the result is not plain JSON: scores[1] is nan",
        "array": "the result is not plain JSON: rows[0].score is of type float32",
    }
    text = (tmp_path / "failures" / f"{file_name('fail')}.txt").read_text()
    assert "Traceback" in text
    assert 'raise ValueError("it is' in text
    # The next run starts with a clean slate, and tries what failed once more.
    before, again = resumed([GridTask("fail", {"do": "work"}), *seeds(2)], tmp_path)
    assert (before, len(again.results), again.failures) == (2, 3, ())
    assert not (tmp_path / "failures" / f"{file_name('fail')}.txt").exists()
    grid([GridTask("fail", {"do": "fail"})], tmp_path / "one")
    assert (tmp_path / "one" / "failures").exists()
    grid([GridTask("fail", {"do": "work"})], tmp_path / "one", resume=True)
    assert not (tmp_path / "one" / "failures").exists()


def test_resume_works_on_what_is_missing_damaged_or_changed_only(tmp_path: Path) -> None:
    def tasks(changed: int) -> list[GridTask]:
        return [
            GridTask(name, {"name": name, "log": str(log), "seed": changed if name == "d" else 0}) for name in "abcdefg"
        ]

    log, folder = tmp_path / "log", tmp_path / "grid"
    before = grid(tasks(0), folder)
    (folder / "other").touch()
    whole = cells(folder)
    files = {name: folder / "cells" / f"{file_name(name)}.json" for name in "abcdefg"}
    files["a"].unlink()
    files["b"].write_bytes(whole[files["b"].name][:-9])
    files["c"].write_text('{"format": 1}')
    files["e"].write_bytes(whole[files["f"].name])  # whole, but of another task
    files["g"].write_bytes(whole[files["g"].name].replace(b'"seed": 0', b'"seed": false'))  # equal for Python only
    broken = cells(folder)
    log.unlink()
    number, after = resumed(tasks(1), folder)
    assert sorted(log.read_text().split()) == ["a", "b", "c", "d", "e", "g"]
    assert number == 1
    now = cells(folder)
    assert {name for name, content in now.items() if "aside" not in name and content != whole[name]} == {
        files["d"].name
    }
    # Whatever stood in the place of a result is still there.
    asides = {name.removesuffix(".aside-1"): content for name, content in now.items() if name.endswith(".aside-1")}
    assert asides == {files[name].name: broken[files[name].name] for name in "bcdeg"}
    assert after.results["d"] != before.results["d"]
    log.unlink()
    assert resumed(tasks(1), folder)[0] == 7
    assert not log.exists()
    # Without resume all is done anew, and other files stay.
    assert resumed(tasks(1)[:2], folder, resume=False)[0] == 0
    assert sorted(log.read_text().split()) == ["a", "b"]
    assert len([name for name in cells(folder) if name.endswith(".json")]) == 7
    assert (folder / "other").exists()


def test_any_key_has_a_file_of_its_own(tmp_path: Path) -> None:
    keys = [
        "a/b",
        "a b",
        "a_b",
        "../a",
        "..",
        "",
        "A/B",
        "é",
        "日本",
        "x" * 400,
        "new\nline",
        'quo"te',
        "\udc80",
        "a\0",
    ]
    outcome = grid([GridTask(key, {}) for key in keys], tmp_path)
    assert list(outcome.results) == keys
    assert {json.loads(content)["key"] for content in cells(tmp_path).values()} == set(keys)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cells"]
    assert resumed([GridTask(key, {}) for key in keys], tmp_path)[0] == len(keys)


@pytest.mark.parametrize(
    ("tasks", "options", "message"),
    [
        ([GridTask("a", {}), GridTask("b", {}), GridTask("a", {})], {}, "two tasks have the key 'a'"),
        ([GridTask("a", {})], {"engine": "cloud"}, "there is no engine 'cloud': the engines are local, ray"),
        ([GridTask("a", {})], {"engine": "threading"}, "there is no engine 'threading'"),
        ([GridTask("a", {"b": [float("inf")]})], {}, "the payload of task 'a' is not plain JSON: b[0] is inf"),
        ([GridTask("a", {"b": {1, 2}})], {}, "b is of type set"),
        ([GridTask("a", {})], {"workers": 0}, "workers must be 1 or more, not 0"),
        ([GridTask("a", {})], {"threads": 0}, "threads must be 1 or more, not 0"),
    ],
)
def test_a_bad_request_leaves_nothing_behind(
    tasks: list[GridTask], options: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError) as caught:
        grid(tasks, tmp_path / "grid", **options)
    assert message in str(caught.value)
    assert not (tmp_path / "grid").exists()


@pytest.mark.parametrize("name", ["nowhere:work", "test_grid:nothing", "test_grid", "__main__:work", ":work"])
def test_work_that_no_worker_could_import(name: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot import|there is no function"):
        run_grid([GridTask("a", {})], name, tmp_path / "grid")


def test_progress_is_told_from_the_start(tmp_path: Path) -> None:
    told: list[GridProgress] = []
    grid(seeds(3), tmp_path, on_progress=told.append)
    assert told[0] == GridProgress(done=0, total=3, failed=0, remaining_s=None, last_key=None)
    assert [progress.done for progress in told] == [0, 1, 2, 3]
    assert told[-1].remaining_s == 0.0


def test_the_first_task_of_each_worker_says_nothing_about_the_pace() -> None:
    loads, quick = (1.0, 60.0), (1.0, 2.0)
    assert pace_of([], 2) is None
    assert pace_of([loads, loads], 2) is None
    assert pace_of([loads, loads, quick, quick], 2) == 2.0
    assert pace_of([loads, (2.0, 1.0), (6.0, 3.0), (1.0, 40.0)], 1) == 0.5  # the last of a new kind, which compiled
    assert pace_of([loads, (0.0, 1.0)], 1) is None


def test_a_kind_of_tasks_has_its_own_pace() -> None:
    def task(number: int, kind: str) -> GridTask:
        return GridTask(f"{kind}/{number}", {}, 1.0, kind)

    left = [task(number, "slow") for number in range(90, 100)]
    quick = [(task(number, "quick"), 1.0) for number in range(20)]
    slow = [(task(number, "slow"), 20.0) for number in range(5)]
    assert time_of(left, quick, 2) == 5.0  # nobody knows yet
    assert time_of(left, quick + slow[:4], 2) == 5.0  # these may have compiled
    assert time_of(left, quick + slow, 2) == 100.0
    assert time_of([], quick + slow, 2) == 0.0
    assert time_of(left, [], 2) is None


def test_the_time_left_is_shared_but_no_shorter_than_the_longest_task() -> None:
    assert time_left([3.0, 1.0, 1.0, 1.0], workers=2, pace=10.0) == 30.0
    assert time_left([3.0, 3.0, 3.0, 3.0], workers=2, pace=10.0) == 60.0
    assert time_left([3.0], workers=8, pace=None) is None
    assert time_left([], workers=8, pace=None) == 0.0


def test_a_backend_registered_with_joblib_is_an_engine(tmp_path: Path) -> None:
    joblib.register_parallel_backend("my-own", BACKENDS["loky"])
    try:
        assert list(grid(seeds(2), tmp_path, engine="my-own").results) == ["seed-0", "seed-1"]
    finally:
        del BACKENDS["my-own"]


def test_ray_that_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'd2dfl\[ray\]'"):
        grid(seeds(1), tmp_path / "grid", engine="ray")


def test_a_killed_grid_goes_on_to_the_same_bytes(tmp_path: Path) -> None:
    tasks = seeds(8)
    # It halts after three tasks, so that it is in the middle however slow this machine is.
    script = "import test_grid as t; t.grid(t.seeds(8), t.Path('cut'), on_progress=lambda p: p.done == 3 and t.time.sleep(600))"
    environment = {**os.environ, "PYTHONPATH": str(TESTS)}
    process = subprocess.Popen([sys.executable, "-c", script], cwd=tmp_path, env=environment)
    while process.poll() is None and len(list(tmp_path.glob("cut/cells/*.json"))) < 3:
        time.sleep(0.01)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    kept = cells(tmp_path / "cut")
    assert resumed(tasks, tmp_path / "cut")[0] == 3
    grid(tasks, tmp_path / "whole")
    assert cells(tmp_path / "cut") == cells(tmp_path / "whole")
    assert kept.items() <= cells(tmp_path / "whole").items()


def test_a_dying_worker_takes_nothing_along(tmp_path: Path) -> None:
    tasks = [
        *seeds(3, sleep=0.05),
        GridTask("die", {"do": "die"}, cost=9.0),
        GridTask("once", {"do": "die once", "mark": str(tmp_path / "mark")}, cost=5.0),
    ]
    told: list[GridProgress] = []
    outcome = grid(tasks, tmp_path, on_progress=told.append)
    assert list(outcome.results) == ["seed-0", "seed-1", "seed-2", "once"]
    assert [failure.key for failure in outcome.failures] == ["die"]
    assert "its process died, twice" in outcome.failures[0].reason
    assert "\n" not in outcome.failures[0].reason
    assert told[-1] == GridProgress(done=4, total=5, failed=1, remaining_s=0.0, last_key=told[-1].last_key)


def test_ctrl_c_keeps_what_is_done(tmp_path: Path) -> None:
    def interrupt(progress: GridProgress) -> None:
        if progress.done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        grid(seeds(4), tmp_path, on_progress=interrupt)
    assert len(cells(tmp_path)) == 1
    assert resumed(seeds(4), tmp_path)[0] == 1


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The package, which reads these when it is imported: it talks to this machine only, and tells nobody of itself."""
    monkeypatch.setenv("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")  # Ray's word for loopback
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    return pytest.importorskip("ray", reason="no Ray: make test EXTRAS=ray,tensorboard")


@pytest.fixture
def cluster(ray: Any) -> Iterator[None]:
    """A Ray cluster that ends with the test, however it ends."""
    path = {"env_vars": {"PYTHONPATH": str(TESTS)}}  # a cluster has our package, but not these tests
    with tempfile.TemporaryDirectory(prefix="ray-") as folder:  # names of sockets in it must be short
        try:
            ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, runtime_env=path, _temp_dir=folder)
            assert [node["NodeManagerAddress"] for node in ray.nodes()] == ["127.0.0.1"]
            yield
        finally:
            ray.shutdown()


@pytest.mark.filterwarnings("ignore")  # of Ray and of what it starts
def test_no_ray_cluster_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ray: Any) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "nowhere")
    with pytest.raises(UserError, match="ray start --head"):
        grid(seeds(1), tmp_path / "grid", engine="ray")
    assert not ray.is_initialized()


@pytest.mark.filterwarnings("ignore")  # of Ray and of what it starts
def test_ray_gives_the_same_bytes(tmp_path: Path, cluster: None) -> None:
    tasks = [*seeds(4), GridTask("fail", {"do": "fail"}), GridTask("die", {"do": "die"})]
    far = [grid(tasks, tmp_path / f"{workers}", engine="ray", workers=workers) for workers in (1, 2)]
    near = grid(tasks, tmp_path / "near")
    assert cells(tmp_path / "1") == cells(tmp_path / "2") == cells(tmp_path / "near")
    assert far[0].results == far[1].results == near.results
    assert all([failure.key for failure in outcome.failures] == ["fail", "die"] for outcome in [*far, near])
