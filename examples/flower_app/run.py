"""Train over the stores of peers with Flower: a SuperLink, a SuperNode a device, `flwr run`; beside it the simulator's accuracy.

    d2dfl fleet demo --devices 5 --out runs/fleet-demo
    python examples/flower_app/run.py runs/fleet-demo

All on loopback. Flower lives in a venv of its own (`--venv`, made from requirements.txt where it is not there: its pins and ours do not agree).
Telemetry, the check for updates and the installation of packages at run time are off.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

import d2dfl
from d2dfl import Config
from d2dfl.data.datasets import load
from d2dfl.federation.federated import Federated
from d2dfl.federation.models import mlp
from d2dfl.federation.training import train
from d2dfl.peer import Home
from d2dfl.peer.datapoints import arrays
from d2dfl.peer.transports.zenoh import free_ports

HERE = Path(__file__).parent
CLASSES = 10
SETTINGS = {"interval": 40, "batch": 16, "learning-rate": 0.05, "momentum": 0.9}


def make_venv(folder: Path) -> None:
    """A venv with Flower, unless it is there."""
    if not (folder / "bin" / "flwr").exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "-r", str(HERE / "requirements.txt")]
        subprocess.run(pip, check=True)
    needed = "import cryptography, flwr, msgspec, numpy, torch"
    found = subprocess.run([str(folder / "bin" / "python"), "-c", needed], capture_output=True, text=True, check=False)
    if found.returncode:
        why = found.stderr.strip().rpartition("\n")[2]
        raise SystemExit(f"{folder} cannot train ({why}): install there what {HERE / 'requirements.txt'} lists")


def environment(venv: Path, flower_home: Path) -> dict[str, str]:
    """Nothing is told to anybody, nothing is fetched; d2dfl comes from where this script has it."""
    source = str(Path(d2dfl.__file__).parents[1])
    return {
        **os.environ,
        "PATH": f"{(venv / 'bin').absolute()}:{os.environ['PATH']}",
        "PYTHONPATH": source,
        "FLWR_HOME": str(flower_home),
        "FLWR_TELEMETRY_ENABLED": "0",
        "FLWR_DISABLE_UPDATE_CHECK": "1",
        "FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION": "1",
        "OMP_NUM_THREADS": "1",
    }


class Flower:
    """A SuperLink and SuperNodes on loopback, for as long as the block lasts."""

    def __init__(self, venv: Path, folder: Path, homes: Sequence[Path], longest_s: float) -> None:
        self.venv, self.folder, self.homes, self.longest_s = venv, folder, homes, longest_s
        self.environment = environment(venv, folder / "flower-home")
        self.running: list[subprocess.Popen[bytes]] = []
        self.address = ""

    def start(self, name: str, *arguments: str) -> None:
        with (self.folder / f"{name}-{len(self.running)}.log").open("wb") as log:
            command = [str(self.venv / "bin" / name), *arguments]
            started = subprocess.Popen(
                command, env=self.environment, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )
            self.running.append(started)

    def __enter__(self) -> "Flower":
        ports = free_ports(1 + len(self.homes))
        self.address = f"127.0.0.1:{ports[0]}"
        (self.folder / "flower-home").mkdir()
        connection = (
            f'[superlink]\ndefault = "peers"\n\n[superlink.peers]\naddress = "{self.address}"\ninsecure = true\n'
        )
        (self.folder / "flower-home" / "config.toml").write_text(connection)
        link = ("--insecure", "--host", "127.0.0.1", "--port", str(ports[0]), "--isolation", "subprocess")
        self.start("flower-superlink", *link, "--disable-runtime-dependency-installation")
        for home, port in zip(self.homes, ports[1:], strict=True):
            node = ("--insecure", "--superlink", self.address, "--host", "127.0.0.1", "--port", str(port))
            self.start("flower-supernode", *node, "--node-config", f'home="{home.absolute()}"')
        return self

    def __exit__(self, *_: object) -> None:
        for process in reversed(self.running):
            process.terminate()
        for process in self.running:
            with suppress(subprocess.TimeoutExpired):
                process.wait(timeout=20)
            with suppress(
                ProcessLookupError
            ):  # what it had started itself outlives it: Flower waits for these a second
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def train(self, config: dict[str, float | str]) -> float:
        """Submit the app, and wait for its result."""
        written = " ".join(f"{name}={json.dumps(value)}" for name, value in config.items())
        result = Path(str(config["result"]))
        command = [str(self.venv / "bin" / "flwr"), "run", str(HERE), "peers", "--run-config", written]
        end = time.monotonic() + self.longest_s
        for _ in range(60):  # until the SuperLink listens
            said = subprocess.run(
                command, env=self.environment, capture_output=True, text=True, timeout=120, check=False
            )
            if said.returncode == 0:
                break
            time.sleep(1.0)
        else:
            raise SystemExit(f"flwr run did not work: {said.stdout[-800:]}{said.stderr[-800:]}")
        while not result.exists():
            if time.monotonic() > end or any(process.poll() is not None for process in self.running):
                raise SystemExit(f"the training has not ended; see the logs in {self.folder}")
            time.sleep(0.5)
        found = json.loads(result.read_text())
        if "failed" in found:
            raise SystemExit(f"the training failed: {found['failed'][:400]}; see the logs in {self.folder}")
        return float(found["accuracy"])


def simulate(homes: Sequence[Path], rounds: int, seed: int) -> float:
    """The same holdings, model and settings in d2dfl's own simulator."""
    inputs, targets, members = [], [], []
    for home in homes:
        store = Home(home).store(read_only=True)
        x, y, _ = arrays(store)
        store.close()
        members.append(np.arange(len(y)) + sum(map(len, targets)))
        inputs.append(x.astype(np.float32))
        targets.append(y)
    test = load("digits", seed=0)
    data = Federated(
        np.concatenate(inputs), np.concatenate(targets), members,
        np.asarray(test.test_inputs, dtype=np.float32), np.asarray(test.test_targets), CLASSES,
    )  # fmt: skip
    changes = {
        "federation.rounds": rounds,
        "federation.interval": SETTINGS["interval"],
        "federation.batch": SETTINGS["batch"],
        "federation.learning_rate": SETTINGS["learning-rate"],
        "federation.momentum": SETTINGS["momentum"],
        "federation.momentum_rule": "reset",  # as clients do that start a round with a new optimiser
    }
    return train(mlp, data, Config().with_(**changes).federation, seed).last_score


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("fleet", type=Path, help="folder of `d2dfl fleet demo`")
    parser.add_argument("--venv", type=Path, default=HERE / ".venv", help="where Flower is, or is to be")
    parser.add_argument("--rounds", type=int, default=5, help="few: Flower starts a process for each device and round")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--longest", type=float, default=600.0, help="seconds that the training may take")
    options = parser.parse_args()
    homes = sorted(path.parent for path in options.fleet.glob("device-*/peer.toml"))
    if not homes:
        parser.error(f"{options.fleet} holds no devices: make some with d2dfl fleet demo --out {options.fleet}")
    make_venv(options.venv)
    folder = Path(tempfile.mkdtemp(prefix="d2dfl-flower-"))  # kept with the logs if the training fails
    test = load("digits", seed=0)
    np.savez(
        folder / "test.npz",
        inputs=np.asarray(test.test_inputs, dtype=np.float32),
        targets=np.asarray(test.test_targets),
    )
    files = {"test": str(folder / "test.npz"), "result": str(folder / "result.json")}
    with Flower(options.venv, folder, homes, options.longest) as flower:
        config = {**SETTINGS, **files, "nodes": len(homes), "rounds": options.rounds, "seed": options.seed}
        trained = flower.train(config)
    shutil.rmtree(folder)
    simulated = simulate(homes, options.rounds, options.seed)
    print(
        f"Flower over {len(homes)} stores: accuracy {trained:.3f} after {options.rounds} rounds; the simulator on the same holdings: {simulated:.3f}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
