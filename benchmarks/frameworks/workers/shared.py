"""What all systems share: the task as the driver wrote it, and the clock. Needs NumPy and PyTorch only."""

import argparse
import json
import os
import time
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

TICKS = os.sysconf("SC_CLK_TCK")
PIECE = 256  # datapoints tested at once: evaluation shall not be the peak of the memory


@dataclass(frozen=True)
class Task:
    """The arrays lie in files that are mapped into memory: processes that read the same page share it."""

    inputs: NDArray[np.float32]
    targets: NDArray[np.int64]
    test_inputs: NDArray[np.float32]
    test_targets: NDArray[np.int64]
    members: NDArray[np.int64]  # [device, datapoint]
    settings: dict[str, Any]
    model: Path
    # [round, device, step, datapoint]: the same minibatches for everyone; None: always all that a device holds
    batches: NDArray[np.int64] | None = None

    @property
    def devices(self) -> int:
        return len(self.members)

    @property
    def steps(self) -> int:
        """Of a device in a round."""
        return int(self.settings["steps"])

    @property
    def present(self) -> int:
        """Devices that take part in a round."""
        return max(1, round(self.settings["participation"] * self.devices))

    def chosen(self, round_number: int, device: int, step: int) -> Tensor:
        """Which datapoints a minibatch has."""
        return torch.from_numpy(
            self.members[device] if self.batches is None else self.batches[round_number, device, step]
        )

    def new_model(self) -> nn.Module:
        """The model that everyone starts from, kernels with their channels last: the faster order on a CPU."""
        # A pickle, but the driver's own: it wrote it into its temporary folder a moment ago.
        model: nn.Module = torch.load(self.model, weights_only=False)
        return model.to(memory_format=torch.channels_last)  # type: ignore[call-overload, no-any-return]  # torch knows it, its types do not

    def batch(self, round_number: int, device: int, step: int) -> tuple[Tensor, Tensor]:
        """One minibatch."""
        chosen = self.chosen(round_number, device, step)
        return ordered(torch.from_numpy(self.inputs)[chosen]), torch.from_numpy(self.targets)[chosen]


@cache
def task_in(folder: Path) -> Task:
    """The task that the driver wrote into a folder."""
    names = ("inputs", "targets", "test_inputs", "test_targets", "members", "batches")
    files = {name: folder / f"{name}.npy" for name in names}
    arrays = {name: np.load(file, mmap_mode="c") for name, file in files.items() if file.exists()}
    return Task(**arrays, settings=json.loads((folder / "settings.json").read_text()), model=folder / "model.pt")


def ordered(inputs: Tensor) -> Tensor:
    """Images with their channels last."""
    return inputs.contiguous(memory_format=torch.channels_last) if inputs.ndim == 4 else inputs


def new_optimiser(model: nn.Module, settings: dict[str, Any]) -> torch.optim.SGD:
    """The fastest that PyTorch has: one fused kernel."""
    return torch.optim.SGD(model.parameters(), settings["learning_rate"], settings["momentum"], fused=True)


@torch.no_grad()
def tested(model: nn.Module, task: Task) -> dict[str, float]:
    """Accuracy and loss on the test set."""
    model.eval()
    pieces = torch.split(torch.from_numpy(task.test_inputs), PIECE)
    outputs = torch.cat([model(ordered(piece)) for piece in pieces])
    targets = torch.from_numpy(task.test_targets)
    accuracy = (outputs.argmax(dim=1) == targets).double().mean()
    return {"accuracy": float(accuracy), "loss": float(nn.functional.cross_entropy(outputs, targets))}


def family(root: int) -> list[int]:
    """A process and all that descend from it."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            fields = _stat(int(entry.name))
            if fields:
                children.setdefault(int(fields[1]), []).append(int(entry.name))
    found = [root]
    for process in found:
        found += children.get(process, [])
    return found


def cpu_seconds(root: int) -> float:
    """Processor time of a process and of all that descend from it."""
    return sum(int(fields[11]) + int(fields[12]) for fields in map(_stat, family(root)) if fields) / TICKS


def _stat(process: int) -> list[str] | None:
    """What the kernel says about a process, from its state on; None: it has ended."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None


@dataclass
class Clock:
    """Times the rounds. Each begins when the driver allows it: systems take turns, and noise hits all of them."""

    chosen: argparse.Namespace
    root: int = field(default_factory=os.getpid)  # of the processes whose time is counted
    talks: bool = True  # one process of a system
    done: int = 0
    began: float = 0.0
    cpu: float = 0.0

    def wait(self) -> None:
        """Until the driver allows the next round."""
        while int(self.chosen.turns.read_text() or 0) <= self.done:
            time.sleep(0.005)
        self.cpu = cpu_seconds(self.root)
        self.began = time.perf_counter()

    def tick(self) -> None:
        """A round has ended."""
        seconds = time.perf_counter() - self.began
        self.done += 1
        self.say({"seconds": seconds, "cpu": cpu_seconds(self.root) - self.cpu})
        if self.done < self.chosen.rounds:
            self.wait()

    def say(self, what: dict[str, Any]) -> None:
        """One line for the driver."""
        if self.talks:
            print(json.dumps(what), flush=True)


def options() -> argparse.Namespace:
    """What the driver asks of a system; sets PyTorch's threads."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("turns", type=Path, help="a file with the number of rounds that may begin")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--kind", default="")
    chosen = parser.parse_args()
    torch.set_num_threads(chosen.threads)
    return chosen
