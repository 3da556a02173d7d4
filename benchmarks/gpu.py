"""25 AlexNets at once on a GPU, batch 64: milliseconds a step, and whether bfloat16 learns as float32 does.

python benchmarks/gpu.py            (needs an NVIDIA card)
"""

import time
from collections.abc import Callable
from typing import Literal

import numpy as np
import torch
from torch import nn

from d2dfl.config import FederationConfig
from d2dfl.federation import Federated, train
from d2dfl.federation.batches import Plan
from d2dfl.federation.layout import Layout
from d2dfl.federation.local import Job
from d2dfl.federation.losses import loss_named
from d2dfl.federation.models import MODELS
from d2dfl.federation.optimisers import lasting_memory
from d2dfl.federation.stack import Stack

DEVICES, BATCH, POOL = 25, 64, 4096
Precision = Literal["float32", "bfloat16"]
PRECISIONS: tuple[Precision, ...] = ("float32", "bfloat16")


def milliseconds(work: Callable[[], object], steps: int) -> float:
    """Time of one step, warm."""
    work()
    work()
    torch.cuda.synchronize()
    began = time.perf_counter()
    work()
    torch.cuda.synchronize()
    return 1e3 * (time.perf_counter() - began) / steps


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


def stack(inputs: torch.Tensor, targets: torch.Tensor, steps: int, precision: Precision) -> float:
    """Our executor."""
    settings = FederationConfig(precision=precision)
    model = MODELS["alexnet"]((3, 32, 32), 10)
    layout = Layout.of(model)
    params = layout.row_of(model).repeat(DEVICES, 1).cuda()
    job = Job(model.cuda(), layout, loss_named("cross-entropy"), settings, False, inputs, targets)
    executor = Stack(job)
    chosen = np.random.default_rng(0).integers(0, POOL, (steps, DEVICES, BATCH))
    plan = Plan(np.arange(DEVICES), chosen, np.full(DEVICES, BATCH), np.zeros((steps, DEVICES), dtype=np.uint64))
    memory = lasting_memory(settings, params)
    return milliseconds(lambda: executor.train(params, memory, plan), steps)


def accuracy(precision: Precision, seed: int) -> float:
    """A task that takes some learning: noisy class patterns, two labels a device."""
    generator = np.random.default_rng(7)
    patterns = generator.normal(size=(10, 3, 32, 32))
    targets = np.arange(6000) % 10
    inputs = (patterns[targets] / 6.0 + generator.normal(size=(6000, 3, 32, 32))).astype(np.float32)
    held = [
        np.nonzero((targets[:5000] % 10 == d % 10) | (targets[:5000] % 10 == (d + 3) % 10))[0] for d in range(DEVICES)
    ]
    data = Federated(inputs[:5000], targets[:5000], held, inputs[5000:], targets[5000:], 10)
    settings = FederationConfig(rounds=30, interval=10, learning_rate=1e-3, evaluate_every=30, precision=precision)
    return train(MODELS["alexnet"], data, settings, seed).score


def main() -> None:
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    inputs = torch.randn(POOL, 3, 32, 32, device="cuda")
    targets = torch.randint(0, 10, (POOL,), device="cuda")
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, {DEVICES} AlexNets, batch {BATCH}, ms a step")
    print(f"  bare loop             {bare_loop(inputs, targets, 5):8.2f}")
    print(f"  ours, float32 (tf32)  {stack(inputs, targets, 40, 'float32'):8.2f}")
    print(f"  ours, bfloat16        {stack(inputs, targets, 40, 'bfloat16'):8.2f}   (target: 4)", flush=True)
    for precision in PRECISIONS:
        scores = [accuracy(precision, seed) for seed in range(3)]
        print(f"  accuracy after 30 rounds, {precision}: {np.mean(scores):.3f} ± {np.std(scores):.3f}", flush=True)
    print(f"  peak memory {torch.cuda.max_memory_allocated() / 2**30:.2f} GiB")


if __name__ == "__main__":
    main()
