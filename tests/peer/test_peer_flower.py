"""The Flower app over peers' stores. What needs Flower itself is there where D2DFL_FLOWER_VENV names a venv that has it."""

import importlib.util
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

pytest.importorskip("msgspec", reason="no msgspec: pip install 'd2dfl[peer]'")
pytest.importorskip("zenoh", reason="no zenoh: pip install 'd2dfl[peer]'")

from d2dfl.data.datasets import load
from d2dfl.peer.datapoints import take_in
from d2dfl.peer.home import Home, make_home

APP = Path(__file__).parents[2] / "examples" / "flower_app"
LABELS = tuple(map(str, range(10)))
VENV = os.environ.get("D2DFL_FLOWER_VENV", "")


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("flower_run", APP / "run.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def homes(tmp_path: Path) -> list[Path]:
    """Three devices with 100 digits each."""
    data, found = load("digits", seed=0), []
    for number in range(3):
        home = tmp_path / f"device-{number}"
        (home / "data").mkdir(parents=True)
        rows = slice(100 * number, 100 * number + 100)
        inputs = np.asarray(data.train_inputs, dtype=np.float32)[rows]
        np.savez(home / "data" / "one.npz", inputs=inputs, targets=np.asarray(data.train_targets)[rows])
        make_home(home, f"device-{number}", "data", LABELS, "127.0.0.1:7447")
        store = Home(home).store()
        take_in(store, "data", home, LABELS, 0.0)
        store.close()
        found.append(home)
    return found


def test_the_simulator_trains_what_stores_hold(script: ModuleType, homes: list[Path]) -> None:
    assert script.simulate(homes, 1, 0) < script.simulate(homes, 3, 0)
    assert script.simulate(homes, 3, 0) > 0.7


def test_nothing_is_told_to_anybody_and_the_app_is_whole(script: ModuleType, tmp_path: Path) -> None:
    given = script.environment(tmp_path / "venv", tmp_path / "home")
    assert given["FLWR_TELEMETRY_ENABLED"] == "0"
    assert given["FLWR_DISABLE_UPDATE_CHECK"] == "1"
    assert given["FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION"] == "1"
    app = tomllib.loads((APP / "pyproject.toml").read_text())["tool"]["flwr"]["app"]
    assert app["config"].keys() >= script.SETTINGS.keys() | {"nodes", "rounds", "seed", "test", "result"}
    for place in app["components"].values():
        assert (APP / f"{place.partition(':')[0].replace('.', '/')}.py").is_file()


def test_the_extra_brings_the_flower_that_the_script_installs() -> None:
    extras = tomllib.loads((APP.parents[1] / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(extras["flower"]) <= set((APP / "requirements.txt").read_text().splitlines())


def test_without_a_fleet_it_says_how_to_have_one(tmp_path: Path) -> None:
    said = subprocess.run(
        [sys.executable, str(APP / "run.py"), str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert said.returncode == 2
    assert "holds no devices" in said.stderr


def test_a_training_that_fails_keeps_its_logs(script: ModuleType, homes: list[Path], tmp_path: Path) -> None:
    programs = tmp_path / "venv" / "bin"
    programs.mkdir(parents=True)
    for name, said in (
        ("python", "exit 0"),
        ("flwr", "exit 0"),
        ("flower-superlink", "echo out of order; exit 3"),
        ("flower-supernode", "sleep 600 & echo $!; wait"),
    ):
        (programs / name).write_text(f"#!/bin/sh\n{said}\n")
        (programs / name).chmod(0o700)
    command = [sys.executable, str(APP / "run.py"), str(homes[0].parent), "--venv", str(tmp_path / "venv")]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, "TMPDIR": str(tmp_path)}
    )
    assert done.returncode == 1
    assert "see the logs in" in done.stderr
    logs = Path(done.stderr.strip().rpartition(" ")[2])
    assert (logs / "flower-superlink-0.log").read_text() == "out of order\n"
    left = Path("/proc") / (logs / "flower-supernode-1.log").read_text().strip() / "cmdline"
    assert not left.exists() or not left.read_bytes()  # what a node has started ends with it


def test_a_venv_that_lacks_something_is_named(homes: list[Path], tmp_path: Path) -> None:
    programs = tmp_path / "venv" / "bin"
    programs.mkdir(parents=True)
    for name, said in (("flwr", "exit 0"), ("python", "echo \"No module named 'msgspec'\" >&2; exit 1")):
        (programs / name).write_text(f"#!/bin/sh\n{said}\n")
        (programs / name).chmod(0o700)
    command = [sys.executable, str(APP / "run.py"), str(homes[0].parent), "--venv", str(tmp_path / "venv")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "cannot train (No module named 'msgspec'): install there what" in done.stderr


if VENV:

    def test_flower_trains_over_the_stores(homes: list[Path]) -> None:
        command = [sys.executable, str(APP / "run.py"), str(homes[0].parent), "--venv", VENV, "--rounds", "2"]
        said = subprocess.run(command, capture_output=True, text=True, check=False)
        assert said.returncode == 0, said.stderr[-2000:]
        trained, simulated = (
            float(part.split()[0].rstrip(";"))
            for part in (said.stdout.split("accuracy ")[1], said.stdout.rsplit(": ", 1)[1])
        )
        assert trained > 0.5
        assert abs(trained - simulated) < 0.2

    def test_a_device_that_cannot_train_ends_it(homes: list[Path], tmp_path: Path) -> None:
        fleet = tmp_path / "fleet"
        shutil.copytree(homes[0].parent, fleet)
        (fleet / homes[0].name / "store.db").unlink()
        command = [sys.executable, str(APP / "run.py"), str(fleet), "--venv", VENV, "--rounds", "1"]
        said = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
        assert said.returncode == 1
        assert "of 3 devices could not train in round 1" in said.stderr
