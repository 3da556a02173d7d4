"""25 and 250 AlexNets at once on a GPU, batch 64: milliseconds a step, and whether bfloat16 learns as float32 does.

python benchmarks/gpu.py [DATASET]       (needs an NVIDIA card; the dataset, fmnist, on this machine)
"""

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Literal

import numpy as np
import torch
from torch import nn

from d2dfl.config import FederationConfig
from d2dfl.data import Dataset
from d2dfl.data.allocate import allocate
from d2dfl.data.datasets import load
from d2dfl.experiment.measures import spread
from d2dfl.federation import Federated, train_many
from d2dfl.federation.batches import BatchPlan
from d2dfl.federation.executors.loop import Job
from d2dfl.federation.executors.stack import Stack
from d2dfl.federation.layout import Layout
from d2dfl.federation.losses import loss_named
from d2dfl.federation.models import MODELS
from d2dfl.federation.optimisers import blank_memory

DEVICES, BATCH, POOL, SEEDS = 25, 64, 4096, 3
REPEATS = 5
Precision = Literal["float32", "bfloat16"]
PRECISIONS: tuple[Precision, ...] = ("float32", "bfloat16")


def milliseconds(work: Callable[[], object], steps: int) -> float:
    """Time of one step, warm: the median of some."""
    work()
    work()
    times = []
    for _ in range(REPEATS):
        torch.cuda.synchronize()
        began = time.perf_counter()
        work()
        torch.cuda.synchronize()
        times.append(1e3 * (time.perf_counter() - began) / steps)
    return statistics.median(times)


def bare_loop(inputs: torch.Tensor, targets: torch.Tensor, steps: int) -> float:
    """What one would write first: a model, an optimiser and a step per device."""
    models = [MODELS["alexnet"]((3, 32, 32), 10).cuda() for _ in range(DEVICES)]
    optimisers = [torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, fused=True) for model in models]

    def work() -> None:
        for _ in range(steps):
            for number, (model, optimiser) in enumerate(zip(models, optimisers, strict=True)):
                piece = slice(number * BATCH, (number + 1) * BATCH)
                optimiser.zero_grad(set_to_none=True)
                nn.functional.cross_entropy(model(inputs[piece]), targets[piece]).backward()
                optimiser.step()

    return milliseconds(work, steps)


def stack(
    inputs: torch.Tensor, targets: torch.Tensor, devices: int, steps: int, precision: Precision, windows: bool = False
) -> float:
    """Our executor; with `windows`, as it computes on other cards and other models."""
    settings = FederationConfig(precision=precision, learning_rate=1e-3)  # at 0.01 noise diverges
    model = MODELS["alexnet"]((3, 32, 32), 10)
    layout = Layout.of(model)
    params = layout.row_of(model).repeat(devices, 1).cuda()
    job = Job(model.cuda(), layout, loss_named("cross-entropy"), settings, False, inputs, targets)
    executor = Stack(job)
    if windows:
        executor.design = None
    chosen = np.random.default_rng(0).integers(0, POOL, (steps, devices, BATCH))
    plan = BatchPlan(np.arange(devices), chosen, np.full(devices, BATCH), np.zeros((steps, devices), dtype=np.uint64))
    memory = blank_memory(settings, params)
    return milliseconds(lambda: executor.train(params, memory, plan), steps)


def curves(dataset: Dataset, precision: Precision) -> list[list[float]]:
    """[seed][evaluation] accuracy of AlexNets on label-skewed devices, every second round."""
    runs = []
    for seed in range(SEEDS):
        held = allocate(dataset.train_targets, DEVICES, "labels:3", samples=1200, seed=seed)
        runs.append((Federated.of(dataset, held), seed))
    settings = FederationConfig(rounds=20, interval=20, evaluate_every=2, precision=precision)
    return [curve.scores for curve in train_many(MODELS["alexnet"], runs, settings)]


def compare_precisions(name: str) -> None:
    """The same three seeds in both precisions, and how far they are apart beside how far seeds are apart."""
    dataset = load(name, download=False)
    found = {precision: np.array(curves(dataset, precision)) for precision in PRECISIONS}
    print(f"  accuracy on {name}, 3 labels a device, mean ± deviation over {SEEDS} seeds after rounds 4, 10, 20:")
    for precision, scores in found.items():
        shown = [f"{scores[:, at].mean():.3f} ± {spread(scores[:, at]) or 0:.3f}" for at in (1, 4, 9)]
        print(f"    {precision:9s} {', '.join(shown)}")
    difference = found["bfloat16"] - found["float32"]
    print(
        f"    bfloat16 - float32, mean over the last half of the curves: {difference[:, 5:].mean():+.4f}, "
        f"deviation over seeds {spread(difference[:, 5:].mean(axis=1)) or 0:.4f}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", nargs="?", default="fmnist", metavar="DATASET")
    given = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    inputs = torch.randn(POOL, 3, 32, 32, device="cuda")
    targets = torch.randint(0, 10, (POOL,), device="cuda")
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, AlexNets, batch {BATCH}, ms a step")
    print(f"  {DEVICES}, bare loop                     {bare_loop(inputs, targets, 5):8.2f}")
    for devices, steps in ((DEVICES, 40), (10 * DEVICES, 10)):
        print(f"  {devices}, ours, float32 (tf32)         {stack(inputs, targets, devices, steps, 'float32'):8.2f}")
        print(
            f"  {devices}, ours, bfloat16, with windows {stack(inputs, targets, devices, steps, 'bfloat16', True):8.2f}"
        )
        aim = 1.8 if devices == DEVICES else 16
        print(
            f"  {devices}, ours, bfloat16               {stack(inputs, targets, devices, steps, 'bfloat16'):8.2f}   (aim: {aim})"
        )
        print(flush=True)
    compare_precisions(given.dataset)
    print(f"  peak memory {torch.cuda.max_memory_allocated() / 2**30:.2f} GiB")


if __name__ == "__main__":
    main()
