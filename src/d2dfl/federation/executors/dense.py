"""The `dense` executor: small dense networks on a CPU, each device's steps in one piece of compiled code.

A small network's weights fit the innermost caches. Device after device takes all its steps up to the next aggregation
while they are there, and threads share the devices out: nothing waits for anything, and no step costs a call. Gradients
skip what a ReLU has cut off. Batched products over all devices go through every device's weights at every step instead.
"""

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from d2dfl.federation.batches import BatchPlan
from d2dfl.federation.executors.loop import Job
from d2dfl.federation.executors.stack import Stack
from d2dfl.federation.losses import CROSS_ENTROPY, MSE
from d2dfl.federation.optimisers import OPTIMISERS, Memory

LARGEST = 1 << 20  # parameters; nothing larger was measured


def widths_of(model: nn.Module) -> list[int] | None:
    """Widths [input, hidden ..., output] of a sequence of dense layers with ReLU between; None: not such a model."""
    if not isinstance(model, nn.Sequential):
        return None
    widths: list[int] = []
    after_dense = False
    for layer in model:
        if isinstance(layer, nn.Linear) and layer.bias is not None and not after_dense:
            widths += [layer.out_features] if widths else [layer.in_features, layer.out_features]
            after_dense = True
        elif isinstance(layer, nn.ReLU) and after_dense:
            after_dense = False
        elif not (isinstance(layer, nn.Flatten) and not widths):
            return None
    return widths if after_dense else None


def suits(job: Job) -> bool:
    """Whether this executor can train a model, and is the fastest."""
    widths, size = widths_of(job.model), job.layout.parameters
    if widths is None or size != sum(outs * (ins + 1) for ins, outs in pairwise(widths)):
        return False  # another model, or one of which a part is not trained
    known = job.loss in (CROSS_ENTROPY, MSE) and OPTIMISERS[job.settings.optimiser].compiled
    return known and size <= LARGEST and not job.inputs.is_cuda and job.inputs.dtype == torch.float32


class Dense(Stack):
    """Tests models as the stack does, and trains them device after device in compiled code."""

    name = "dense"

    def __init__(self, job: Job) -> None:
        # Only now: the compiler takes as much memory as a small network, and most trainings do without it.
        from d2dfl.federation.executors import dense_kernels

        super().__init__(job)
        self.kernels = dense_kernels
        widths = widths_of(job.model)
        if widths is None:
            raise ValueError("not a sequence of dense layers")
        self.widths = np.array(widths, dtype=np.int64)
        self.inputs = job.inputs.flatten(1).numpy()
        self.targets = job.targets.numpy()

    def train(self, params: Tensor, memory: Memory, plan: BatchPlan) -> Tensor:
        settings, rows = self.job.settings, params.numpy()
        remembered = memory["momentum"].numpy() if memory else np.empty((0, 0), dtype=np.float32)
        losses = np.empty(plan.indices.shape[:2], dtype=np.float32)
        classes = self.job.loss == CROSS_ENTROPY
        labels = self.targets if classes else np.empty(0, dtype=np.int64)
        values = np.empty((0, 0), dtype=np.float32) if classes else self.targets.reshape(len(self.targets), -1)
        pull = settings.mu if self.job.proximal else 0.0
        rates = tuple(map(np.float32, (settings.learning_rate, settings.momentum, settings.weight_decay, pull)))

        datapoints = self.kernels.Datapoints(self.inputs, labels, values)
        steps = self.kernels.Steps(plan.rows, plan.indices, plan.counts, losses)

        def work(part: NDArray[np.intp]) -> None:
            self.kernels.train_devices(rows, remembered, datapoints, steps, self.widths, rates, part)

        parts = np.array_split(np.arange(len(plan.rows)), min(torch.get_num_threads(), len(plan.rows)))
        if len(parts) == 1:
            work(parts[0])
        else:
            with ThreadPoolExecutor(len(parts)) as pool:
                list(pool.map(work, parts))
        return torch.from_numpy(losses)
