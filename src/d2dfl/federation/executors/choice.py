"""Where to compute, and by which executor: loop, stack or dense."""

from collections.abc import Callable

import torch

from d2dfl.config import FederationConfig
from d2dfl.errors import UserError
from d2dfl.federation.executors.dense import Dense, suits
from d2dfl.federation.executors.loop import Executor, Job, Loop
from d2dfl.federation.executors.stack import Stack, obstacle

Notice = Callable[[str], None]  # called with a sentence that the user should see

DENSE_LIMIT = 1 << 18  # parameters; on a CPU larger dense models leave its cache and the loop is faster


def processor(settings: FederationConfig) -> torch.device:
    """Where to compute."""
    if settings.device == "cuda" and not torch.cuda.is_available():
        raise UserError("federation.device cannot be cuda: this machine has none that PyTorch can use; give cpu")
    return torch.device("cuda" if settings.device != "cpu" and torch.cuda.is_available() else "cpu")


def stack_pays(job: Job) -> bool:
    """Whether the stack was asked for, or is the faster one: on a GPU, and for small dense models anywhere."""
    if job.settings.executor != "auto":
        return job.settings.executor == "stack"
    return job.inputs.is_cuda or (not job.layout.convolutional and job.layout.parameters <= DENSE_LIMIT)


def choose_executor(job: Job, notice: Notice) -> Executor:
    """The executor that was asked for, or the fastest; a model that cannot be stacked is trained in the loop."""
    if job.settings.executor == "auto" and suits(job):
        return Dense(job)
    if not stack_pays(job):
        return Loop(job)
    reason = obstacle(job)
    if reason is not None:
        notice(f"the model cannot be stacked ({reason}): devices train one after another")
        return Loop(job)
    return Stack(job)
