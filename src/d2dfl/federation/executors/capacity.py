"""How much memory a training needs, per device, and how much there is."""

import torch
from torch import Tensor, nn

from d2dfl import memory
from d2dfl.federation.executors.loop import PIECE, Job, outputs_of, prepared
from d2dfl.federation.optimisers import remembered

SHARE = 0.6  # of the free memory that stacked runs may take
FLOAT = 4  # bytes
FEW = 1 << 30  # bytes that are taken to be free where the system does not tell


def bytes_per_device(job: Job, stacked: bool) -> int:
    """Memory that one more device takes, its data not counted: weights and optimiser; stacked, also a step's work."""
    settings, size = job.settings, job.layout.parameters
    numbers = size
    if stacked or settings.momentum_rule != "reset":
        numbers += sum(remembered(settings, size).values())
    if stacked:
        # The gradient flat and as autograd gives it, FedProx's anchor, and activations with their gradients.
        numbers += (3 if job.proximal else 2) * size + 2 * min(settings.batch, PIECE) * _activations(job)
    return FLOAT * numbers


def free_bytes(place: torch.device) -> int:
    """Memory that is free where the training computes."""
    if place.type == "cuda":
        return int(torch.cuda.mem_get_info(place)[0])
    free = memory.free_bytes()
    return FEW if free is None else int(free)


@torch.no_grad()
def _activations(job: Job) -> int:
    """Numbers that the layers put out for one datapoint, the datapoint itself included."""
    inputs = prepared(job.loss, job.inputs[:1], 0, 0)  # several where the loss makes views
    counted = [inputs.numel()]

    def count(_module: nn.Module, _inputs: object, outputs: object) -> None:
        if isinstance(outputs, Tensor):
            counted.append(outputs.numel())

    leaves = [module for module in job.model.modules() if not list(module.children())]
    hooks = [module.register_forward_hook(count) for module in leaves]
    outputs_of(job, inputs)
    for hook in hooks:
        hook.remove()
    return sum(counted)
