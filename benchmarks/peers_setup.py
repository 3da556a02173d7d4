"""For peers.py: the peers' environments, the tasks as files, and one run of a system with its peak memory."""

import contextlib
import hashlib
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import threading
import venv
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, Self

import numpy as np
import torch

from d2dfl.config import FederationConfig
from d2dfl.data.datasets import load
from d2dfl.federation import MODELS, Federated, model_of, start
from d2dfl.federation.batches import Batches

WORKERS = Path(__file__).resolve().parent / "peers_workers"
sys.path.insert(0, str(WORKERS))

from shared import family  # noqa: E402  # the systems import it from there too

SAMPLE_S = 0.1  # between two looks at the memory
# Pinned exactly: any other request for torch downloads gigabytes of GPU packages.
TORCH = "torch==2.13.0"


class Missing(Exception):
    """A peer that cannot be installed; the text says which and why."""


@dataclass(frozen=True)
class Peer:
    """A system with an environment of its own."""

    name: str
    requirements: tuple[str, ...]


PEERS = (
    Peer("Flower", (TORCH, "numpy>=1.26,<3", "flwr[simulation]>=1.41,<1.42", "ray>=2.55,<3")),
    Peer("pfl", (TORCH, "numpy>=1.26,<3", "pfl==0.6.0")),
)
SCRIPTS = {"ours": "run_ours.py", "bare loop": "run_bare.py", "Flower": "run_flower.py", "pfl": "run_pfl.py"}


class How(Protocol):
    """A system and its setting."""

    @property
    def system(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def threads(self) -> int: ...
    @property
    def processes(self) -> int: ...


@dataclass(frozen=True)
class TaskPlan:
    """What is trained."""

    name: str
    model: str
    devices: int
    samples: int  # of a device
    batch: int
    steps: int  # of a device in a round
    learning_rate: float
    trials: int  # rounds that choose the best setting of a system
    cycles: int  # rounds that are timed
    seed: int = 0
    participation: float = 1.0
    pool: int = 0  # datapoints that devices share, each with all it holds in every minibatch; 0: everybody has its own

    @property
    def rounds(self) -> int:
        """The first (start-up) and the last (ours evaluates in it) are not timed."""
        return 1 + self.trials + self.cycles + 1

    @property
    def title(self) -> str:
        return (
            f"{self.devices} devices, {self.model}, {self.samples} datapoints a device, minibatches of "
            f"{min(self.batch, self.samples)}, {self.steps} steps a round, SGD {self.learning_rate:g} with momentum "
            f"0.9, FedAvg, float32, {self.rounds} rounds"
        )

    def smaller(self) -> Self:
        """For a quick look."""
        return replace(self, devices=min(self.devices, 25) // 5, trials=1, cycles=2)


TASKS = {
    "alexnet": TaskPlan("alexnet", "alexnet", 25, 240, 64, 4, 0.001, trials=1, cycles=4),
    "digits": TaskPlan("digits", "mlp", 100, 14, 64, 10, 0.01, trials=4, cycles=25),
    "digits, one epoch": TaskPlan("digits, one epoch", "mlp", 100, 14, 64, 1, 0.1, trials=4, cycles=25),
}


def python_of(folder: Path | None) -> Path:
    """The interpreter of an environment; None: this one."""
    return Path(sys.executable) if folder is None else folder / "bin" / "python"


def prepare(peer: Peer, cache: Path) -> Path:
    """Install a peer unless it is there; returns its interpreter."""
    folder = (cache / peer.name.lower()).absolute()
    mark = folder / f".ready-{hashlib.sha256(' '.join(peer.requirements).encode()).hexdigest()[:12]}"
    if mark.exists():
        return python_of(folder)
    print(f"installing {peer.name} into {cache / peer.name.lower()} (once)", flush=True)
    try:
        venv.create(folder, with_pip=True)
        command = [str(python_of(folder)), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*command, *peer.requirements], check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        said = [line for line in (getattr(error, "stderr", None) or str(error)).splitlines() if "ERROR" in line]
        raise Missing(
            f"{peer.name} is missing: {', '.join(peer.requirements)} cannot be installed into "
            f"{cache / peer.name.lower()} ({said[-1] if said else error}); its rows are left out"
        ) from None
    mark.touch()
    return python_of(folder)


def machine(cores: int) -> str:
    """The machine in one line."""
    names = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    name = names[0].partition(":")[2].strip() if names else platform.processor()
    return (
        f"{name}, {cores} of {os.cpu_count()} cores used, Python {platform.python_version()}, torch {torch.__version__}"
    )


def write_task(plan: TaskPlan, folder: Path) -> None:
    """The arrays, the minibatches, the first weights and the settings, once for all systems."""
    arrays = _images(plan) if plan.model == "alexnet" else _digits(plan)
    written = {**arrays, "members": _members(plan, len(arrays["inputs"]))}
    members = written["members"]
    if not plan.pool:
        batches = Batches(list(members), plan.seed, plan.batch)
        rounds = [
            [batches.draw(device, number * plan.steps, plan.steps) for device in range(plan.devices)]
            for number in range(plan.rounds)
        ]
        written["batches"] = np.array(rounds)
    for name, array in written.items():
        np.save(folder / f"{name}.npy", array)
    data = Federated(
        arrays["inputs"], arrays["targets"], list(members), arrays["test_inputs"], arrays["test_targets"], 10
    )
    factory, settings = MODELS[plan.model], FederationConfig(momentum_rule="reset")
    torch.save(model_of(factory, data, start(factory, data, settings, plan.seed)), folder / "model.pt")
    known = {"model": plan.model, "outputs": 10, "seed": plan.seed, "batch": plan.batch}
    known |= {"learning_rate": plan.learning_rate, "momentum": 0.9, "steps": plan.steps}
    (folder / "settings.json").write_text(json.dumps(known | {"participation": plan.participation}))


def _members(plan: TaskPlan, held: int) -> Any:
    """[device, datapoint] who holds what."""
    if not plan.pool:
        return np.arange(plan.devices * plan.samples).reshape(plan.devices, plan.samples)
    draws = np.random.default_rng(1)
    return np.stack([draws.choice(held, plan.samples, replace=False) for _ in range(plan.devices)])


def _images(plan: TaskPlan) -> dict[str, Any]:
    """Colour images: patches that tell the class, under noise, so that a few rounds teach something but not all."""
    generator = np.random.default_rng(7)
    train, test = plan.pool or plan.devices * plan.samples, 1000
    patterns = np.kron(generator.normal(size=(10, 3, 4, 4)), np.ones((8, 8)))
    targets = generator.integers(0, 10, train + test)
    noise = generator.normal(size=(train + test, 3, 32, 32))
    inputs = (patterns[targets] / 2 + noise).astype(np.float32)
    return _split(inputs, targets, train)


def _digits(plan: TaskPlan) -> dict[str, Any]:
    """Handwritten digits, shuffled over the devices."""
    dataset = load("digits")
    order = np.random.default_rng(0).permutation(len(dataset.train_inputs))[: plan.pool or plan.devices * plan.samples]
    return {
        "inputs": dataset.train_inputs[order],
        "targets": dataset.train_targets[order],
        "test_inputs": dataset.test_inputs,
        "test_targets": dataset.test_targets,
    }


def _split(inputs: Any, targets: Any, train: int) -> dict[str, Any]:
    return {
        "inputs": inputs[:train],
        "targets": targets[:train],
        "test_inputs": inputs[train:],
        "test_targets": targets[train:],
    }


class System:
    """A system at work, in processes of its own; it takes one round when it is told to."""

    def __init__(self, python: Path, how: How, folder: Path, rounds: int) -> None:
        self.how, self.rounds, self.allowed = how, rounds, 0
        self.errors = tempfile.TemporaryFile("w+")  # noqa: SIM115  # closed in `stop`
        with tempfile.NamedTemporaryFile("w", dir=folder, prefix="turns-", delete=False) as file:
            file.write("0")
        self.turns = Path(file.name)
        self.process = subprocess.Popen(
            self._command(python, folder),
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
            env=os.environ | _environment(how, folder),
            cwd=folder,
        )

    def _command(self, python: Path, folder: Path) -> list[str]:
        command = [str(python)]
        if self.how.system == "pfl" and self.how.processes > 1:
            command += ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={self.how.processes}"]
        command += [str(WORKERS / SCRIPTS[self.how.system]), str(folder), str(self.turns), f"--rounds={self.rounds}"]
        return [
            *command,
            f"--threads={self.how.threads}",
            f"--processes={self.how.processes}",
            f"--kind={self.how.kind}",
        ]

    def allow(self, rounds: int = 1) -> None:
        """Let it begin some rounds more."""
        self.allowed += rounds
        part = self.turns.with_suffix(".part")
        part.write_text(str(self.allowed))
        part.replace(self.turns)

    def heard(self) -> dict[str, Any]:
        """What it says next: a round's seconds and processor seconds, or, after the last, what it has learned."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith("{"):
                return dict(json.loads(line))
        self.errors.seek(0)
        text = self.errors.read()[-3000:]
        self.stop()
        raise SystemExit(f"{self.how.title} stopped early:\n{text}")

    def round(self) -> dict[str, Any]:
        """One round."""
        self.allow()
        return self.heard()

    def stop(self) -> None:
        """End it and all that it started."""
        members = family(self.process.pid) if self.process.poll() is None else []
        for member in members:
            with contextlib.suppress(ProcessLookupError):
                os.kill(member, signal.SIGKILL)
        self.process.wait()
        self.errors.close()


def _environment(how: How, folder: Path) -> dict[str, str]:
    return {
        "OMP_NUM_THREADS": str(how.threads),
        # Threads wait without spinning: a core that someone else takes then costs its share, and not a factor of 10.
        "OMP_WAIT_POLICY": "PASSIVE",
        "PYTHONWARNINGS": "ignore",
        "FLWR_TELEMETRY_ENABLED": "0",
        "FLWR_HOME": str(folder / "flwr"),
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_worker_niceness": "0",  # Ray's own 15 would let everyone else on the machine go first
    }


def peak_memory(python: Path, how: How, folder: Path) -> tuple[float, int]:
    """GiB of a system at its peak in two rounds, alone on the machine, and the number of its processes."""
    system = System(python, how, folder, rounds=2)
    peak, most, over = 0, 0, threading.Event()

    def watch() -> None:
        nonlocal peak, most
        while not over.wait(SAMPLE_S):
            held, count = proportional_bytes(system.process.pid)
            peak, most = max(peak, held), max(most, count)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        system.allow(2)
        for _ in range(3):
            system.heard()
    finally:
        over.set()
        watcher.join()
        system.stop()
    return peak / 2**30, most


def proportional_bytes(root: int) -> tuple[int, int]:
    """PSS of a process and all that descend from it (a page that n of them share counts 1/n in each), and how many."""
    total, count = 0, 0
    for member in family(root):
        try:
            text = Path(f"/proc/{member}/smaps_rollup").read_text()
        except OSError:
            continue  # it has just ended
        found = [line for line in text.splitlines() if line.startswith("Pss:")]
        if found:
            total, count = total + 1024 * int(found[0].split()[1]), count + 1
    return total, count
